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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from rapidfuzz.distance import Indel, Levenshtein

from loupe.metrics.arguments import check_texts, is_several, list_of_texts


def levenshtein_distance(prediction: str, reference: str) -> int:
    """Count the fewest insertions, deletions and substitutions of characters that turn one text into the other.

    Range 0..length of the longer text, lower is better, symmetric. Source: Levenshtein 1966.

    >>> levenshtein_distance("kitten", "sitting")
    3
    """
    # Benchmarks call this millions of times: a call of `check_texts` would take as long as the comparison.
    if not (isinstance(prediction, str) and isinstance(reference, str)):
        check_texts(prediction=prediction, reference=reference)
    return Levenshtein.distance(prediction, reference)


def indel_distance(prediction: str, reference: str) -> int:
    """Fewest insertions and deletions that turn one string into the other (a substitution costs 2).

    Range 0..sum of both lengths, lower is better, symmetric.

    >>> indel_distance("kitten", "sitting")
    5
    """
    return Indel.distance(prediction, reference)


def normalized_edit_distance(prediction: str, reference: str) -> float:
    """Divide the Levenshtein distance by the length of the longer text (NED, as in OmniDocBench).

    Range 0..1, lower is better, symmetric. Two empty texts are equal: 0.0.

    >>> normalized_edit_distance("kitten", "sitting")
    0.42857142857142855
    """
    distance = levenshtein_distance(prediction, reference)
    return distance / max(len(prediction), len(reference)) if distance else 0.0


def normalized_edit_similarity(prediction: str, reference: str) -> float:
    """Return 1 − `normalized_edit_distance`: range 0..1, higher is better, symmetric. Two empty texts: 1.0.

    >>> normalized_edit_similarity("Total 12.00", "Total 12.80")
    0.9090909090909091
    """
    return 1.0 - normalized_edit_distance(prediction, reference)


def normalized_indel_similarity(prediction: str, reference: str) -> float:
    """1 − Indel distance divided by the sum of both lengths.

    Range 0..1, higher is better, symmetric. Two empty strings are equal: 1.0.
    """
    total = len(prediction) + len(reference)
    return 1.0 - indel_distance(prediction, reference) / total if total else 1.0


#: One text, or a list of texts.
Texts: TypeAlias = str | Iterable[str]
Counts: TypeAlias = tuple[int, int]

_SPACE_RUN = re.compile(r"\s\s+")
#: Tried at the start of a run of white space only: from every place of it, a megabyte of blanks takes hours.
_SPACE_BEFORE_PUNCTUATION = re.compile(r"(?<!\s)\s++([.,;:!?)\]}])")


def prepare_iam_punct(text: str) -> str:
    """Remove the space that IAM transcriptions have before closing punctuation, then strip.

    Apply it to prediction and reference alike (`iam-punct`). Quotes stay: an opening one has a space, too.
    Source: docs/benchmarks/iam_lines.md.

    >>> prepare_iam_punct("Griffiths , M P for Manchester .")
    'Griffiths, M P for Manchester.'
    """
    check_texts(text=text)
    return _SPACE_BEFORE_PUNCTUATION.sub(r"\1", text).strip()


def split_words(text: str) -> list[str]:
    """Words as jiwer sees them: runs of white space become one space, then U+0020 alone separates.

    A single tab or newline is therefore part of a word.
    """
    return [word for word in _SPACE_RUN.sub(" ", text).strip().split(" ") if word]


def character_errors(prediction: str, reference: str) -> Counts:
    """Return (edits, characters of the reference), both texts stripped: the counts of a character error rate.

    They add up: a benchmark returns them as the counts of a `Score`, and `rate_of_sums` makes the rate of their sums.
    Source: jiwer 4.0.0, docs/benchmarks/iam_lines.md.

    >>> character_errors("recieve", "receive")
    (2, 7)
    """
    check_texts(prediction=prediction, reference=reference)
    stripped = reference.strip()
    return Levenshtein.distance(prediction.strip(), stripped), len(stripped)


