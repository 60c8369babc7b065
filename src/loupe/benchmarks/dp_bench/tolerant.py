"""Markdown answers against element ground truth: our tolerant rules, and those of the variant `best_table`.

Protocol: docs/benchmarks/dp_bench.md. There is no parity claim for our own rules.
"""

from __future__ import annotations

from collections.abc import Sequence

from loupe.benchmarks.dp_bench.elements import IGNORED, Content, Element, tables_of_page, wrapped_table
from loupe.benchmarks.dp_bench.plain_text import strip_marks, strip_tables_and_headings
from loupe.benchmarks.shared.table_answers.any_spelling import tables_of_answer
from loupe.benchmarks.shared.table_answers.html_conversion import find_tables
from loupe.benchmarks.shared.table_answers.scored import TableScores, normalized_page, score_pages, score_pair
from loupe.metrics import nid
from loupe.metrics.teds.table_tree import TableTooLargeError

#: Of tables of one page, each of the answer with each of the ground truth.
MAX_PAIRS = 2_000


def elements_of_markdown(answer: str) -> list[Element]:
    """A Markdown answer as official elements: one paragraph with its words, and its tables."""
    tables = [Element(category="Table", content=Content(html=table)) for table in tables_of_answer(answer)]
    return [Element(category="Paragraph", content=Content(text=strip_marks(answer))), *tables]


def page_nid(answer: str, reference: Sequence[Element]) -> float:
    """NID of the words of an answer and those of the ground truth, in which a line feed is a space."""
    counted = [element.text for element in reference if element.category.lower() not in IGNORED]
    return nid(strip_marks(answer), " ".join(" ".join(counted).split()))


def page_tables(answer: str, reference: Sequence[Element], *, first_only: bool) -> list[TableScores]:
    """One score per ground-truth table, paired by order; a table without a partner earns 0."""
    wanted = [tables_of_answer(wrapped_table(table.html)) for table in tables_of_page(reference)]
    found = tables_of_answer(answer)
    scores = []
    for place, table in enumerate(wanted[:1] if first_only else wanted):
        pair = (found[place] if place < len(found) else "", table[0] if table else "")
        scores.append(score_pair(*map(_page, pair), variant="omnidocbench") if all(pair) else TableScores(0.0, 0.0))
    return scores


def _page(table: str) -> str:
    return f"<html><body>{table}</body></html>"


def stripped_page_nid(answer: str, reference: Sequence[Element]) -> float:
    """NID of the stripped answer. Line feeds of the ground truth are deleted, those of the answer are blanks."""
    counted = [each.text or each.content.markdown or "" for each in reference if each.category.lower() not in IGNORED]
    return nid(strip_tables_and_headings(answer), " ".join(" ".join(counted).replace("\n", "").split()))


def best_tables(answer: str, reference: Sequence[Element]) -> list[TableScores]:
    """Each ground-truth table against every table in the answer; the best TEDS counts, with its TEDS-struct.

    A predicted table may serve for several. Tables of an empty HTML, or of a category spelt otherwise, do not count.
    Raises TableTooLargeError for more than MAX_PAIRS pairs.
    """
    wanted = [table for table in reference if table.category == "Table" and table.html]
    if not wanted:
        return []
    found = dict.fromkeys(find_tables(answer))  # of equal ones the first counts
    if len(found) * len(wanted) > MAX_PAIRS:
        raise TableTooLargeError(f"{len(found):,} tables in one answer against {len(wanted):,}: too many to compare")
    pages = [normalized_page(table) for table in found]
    return [
        max(
            (score_pages(page, truth) for page in pages),
            key=lambda score: score.teds,
            default=TableScores(0.0, 0.0),
        )
        for truth in [normalized_page(wrapped_table(each.html)) for each in wanted]
    ]
