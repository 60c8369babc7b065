"""The published tables of olmOCR-Bench: numbers of others, each with its source; none was measured here."""

from __future__ import annotations

from pathlib import Path

import msgspec

from loupe.types import PublishedRow

_FILE = Path(__file__).with_name("published.json")


class _Row(msgspec.Struct, frozen=True):
    model: str
    half_width: float | None
    by_its_authors: bool
    percent: list[float | None]


class _Table(msgspec.Struct, frozen=True):
    source: str
    rows: list[_Row]


class _Tables(msgspec.Struct, frozen=True):
    columns: list[str]
    tables: list[_Table]


def published_rows() -> list[PublishedRow]:
    """All rows, older table first; fractions, with half of the official interval."""
    document = msgspec.json.decode(_FILE.read_bytes(), type=_Tables)
    return [
        PublishedRow(
            name=row.model,
            values={
                name: percent / 100
                for name, percent in zip(document.columns, row.percent, strict=True)
                if percent is not None
            },
            half_width=None if row.half_width is None else row.half_width / 100,
            source=table.source + (", reported by its authors" if row.by_its_authors else ""),
        )
        for table in document.tables
        for row in table.rows
    ]
