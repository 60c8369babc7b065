"""TEDS and TEDS-struct of one pair of tables, with the name of what went wrong in place of an exception.

The official evaluators raise on some pairs, and their callers take 0.0 for such a sample. We do too, and keep the name
of the exception. Work beyond the bounds of TEDS is no score: TableTooLargeError goes through; the sample has an error.
"""

from __future__ import annotations

from typing import NamedTuple

from loupe.metrics.table_normalization import normalize_to_plain_cells
from loupe.metrics.teds import Variant, compare_tables
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError


class TableScores(NamedTuple):
    """Both scores of a pair. `error` names the exception that the official evaluator raises on it."""

    teds: float
    teds_struct: float
    error: str = ""


def score_pair(prediction: str, reference: str, *, variant: Variant) -> TableScores:
    """Compare two HTML strings; 0.0 where the official evaluator raises."""
    try:
        found = compare_tables(prediction, reference, variant=variant)
    except TableTooLargeError:
        raise
    except TedsError as error:
        return TableScores(0.0, 0.0, error.upstream)
    return TableScores(found.teds, found.teds_struct)


def score_normalized(prediction: str, reference: str) -> TableScores:
    """Compare two tables after a normalisation that makes `td` of `th` and drops sections."""
    return score_pages(normalized_page(prediction), normalized_page(reference))


def normalized_page(table: str) -> str | TableScores:
    """The page of a table after that normalisation; where it fails, the scores of any pair with this table."""
    try:
        return normalize_to_plain_cells(table)
    except TableTooLargeError:
        raise
    except TedsError as error:
        return TableScores(0.0, 0.0, error.upstream)


def score_pages(prediction: str | TableScores, reference: str | TableScores) -> TableScores:
    """Compare two pages that `normalized_page` made."""
    if isinstance(prediction, TableScores):
        return prediction
    if isinstance(reference, TableScores):
        return reference
    return score_pair(prediction, reference, variant="omnidocbench")
