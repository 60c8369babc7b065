"""`--repeats`: each sample asked several times, a run for each repeat, and the spread of their values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loupe.pipeline import Plan
    from loupe.results.repeats import Repeats
    from loupe.types import Result


def repeated(plans: Sequence[Plan], times: int) -> list[Plan]:
    """The plans, each as often as asked for: the first under its own name, the others beside it."""
    return [
        plan if number == 1 else replace(plan, name=f"{plan.name or plan.label}-repeat{number}", repeats=_first(plan))
        for plan in plans
        for number in range(1, times + 1)
    ]


def _first(plan: Plan) -> str:
    return plan.repeats or plan.name or plan.label


def spreads(plans: Sequence[Plan], results: Sequence[tuple[Path, Result]]) -> Iterator[tuple[Repeats, Result]]:
    """For every engine with at least two finished repeats how far these lie apart, with the result of the first."""
    from loupe.results.repeats import repeats_of
    from loupe.runs.folder import RunFolder

    names = {plan.path: _first(plan) for plan in plans}
    for name in dict.fromkeys(names.values()):
        mine = [(RunFolder.open(path), result) for path, result in results if names.get(path) == name]
        if len(mine) > 1:
            folders, found = zip(*mine, strict=True)
            yield repeats_of(name, folders, found), found[0]


def show_repeats(found: Sequence[tuple[Repeats, Result]], *, plain: bool) -> None:
    """The spread of every engine as a table."""
    if not found:
        return
    from loupe.cli.shared.output import print_line, tables
    from loupe.results.repeats import repeats_section

    print_line()
    tables([repeats_section(repeats, result) for repeats, result in found], plain=plain)
