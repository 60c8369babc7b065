"""Scores of samples: edit distance, TEDS, and TEDS of the structure alone.

Protocol: docs/protocols/omnidocbench.md#metrics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rapidfuzz.distance import Levenshtein

from loupe.benchmarks.omnidocbench.match.matched_elements import reading_orders
from loupe.benchmarks.omnidocbench.records import MatchedSample, ReadingOrder
from loupe.metrics import levenshtein_distance
from loupe.metrics.libxml2_markup import as_read_by_libxml2
from loupe.metrics.teds import compare_tables
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError


def score_edits(sample: MatchedSample) -> MatchedSample:
    """The sample with the edits of its texts and the length that they are divided by."""
    prediction, reference = scored_texts(sample)
    return replace(
        sample,
        edit_num=levenshtein_distance(prediction, reference),
        upper_len=max(len(prediction), len(reference)),
    )


def score_table(sample: MatchedSample) -> MatchedSample:
    """The sample with both TEDS as well: 0 where the official evaluator fails.

    Raises TableTooLargeError for tables beyond all measure: an error of their page.
    """
    try:
        tables = compare_tables(*scored_tables(sample), variant="omnidocbench")
    except TableTooLargeError:
        raise
    except TedsError:
        return replace(score_edits(sample), teds=0.0, teds_structure_only=0.0)
    return replace(score_edits(sample), teds=tables.teds, teds_structure_only=tables.teds_struct)


def scored_tables(sample: MatchedSample) -> tuple[str, str]:
    """The same as markup that every libxml2 reads as that of the official environment does (lxml 4.9.1)."""
    prediction, reference = scored_texts(sample)
    return as_read_by_libxml2(prediction, "2.9"), as_read_by_libxml2(reference, "2.9")


def scored_texts(sample: MatchedSample) -> tuple[str, str]:
    """Prediction and reference: the normal forms, or the raw text of a side whose normal form is empty."""
    return sample.norm_pred or sample.pred, sample.norm_gt or sample.gt


def score_reading_order(samples: Sequence[MatchedSample]) -> ReadingOrder | None:
    """The reading order of a page from the samples that count for it; None where none has an order."""
    gt, pred = reading_orders(samples)
    longest = max(len(gt), len(pred))
    if not longest:
        return None
    edits = Levenshtein.distance(pred, gt)
    return ReadingOrder(gt=gt, pred=pred, edit=edits / longest, edit_num=edits, upper_len=longest)
