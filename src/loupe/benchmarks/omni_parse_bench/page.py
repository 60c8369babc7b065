"""An answer to one page in the forms that its tests look at, each made once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from loupe.benchmarks.omni_parse_bench.equations.math_spans import MathSpan, math_spans
from loupe.benchmarks.omni_parse_bench.equations.mathml_symbols import Symbols
from loupe.benchmarks.omni_parse_bench.equations.reading import read_spans
from loupe.benchmarks.omni_parse_bench.outcomes import GradingError
from loupe.benchmarks.omni_parse_bench.records import Box
from loupe.benchmarks.omni_parse_bench.tables.page_tables import PageTable, page_tables
from loupe.benchmarks.omni_parse_bench.tables.surroundings import Surroundings
from loupe.benchmarks.omni_parse_bench.text.folding import fold
from loupe.benchmarks.omni_parse_bench.text.view import view_text
from loupe.benchmarks.shared.near_matches.text_search import NearMatches, find_near_matches
from loupe.benchmarks.shared.table_answers.table_grid import TableLimitError


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the layout; the box is in fractions of the page."""

    label: str
    box: Box
    text: str = ""


@dataclass(frozen=True, slots=True)
class PageEquations:
    """The symbols of the equations of a page, and how many of these cost the browser."""

    symbols: Sequence[Symbols]
    lost: int


class Page:
    """The HTML of a page. What a test asks for first is made then; a fault in making it is met by each that asks."""

    def __init__(self, html: str) -> None:
        self.html = html
        self._near: dict[tuple[str, int, bool], NearMatches | None] = {}

    @cached_property
    def text(self) -> str:
        """What a reader sees. Raises GradingError, as all that is made of it."""
        return view_text(self.html)

    @cached_property
    def folded(self) -> str:
        """The text as it is compared."""
        return fold(self.text)

    @cached_property
    def squeezed(self) -> str:
        """The same without white space."""
        return "".join(self.folded.split())

    @cached_property
    def folded_without_images(self) -> str:
        """The folded text without what stands for images."""
        if "alt=" not in self.html.lower() and "![" not in self.html:
            return self.folded
        return fold(view_text(self.html, alt=False))

    @cached_property
    def tables(self) -> list[tuple[PageTable, Surroundings]]:
        """The tables with cells. Raises also TableLimitError."""
        if isinstance(self._tables, Exception):
            raise self._tables
        return self._tables

    @cached_property
    def _tables(self) -> list[tuple[PageTable, Surroundings]] | GradingError | TableLimitError:
        try:
            return [(table, Surroundings(table)) for table in page_tables(self.html)]
        except (GradingError, TableLimitError) as error:
            return error

    @cached_property
    def equations(self) -> list[MathSpan]:
        """The equations as they are written."""
        return math_spans(self.html)

    @cached_property
    def drawn_equations(self) -> PageEquations:
        """What the equations show. Raises also MissingToolError and LoupeError."""
        return PageEquations(*read_spans(self.equations))

    def near(self, wanted: str, max_diffs: int, *, squeezed: bool) -> NearMatches | None:
        """Near matches of a folded text."""
        key = (wanted, max_diffs, squeezed)
        if key not in self._near:
            self._near[key] = find_near_matches(wanted, self.squeezed if squeezed else self.folded, max_diffs)
        return self._near[key]
