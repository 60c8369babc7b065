"""How an answer was matched with the ground truth of its page: what a benchmark tells, and the report draws.

A benchmark that stores `details` beside its scores may turn them into an `Explanation`. Nothing here is specific to
one: areas of a page, judged units (blocks, tables, facts), and what was in no score.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """An area of the page that the ground truth marks: a polygon (x, y, x, y, …) in pixels of the annotated page.

    `order` is its place in the reading order; `scored` is false for what the benchmark never counts.
    """

    polygon: tuple[float, ...]
    category: str
    order: float | None = None
    scored: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaPair:
    """Two formulas in LaTeX that CDM compared as they are drawn, as it got them: the report draws them again.

    `profile` and `renderer` are CDM's. `f1` is None where it was not computed, and `prediction_failure` says why;
    else a failure says why that side was not drawn.
    """

    prediction: str
    reference: str
    profile: str
    renderer: str = "layout"
    f1: float | None = None
    prediction_failure: str = ""
    reference_failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One thing that was judged: what should stand there, and the pieces of the answer that were held against it.

    `regions` are indices into those of the page. `compared` and `tables` are (prediction, reference) as the metric got
    them: texts, or HTML of tables. `value` is 0 to 1, 1 being perfect; None where there is nothing to measure.
    """

    element: str
    regions: tuple[int, ...]
    reference: str
    pieces: tuple[str, ...] = ()
    step: str = ""
    distance: float | None = None
    value: float | None = None
    verdict: str = ""
    note: str = ""
    compared: tuple[str, str] | None = None
    tables: tuple[str, str] | None = None
    formulas: FormulaPair | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscored:
    """A piece of the answer that no score knows, why, and the regions that it was held against (if any)."""

    text: str
    reason: str
    regions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """Something that a reader must know of a score: how often it happened on this page."""

    name: str
    meaning: str
    count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One answer on one page. Orders are indices of regions, as annotated and as the answer has them.

    `size` is that of the annotated page. Without size and regions, the page is shown as it is.
    """

    size: tuple[float, float] = (0.0, 0.0)
    regions: tuple[Region, ...] = ()
    units: tuple[Unit, ...] = ()
    unscored: tuple[Unscored, ...] = ()
    true_order: tuple[int, ...] = ()
    predicted_order: tuple[int, ...] = ()
    flags: tuple[Flag, ...] = ()
