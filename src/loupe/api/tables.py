"""A run as rows: one for each sample, or for each unit that was measured."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from loupe.data.extras import install_command
from loupe.errors import MissingToolError, UsageError
from loupe.results.exports.sample_tables import columns_of, sample_rows, unit_rows
from loupe.runs.folder import RunFolder

_KINDS = ("sample", "unit")


def rows_of(folder: RunFolder, by: str) -> list[dict[str, Any]]:
    """The rows of a run, with the columns of an exported table. Raises UsageError for rows of another kind."""
    if by not in _KINDS:
        raise UsageError(f"by={by!r}: no such rows", hint=f"by={' or '.join(map(repr, _KINDS))}")
    if by == "sample":
        names, found = columns_of([folder]), list(sample_rows(folder))
    else:
        found = list(unit_rows(folder))
        names = list(dict.fromkeys(name for row in found for name in row))
    # Every row has all columns, in one order: a table has no other way to be whole.
    return [{name: row.get(name) for name in names} for row in found]


def to_pandas(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A DataFrame of pandas."""
    return _library("pandas").DataFrame(list(rows))


def to_polars(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A DataFrame of polars."""
    return _library("polars").DataFrame(list(rows), infer_schema_length=None)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        command = install_command("").rsplit(" ", 1)[0]
        command = command.removesuffix(" -e")
        raise MissingToolError(f"{name} is not installed", hint=f"{command} {name}; run.rows() needs nothing") from None
