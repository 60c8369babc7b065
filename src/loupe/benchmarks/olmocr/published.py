"""The published tables of olmOCR-Bench."""

from loupe.benchmarks.published import published_rows as _published_rows
from loupe.types import PublishedRow


def published_rows() -> list[PublishedRow]:
    """All rows, older table first."""
    return _published_rows("olmocr_bench")
