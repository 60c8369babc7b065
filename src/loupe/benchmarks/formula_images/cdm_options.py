"""Whether and how CDM is computed for a sample: options of scoring, which change neither pages nor ground truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias

from loupe.metrics.cdm.pairs import Renderer
from loupe.types import Sample

Switch: TypeAlias = Literal["on", "off"]


def with_cdm(sample: Sample, cdm: Switch, renderer: Renderer) -> Sample:
    """The sample with what these options say."""
    return replace(sample, scoring={"cdm": renderer if cdm == "on" else "off"})


def renderer_of(sample: Sample, default: Renderer | None = None) -> Renderer | None:
    """How the formulas of a sample are drawn for CDM, which is left out where this is None."""
    match sample.scoring.get("cdm"):
        case "layout":
            return "layout"
        case "ghostscript":
            return "ghostscript"
        case None:
            return default
        case _:
            return None
