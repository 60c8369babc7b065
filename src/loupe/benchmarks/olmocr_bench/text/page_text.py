"""An answer to one page in the forms that its tests look at, each made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from loupe.benchmarks.olmocr_bench.equations.extract_equations import extract_equations
from loupe.benchmarks.olmocr_bench.tables.html_tables import parse_html_tables
from loupe.benchmarks.olmocr_bench.tables.markdown_tables import parse_markdown_tables
from loupe.benchmarks.olmocr_bench.tables.table_cells import ReadTable
from loupe.benchmarks.olmocr_bench.text.normalization import normalize
from loupe.benchmarks.shared.table_answers.table_grid import Table, TableLimitError


class PageText:
    """The Markdown of a page; everything else is made of it when a test first asks."""

    def __init__(self, markdown: str) -> None:
        self.markdown = markdown
        self._equations: dict[bool, list[str]] = {}
        #: Why tables were not read, by kind; filled when they are asked for.
        self.table_limits: dict[str, str] = {}

    @cached_property
    def normalized(self) -> str:
        """The text as it is compared."""
        return normalize(self.markdown)

    @cached_property
    def lowered(self) -> str:
        """The same in lower case."""
        return self.normalized.lower()

    @cached_property
    def markdown_tables(self) -> list[ReadTable]:
        """Pipe tables, in order; none where they are beyond a limit of ours."""
        return self._within_limits(parse_markdown_tables, "Markdown")

    @cached_property
    def html_tables(self) -> list[ReadTable]:
        """HTML tables, in order; as above. Raises TableReadError where upstream raises in reading them."""
        return self._within_limits(parse_html_tables, "HTML")

    def _within_limits(self, parse: Callable[[str], list[Table]], kind: str) -> list[ReadTable]:
        try:
            return [ReadTable(table) for table in parse(self.markdown)]
        except TableLimitError as error:
            self.table_limits[kind] = str(error)
            return []

    def equations(self, *, ignore_dollars: bool = False) -> list[str]:
        """What is delimited as math."""
        if ignore_dollars not in self._equations:
            self._equations[ignore_dollars] = extract_equations(self.markdown, ignore_dollars=ignore_dollars)
        return self._equations[ignore_dollars]
