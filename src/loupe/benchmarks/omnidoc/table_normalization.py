"""Tables as OmniDocBench 1.5 compares them (section 5): both sides alike."""

from __future__ import annotations

from loupe.metrics.table_normalization import normalize_like_omnidocbench


def normalize_table(table: str) -> str:
    """One HTML page with one table; "" where there is no `<table`, and the metrics take the raw string.

    Raises TableTooLargeError for markup that cannot be read in bounded time: an error of its page.
    """
    return normalize_like_omnidocbench(table)
