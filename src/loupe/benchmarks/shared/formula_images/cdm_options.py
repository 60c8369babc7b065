"""Whether and how CDM is computed for a sample: options of scoring, which change neither pages nor ground truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, TypeAlias, get_args

from loupe.metrics.cdm.profiles import Renderer
from loupe.types import Sample

Switch: TypeAlias = Literal["on", "off"]
#: Versions of CDM: loupe.metrics.cdm.profiles.
Profile: TypeAlias = Literal["unimernet", "omnidocbench", "omnidocbench_v16", "mdpbench"]


def with_cdm(sample: Sample, cdm: Switch, renderer: Renderer, profile: Profile | None = None) -> Sample:
    """The sample with what these options say; `profile` where the benchmark has more than its own."""
    return replace(
        sample, scoring={"cdm": renderer if cdm == "on" else "off"} | ({"cdm_profile": profile} if profile else {})
    )


def profile_of(sample: Sample, default: Profile) -> Profile:
    """The version of CDM that a sample is scored by."""
    named = sample.scoring.get("cdm_profile", default)
    return next((profile for profile in get_args(Profile) if profile == named), default)


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
