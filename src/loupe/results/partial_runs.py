"""Runs over fewer samples than others beside them: how many they have, and composites that are made of less.

The mean of seven tasks and that of the one task among the first twelve samples bear one name and are two numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from loupe.types import Estimate, Measure, Result, Values

Summarize = Callable[[Values], Values]


def size_marks(results: Sequence[Result | None]) -> list[str]:
    """`12 of 19 samples` for every run with fewer than the largest one, "" for the others."""
    most = max((result.total for result in results if result), default=0)
    return [
        f"{result.total:,} of {most:,} samples" if result is not None and result.total < most else ""
        for result in results
    ]


def other_composites(
    results: Sequence[Result | None], measures: Sequence[Measure], summarize: Summarize | None
) -> list[tuple[str, ...]]:
    """For every run the composites that are made of fewer measures than elsewhere, as its samples have no more."""
    made = summarize({measure.name: math.nan for measure in measures}).keys() if summarize else ()
    composites = [measure.name for measure in measures if measure.of_parts or measure.name in made]
    known = [_known(result) - {*composites} for result in results]
    widest: set[str] = set().union(*known)
    return [
        tuple(name for name in composites if result is not None and name in _known(result))
        if mark and found < widest
        else ()
        for result, mark, found in zip(results, size_marks(results), known, strict=True)
    ]


def _known(result: Result | None) -> set[str]:
    return {name for name, one in result.measures.items() if one.value is not None} if result else set()


def without(result: Result, names: Sequence[str]) -> Result:
    """Return the result as if these measures had not been computed."""
    slices = {
        tag: {
            value: {name: one for name, one in measures.items() if name not in names}
            for value, measures in values.items()
        }
        for tag, values in result.slices.items()
    }
    left = result.measures | {name: Estimate(value=None, n=result.measures[name].n) for name in names}
    why = result.not_computed | dict.fromkeys(names, "its samples have fewer of the measures that it is made of")
    return msgspec.structs.replace(result, measures=left, slices=slices, not_computed=why)


def left_out_sentences(runs: Sequence[tuple[str, Sequence[str]]], measures: Sequence[Measure]) -> list[str]:
    """Explain why a value is missing in the table: for (engine, names of the composites left out)."""

    def titles(names: Sequence[str]) -> str:
        return " and ".join(measure.title or measure.name for measure in measures if measure.name in names)

    return [
        f"No {titles(names)} of {engine}: on its samples this would be made of fewer measures than the others'."
        for engine, names in runs
        if names
    ]
