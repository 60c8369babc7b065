"""Check all tests of a page on one answer to it: text, tables and layout.

Protocol: docs/protocols/omni_parse_bench.md#text, #numbers, #latex, #table_cell and #layout_kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from rapidfuzz import fuzz

from loupe.benchmarks.omni_parse_bench.equations import contains_in_row, is_plain, read_equations
from loupe.benchmarks.omni_parse_bench.folding import fold_short, number_in
from loupe.benchmarks.omni_parse_bench.outcomes import PASSED, UNSUPPORTED, GradingError, Outcome, failed
from loupe.benchmarks.omni_parse_bench.page import Answer, Block, Page
from loupe.benchmarks.omni_parse_bench.page_tables import (
    PageTable,
    Surroundings,
    forms_of,
    is_one_of,
    similarity,
    threshold,
)
from loupe.benchmarks.omni_parse_bench.records import (
    Box,
    CellRule,
    LatexRule,
    LayoutRule,
    NumberRule,
    OrderRule,
    PageTest,
    RepeatRule,
    TextRule,
)
from loupe.benchmarks.shared.table_answers.table_grid import TableLimitError


def check_page(answer: Answer, tests: Sequence[PageTest]) -> list[Outcome]:
    """The outcome of each test. Raises MissingToolError where an equation cannot be read."""
    page = Page(answer.html or "")
    return [_check(answer, page, test) for test in tests]


def _check(answer: Answer, page: Page, test: PageTest) -> Outcome:
    if test.reads in answer.unsupported:
        return UNSUPPORTED
    if problem := answer.malformed.get(test.reads):
        return failed("malformed", problem=problem)
    if (answer.html if test.reads == "html" else answer.blocks) is None:
        return failed("no_output", output=test.reads)
    try:
        if test.reads == "html":
            # A view that cannot be made is every test's fault, also of those that do not look at it.
            _ = page.text
        return _run(answer, page, test)
    except GradingError as error:
        return Outcome("error", "grading_error", {"error": str(error)})


def _run(answer: Answer, page: Page, test: PageTest) -> Outcome:
    match test.rule:
        case TextRule():
            return check_text(page, test.rule)
        case NumberRule():
            return check_number(page, test.rule)
        case LatexRule():
            return check_latex(page, test.rule)
        case OrderRule():
            return check_order(page, test.rule)
        case RepeatRule():
            return check_repeat(page, test.rule)
        case CellRule():
            return check_cell(page, test.rule)
        case LayoutRule():
            return check_layout(answer.blocks or (), test.rule)


#: A ratio may be so much below its threshold, by floating point.
_MARGIN = 1e-9


def check_text(page: Page, rule: TextRule) -> Outcome:
    """Pass if the text is on the page, with blanks or without."""
    wanted = fold_short(rule.text)
    if contains(page, wanted, rule.max_diffs):
        return PASSED
    return not_found("text_missing", wanted, page, rule.max_diffs)


def contains(page: Page, wanted: str, max_diffs: int) -> bool:
    """True if a folded text is in the folded page, or both without white space."""
    squeezed = "".join(wanted.split())
    return _is_near(wanted, page.folded, max_diffs) or _is_near(squeezed, page.squeezed, max_diffs)


def _is_near(wanted: str, where: str, max_diffs: int) -> bool:
    if not wanted or wanted in where:
        return bool(wanted)
    if not max_diffs:
        return False
    least = 1.0 - max_diffs / len(wanted) - _MARGIN
    return ratio(wanted, where) / 100.0 >= least


def ratio(wanted: str, where: str) -> float:
    """Compute the similarity of a text to the part of the page that is most like it, in percent; to all of a shorter
    page.
    """
    return fuzz.partial_ratio(wanted, where) if len(where) >= len(wanted) else fuzz.ratio(wanted, where)


def not_found(why: str, wanted: str, page: Page, max_diffs: int) -> Outcome:
    """That a text is missing, with what is nearest to it."""
    found = fuzz.partial_ratio_alignment(wanted, page.folded)
    nearest = page.folded[found.dest_start : found.dest_end] if found and page.folded else ""
    threshold = 1.0 - max_diffs / len(wanted)
    return failed(why, threshold=threshold, best_ratio=ratio(wanted, page.folded) / 100.0, nearest=nearest)


def check_number(page: Page, rule: NumberRule) -> Outcome:
    """Pass if the number is there, with its sign and percent sign."""
    why = number_in(rule.number, page.folded)
    return failed(why) if why else PASSED


def check_latex(page: Page, rule: LatexRule) -> Outcome:
    """Pass if what the equation shows is in the page's equations, or in its text where that loses nothing.

    Raises MissingToolError where KaTeX cannot run, LoupeError where the browser cannot be started.
    """
    why = _missing_symbols(page, rule.latex)
    if not why.why or (is_plain(rule.latex) and contains(page, fold_short(f"${rule.latex}$"), 0)):
        return PASSED
    return why


def _missing_symbols(page: Page, latex: str) -> Outcome:
    [wanted] = read_equations([(latex, True)])
    if wanted is None:
        return failed("equation_refused")
    if not wanted:
        return PASSED
    equations = page.drawn_equations
    lost = {"not_compared": equations.lost} if equations.lost else {}
    if not any(equations.symbols):
        return failed("no_equations", **lost)
    if contains_in_row(wanted, equations.symbols):
        return PASSED
    return failed("equation_missing", equations=len(equations.symbols), **lost)


def check_order(page: Page, rule: OrderRule) -> Outcome:
    """Pass if the one text begins before the other: both with blanks, or, where one is missing so, both without."""
    texts = fold_short(rule.before), fold_short(rule.after)
    if _is_written_so(page.folded, *texts):
        return PASSED
    before, after = (page.near(text, rule.max_diffs, squeezed=False) for text in texts)
    squeezed = before is None or after is None
    if squeezed:
        before, after = (page.near("".join(text.split()), rule.max_diffs, squeezed=True) for text in texts)
    if before is None:
        return not_found("before_missing", texts[0], page, rule.max_diffs)
    if after is None:
        return not_found("after_missing", texts[1], page, rule.max_diffs)
    if before.first < after.last:
        return PASSED
    return failed("wrong_order", before_at=before.first, after_at=after.last, squeezed=int(squeezed))


def _is_written_so(where: str, before: str, after: str) -> bool:
    """True if both are there to the letter, once, in this order: near matches then only add to that."""
    first, last = where.find(before), where.find(after)
    return 0 <= first < last and first == where.rfind(before) and last == where.rfind(after)


def check_repeat(page: Page, rule: RepeatRule) -> Outcome:
    """Pass if the text, as whole words, is there as often as it is printed."""
    signs = r"\s*".join(re.escape(sign) for sign in fold_short(rule.text) if not sign.isspace())
    found = len(re.findall(rf"(?<![^\W_]){signs}(?![^\W_])", page.folded_without_images))
    if found == rule.expected_count:
        return PASSED
    return failed("other_count", found=found, expected_count=rule.expected_count)


#: What is wrong around a cell: the relation, the text wanted there, the cells that stand there instead.
_Wrong: TypeAlias = tuple[str, str, list[int]]


def check_cell(page: Page, rule: CellRule) -> Outcome:
    """Pass on the first cell that is like the one wanted and has everything around it.

    A page whose tables are beyond a limit of ours fails.
    """
    try:
        return _check_cell(page.tables, rule)
    except TableLimitError as error:
        return failed("tables_too_large", limit=str(error))


def _check_cell(tables: Sequence[tuple[PageTable, Surroundings]], rule: CellRule) -> Outcome:
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
    """True if the cells are what is wanted, in order, others between; one cell may be several, joined by blanks."""
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
    """Return what a report shows of it: the text that is most like the one wanted."""
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


_LEAST_COVER = 0.5
_RUNNING_TEXT = frozenset(("text", "list", "form"))


def check_layout(blocks: Sequence[Block], rule: LayoutRule) -> Outcome:
    """Pass if the smallest block that covers half of the place is labelled so; its text is not compared."""
    block = block_at(rule.place, blocks)
    if block is None:
        return failed("no_block", blocks=len(blocks))
    right = block.label in _RUNNING_TEXT if rule.kind == "text" else block.label == rule.kind
    return PASSED if right else failed("other_label", label=block.label, nearest=block.text)


def block_at(place: Sequence[Box], blocks: Sequence[Block]) -> Block | None:
    """The smallest block, the first of equals, over half of the area of the place's boxes."""
    total = sum(map(_area, place))
    best, smallest = None, 0.0
    for block in blocks:
        covered = sum(_area(_common(box, block.box)) for box in place) / total
        if covered >= _LEAST_COVER and (best is None or _area(block.box) < smallest):
            best, smallest = block, _area(block.box)
    return best


def _area(box: Box) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def _common(one: Box, other: Box) -> Box:
    return max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])
