"""Which part of a prediction stands for which part of the reference: counts of edits, and runs to show a difference.

Source: the optimal Levenshtein alignment of rapidfuzz (D. Hirschberg, CACM 18 (1975), where the table would be large).
An optimal alignment is not unique: only the sum of edits and (insertions − deletions) are; the split is rapidfuzz's.
Bounds: twice the time of `edit.py`; memory grows with the sum of the lengths.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from rapidfuzz.distance import Levenshtein

RunKind: TypeAlias = Literal["equal", "replace", "insert", "delete"]

# Scripts without spaces between words: every sign is a token of its own.
_SPACELESS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0e7f"
_TOKEN = re.compile(rf"\s+|[{_SPACELESS}]|[^\W{_SPACELESS}]+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of the alignment. `insert`: only in the prediction; `delete`: only in the reference."""

    kind: RunKind
    prediction: str
    reference: str


@dataclass(frozen=True, slots=True)
class EditCounts:
    """Characters by their fate. hits + substitutions + deletions is the reference, with insertions the prediction."""

    hits: int
    substitutions: int
    deletions: int
    insertions: int


def count_edits(prediction: str, reference: str) -> EditCounts:
    """Hits, substitutions, deletions and insertions of characters that turn the reference into the prediction."""
    counts = dict.fromkeys(("equal", "replace", "delete", "insert"), 0)
    for step in Levenshtein.opcodes(reference, prediction):
        counts[step.tag] += max(step.src_end - step.src_start, step.dest_end - step.dest_start)
    return EditCounts(counts["equal"], counts["replace"], counts["delete"], counts["insert"])


def insertion_counts(prediction: str, reference: str) -> tuple[int, int]:
    """Characters of the prediction without any counterpart in the reference, and characters of the prediction.

    A wrong character in the place of another is no insertion. Their ratio is the insertion rate: 0..1, lower is better.
    """
    return count_edits(prediction, reference).insertions, len(prediction)


def character_runs(prediction: str, reference: str) -> list[Run]:
    """The alignment character by character; joining the runs gives both texts back."""
    return _runs(prediction, reference)


def word_runs(prediction: str, reference: str) -> list[Run]:
    """The alignment by words, punctuation marks and stretches of white space (CJK, Thai: by signs).

    Easier to read than characters for long texts, and many times faster. Joining the runs gives both texts back.
    """
    return _runs(_TOKEN.findall(prediction), _TOKEN.findall(reference))


def _runs(prediction: Sequence[str], reference: Sequence[str]) -> list[Run]:
    numbers: dict[str, int] = {}
    # Numbers instead of words: rapidfuzz compares hash values, and those of small integers cannot collide.
    left, right = ([numbers.setdefault(token, len(numbers)) for token in text] for text in (reference, prediction))
    return [
        Run(
            cast(RunKind, step.tag),
            prediction="".join(prediction[step.dest_start : step.dest_end]),
            reference="".join(reference[step.src_start : step.src_end]),
        )
        for step in Levenshtein.opcodes(left, right)
    ]
