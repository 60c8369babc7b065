"""Tests of tables: a cell must have the right cells around it (docs/protocols/omni_parse_bench.md#table_cell)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from loupe.benchmarks.omni_parse_bench.outcomes import PASSED, Outcome, failed
from loupe.benchmarks.omni_parse_bench.page import Page
from loupe.benchmarks.omni_parse_bench.records import CellRule
from loupe.benchmarks.omni_parse_bench.tables.page_tables import PageTable, forms_of, is_one_of, similarity, threshold
from loupe.benchmarks.omni_parse_bench.tables.surroundings import Surroundings
from loupe.benchmarks.omni_parse_bench.text.folding import fold_short
from loupe.benchmarks.shared.table_answers.table_grid import TableLimitError

#: What is wrong around a cell: the relation, the text wanted there, the cells that stand there instead.
_Wrong: TypeAlias = tuple[str, str, list[int]]


def check_cell(page: Page, rule: CellRule) -> Outcome:
    """Pass on the first cell that is like the one wanted and has everything around it.

    A page whose tables are beyond a limit of ours fails.
    """
    try:
        return _check(page.tables, rule)
    except TableLimitError as error:
        return failed("tables_too_large", limit=str(error))


def _check(tables: Sequence[tuple[PageTable, Surroundings]], rule: CellRule) -> Outcome:
    if not tables:
        return failed("no_tables")
    wanted = fold_short(rule.cell)
    why: Outcome | None = None
    for number, (table, around) in enumerate(tables):
        for cell in table.like(wanted, rule.max_diffs):
            wrong = next(_wrong(table, around, cell, rule), None)
            if wrong is None:
                return PASSED
            why = why or _placed("wrong_around_cell", tables, number, cell, **_around(table, wrong))
    return why or _nearest(tables, wanted, rule)


def _wrong(table: PageTable, around: Surroundings, cell: int, rule: CellRule) -> Iterator[_Wrong]:
    """Everything around a cell that is not as it should be."""
    for relation, text in rule.relations:
        others = related(around, cell, relation)
        least = threshold(fold_short(text), rule.max_diffs)
        if not any(_alike(fold_short(text), table.texts[other], least) for other in others):
            yield relation, text, sorted(others)
    if rule.headings and not _in_order(table, rule.headings, above := around.above(cell), rule.max_diffs):
        yield "headings", " > ".join(rule.headings), above
    if rule.row_groups and not _in_order(table, rule.row_groups, beside := around.beside(cell), rule.max_diffs):
        yield "row_groups", " > ".join(rule.row_groups), beside
    if rule.section and not _in_section(table, around, cell, rule):
        yield "section", rule.section, [other for other in around.beside(cell) if around.spans_rows(other)]


def related(around: Surroundings, cell: int, relation: str) -> set[int]:
    """The cells of which one must be what a relation names."""
    match relation:
        case "top_heading":
            return around.headings(cell, "up")
        case "left_heading":
            return around.headings(cell, "left")
        case "up" | "down" | "left" | "right":
            return around.neighbours(cell, relation)
        case "headings":
            return set(around.above(cell))
        case _:
            return set(around.beside(cell))


def _alike(wanted: str, text: str, least: float) -> bool:
    return similarity(wanted, fold_short(text), least=least) >= least


def _in_order(table: PageTable, wanted: Sequence[str], cells: Iterable[int], max_diffs: int) -> bool:
    """Whether the cells are what is wanted, in order, others between; one cell may be several, joined by blanks."""
    done = 0
    for cell in cells:
        forms = forms_of(table.texts[cell])
        for end in range(len(wanted), done, -1):
            joined = fold_short(" ".join(wanted[done:end]))
            if is_one_of(joined, forms, threshold(joined, max_diffs)):
                done = end
                break
    return done == len(wanted)


def _in_section(table: PageTable, around: Surroundings, cell: int, rule: CellRule) -> bool:
    """By the labels above it, a cell beside it that spans rows, or the first cell of its row."""
    wanted = fold_short(rule.section)
    least = threshold(wanted, rule.max_diffs)
    run = around.section(cell)
    if any(is_one_of(wanted, forms_of(" ".join(run[start:])), least) for start in range(len(run))):
        return True
    first = around.first_of_row(cell)
    others = [other for other in around.beside(cell) if around.spans_rows(other)] + ([] if first is None else [first])
    return any(is_one_of(wanted, forms_of(table.texts[other]), least) for other in others)


def _around(table: PageTable, wrong: _Wrong) -> dict[str, str | float]:
    """What a report shows of it: the text that is most like the one wanted."""
    relation, text, others = wrong
    wanted = fold_short(text)
    best, instead = max(
        ((similarity(wanted, fold_short(table.texts[other])), table.texts[other]) for other in others),
        default=(0.0, ""),
    )
    return {"relation": relation, "expected": text, "instead": instead, "relation_ratio": best}


def _nearest(tables: Sequence[tuple[PageTable, Surroundings]], wanted: str, rule: CellRule) -> Outcome:
    """That there is no such cell, with the one that is most like it."""
    places = (
        (similarity(wanted, fold_short(text)), -number, -cell)
        for number, (table, _) in enumerate(tables)
        for cell, text in enumerate(table.texts)
    )
    best, number, cell = max(places)
    return _placed("cell_missing", tables, -number, -cell, best_ratio=best, threshold=threshold(wanted, rule.max_diffs))


def _placed(
    why: str, tables: Sequence[tuple[PageTable, Surroundings]], number: int, cell: int, **figures: str | float
) -> Outcome:
    table = tables[number][0]
    where = table.grid.cells[cell]
    return failed(
        why, nearest=table.texts[cell], tables=len(tables), table=number, row=where.row, col=where.col, **figures
    )
