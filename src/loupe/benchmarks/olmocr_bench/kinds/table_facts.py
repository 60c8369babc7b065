"""Table tests: a cell of some table must have the right cells around it.

Protocol: docs/protocols/olmocr_bench.md#matching-cells.
"""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz import fuzz

from loupe.benchmarks.olmocr_bench.data.records import TableRule
from loupe.benchmarks.olmocr_bench.kinds.outcomes import PASSED, Outcome, failed, threshold_of
from loupe.benchmarks.olmocr_bench.tables.table_cells import ReadTable
from loupe.benchmarks.olmocr_bench.text.page_text import PageText

#: However many differences a test allows, texts must be as similar as this.
_LEAST = 0.5


def check_table(page: PageText, rule: TableRule, max_diffs: int) -> Outcome:
    """Pass on the first cell that is similar to the one looked for and has all relations.

    Tables beyond a limit of ours are not read, and fail a test that no other table passes. Raises TableReadError where
    upstream fails to read the tables, TypeError for a rule without a cell.
    """
    if rule.cell is None:
        raise TypeError("`cell` is null, which upstream accepts and then cannot search for")
    tables = [*([] if rule.ignore_markdown_tables else page.markdown_tables), *page.html_tables]
    kinds = [kind for kind in page.table_limits if kind == "HTML" or not rule.ignore_markdown_tables]
    unread = {"unread": "; ".join(f"{kind} tables: {page.table_limits[kind]}" for kind in kinds)} if kinds else {}
    if not tables:
        return failed("table_too_large" if unread else "table_none", **unread)
    threshold = max(_LEAST, threshold_of(rule.cell, max_diffs))
    similar = [table.similarities(rule.cell) for table in tables]
    candidates = [[index for index, ratio in enumerate(ratios) if ratio >= threshold] for ratios in similar]
    for table, chosen in zip(tables, candidates, strict=True):
        if chosen and any(_has_all(table, chosen, rule, max_diffs)):
            return PASSED
    number, best = _best(similar)
    figures: dict[str, float | int | str] = {
        "threshold": threshold,
        "best_ratio": similar[number][best],
        "nearest": tables[number].texts[best],
        "tables": len(tables),
        "table": number,
        "row": tables[number].table.cells[best].row,
        "col": tables[number].table.cells[best].col,
    }
    if unread:
        return failed("table_too_large", **figures, **unread)
    if not any(candidates):
        return failed("table_cell_not_found", **figures)
    return failed("table_relation_failed", **figures, **_wrong_relation(tables[number], best, rule, max_diffs))


def _has_all(table: ReadTable, candidates: Sequence[int], rule: TableRule, max_diffs: int) -> list[bool]:
    """For each candidate whether every relation holds."""
    holds = [True] * len(candidates)
    for relation, text in rule.relations:
        least = max(_LEAST, threshold_of(text, max_diffs))
        similar = [ratio >= least for ratio in table.similarities(text)]
        known = table.satisfying(relation, similar)
        for position, index in enumerate(candidates):
            if holds[position]:
                holds[position] = (
                    any(similar[other] for other in table.related(index, relation)) if known is None else known[index]
                )
    return holds


def _best(similar: Sequence[Sequence[float]]) -> tuple[int, int]:
    """The table and cell that are most similar, the first of equals."""
    places = ((number, index) for number, ratios in enumerate(similar) for index in range(len(ratios)))
    return max(places, key=lambda place: similar[place[0]][place[1]])


def _wrong_relation(table: ReadTable, index: int, rule: TableRule, max_diffs: int) -> dict[str, float | int | str]:
    """The first relation that the most similar cell has not, and what stands there instead."""
    for relation, text in rule.relations:
        found = [(fuzz.ratio(text, table.texts[other]) / 100.0, other) for other in table.related(index, relation)]
        ratio, other = max(found, default=(0.0, -1))
        least = max(_LEAST, threshold_of(text, max_diffs))
        if ratio < least:
            instead = table.texts[other] if other >= 0 else ""
            return {
                "relation": relation,
                "expected": text,
                "instead": instead,
                "relation_ratio": ratio,
                "relation_threshold": least,
            }
    return {}
