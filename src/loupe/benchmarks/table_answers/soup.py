"""HTML as BeautifulSoup's `html.parser` reads it: no tag is added and none is moved.

Evaluators that find or rewrite tables this way are reproduced only with the same parser.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from loupe.metrics.table_tree import TableTooLargeError

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

#: Beyond so many tags BeautifulSoup needs minutes; TEDS would refuse such a table anyway.
MAX_TAGS = 100_000


def parse_html(source: str) -> BeautifulSoup:
    """The parsed text. Raises TableTooLargeError for more than MAX_TAGS tags."""
    from bs4 import BeautifulSoup

    if source.count("<") > MAX_TAGS:
        raise TableTooLargeError(f"{source.count('<'):,} tags in one answer, at most {MAX_TAGS:,} are read")
    with warnings.catch_warnings():
        # It warns of text that looks like a file name or XML; answers do.
        warnings.simplefilter("ignore")
        return BeautifulSoup(source, "html.parser")
