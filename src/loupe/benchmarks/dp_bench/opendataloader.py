"""Markdown pages compared as opendataloader-bench does: NID with and without tables, and all tables as one tree.

Source: opendataloader-project/opendataloader-bench (b4b9505), src/evaluator_reading_order.py, src/evaluator_table.py;
docs/protocols/dp_bench.md#opendataloader.
"""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, NamedTuple

from loupe.benchmarks.shared.table_answers import spellings
from loupe.benchmarks.shared.table_answers.html_grids import parse_html
from loupe.benchmarks.shared.table_answers.spellings import convert_pipe_tables
from loupe.metrics import nid
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

if TYPE_CHECKING:
    from lxml.etree import _Element

#: Of all tables of a page, each inner one written out again with every outer one.
MAX_TABLE_CHARACTERS = 4_000_000

_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TABLE_TAGS = re.compile(r"</?(?:thead|tbody)>")


class PageScores(NamedTuple):
    """The scores of one page; None if the ground truth has nothing to compare with."""

    nid: float | None
    nid_s: float | None
    teds: float | None
    teds_struct: float | None
    error: str = ""  # the exception that the official evaluator raises on the tables


def compare_pages(prediction: str, reference: str) -> PageScores:
    """All four numbers of one page; 0.0 for tables on which the official evaluator raises."""
    prediction, reference = convert_pipe_tables(prediction), convert_pipe_tables(reference)
    texts = compare_texts(prediction, reference)
    try:
        return PageScores(*texts, *compare_all_tables(prediction, reference))
    except TableTooLargeError:
        raise
    except TedsError as error:
        return PageScores(*texts, 0.0, 0.0, error.upstream)


def compare_texts(prediction: str, reference: str) -> tuple[float | None, float | None]:
    """NID of the whole pages, and NID-S of the pages with a space in place of each HTML table."""
    found = _one_line(prediction), _one_line(reference)
    without = _one_line(_without_tables(prediction)), _one_line(_without_tables(reference))
    return (nid(*found), nid(*without)) if found[1] else (None, None)


def compare_all_tables(prediction: str, reference: str) -> tuple[float | None, float | None]:
    """TEDS and TEDS-struct of all tables of a page as one tree; a missing table costs its nodes.

    Raises TedsError where the official evaluator raises.
    """
    from loupe.metrics.teds.table_tree import Vocabulary, build_tree
    from loupe.metrics.teds.tree_distance import tree_savings

    wanted, found = _tables(reference), _tables(prediction)
    if not wanted:
        return None, None
    if not found:
        return 0.0, 0.0
    vocabulary = Vocabulary()
    trees = []
    for tables in (found, wanted):
        outer, elements = _plain_cells(_outer_table(tables))
        trees.append((build_tree(outer, vocabulary), elements))
    (first, first_elements), (second, second_elements) = trees
    scores = []
    for structure_only in (False, True):
        savings = tree_savings(first, second, vocabulary.texts, structure_only=structure_only)
        distance = len(first) + len(second) - savings
        scores.append(1.0 - distance / max(first_elements, second_elements))
    return scores[0], scores[1]


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _without_tables(text: str) -> str:
    return spellings.replace(text, spellings.html_tables(text), " ")


def _tables(text: str) -> list[str]:
    """All tables in document order as html.parser reads them; a table inside a table is listed again on its own."""
    if "<table" not in text.lower():
        return []
    tables: list[str] = []
    size = 0
    for table in parse_html(text).find_all("table"):
        tables.append(str(table))
        size += len(tables[-1])
        if size > MAX_TABLE_CHARACTERS:
            raise TableTooLargeError(f"tables inside tables: more than {MAX_TABLE_CHARACTERS:,} characters")
    return tables


def _outer_table(tables: list[str]) -> _Element:
    """The tree that upstream compares: its line feeds defeat its test for a wrapped page, and one table holds all."""
    from loupe.metrics.teds.table_tree import parse_table

    joined = "\n".join(tables).replace("<th>", "<td>").replace("<th ", "<td ").replace("</th>", "</td>")
    page = f"<html><body><table><html><body>\n{_TABLE_TAGS.sub('', joined)}\n</body></html></table></body></html>"
    outer = parse_table(page)
    assert outer is not None
    return outer


def _plain_cells(table: _Element) -> tuple[_Element, int]:
    """The table with plain text in its cells, and how many elements it had before: tags inside cells count as nodes."""
    elements = sum(1 for _ in table.iterdescendants())
    for cell in list(table.iter("td")):
        text = _cell_text(cell)
        for child in list(cell):
            cell.remove(child)
        cell.text = text
    return table, elements


def _cell_text(cell: _Element) -> str:
    """Text and tags of a cell as one string; as in TEDS, `unk` has no end and text after a nested cell is lost."""
    from lxml import etree

    parts: list[str] = []
    for event, node in etree.iterwalk(cell, events=("start", "end")):
        if event == "start":
            parts += (f"<{node.tag}>", node.text or "")
        else:
            parts += ("" if node.tag == "unk" else f"</{node.tag}>", "" if node.tag == "td" else node.tail or "")
    return _one_line(_BREAK.sub("\n", html.unescape("".join(parts[1:-2]))))
