"""What scoring runs again has moved: every measure whose value is another one now."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import msgspec

from loupe.quantities import counted
from loupe.results.group_titles import shown_version
from loupe.results.headline import format_headline
from loupe.results.sections import failed_count, format_estimate
from loupe.results.tables.record import Table
from loupe.results.visible_differences import signed
from loupe.types import Estimate, Result

#: Measures of one run that are listed; JSON has all.
_LISTED = 5
_SAME = 1e-12


class Rescored(msgspec.Struct, frozen=True, kw_only=True):
    """A run with its result as it was (None: it had none) and as it is now."""

    run: str
    before: Result | None
    now: Result


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """One measure before and now; `change` is None where either was not computed."""

    measure: str
    before: Estimate
    now: Estimate
    change: float | None


def moves(run: Rescored) -> list[Moved]:
    """The measures of a run that have another value than before, the headline first; nothing for its first result."""
    if run.before is None:
        return []
    names = dict.fromkeys([run.now.headline, *run.now.measures, *run.before.measures])
    nothing = Estimate(value=None)
    pairs = [(name, run.before.measures.get(name, nothing), run.now.measures.get(name, nothing)) for name in names]
    return [
        Moved(measure=name, before=old, now=new, change=_change(old.value, new.value))
        for name, old, new in pairs
        if not _alike(old.value, new.value)
    ]


def _alike(old: float | None, new: float | None) -> bool:
    if old is None or new is None:
        return old is new
    return math.isclose(old, new, rel_tol=_SAME, abs_tol=_SAME)


def _change(old: float | None, new: float | None) -> float | None:
    return None if old is None or new is None else new - old


def moved_sections(runs: Sequence[Rescored], failed: Mapping[str, str], measure: str = "") -> list[Table]:
    """List every run with its headline or `measure`, what moved, and the runs that could not be scored."""
    rows = [
        (
            each.now.engine,
            f"{each.now.benchmark}@{shown_version(each.now.version)}",
            format_headline(each.now, measure),
            f"{failed_count(each.now):,} of {each.now.total:,}",
            "new" if each.before is None else "moved" if moves(each) else "unchanged",
            each.run,
        )
        for each in runs
    ]
    counts = {word: sum(row[4] == word for row in rows) for word in ("unchanged", "moved", "new")}
    said = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
    header = ("engine", "benchmark", "headline", "failed", "", "run")
    found = [Table(title=f"scored {counted(len(rows), 'run')}: {said}", header=header, rows=rows)] if rows else []
    if listed := [line for each in runs for line in _lines(each)]:
        found.append(Table(title="what moved", header=("measure", "before", "now", "change", "run"), rows=listed))
    if failed:
        title = f"could not score {counted(len(failed), 'run')}"
        found.append(Table(title=title, header=("why", "run"), rows=[(why, run) for run, why in failed.items()]))
    return found


def _lines(run: Rescored) -> list[tuple[str, ...]]:
    found = moves(run)
    units = run.now.units
    lines: list[tuple[str, ...]] = [
        (
            each.measure,
            format_estimate(each.before, units.get(each.measure, "fraction")),
            format_estimate(each.now, units.get(each.measure, "fraction")),
            signed(each.change, units.get(each.measure, "fraction")),
            run.run,
        )
        for each in found[:_LISTED]
    ]
    hidden = len(found) - len(lines)
    return [*lines, (f"… and {hidden:,} more", "", "", "", run.run)] if hidden else lines
