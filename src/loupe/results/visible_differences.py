"""What difference between two engines so few documents could have shown at all, in words for tables.

Method: docs/statistics.md.
"""

from __future__ import annotations

from collections.abc import Sequence

from loupe.quantities import counted, percent
from loupe.results.sections import format_range
from loupe.results.tables.record import Table
from loupe.stats.comparison import FEWEST, LEVEL, Difference, clearly_better, is_clear

#: With more documents than this (or groups of them) intervals are narrow enough to speak for themselves.
FEW = 200


def visible_differences(pairs: Sequence[tuple[str, Difference]], measure: str, unit: str) -> list[Table]:
    """Make a row for each pair that few documents leave open: the difference, the smallest they show, how many would.

    A difference that is clear is not open: how often others like these would show it is another question.
    """
    few = [
        (name, found)
        for name, found in pairs
        if found.shared <= FEW and found.difference is not None and not is_clear(found)
    ]
    rows = [
        (name, _with_direction(found.difference, unit), smallest(found, unit), needed(found)) for name, found in few
    ]
    if not rows:
        return []
    count = max(found.shared for _, found in few)
    shown = counted(count, "document")
    title = f"what {shown} can show of {measure} (95 % level, 80 % power)"
    return [
        Table(
            title=title,
            header=("pair", "difference", "smallest detectable", "documents needed (95 % range)"),
            rows=rows,
        )
    ]


def no_ranks(headline: str) -> str:
    """Why engines with values have no ranks."""
    return f"No ranks: too few samples to tell the engines apart by {headline}."


def size(difference: float | None, unit: str) -> str:
    """A difference without its direction, fractions in points of a hundred."""
    if difference is None:
        return "–"
    if unit == "count":
        return counted(round(abs(difference)), "point")
    return f"{100 * abs(difference):.2f} points" if unit == "fraction" else f"{abs(difference):.3f}"


def _with_direction(difference: float | None, unit: str) -> str:
    """Format a difference with its unit and its sign: a pair is named as `A minus B`."""
    return size(difference, unit) if not difference else f"{'-' if difference < 0 else '+'}{size(difference, unit)}"


#: Above what `difference_cells` gives. Several questions at once: intervals hold together, as `Difference` says.
DIFFERENCE_HEADER = ("difference", "95 % interval (Bonferroni)", "p (Holm)", "")


def difference_cells(found: Difference, unit: str, *, higher_is_better: bool) -> tuple[str, str, str, str]:
    """A difference for a table: with its direction, its interval, its p-value and the verdict."""
    interval = format_range(found.low, found.high, unit)
    return signed(found.difference, unit), interval, probability(found.p_holm), verdict(found, higher_is_better)


def verdict(found: Difference, higher_is_better: bool) -> str:
    """What the difference says of the first of the two runs."""
    if found.p_holm is None or found.difference is None:
        return "too few to tell"
    better = clearly_better(found, higher_is_better=higher_is_better)
    return "no clear difference" if better is None else "better" if better else "worse"


def signed(difference: float | None, unit: str) -> str:
    """A difference with its direction, fractions in points of a hundred; what rounds to nothing has no direction.

    >>> signed(-0.154, "fraction"), signed(-0.00001, "fraction"), signed(-0.0, "count")
    ('-15.40', '0.00', '0')
    """
    if difference is None:
        return "–"
    decimals = {"fraction": 2, "count": 0}.get(unit, 3)
    number = round(100 * difference if unit == "fraction" else difference, decimals)
    return f"{number:+.{decimals}f}" if number else f"{0:.{decimals}f}"


def probability(p: float | None) -> str:
    """Three digits; what rounding would lift to the level is said to be below it."""
    if p is None:
        return "–"
    if p < 0.001:
        return "<0.001"
    return f"<{LEVEL:.3f}" if p < LEVEL and f"{p:.3f}" == f"{LEVEL:.3f}" else f"{p:.3f}"


def smallest(found: Difference, unit: str) -> str:
    """The smallest difference that these documents show, or why none can be named."""
    if found.unseen is not None:
        alike = (
            "same in all; up to {} of documents may vary"
            if found.difference
            else "none seen; up to {} of documents may differ"
        )
        return alike.format(percent(found.unseen, 0))
    if found.detectable is None:
        return "none: fewer than six" if found.shared < FEWEST else "none: documents too few or too unequal"
    if _off_the_scale(found, unit):
        return "none: would exceed 100 points"
    return size(found.detectable, unit) + (" (rough: documents of very unequal size)" if found.rough else "")


def _off_the_scale(found: Difference, unit: str) -> bool:
    """Whether no two values can be so far apart. An error rate above 1 is on no such scale."""
    largest = max(abs(value) for value in (found.value_a, found.value_b, 0.0) if value is not None)
    return unit == "fraction" and largest <= 1 and found.detectable is not None and found.detectable > 1


def needed(found: Difference) -> str:
    """Say how many documents would show the difference found, and between which numbers this lies with 95 %."""
    if not found.difference:
        return "none: no difference"
    if found.detectable is None:
        return f"at least {FEWEST}" if found.shared < FEWEST else "unknown"
    about = "more than a million" if found.needed is None else f"about {_round(found.needed):,}"
    if found.needed_least is None:
        return about
    if found.needed_most is None:
        return f"{about}, at least {_round(found.needed_least):,}"
    return f"{about}, between {_round(found.needed_least):,} and {_round(found.needed_most):,}"


def _round(count: int) -> int:
    """Two figures are all that such a forecast is worth.

    >>> _round(1234), _round(87)
    (1200, 87)
    """
    scale = int(10 ** max(0, len(str(count)) - 2))
    return round(count / scale) * scale
