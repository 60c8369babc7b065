"""Runs as one table for a paper: engines as rows, measures or benchmarks as columns, best values and clear differences
marked. Tests and intervals are those of `loupe compare` (docs/statistics.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from loupe.results.comparing.records import Compared
from loupe.results.comparing.runs import compare_runs
from loupe.results.group_titles import shown_version
from loupe.results.matrix import Matrix
from loupe.results.sections import FEW, format_estimate, format_margin
from loupe.results.tables.record import Cell, Column, Table
from loupe.stats.comparison import LEVEL, is_clear
from loupe.types import Estimate

_INTERVALS = "± is half of the 95 % interval; two numbers in brackets are its bounds."
_BEST = "Bold: the best value of its column."
_CLEAR = f"*: differs clearly from {{}} (paired randomization test, p < {LEVEL:g} after Holm's correction)."


def table_of_comparison(compared: Compared) -> Table:
    """One benchmark: every measure that any run has, the headline first; stars are differences to the baseline."""
    known = {name: None for run in compared.runs for name, one in run.measures.items() if one.value is not None}
    names = [name for name in {compared.headline: None, **known} if name in known and name not in compared.twice]
    clear = {pair.run: {name for name, one in pair.measures.items() if is_clear(one)} for pair in compared.pairs}
    columns = []
    for name in names:
        cells = {
            run.run: _cell(
                run.measures.get(name, Estimate(value=None)),
                compared.units.get(name, "fraction"),
                compared.why_nothing(run.run, name),
                significant=name in clear.get(run.run, ()),
            )
            for run in compared.runs
        }
        better = compared.directions.get(name, True)
        head = Column(name=name, unit=_unit(compared.units.get(name)), better="↑" if better else "↓")
        columns.append((head, _with_best(cells, higher_is_better=better)))
    base = next(run.name for run in compared.runs if run.run == compared.baseline)
    said = [compared.warning, compared.headline_note, *compared.notes, compared.part, compared.accepted]
    said += [f"{run.name}: {run.failed:,} of {run.total:,} samples failed." for run in compared.runs if run.failed]
    title = ", ".join(filter(None, [f"{compared.benchmark}@{shown_version(compared.version)}", compared.samples]))
    return _table(title, {run.run: run.name for run in compared.runs}, columns, base, said)


def table_of_matrix(matrix: Matrix) -> Table:
    """Several benchmarks: the measure that ranks each; stars are differences to the best run of a column."""
    columns = []
    said = []
    for column in matrix.columns:
        found = {row.engine: cell for row in matrix.rows if (cell := row.cells.get(column.name)) is not None}
        runs = [Path(cell.run) for cell in found.values() if cell.headline and cell.headline.value is not None]
        clear = set(_clear_runs(runs, column.measure)) if len(runs) > 1 and not column.of else set()
        cells = {
            engine: _cell(
                cell.headline or Estimate(value=None),
                column.unit,
                cell.not_computed or ("" if cell.headline else "not scored"),
                significant=cell.run in clear,
            )
            for engine, cell in found.items()
        }
        head = Column(
            name=column.measure,
            group=column.name,
            unit=_unit(column.unit),
            better="↑" if column.higher_is_better else "↓",
        )
        columns.append((head, _with_best(cells, higher_is_better=column.higher_is_better)))
        said += [f"{column.name}: {column.measure_note}"] if column.measure_note else []
        for engine, cell in found.items():
            flaws = [f"{cell.failed:,} of {cell.total:,} samples failed"] if cell.failed else []
            flaws += ["partial"] if cell.partial else []
            flaws += [each for each in (cell.truth, cell.marks) if each]
            said += [f"{engine} on {column.name}: {', '.join(flaws)}."] if flaws else []
    return _table("", {row.engine: row.engine for row in matrix.rows}, columns, "the best of its column", said)


def _clear_runs(runs: Sequence[Path], measure: str) -> Iterator[str]:
    for pair in compare_runs(runs, to_best=True, measure=measure).pairs:
        found = pair.measures.get(measure)
        if found is not None and is_clear(found):
            yield pair.run


def _unit(unit: str | None) -> str:
    return "%" if unit in (None, "fraction") else ""


def _cell(one: Estimate, unit: str, why: str, *, significant: bool) -> Cell:
    if one.value is None:
        return Cell(text="–", note=why)
    return Cell(
        text=format_estimate(one, unit).removesuffix(" %"),
        margin=format_margin(one, unit),
        estimate=one,
        marks=("significant",) if significant else (),
    )


def _with_best(cells: Mapping[str, Cell], *, higher_is_better: bool) -> dict[str, Cell]:
    """The cells with the best value marked, and all that show the same; of one alone nothing is said."""
    known = [cell for cell in cells.values() if cell.estimate is not None]
    if len(known) < 2:
        return dict(cells)
    choose = max if higher_is_better else min
    best = choose(known, key=lambda cell: cell.estimate.value or 0.0 if cell.estimate else 0.0).text
    return {
        key: replace(cell, marks=("best", *cell.marks)) if cell.estimate and cell.text == best else cell
        for key, cell in cells.items()
    }


def _table(
    title: str,
    names: Mapping[str, str],
    columns: Sequence[tuple[Column, Mapping[str, Cell]]],
    base: str,
    said: Sequence[str],
) -> Table:
    """The table with only those notes that its cells need, and then what was `said`."""
    shown = [cell for _, cells in columns for cell in cells.values()]
    notes = [_INTERVALS] if any(cell.margin for cell in shown) else []
    notes += [f"No interval: {FEW}."] if any(cell.estimate and not cell.margin for cell in shown) else []
    notes += [_BEST] if any("best" in cell.marks for cell in shown) else []
    notes += [_CLEAR.format(base)] if any("significant" in cell.marks for cell in shown) else []
    return Table(
        title=title,
        header=("engine", *(head for head, _ in columns)),
        rows=[(name, *(cells.get(key, Cell(text="–")) for _, cells in columns)) for key, name in names.items()],
        notes=[*notes, *(f"{line.removesuffix('.')}." for line in said if line)],
    )
