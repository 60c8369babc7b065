"""Character and word error rates.

Protocol: docs/benchmarks/iam_lines.md (jiwer 4.0.0 semantics). Rate = (substitutions + deletions + insertions) /
reference length; lower is better, and it may exceed 1. Bounds: as in `edit.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from rapidfuzz.distance import Levenshtein

#: One text, or a list of texts.
Texts: TypeAlias = str | Sequence[str]
Counts: TypeAlias = tuple[int, int]

_SPACE_RUN = re.compile(r"\s\s+")
#: Tried at the start of a run of white space only: from every place of it, a megabyte of blanks takes hours.
_SPACE_BEFORE_PUNCTUATION = re.compile(r"(?<!\s)\s++([.,;:!?)\]}])")


def prepare_iam_punct(text: str) -> str:
    """Remove the space that IAM transcriptions have before closing punctuation, then strip.

    The text preparation `iam-punct`, for prediction and reference alike. Quotes stay: an opening one has a space, too.

    >>> prepare_iam_punct("Griffiths , M P for Manchester .")
    'Griffiths, M P for Manchester.'
    """
    return _SPACE_BEFORE_PUNCTUATION.sub(r"\1", text).strip()


def split_words(text: str) -> list[str]:
    """Words as jiwer sees them: runs of white space become one space, then U+0020 alone separates.

    A single tab or newline is therefore part of a word.
    """
    return [word for word in _SPACE_RUN.sub(" ", text).strip().split(" ") if word]


def character_errors(prediction: str, reference: str) -> Counts:
    """Edits and reference length in characters, both texts stripped: the counts of a character error rate."""
    stripped = reference.strip()
    return Levenshtein.distance(prediction.strip(), stripped), len(stripped)


def word_errors(prediction: str, reference: str) -> Counts:
    """Edits and reference length in words: the counts of a word error rate."""
    reference_words = split_words(reference)
    numbers: dict[str, int] = {}
    # Numbers instead of words: rapidfuzz compares hash values, and those of small integers cannot collide.
    numbered = [
        [numbers.setdefault(word, len(numbers)) for word in words]
        for words in (split_words(prediction), reference_words)
    ]
    return Levenshtein.distance(*numbered), len(reference_words)


def rate(edits: float, length: float) -> float:
    """Edits per unit of the reference. A reference of length 0 counts its insertions: 0 if there are none."""
    return edits / length if length else float(edits)


def rate_of_sums(sums: Any) -> Any:
    """`rate` for arrays of summed counts, shape (..., 2) → (...): the `value` of a CER or WER measure."""
    import numpy as np

    edits, length = np.asarray(sums[..., 0], float), np.asarray(sums[..., 1], float)
    return edits / np.where(length == 0, 1.0, length)


def cer(prediction: Texts, reference: Texts) -> float:
    """Character error rate; for equally long lists the corpus rate: all edits over all reference characters.

    Raises ValueError for lists of unequal length. Empty lists: 0.0.

    >>> cer("recieve", "receive")
    0.2857142857142857
    """
    return _corpus_rate(character_errors, prediction, reference)


def wer(prediction: Texts, reference: Texts) -> float:
    """Word error rate; for equally long lists the corpus rate: all edits over all reference words.

    Raises ValueError for lists of unequal length. Empty lists: 0.0.
    """
    return _corpus_rate(word_errors, prediction, reference)


def mean_cer(predictions: Sequence[str], references: Sequence[str]) -> float:
    """Mean of the character error rates of the samples. Empty lists: nan, as there is nothing to average."""
    return _mean_rate(character_errors, predictions, references)


def mean_wer(predictions: Sequence[str], references: Sequence[str]) -> float:
    """Mean of the word error rates of the samples. Empty lists: nan, as there is nothing to average."""
    return _mean_rate(word_errors, predictions, references)


def _pairs(prediction: Texts, reference: Texts) -> Iterator[tuple[str, str]]:
    if isinstance(prediction, str) != isinstance(reference, str):
        raise ValueError("prediction and reference must be two strings or two lists of strings")
    if isinstance(prediction, str):
        return zip((prediction,), (str(reference),), strict=True)
    if len(prediction) != len(reference):
        raise ValueError(f"{len(prediction)} predictions for {len(reference)} references")
    return zip(prediction, reference, strict=True)


def _corpus_rate(errors: Callable[[str, str], Counts], prediction: Texts, reference: Texts) -> float:
    counts = [errors(*pair) for pair in _pairs(prediction, reference)]
    return rate(sum(edits for edits, _ in counts), sum(length for _, length in counts))


def _mean_rate(errors: Callable[[str, str], Counts], predictions: Sequence[str], references: Sequence[str]) -> float:
    rates = [rate(*errors(*pair)) for pair in _pairs(predictions, references)]
    return sum(rates) / len(rates) if rates else float("nan")
