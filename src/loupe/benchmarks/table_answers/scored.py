"""TEDS and TEDS-struct of one pair of tables, with the name of what went wrong in place of an exception.

The official evaluators raise on some pairs, and their callers take 0.0 for such a sample. We do too, and keep the name
of the exception. Work beyond the bounds of TEDS is no score: TableTooLargeError goes through; the sample has an error.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from loupe.benchmarks.table_answers.normalized_html import normalize_table
from loupe.benchmarks.table_answers.soup import MAX_TAGS, need_table_tools
from loupe.metrics.table_tree import TableTooLargeError, TedsError
from loupe.metrics.teds import Variant, teds, teds_struct

#: Of tags that the normalisation takes away, inside each other.
MAX_DEPTH = 2_000

_REMOVED_TAG = re.compile(r"<(/?)(?:thead|span|sup|sub|div|p|math)\b", re.IGNORECASE)


class TableScores(NamedTuple):
    """Both scores of a pair. `error` names the exception that the official evaluator raises on it."""

    teds: float
    teds_struct: float
    error: str = ""


def score_pair(prediction: str, reference: str, *, variant: Variant) -> TableScores:
    """Compare two HTML strings; 0.0 where the official evaluator raises."""
    need_table_tools()
    try:
        return TableScores(
            teds(prediction, reference, variant=variant), teds_struct(prediction, reference, variant=variant)
        )
    except TableTooLargeError:
        raise
    except TedsError as error:
        return TableScores(0.0, 0.0, error.upstream)


def score_normalized(prediction: str, reference: str) -> TableScores:
    """Compare two tables after the normalisation of request 001, which makes `td` of `th` and drops sections."""
    need_table_tools()
    _check_work(prediction)
    try:
        pages = normalize_table(prediction), normalize_table(reference)
    except TableTooLargeError:
        raise
    except TedsError as error:
        return TableScores(0.0, 0.0, error.upstream)
    return score_pair(*pages, variant="omnidocbench")


def _check_work(html: str) -> None:
    """Refuse what BeautifulSoup would need minutes for; taking away nested tags costs the square of their depth."""
    tags = html.count("<")
    depth = deepest = 0
    for tag in _REMOVED_TAG.finditer(html):
        depth += -1 if tag[1] else 1
        deepest = max(deepest, depth)
    if tags > MAX_TAGS or deepest > MAX_DEPTH:
        raise TableTooLargeError(f"{tags:,} tags, {deepest:,} of them inside each other, are too many for one answer")
