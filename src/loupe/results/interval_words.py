"""Explain how the intervals of a table were made: from what, and what stands beside a value."""

from __future__ import annotations

from collections.abc import Sequence

from loupe.results.sections import format_margin
from loupe.stats.estimates import is_share
from loupe.types import Estimate, Measure, Result


def interval_caption(results: Sequence[Result], columns: Sequence[Measure], *, bars: str) -> str:
    """A sentence on the intervals of these columns, of which that of the measure `bars` is drawn; "" without any."""
    found = [(measure, result.measures.get(measure.name)) for result in results for measure in columns]
    known = [(measure, one) for measure, one in found if one is not None and one.value is not None]
    spread = [(measure, one) for measure, one in known if one.low is not None and one.high is not None]
    drawn = [one for measure, one in known if measure.name == bars]
    bare = "a dot without a bar has no interval" if not all(map(_has_interval, drawn)) else ""
    if not spread:
        return f"No value in this table has a 95 % interval{f': {bare}' if bare else ''}." if known else ""
    signs = {format_margin(one, measure.unit)[:1] == "±" for measure, one in spread}
    said = ["± is half of the 95 % interval"] if True in signs else []
    said += ["two numbers beside a value are the bounds of its 95 % interval"] if False in signs else []
    said += ["bars show the interval"] if any(map(_has_interval, drawn)) else []
    exact = [is_exact(one, measure) for measure, one in spread]
    ways = [] if all(exact) else [f"bootstrap over {drawn_from(results)}"]
    shares = any(exact) or any(is_share(measure) for measure, _ in spread)
    ways += ["answers that are right or wrong: exact, Clopper-Pearson"] if shares else []
    whole = f"{', '.join(said)} ({'; '.join(ways)})"
    return f"{whole[:1].upper()}{whole[1:]}{f'; {bare}' if bare else ''}."


def _has_interval(estimate: Estimate) -> bool:
    return estimate.low is not None and estimate.high is not None


def is_exact(estimate: Estimate, measure: Measure) -> bool:
    """Return whether an interval is certainly the exact binomial one: that of a share of nothing or of all."""
    return measure.unit == "fraction" and measure.higher_is_better and estimate.value in (0.0, 1.0)


def drawn_from(results: Sequence[Result]) -> str:
    """Say what was drawn: `19 samples`, or `6 documents` if samples belong together."""
    counted = [
        (result.statistics.get("clusters"), result.statistics.get("samples", result.total)) for result in results
    ]
    sizes = sorted({count for count, _ in counted if isinstance(count, int)})
    grouped = any(isinstance(count, int) and count < samples for count, samples in counted)
    noun = "documents" if grouped else "samples"
    if not sizes:
        return noun
    return f"{sizes[0]:,} {noun}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,} {noun}"
