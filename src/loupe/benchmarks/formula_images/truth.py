"""The ground truth of a formula: its LaTeX, and, where it is not the usual one, the renderer of its CDM."""

from __future__ import annotations

from dataclasses import dataclass

from loupe.metrics.cdm.pairs import Renderer
from loupe.types import Sample


@dataclass(frozen=True, slots=True)
class DrawnTruth:
    """LaTeX whose CDM is asked for with this renderer."""

    latex: str
    renderer: Renderer


def latex_of(sample: Sample) -> str:
    """The ground truth."""
    latex: str = sample.truth.latex if isinstance(sample.truth, DrawnTruth) else sample.truth
    return latex


def renderer_of(sample: Sample) -> Renderer:
    """How its CDM is drawn."""
    return sample.truth.renderer if isinstance(sample.truth, DrawnTruth) else "layout"