def word_errors(prediction: str, reference: str) -> Counts:
    """Return (edits, words of the reference): the counts of a word error rate, which add up like `character_errors`.

    Runs of white space count as one space, and words end at spaces. Source: jiwer 4.0.0.

    >>> word_errors("the quick brwn fox", "the quick brown fox")
    (1, 4)
    """
    check_texts(prediction=prediction, reference=reference)
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
    """Turn summed counts (edits, length) into rates, shape (..., 2) → (...): the `value` of a CER or WER measure.

    Range 0.., lower is better. A length of 0 counts its edits.

    >>> rate_of_sums([[2, 7], [0, 5]]).round(3).tolist()
    [0.286, 0.0]
    """
    import numpy as np

    sums = np.asarray(sums)
    edits, length = np.asarray(sums[..., 0], float), np.asarray(sums[..., 1], float)
    return edits / np.where(length == 0, 1.0, length)


def cer(prediction: Texts, reference: Texts) -> float:
    """Return the character error rate: edits / characters of the reference.

    Range 0.., lower is better; above 1 if the prediction is far too long. Both texts are stripped. An empty reference
    counts the insertions. Two equally long lists give the rate of the corpus: all edits over all characters; empty
    lists 0.0. `align` shows the edits. Source: jiwer 4.0.0. Raises ValueError for lists of unequal length.

    >>> cer("recieve", "receive")
    0.2857142857142857
    >>> cer(["recieve", "ok"], ["receive", "ok"])
    0.2222222222222222
    """
    return _corpus_rate(character_errors, prediction, reference)


def wer(prediction: Texts, reference: Texts) -> float:
    """Return the word error rate: edits / words of the reference.

    Range 0.., lower is better; above 1 if the prediction has far too many words. Runs of white space count as one
    space, and words end at spaces. Lists, empty references and errors as for `cer`. Source: jiwer 4.0.0.

    >>> wer("the quick brwn fox", "the quick brown fox")
    0.25
    """
    return _corpus_rate(word_errors, prediction, reference)


def mean_cer(predictions: Iterable[str], references: Iterable[str]) -> float:
    """Return the mean of the character error rates of the pairs; `cer` weighs them by their length instead.

    Range 0.., lower is better. Empty lists: nan. Raises ValueError for lists of unequal length.

    >>> mean_cer(["recieve", "ok"], ["receive", "ok"])
    0.14285714285714285
    """
    return _mean_rate(character_errors, predictions, references)


def mean_wer(predictions: Iterable[str], references: Iterable[str]) -> float:
    """Return the mean of the word error rates of the pairs; `wer` weighs them by their length instead.

    Range 0.., lower is better. Empty lists: nan. Raises ValueError for lists of unequal length.

    >>> mean_wer(["the quick brwn fox", "ok"], ["the quick brown fox", "ok"])
    0.125
    """
    return _mean_rate(word_errors, predictions, references)


def _pairs(prediction: Texts, reference: Texts, names: tuple[str, str]) -> Iterator[tuple[str, str]]:
    lists = list_of_texts(names[0], prediction), list_of_texts(names[1], reference)
    if len(lists[0]) != len(lists[1]):
        raise ValueError(f"{len(lists[0])} predictions for {len(lists[1])} references")
    return zip(*lists, strict=True)


def _corpus_rate(errors: Callable[[str, str], Counts], prediction: Texts, reference: Texts) -> float:
    several = is_several(prediction), is_several(reference)
    if not any(several):
        return rate(*errors(cast(str, prediction), cast(str, reference)))
    if not all(several) and (isinstance(prediction, str) or isinstance(reference, str)):
        raise TypeError("prediction and reference must be two texts (str), or two lists of texts")
    counts = [errors(*pair) for pair in _pairs(prediction, reference, ("prediction", "reference"))]
    return rate(sum(edits for edits, _ in counts), sum(length for _, length in counts))


def _mean_rate(errors: Callable[[str, str], Counts], predictions: Iterable[str], references: Iterable[str]) -> float:
    rates = [rate(*errors(*pair)) for pair in _pairs(predictions, references, ("predictions", "references"))]
    return sum(rates) / len(rates) if rates else float("nan")


