"""HTML as BeautifulSoup's `html.parser` reads it: no tag is added and none is moved.

Evaluators that find or rewrite tables this way are reproduced only with the same parser. It comes with the
extra `tables`.
"""

from __future__ import annotations

import functools
import importlib.util
import warnings
from typing import TYPE_CHECKING

from loupe.data.extras import install_command, installed
from loupe.errors import MissingToolError
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError

if TYPE_CHECKING:
    from bs4 import BeautifulSoup


def table_tools() -> dict[str, str]:
    """The parsers that scores of tables depend on."""
    return installed("lxml", "beautifulsoup4")


@functools.cache
def need_table_tools() -> None:
    """Raises MissingToolError where the extra that reads tables is not installed."""
    for name in ("lxml", "bs4"):
        if importlib.util.find_spec(name) is None:
            raise MissingToolError(
                f"scoring tables needs {name}, which is not installed", hint=install_command("tables")
            )


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
