"""Tables as OmniDocBench 1.5 compares them (section 5): both sides alike."""

from __future__ import annotations

from loupe.metrics.table_normalization import normalize_like_omnidocbench
from loupe.metrics.table_tree import TableTooLargeError, TedsError


def normalize_table(table: str) -> str:
    """One HTML page with one table; "" where there is no `<table`, and the metrics take the raw string.

    "" as well where html.parser refuses the markup (`refusal`). Raises TableTooLargeError for markup that cannot be
    read in bounded time: an error of its page.
    """
    try:
        return normalize_like_omnidocbench(table)
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
