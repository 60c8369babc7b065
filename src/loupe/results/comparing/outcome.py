"""Two runs in one sentence: better, worse, or not to be told yet, and then how many samples would tell."""

from __future__ import annotations

from typing import Literal, TypeAlias

from loupe.results.sections import format_range, format_value
from loupe.results.visible_differences import needed, probability, signed
from loupe.stats.comparison import Difference, clearly_better

Outcome: TypeAlias = Literal["better", "worse", "cannot tell yet"]


def outcome_of(found: Difference, *, higher_is_better: bool) -> Outcome:
    """Return what the paired test, with its correction, says of the first of the two runs."""
    better = clearly_better(found, higher_is_better=higher_is_better)
    return "cannot tell yet" if better is None else "better" if better else "worse"


def outcome_sentence(names: tuple[str, str], measure: str, found: Difference, unit: str, outcome: Outcome) -> str:
    """The outcome with the numbers that decided; `names` are those of the run and of the one it is compared with."""
    run, baseline = names
    if found.difference is None:
        return f"Cannot tell yet: {run} and {baseline} share no sample that has a value of {measure}."
    values = f"{measure} {format_value(found.value_a, unit)} against {format_value(found.value_b, unit)}"
    interval = format_range(found.low, found.high, unit)
    sure = [f"{signed(found.difference, unit)}", *([f"95 % interval {interval}"] if interval else [])]
    sure += [f"p = {probability(found.p_holm)}".replace("= <", "< ")] if found.p_holm is not None else []
    numbers = f"{values} ({', '.join(sure)}; {found.shared:,} pages)"
    if outcome != "cannot tell yet":
        return f"{run} is {outcome} than {baseline}: {numbers}."
    if not found.difference:
        return f"Cannot tell yet: {run} and {baseline} are level, {numbers}."
    return f"Cannot tell yet whether {run} is better than {baseline}: {numbers}. Pages needed: {needed(found)}."
