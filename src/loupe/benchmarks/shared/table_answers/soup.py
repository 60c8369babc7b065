"""HTML as BeautifulSoup's `html.parser` reads it: no tag is added and none is moved.

Evaluators that find or rewrite tables this way are reproduced only with the same parser.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from loupe.data.extras import installed
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

if TYPE_CHECKING:
    from bs4 import BeautifulSoup


def table_tools() -> dict[str, str]:
    """The parsers that scores of tables depend on."""
    return installed("lxml", "beautifulsoup4")


#: Beyond so many tags BeautifulSoup needs minutes; TEDS would refuse such a table anyway.
MAX_TAGS = 100_000


def parse_html(source: str) -> BeautifulSoup:
    """The parsed text. Raises TedsError where the parser gives up.

    Raises TableTooLargeError for more than MAX_TAGS tags, or too many that never end.
    """
    from bs4 import BeautifulSoup
    from bs4.exceptions import ParserRejectedMarkup

    from loupe.benchmarks.shared.table_answers.bounded_parser import BoundedTreeBuilder

    if source.count("<") > MAX_TAGS:
        raise TableTooLargeError(f"{source.count('<'):,} tags in one answer, at most {MAX_TAGS:,} are read")
    with warnings.catch_warnings():
        # It warns of text that looks like a file name or XML; answers do.
        warnings.simplefilter("ignore")
        try:
            return BeautifulSoup(source, builder=BoundedTreeBuilder())
        except (ParserRejectedMarkup, AssertionError, ValueError) as error:
            raise TedsError(f"the HTML cannot be parsed: {error}", upstream=type(error).__name__) from error
