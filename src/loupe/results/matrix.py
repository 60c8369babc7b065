"""Many runs as one table: engines as rows, benchmarks as columns, the headline measure with its interval in each cell.

Runs stand in one column only if their numbers may be compared: same benchmark, version, data, options and number of
samples. A sample that failed counts as an empty answer, and the cell says how many did.

One number of several benchmarks is a column beside theirs: the mean of the headlines of one engine, which must have
read all of them under the same options. Its interval: the benchmarks' pages are drawn independently of each other, so
the distances from each value to the ends of its interval add up as squares (MOVER: Zou and Donner, Statistics in
Medicine 27, 2008). Method: docs/statistics.md.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import msgspec

from loupe.benchmarks.registry import benchmark_ids, get_benchmark
from loupe.quantities import percent
from loupe.results.group_titles import shown_version
from loupe.results.headline import check_measure, has_value, headline_of, why_nothing
from loupe.results.scored_here import marks, result_of
from loupe.results.sections import ALARMING, FEW, failed_count, format_estimate, format_margin
from loupe.results.tables.record import Table
from loupe.results.unverified import truth_cell, unverified
from loupe.runs.folder import RunFolder
from loupe.types import Composite, Estimate, Result


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark as it was run; `name` tells it from the others of the table, and `part` which samples were read.

    `measure` ranks its runs, and `measure_note` says why it is not the benchmark's own headline.
    `part`: its runs were asked some of the samples only. A number of several benchmarks has the names of their columns
    in `of`, and no version or data of its own.
    """

    name: str
    benchmark: str
    version: str
    data: str
    options: dict[str, str]
    samples: int
    part: str = ""
    measure: str = ""
    measure_note: str = ""
    unit: str = "fraction"
    higher_is_better: bool = True
    of: list[str] = []


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """The measure of its column in one run; `headline` is None while the run is not scored.

    `not_computed` says why it has no value.
    """

    run: str
    signature: str
    headline: Estimate | None
    failed: int = 0
    total: int = 0
    partial: bool = False
    truth: str = ""
    not_computed: str = ""
    scored_here: bool = True
    marks: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One engine (or named configuration): its cells by the name of the column; where it was not run there is none."""

    engine: str
    cells: dict[str, Cell]


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """The whole table, rows and columns in the order in which the runs were given."""

    columns: list[Column]
    rows: list[Row]


def make_matrix(folders: Iterable[RunFolder], measure: str = "") -> Matrix:
    """Make the table of these runs, by `measure` in each column that has it.

    Two runs of one engine in one column get rows of their own, named by their folders. Raises UsageError for a measure
    that no run has.
    """
    listed = [(folder, result_of(folder)) for folder in folders]
    check_measure(measure, [result for _, result in listed if result])
    columns = _columns(listed, measure)
    rows: dict[str, dict[str, Cell]] = {}
    for folder, result in listed:
        name = columns[_key(folder)].name
        row = rows.setdefault(folder.info.engine, {})
        if name in row:
            row = rows.setdefault(f"{folder.info.engine} ({folder.path})", {})
        row[name] = _cell(folder, result, columns[_key(folder)].measure)
    single = {column.name: column for column in columns.values()}
    made = _composites(single.values(), rows)
    order = beside(single, {name: column.of for name, column in made.items()})
    known = single | made
    return Matrix(
        columns=[known[name] for name in order],
        rows=[Row(engine=engine, cells=cells) for engine, cells in rows.items()],
    )


def _composites(columns: Iterable[Column], rows: dict[str, dict[str, Cell]]) -> dict[str, Column]:
    """The numbers of several benchmarks that any engine has, by their names; their cells are put into the rows."""
    found = list(composites_of(columns))
    alone = Counter(composite.name for composite, _ in found)
    made: dict[str, Column] = {}
    for composite, parts in found:
        names = [part.name for part in parts]
        name = composite.name if alone[composite.name] == 1 else f"{composite.name} of {' and '.join(names)}"
        sizes = f"n:{'+'.join(str(part.samples) for part in parts)}" if any(part.part for part in parts) else ""
        name = f"{name} {sizes}".rstrip()
        cells = {
            engine: cell for engine, row in rows.items() if (cell := _mean_cell([row.get(each) for each in names]))
        }
        if not cells:
            continue
        made[name] = Column(
            name=name,
            benchmark=composite.name,
            version="",
            data="",
            options=parts[0].options,
            samples=sum(part.samples for part in parts),
            part=sizes,
            measure="mean",
            unit=parts[0].unit,
            higher_is_better=parts[0].higher_is_better,
            of=names,
        )
        for engine, cell in cells.items():
            rows[engine][name] = cell
    return made


def _mean_cell(parts: Sequence[Cell | None]) -> Cell | None:
    """The mean of the headlines of an engine; None unless it has all of them."""
    cells = [part for part in parts if part is not None]
    estimates = [cell.headline for cell in cells if cell.headline is not None]
    mean = mean_of(estimates) if len(estimates) == len(parts) else None
    if mean is None:
        return None
    return Cell(
        run=" ".join(cell.run for cell in cells),
        signature=" ".join(cell.signature for cell in cells),
        headline=mean,
        failed=sum(cell.failed for cell in cells),
        total=sum(cell.total for cell in cells),
        partial=any(cell.partial for cell in cells),
        truth=", ".join(dict.fromkeys(cell.truth for cell in cells if cell.truth)),
        scored_here=all(cell.scored_here for cell in cells),
        marks=", ".join(dict.fromkeys(cell.marks for cell in cells if cell.marks)),
    )


Read = tuple[RunFolder, Result | None]
Key = tuple[str, str, str, tuple[tuple[str, str], ...], int, str]


def _key(folder: RunFolder) -> Key:
    """What must agree before two numbers may stand in one column."""
    info = folder.info
    options = tuple(sorted(info.options.items()))
    drawn = ""
    if info.sample:
        drawn = f"sample:{info.sample.way}" if info.sample.ids else f"sample:seed={info.sample.seed}"
    return info.benchmark_id, info.version, info.reference_digest, options, info.total, drawn


def _columns(listed: Iterable[Read], measure: str) -> dict[Key, Column]:
    """Make a column for each group of comparable runs."""
    groups: dict[Key, list[Read]] = {}
    for folder, result in listed:
        groups.setdefault(_key(folder), []).append((folder, result))
    alike: dict[tuple[str, str], list[Key]] = {}
    for key in groups:
        alike.setdefault((key[0], shown_version(key[1])), []).append(key)
    return {key: _column(key, group, alike[key[0], shown_version(key[1])], measure) for key, group in groups.items()}


def _column(key: Key, group: Sequence[Read], others: Sequence[Key], wanted: str) -> Column:
    """One column; its name says what differs from the `others` of its benchmark, and always which part was read."""
    ident, version, data, options, samples, drawn = key
    part = max((folder.info.part for folder, _ in group), key=len)

    def differs(place: int) -> bool:
        return len({each[place] for each in others}) > 1

    said = [f"{ident}@{version if differs(1) else shown_version(version)}"]
    said += [f"{option}={value}" for option, value in options] if differs(3) else []
    said += [] if part or not differs(4) else [f"n:{samples}"]
    said += [drawn] if drawn and not part else []
    said += [f"data:{data[:8]}"] if differs(2) else []
    name = ", ".join(filter(None, [" ".join(said), part]))
    results = [result for _, result in group if result]
    result = next(iter(results), None)
    measure, note = headline_of(results, wanted)
    return Column(
        name=name,
        benchmark=ident,
        version=version,
        data=data,
        options=dict(options),
        samples=samples,
        part=part,
        measure=measure,
        measure_note=note,
        unit=result.units.get(measure, "fraction") if result else "fraction",
        higher_is_better=result.directions.get(measure, True) if result else True,
    )


def _cell(folder: RunFolder, result: Result | None, measure: str) -> Cell:
    run, signature = str(folder.path), folder.info.signature
    if result is None:
        return Cell(run=run, signature=signature, headline=None, total=folder.info.total)
    return Cell(
        run=run,
        signature=signature,
        headline=result.measures.get(measure, Estimate(value=None)),
        not_computed="" if has_value(result, measure) else why_nothing(result, measure),
        failed=failed_count(result),
        total=result.total,
        partial=bool(folder.info.stopped),
        truth=truth_cell(result) if unverified(result) else "",
        scored_here=result.scored_here,
        marks=marks(result),
    )


def matrix_sections(matrix: Matrix) -> list[Table]:
    """The table for people, and after it what failed too often."""
    arrows = ["↑" if column.higher_is_better else "↓" for column in matrix.columns]
    heads = [
        f"{column.name} {column.measure} {arrow}" if column.measure else column.name
        for column, arrow in zip(matrix.columns, arrows, strict=True)
    ]
    rows = [
        [row.engine, *(cell_text(row.cells.get(column.name), column.unit) for column in matrix.columns)]
        for row in matrix.rows
    ]
    notes = [(f"{column.name}: {column.measure_note}",) for column in matrix.columns if column.measure_note]
    cells = [cell.headline for row in matrix.rows for cell in row.cells.values() if cell.headline]
    if any(one.value is not None and one.low is None for one in cells):
        notes.append((f"a value without ± or bounds has no interval: {FEW}",))
    table = Table(title="", header=("engine", *heads), rows=rows, sparse=True)
    return [table, *([Table(title="", rows=notes)] if notes else []), *_alarms(matrix)]


def cell_text(cell: Cell | None, unit: str) -> str:
    """Format a cell as `91.23 % ± 1.20, 3 of 12 failed`, or `– (why it was not computed)`; `–` if there is no run."""
    if cell is None:
        return "–"
    if cell.headline is None:
        return "not scored"
    margin = format_margin(cell.headline, unit)
    text = f"{format_estimate(cell.headline, unit)} {f'[{margin}]' if '…' in margin else margin}".rstrip()
    return (
        text
        + (f" ({cell.not_computed})" if cell.not_computed else "")
        + (f", {cell.failed:,} of {cell.total:,} failed" if cell.failed else "")
        + (", partial" if cell.partial else "")
        + (f", {cell.truth}" if cell.truth else "")
        + (f", {cell.marks}" if cell.marks else "")
    )


def _alarms(matrix: Matrix) -> list[Table]:
    rows = [
        (row.engine, name, f"{cell.failed:,} of {cell.total:,}", percent(cell.failed / cell.total))
        for row in matrix.rows
        for name, cell in row.cells.items()
        if cell.total and cell.failed > ALARMING * cell.total
    ]
    title = "more than 5 % failed: these numbers reflect the run more than the engine"
    return [Table(title=title, rows=rows, alarm=True)] if rows else []


def composites_of(columns: Iterable[Column]) -> Iterator[tuple[Composite, tuple[Column, ...]]]:
    """Every number that benchmarks among these columns form together, with the columns that it is made of."""
    listed = list(columns)
    known = {each.benchmark for each in listed} & set(benchmark_ids())
    wanted = dict.fromkeys(found for name in sorted(known) if (found := get_benchmark(name).composite))
    for composite in wanted:
        # A mean of headlines is one of nothing else.
        parts = [
            [each for each in listed if each.benchmark == name and each.measure and not each.measure_note]
            for name in composite.of
        ]
        for combined in product(*parts):
            if all(each.options == combined[0].options for each in combined):
                yield composite, combined


def mean_of(estimates: Sequence[Estimate]) -> Estimate | None:
    """The mean of independent values with its interval; None unless all have a value. `n` adds up.

    >>> mean_of([Estimate(value=0.8, low=0.77, high=0.83, n=10), Estimate(value=0.6, low=0.56, high=0.64, n=5)])
    Estimate(value=0.7, low=0.675, high=0.725, n=15)
    """
    known = [(one.value, one.low, one.high) for one in estimates if one.value is not None]
    if not known or len(known) < len(estimates):
        return None
    mean = sum(value for value, _, _ in known) / len(known)
    below = [value - low for value, low, _ in known if low is not None]
    above = [high - value for value, _, high in known if high is not None]
    whole = len(below) == len(above) == len(known)
    return Estimate(
        value=mean,
        low=round(mean - math.hypot(*below) / len(known), 12) if whole else None,
        high=round(mean + math.hypot(*above) / len(known), 12) if whole else None,
        n=sum(one.n for one in estimates),
    )


def beside(names: Iterable[str], composites: Mapping[str, Sequence[str]]) -> list[str]:
    """The names of columns with each composite behind the last one of its parts."""
    order = list(names)
    for name, parts in composites.items():
        order.insert(1 + max(map(order.index, parts)), name)
    return order
