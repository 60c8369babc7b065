"""Many runs as one table: engines as rows, benchmarks as columns, the headline measure with its interval in each cell.

Runs stand in one column only if their numbers may be compared: same benchmark, version, data, options and number of
samples. A sample that failed counts as an empty answer, and the cell says how many did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from loupe.report.group_titles import shown_version
from loupe.report.terminal import ALARMING, Section, failed_count, format_margin, format_value
from loupe.report.unverified import truth_cell, unverified
from loupe.runs.folder import RunFolder
from loupe.types import Estimate

#: Between two columns of a table in the terminal.
_GAP = 3


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark as it was run; `name` tells it from the others of the table."""

    name: str
    benchmark: str
    version: str
    data: str
    options: dict[str, str]
    samples: int
    measure: str = ""
    unit: str = "fraction"
    higher_is_better: bool = True


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """The headline of one run; `headline` is None while the run is not scored."""

    run: str
    signature: str
    headline: Estimate | None
    failed: int = 0
    total: int = 0
    partial: bool = False
    truth: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One engine (or named configuration): its cells by the name of the column; where it was not run there is none."""

    engine: str
    cells: dict[str, Cell]


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """The whole table, rows and columns in the order in which the runs were given."""

    columns: list[Column]
    rows: list[Row]


def make_matrix(folders: Iterable[RunFolder]) -> Matrix:
    """The table of these runs. Two runs of one engine in one column get rows of their own, named by their folders."""
    listed = list(folders)
    columns = _columns(listed)
    rows: dict[str, dict[str, Cell]] = {}
    for folder in listed:
        name = columns[_key(folder)].name
        row = rows.setdefault(folder.info.engine, {})
        if name in row:
            row = rows.setdefault(f"{folder.info.engine} ({folder.path})", {})
        row[name] = _cell(folder)
    return Matrix(
        columns=list(columns.values()), rows=[Row(engine=engine, cells=cells) for engine, cells in rows.items()]
    )


Key = tuple[str, str, str, tuple[tuple[str, str], ...], int]


def _key(folder: RunFolder) -> Key:
    """What must agree before two numbers may stand in one column."""
    info = folder.info
    return info.benchmark_id, info.version, info.reference_digest, tuple(sorted(info.options.items())), info.total


def _columns(folders: Sequence[RunFolder]) -> dict[Key, Column]:
    """A column for each group of comparable runs."""
    groups: dict[Key, list[RunFolder]] = {}
    for folder in folders:
        groups.setdefault(_key(folder), []).append(folder)
    variants = Counter((key[0], shown_version(key[1])) for key in groups)
    return {
        key: _column(key, group, alone=variants[key[0], shown_version(key[1])] == 1) for key, group in groups.items()
    }


def _column(key: Key, group: Sequence[RunFolder], *, alone: bool) -> Column:
    ident, version, data, options, samples = key
    name = f"{ident}@{shown_version(version)}"
    if not alone:
        name = " ".join(
            [
                f"{ident}@{version}",
                *(f"{option}={value}" for option, value in options),
                f"n:{samples}",
                f"data:{data[:8]}",
            ]
        )
    result = next((result for folder in group if (result := folder.result())), None)
    measure = result.headline if result else ""
    return Column(
        name=name,
        benchmark=ident,
        version=version,
        data=data,
        options=dict(options),
        samples=samples,
        measure=measure,
        unit=result.units.get(measure, "fraction") if result else "fraction",
        higher_is_better=result.directions.get(measure, True) if result else True,
    )


def _cell(folder: RunFolder) -> Cell:
    result = folder.result()
    run, signature = str(folder.path), folder.info.signature
    if result is None:
        return Cell(run=run, signature=signature, headline=None, total=folder.info.total)
    return Cell(
        run=run,
        signature=signature,
        headline=result.measures.get(result.headline, Estimate(value=None)),
        failed=failed_count(result),
        total=result.total,
        partial=bool(folder.info.stopped),
        truth=truth_cell(result) if unverified(result) else "",
    )


def matrix_sections(matrix: Matrix, *, width: int | None = None) -> list[Section]:
    """The table for people, and after it what failed too often; several tables where one is wider than `width`."""
    columns = [_texts(matrix, column) for column in matrix.columns]
    engines = ["engine", *(row.engine for row in matrix.rows)]
    tables = [
        Section(title="", header=(engines[0], *(column[0] for column in block)), rows=_lines(engines[1:], block))
        for block in _blocks(columns, max(map(len, engines)), width)
    ]
    return [*tables, *_alarms(matrix)]


def cell_text(cell: Cell | None, unit: str) -> str:
    """`91.23 % ± 1.20, 3 of 12 failed`; `–` where there is no run."""
    if cell is None:
        return "–"
    if cell.headline is None:
        return "not scored"
    margin = format_margin(cell.headline, unit)
    text = f"{format_value(cell.headline.value, unit)} {f'[{margin}]' if '…' in margin else margin}".rstrip()
    return (
        text
        + (f", {cell.failed:,} of {cell.total:,} failed" if cell.failed else "")
        + (", partial" if cell.partial else "")
        + (f", {cell.truth}" if cell.truth else "")
    )


def _texts(matrix: Matrix, column: Column) -> list[str]:
    arrow = "↑" if column.higher_is_better else "↓"
    head = f"{column.name} {column.measure} {arrow}" if column.measure else column.name
    return [head, *(cell_text(row.cells.get(column.name), column.unit) for row in matrix.rows)]


def _lines(engines: Sequence[str], block: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[engine, *(column[place] for column in block)] for place, engine in enumerate(engines, 1)]


def _blocks(columns: list[list[str]], first: int, width: int | None) -> Iterator[list[list[str]]]:
    """Columns in groups that fit into a line; a single column that does not is a group of its own."""
    block: list[list[str]] = []
    used = first
    for column in columns:
        wide = max(map(len, column)) + _GAP
        if width is not None and block and used + wide > width:
            yield block
            block, used = [], first
        block.append(column)
        used += wide
    if block:
        yield block


def _alarms(matrix: Matrix) -> list[Section]:
    rows = [
        (row.engine, name, f"{cell.failed:,} of {cell.total:,}", f"{100 * cell.failed / cell.total:.1f} %")
        for row in matrix.rows
        for name, cell in row.cells.items()
        if cell.total and cell.failed > ALARMING * cell.total
    ]
    title = "more than 5 % failed: these numbers say more about the run than about the engine"
    return [Section(title=title, rows=rows, alarm=True)] if rows else []
