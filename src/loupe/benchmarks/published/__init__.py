"""Figures that others have published, as data: `<benchmark>.toml` here or in a feature, each row with its source.

None was measured here. A file keeps the numbers as printed; the name of a column says how they become Loupe's measure:
`teds` is taken as it is, `teds %` was printed in percent, `1 - text_edit %` is a similarity in percent.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import msgspec

from loupe.hooks import folders
from loupe.typed import convert
from loupe.types import PublishedRow

_FOLDER = Path(__file__).parent
_COLUMN = re.compile(r"(?P<complement>1 - )?(?P<measure>[\w.]+)(?P<percent> %)?")


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    values: list[float]
    engines: list[str] = []
    not_reproducible: str = ""
    half_width: float | None = None
    options: dict[str, str] = {}
    settings: dict[str, str] = {}
    notes: list[str] = []


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    source: str
    columns: list[str]
    rows: list[_Row]
    version: str = ""  # of the benchmark, where it is not that of the file
    published: bool = True
    not_reproducible: str = ""
    options: dict[str, str] = {}
    limit: int | None = None
    settings: dict[str, str] = {}
    notes: list[str] = []


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: str
    table: list[_Table]


def published_benchmarks() -> list[str]:
    """The ids of all benchmarks with published figures, sorted."""
    return sorted(_files())


def _files() -> dict[str, Path]:
    """Return the files of published figures by benchmark."""
    return {path.stem: path for folder in (_FOLDER, *folders("published")) for path in folder.glob("*.toml")}


def published_rows(benchmark: str, version: str = "") -> list[PublishedRow]:
    """Return what is published on a benchmark, in the order of its file; with a version, only of that."""
    if benchmark not in published_benchmarks():
        return []
    found = convert(tomllib.loads(_files()[benchmark].read_text(encoding="utf-8")), _File)
    tables = [(table.version or found.version, table) for table in found.table]
    return [
        _row(benchmark, of_table, table, row)
        for of_table, table in tables
        if version in ("", of_table)
        for row in table.rows
    ]


def _row(benchmark: str, version: str, table: _Table, row: _Row) -> PublishedRow:
    values = dict(_converted(column, value) for column, value in zip(table.columns, row.values, strict=True))
    return PublishedRow(
        benchmark=benchmark,
        version=version,
        name=row.name,
        engines=row.engines or [_as_id(row.name)],
        values=values,
        half_width=None if row.half_width is None else round(row.half_width / 100, 6),
        source=table.source,
        published=table.published,
        not_reproducible=row.not_reproducible or table.not_reproducible,
        options={**table.options, **row.options},
        limit=table.limit,
        settings={**table.settings, **row.settings},
        notes=[*row.notes, *table.notes],
    )


def _converted(column: str, value: float) -> tuple[str, float]:
    """The measure of a column, and a printed number in the measure's own unit; digits that were not printed stay 0."""
    spelled = _COLUMN.fullmatch(column)
    if spelled is None:
        raise ValueError(f"{column!r} is no column of published figures")
    value = round(value / 100, 6) if spelled["percent"] else value
    return spelled["measure"], round(1 - value, 6) if spelled["complement"] else value


def _as_id(name: str) -> str:
    """An id for an engine that has none, as something to type: `Marker v1.7.5 (base)` is `marker-v1.7.5-base`."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")


def rows_of_engine(engine: str, benchmark: str, version: str = "") -> list[PublishedRow]:
    """The rows about one engine, by the id that Loupe knows it by or the name at the source."""
    rows = published_rows(benchmark, version)
    return [row for row in rows if engine in row.engines or _as_id(engine) == _as_id(row.name)]
