"""BeautifulSoup over tags and texts that are split by one rule, whatever Python runs here.

The `html.parser` that it would use is that of the running Python, which reads malformed markup otherwise from one patch
version to the next, and a hostile page again and again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bs4.builder import ParserRejectedMarkup
from bs4.builder._htmlparser import BeautifulSoupHTMLParser, HTMLParserTreeBuilder

from loupe.metrics.html_tokens import Kind, html_tokens


class BoundedTreeBuilder(HTMLParserTreeBuilder):
    """What BeautifulSoup takes as its `builder`; parsing raises TableTooLargeError where it is stopped."""

    def feed(self, markup: Any, *_: Any) -> None:
        """Parse a page."""
        assert self.soup is not None
        arguments, options = self.parser_args
        parser = BeautifulSoupHTMLParser(self.soup, *arguments, **options)
        takes: dict[Kind, Callable[..., None]] = {
            "start": parser.handle_starttag,
            "empty": parser.handle_startendtag,
            "end": parser.handle_endtag,
            "text": parser.handle_data,
            "number": parser.handle_charref,
            "entity": parser.handle_entityref,
            "comment": parser.handle_comment,
            "doctype": parser.handle_decl,
            "section": parser.unknown_decl,
            "instruction": parser.handle_pi,
        }
        try:
            for kind, *found in html_tokens(markup):
                takes[kind](*found)
        except AssertionError as error:
            raise ParserRejectedMarkup(error) from error