def nid(prediction: str, reference: str) -> float:
    """Return NID, a similarity: 1 − (insertions + deletions) / (sum of both lengths).

    Range 0..1, higher is better, symmetric. Two empty texts are equal: 1.0; one empty text: 0.0. DP-Bench compares
    texts without white space: remove it first. Source: upstage/dp-bench, which takes it from rapidfuzz (`fuzz.ratio`).

    >>> nid("a b ", "ab ")
    0.8571428571428572
    """
    check_texts(prediction=prediction, reference=reference)
    return normalized_indel_similarity(prediction, reference)


def nid_dp_bench_v1(prediction: str, reference: str) -> float:
    """NID as the official evaluator v1 adds it up: two empty texts earn 0.01 instead of 1.

    Kept for parity: upstream scores them with 1 on a scale that ends at 100 (docs/benchmarks/dp_bench.md).
    """
    if not prediction and not reference:
        return 0.01
    return nid(prediction, reference)


PartKind: TypeAlias = Literal["equal", "replace", "insert", "delete"]

# Scripts without spaces between words: every sign is a token of its own.
_SPACELESS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u0e00-\u0e7f"
_TOKEN = re.compile(rf"\s+|[{_SPACELESS}]|[^\W{_SPACELESS}]+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class AlignedPart:
    """A stretch of an alignment: what the prediction has there, and what the reference has.

    `kind` is "equal", "replace", "insert" (only in the prediction) or "delete" (only in the reference).
    """

    kind: PartKind
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
    """Count the characters that are right, substituted, missing (deletions) and too many (insertions).

    Substitutions + deletions + insertions is the Levenshtein distance. `cer` strips both texts first; this does not.
    Several alignments may be equally good: the split is that of rapidfuzz.

    >>> count_edits("recieve it", "receive")
    EditCounts(hits=6, substitutions=0, deletions=1, insertions=4)
    """
    check_texts(prediction=prediction, reference=reference)
    counts = dict.fromkeys(("equal", "replace", "delete", "insert"), 0)
    for step in Levenshtein.opcodes(reference, prediction):
        counts[step.tag] += max(step.src_end - step.src_start, step.dest_end - step.dest_start)
    return EditCounts(counts["equal"], counts["replace"], counts["delete"], counts["insert"])


def insertion_counts(prediction: str, reference: str) -> tuple[int, int]:
    """Characters of the prediction without any counterpart in the reference, and characters of the prediction.

    A wrong character in the place of another is no insertion. Their ratio is the insertion rate: 0..1, lower is better.
    """
    return count_edits(prediction, reference).insertions, len(prediction)


def align(prediction: str, reference: str, *, unit: Literal["character", "word"] = "character") -> list[AlignedPart]:
    """Align two texts: a list of parts that are equal, replaced, inserted or deleted.

    Joining the parts gives both texts back. By characters, these are the edits that `cer` counts (it strips both texts
    first). `unit="word"` is easier to read for long texts, and many times faster: words, punctuation marks and white
    space are units, and each sign of scripts without spaces (CJK, Thai). Several alignments may be equally good: this
    is that of rapidfuzz.

    >>> for part in align("the quick brwn fox", "the quick brown fox", unit="word"):
    ...     print(part.kind, repr(part.prediction), repr(part.reference))
    equal 'the quick ' 'the quick '
    replace 'brwn' 'brown'
    equal ' fox' ' fox'
    """
    check_texts(prediction=prediction, reference=reference)
    if unit not in ("character", "word"):
        raise ValueError(f"no unit {unit!r}: character or word")
    found, wanted = (_TOKEN.findall(text) if unit == "word" else text for text in (prediction, reference))
    numbers: dict[str, int] = {}
    # Numbers instead of words: rapidfuzz compares hash values, and those of small integers cannot collide.
    left, right = ([numbers.setdefault(token, len(numbers)) for token in text] for text in (wanted, found))
    return [
        AlignedPart(
            cast(PartKind, step.tag),
            prediction="".join(found[step.dest_start : step.dest_end]),
            reference="".join(wanted[step.src_start : step.src_end]),
        )
        for step in Levenshtein.opcodes(left, right)
    ]
