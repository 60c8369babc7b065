"""The measures, and how summed counts of page scores become those that are more than a mean.

Protocol: docs/protocols/mdpbench.md#final-score. What is counted: `scoring.py`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from loupe.types import Measure


def _mean_of_pages(sums: Any) -> Any:
    """The mean of page scores; nan where a formula has no CDM."""
    return np.where(sums[..., 2] > 0, np.nan, sums[..., 0] / sums[..., 1])


def _mean_of_languages(sums: Any) -> Any:
    """The mean of the means of the languages that are there; nan where a formula has no CDM."""
    values, counts, lacking = sums[..., 0:-1:2], sums[..., 1:-1:2], sums[..., -1]
    there = counts > 0
    means = np.where(there, values / np.where(there, counts, 1.0), 0.0)
    number = there.sum(axis=-1)
    return np.where((lacking > 0) | (number == 0), np.nan, means.sum(axis=-1) / np.where(number, number, 1))


def _mean_of_documents(rows: Any) -> float:
    """Digital page less the mean of its photographs, averaged over the documents that have both; nan without any.

    Rows are (number of the document, 1 if digital, page score, 1 where a formula has no CDM). A document that was drawn
    several times has several digital pages, and its weight.
    """
    _, document = np.unique(rows[:, 0], return_inverse=True)
    digital, score = rows[:, 1], rows[:, 2]
    counts = [np.bincount(document, weights) for weights in (digital, 1 - digital)]
    both = (counts[0] > 0) & (counts[1] > 0)
    if not both.any() or rows[:, 3].any():
        return float("nan")
    sums = [np.bincount(document, weights * score) for weights in (digital, 1 - digital)]
    losses = sums[0][both] / counts[0][both] - sums[1][both] / counts[1][both]
    return float(np.average(losses, weights=counts[0][both]))


def _overall(name: str, title: str) -> Measure:
    return Measure(name=name, title=title, value=_mean_of_pages, bounded=True)


def _script(name: str, title: str) -> Measure:
    return Measure(name=name, title=title, value=_mean_of_languages, bounded=True)


def _edits(name: str, title: str) -> Measure:
    return Measure(name=name, title=title, higher_is_better=False, unit="number", bounded=True)


MEASURES: Final = (
    _overall("overall", "overall (All)"),
    _overall("overall_digital", "digital pages (Digit.)"),
    _overall("overall_photographed", "photographs (Photo.)"),
    Measure(
        name="photo_loss",
        title="lost on photographs of the same document",
        higher_is_better=False,
        value=_mean_of_documents,
        pooled=True,
    ),
    _script("latin", "Latin scripts (mean of languages)"),
    _script("non_latin", "other scripts (mean of languages)"),
    _overall("overall_without_suffix_rule", "overall without the suffix rule"),
    _edits("text_edit", "text (edit distance)"),
    _edits("text_edit_with_marks", "text with vowel signs, tones, accents"),
    _edits("formula_edit", "formulas (edit distance)"),
    Measure(name="formula_cdm", title="formulas (CDM)"),
    Measure(name="table_teds", title="tables (TEDS)"),
    Measure(name="table_teds_struct", title="table structure (TEDS-S)"),
    _edits("table_edit", "tables (edit distance)"),
    _edits("reading_order_edit", "reading order (edit distance)"),
)
