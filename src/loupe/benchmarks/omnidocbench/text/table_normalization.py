"""Tables as OmniDocBench compares them, 1.5 and 1.6: both sides alike.

Protocol: docs/protocols/omnidocbench.md#normalisation and docs/protocols/omnidocbench_v16.md#html-tables.
"""

from __future__ import annotations

from collections.abc import Callable

from loupe.metrics.table_normalization import normalize_like_omnidocbench, normalize_like_omnidocbench_1_6
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError


def normalize_table(table: str) -> str:
    """One HTML page with one table; "" where there is no `<table`, and the metrics take the raw string.

    "" as well where html.parser refuses the markup (`refusal`). Raises TableTooLargeError for markup that cannot be
    read in bounded time: an error of its page.
    """
    return _normalized(table, normalize_like_omnidocbench)


def normalize_table_1_6(table: str) -> str:
    """The same for 1.6, which writes symbols for commands in cells."""
    return _normalized(table, normalize_like_omnidocbench_1_6)


def _normalized(table: str, normalize: Callable[[str], str]) -> str:
    try:
        return normalize(table)
    except TableTooLargeError:
        raise
    except TedsError:
        return ""


def refusal(table: str, norm: str) -> str:
    """The exception with which this table ends upstream's whole run; "" where it can be normalised."""
    if norm or "<table" not in table:
        return ""
    try:
        normalize_like_omnidocbench(table)
    except TedsError as error:
        return error.upstream
    return ""
