"""BeautifulSoup's `html.parser`, stopped where it would read a hostile page again and again.

For each tag, comment or declaration that never ends it reads on to the end of the page, and goes back. What it makes of
a page that is not stopped is the same to the letter.
"""

from __future__ import annotations

from typing import Any

from bs4.builder import ParserRejectedMarkup
from bs4.builder._htmlparser import BeautifulSoupHTMLParser, HTMLParserTreeBuilder

from loupe.metrics.table_tree import TableTooLargeError

#: Characters read in vain on one page, a second: ten tags that never end before a megabyte, or a thousand before 10 kB.
MAX_READ_IN_VAIN = 10_000_000


class BoundedTreeBuilder(HTMLParserTreeBuilder):
    """What BeautifulSoup takes as its `builder`; parsing raises TableTooLargeError where it is stopped."""

    def feed(self, markup: Any, *_: Any) -> None:
        """Parse a page."""
        assert self.soup is not None
        arguments, options = self.parser_args
        parser = _BoundedParser(self.soup, *arguments, **options)
        try:
            parser.feed(markup)
            parser.close()
        except AssertionError as error:
            raise ParserRejectedMarkup(error) from error


class _BoundedParser(BeautifulSoupHTMLParser):
    read_in_vain = 0

    def parse_starttag(self, i: int) -> int:
        return self._counted(i, super().parse_starttag(i))

    def parse_endtag(self, i: int) -> int:
        return self._counted(i, super().parse_endtag(i))

    def parse_comment(self, i: int, report: bool = True) -> int:
        return self._counted(i, super().parse_comment(i, report))

    def parse_pi(self, i: int) -> int:
        return self._counted(i, super().parse_pi(i))

    def parse_html_declaration(self, i: int) -> int:
        return self._counted(i, super().parse_html_declaration(i))

    def _counted(self, start: int, end: int) -> int:
        if end < 0:
            self.read_in_vain += len(self.rawdata) - start
            if self.read_in_vain > MAX_READ_IN_VAIN:
                raise TableTooLargeError("too many tags or comments that never end in one answer")
        return end
