"""The tables of a page, with the texts of their cells in every form in which they are compared.

Protocol: docs/protocols/omni_parse_bench.md#tables.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from rapidfuzz import fuzz

from loupe.benchmarks.omni_parse_bench.outcomes import GradingError
from loupe.benchmarks.omni_parse_bench.text.folding import fold_short
from loupe.benchmarks.omni_parse_bench.text.view import view_text
from loupe.benchmarks.shared.table_answers.html_grids import Count, parse_tables
from loupe.benchmarks.shared.table_answers.table_grid import Table, TableReadError

if TYPE_CHECKING:
    from bs4 import Tag

#: Longer spans are read as this.
LONGEST_SPAN = 1_000
#: However many differences a test allows, cells must be as similar as this.
_LEAST = 0.5
#: What rapidfuzz may cut off below a threshold in percent.
_MARGIN = 1e-6
#: To write an element takes as long as to look at so many.
_WORK_OF_ELEMENT = 10
_LINE_END = re.compile(r"<br\b[^<>]*>")


def page_tables(source: str) -> list[PageTable]:
    """All tables with cells. Raises GradingError as the official program does, TableLimitError for too large ones."""
    # Only a marked section makes the parser give up.
    read_all = "<![" in source
    try:
        tables = parse_tables(source, _cell_text, longest_span=LONGEST_SPAN, read_all=read_all)
        return [PageTable(table) for table in tables]
    except TableReadError as error:
        raise GradingError(str(error)) from error


def _cell_text(cell: Tag, count: Count) -> str:
    for element in cell.descendants:
        count(len(element) if isinstance(element, str) else _WORK_OF_ELEMENT)
    return view_text(_LINE_END.sub("\n", cell.decode_contents())).strip()


class PageTable:
    """One table; cells by index."""

    def __init__(self, table: Table) -> None:
        self.grid = table
        self.texts = [cell.text for cell in table.cells]

    @cached_property
    def _forms(self) -> list[tuple[str, ...]]:
        return [forms_of(text) for text in self.texts]

    @cached_property
    def _by_form(self) -> dict[str, list[int]]:
        """The cells by what they, or a line of theirs, are as a whole, with blanks and without."""
        found: dict[str, list[int]] = {}
        for index, forms in enumerate(self._forms):
            for form in {each for written in forms for each in (written, written.replace(" ", ""))}:
                found.setdefault(form, []).append(index)
        return found

    def like(self, wanted: str, max_diffs: int) -> list[int]:
        """The cells that are the folded text wanted, or of which a line is, in their order."""
        least = threshold(wanted, max_diffs)
        if least == 1.0:
            same = {*self._by_form.get(wanted, ()), *self._by_form.get(wanted.replace(" ", ""), ())}
            return sorted(index for index in same if is_one_of(wanted, self._forms[index], least))
        return [index for index, forms in enumerate(self._forms) if is_one_of(wanted, forms, least)]

    def is_empty(self, index: int | None) -> bool:
        """Whether there is no cell, or one without text."""
        return index is None or not self.texts[index]


def forms_of(text: str) -> tuple[str, ...]:
    """A text and its lines, folded."""
    written = dict.fromkeys((text, *text.split("\n")))
    return tuple(dict.fromkeys(fold_short(each) for each in written if each.strip()))


def threshold(wanted: str, max_diffs: int) -> float:
    """The similarity that is enough for a folded text."""
    return max(_LEAST, 1.0 - max_diffs / max(1, len(wanted)))


def similarity(wanted: str, found: str, *, least: float = 0.0) -> float:
    """How alike two folded texts are, with blanks or without, whichever is more; 0 below `least`."""
    cut = max(0.0, least * 100.0 - _MARGIN)
    ratio = fuzz.ratio(wanted, found, score_cutoff=cut)
    if " " in wanted or " " in found:
        ratio = max(ratio, fuzz.ratio(wanted.replace(" ", ""), found.replace(" ", ""), score_cutoff=cut))
    return ratio / 100.0


def is_one_of(wanted: str, forms: tuple[str, ...], least: float) -> bool:
    """Whether one of a cell's forms is similar enough."""
    return any(similarity(wanted, form, least=least) >= least for form in forms)
