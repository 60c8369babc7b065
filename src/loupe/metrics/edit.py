"""Compare strings by edits: edit distance, character and word error rates, NID, and the alignment of two texts.

Sources: V. Levenshtein, Soviet Physics Doklady 10 (1966); Indel is the same without substitution (2 · longest common
subsequence = len + len − Indel). The unit is the Unicode code point: callers normalise first. Lone surrogates and NUL
are code points like any other.
Bounds: time grows with len · len / 64, memory with len. Equal ends cost nothing. Two unlike texts of 10,000 characters
take 6 ms, of 100,000 half a second, of 1,000,000 about a minute. An alignment takes twice the time.

Error rates: docs/benchmarks/iam_lines.md (jiwer 4.0.0 semantics). Rate = (substitutions + deletions + insertions) /
reference length; lower is better, and it may exceed 1.

NID: upstage/dp-bench, src/layout_evaluation.py (b837da3, 6c2a241), which takes it from rapidfuzz as `fuzz.ratio`.
Callers prepare the texts, as docs/benchmarks/dp_bench.md describes.

Alignment: the optimal one of rapidfuzz (D. Hirschberg, CACM 18 (1975), if the table would be large). An optimal
alignment is not unique: only the sum of edits and (insertions − deletions) are; the split is rapidfuzz's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from rapidfuzz.distance import Indel, Levenshtein


def levenshtein_distance(prediction: str, reference: str) -> int:
    """Fewest insertions, deletions and substitutions of one character that turn one string into the other.

    Range 0..length of the longer string, lower is better, symmetric.

    >>> levenshtein_distance("kitten", "sitting")
    3
    """
    return Levenshtein.distance(prediction, reference)


def indel_distance(prediction: str, reference: str) -> int:
    """Fewest insertions and deletions that turn one string into the other (a substitution costs 2).

    Range 0..sum of both lengths, lower is better, symmetric.

    >>> indel_distance("kitten", "sitting")
    5
    """
    return Indel.distance(prediction, reference)


def normalized_edit_distance(prediction: str, reference: str) -> float:
    """Levenshtein distance divided by the length of the longer string.

    Range 0..1, lower is better, symmetric. Two empty strings are equal: 0.0.

    >>> normalized_edit_distance("kitten", "sitting")
    0.42857142857142855
    """
    longest = max(len(prediction), len(reference))
    return levenshtein_distance(prediction, reference) / longest if longest else 0.0


def normalized_edit_similarity(prediction: str, reference: str) -> float:
    """1 − `normalized_edit_distance`: range 0..1, higher is better; two empty strings: 1.0."""
    return 1.0 - normalized_edit_distance(prediction, reference)


def normalized_indel_similarity(prediction: str, reference: str) -> float:
    """1 − Indel distance divided by the sum of both lengths.

    Range 0..1, higher is better, symmetric. Two empty strings are equal: 1.0.
    """
    total = len(prediction) + len(reference)
    return 1.0 - indel_distance(prediction, reference) / total if total else 1.0


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


def nid(prediction: str, reference: str) -> float:
    """1 - (insertions + deletions) / (sum of both lengths).

    Range 0..1, higher is better, symmetric. Two empty strings are equal: 1.0; one empty string: 0.0.

    >>> nid("a b ", "ab ")
    0.8571428571428572
    """
    return normalized_indel_similarity(prediction, reference)


def nid_dp_bench_v1(prediction: str, reference: str) -> float:
    """NID as the official evaluator v1 adds it up: two empty texts earn 0.01 instead of 1.

    Kept for parity: upstream scores them with 1 on a scale that ends at 100 (docs/benchmarks/dp_bench.md).
    """
    if not prediction and not reference:
        return 0.01
    return nid(prediction, reference)


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
