"""BLEU, as counts that add up over a corpus.

Paper: Papineni et al., "BLEU", ACL 2002. `corpus_bleu` gives the numbers of "bleu" in Hugging Face `evaluate`
(its 13a tokenizer, `compute_bleu` of tensorflow/nmt), which UniMERNet and OmniDocBench report
(docs/benchmarks/unimer_test.md); `sentence_bleu` those of NLTK, which Fox reports (docs/benchmarks/fox.md).
"""

from __future__ import annotations

import math
import re
import string
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

#: Matches for n = 1..N, possible matches for n = 1..N, prediction tokens, reference tokens.
BleuCounts: TypeAlias = tuple[int, ...]
#: One reference, or several of which the best counts.
References: TypeAlias = str | Sequence[str]
Tokenizer: TypeAlias = Callable[[str], list[str]]

_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
#: All ASCII punctuation except ' , - and the full stop, each a token of its own.
_PUNCTUATION = str.maketrans({sign: f" {sign} " for sign in string.punctuation if sign not in "',-."})
_STOP_AFTER_NONDIGIT = re.compile(r"([^0-9])([.,])")
_STOP_BEFORE_NONDIGIT = re.compile(r"([.,])([^0-9])")
_DASH_AFTER_DIGIT = re.compile(r"([0-9])(-)")


def tokenize_13a(text: str) -> list[str]:
    """The words of the tokenizer 13a (mteval-v13a): punctuation apart, but for stops and dashes inside numbers.

    >>> tokenize_13a(r"x=\\alpha, 3.14")
    ['x', '=', '\\\\', 'alpha', ',', '3.14']
    """
    text = text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ")
    if "&" in text:
        for entity, character in _ENTITIES:
            text = text.replace(entity, character)
    text = f" {text} ".translate(_PUNCTUATION)
    if "." in text or "," in text:
        text = _STOP_AFTER_NONDIGIT.sub(r"\1 \2 ", text)
        text = _STOP_BEFORE_NONDIGIT.sub(r" \1 \2", text)
    if "-" in text:
        text = _DASH_AFTER_DIGIT.sub(r"\1 \2 ", text)
    return text.split()


def ngram_counts(tokens: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    """How often each run of `order` tokens occurs."""
    return Counter(zip(*(tokens[start:] for start in range(order)), strict=False))


def bleu_counts(
    prediction: str, references: References, *, max_order: int = 4, tokenize: Tokenizer = tokenize_13a
) -> BleuCounts:
    """What one pair adds to the corpus: see `BleuCounts`. Of several references the shortest gives the length."""
    found = tokenize(prediction)
    wanted = [tokenize(text) for text in ([references] if isinstance(references, str) else references)]
    matches, possible = [], []
    for order in range(1, max_order + 1):
        available = ngram_counts(wanted[0], order) if wanted else Counter()
        for tokens in wanted[1:]:
            available |= ngram_counts(tokens, order)
        # Like `&` of counters and its total, without making a third one.
        matches.append(sum(min(count, available[gram]) for gram, count in ngram_counts(found, order).items()))
        possible.append(max(0, len(found) - order + 1))
    return (*matches, *possible, len(found), min(map(len, wanted), default=0))


def bleu_of_sums(sums: Any, *, smooth: bool = False) -> Any:
    """Corpus BLEU of summed counts, shape (..., 2N + 2) → (...): the `value` of a BLEU measure.

    No smoothing unless asked: one order without a match makes it 0. No prediction or no reference tokens: 0.0, where
    the official metric divides by zero.
    """
    import numpy as np

    sums = np.asarray(sums, float)
    orders = sums.shape[-1] // 2 - 1
    matches, possible = sums[..., :orders] + smooth, sums[..., orders : 2 * orders] + smooth
    found, wanted = sums[..., -2], sums[..., -1]
    some = (matches > 0).all(-1) & (found > 0) & (wanted > 0)
    precisions = np.where(some[..., None], matches, 1.0) / np.where(some[..., None], possible, 1.0)
    ratio = np.where(some, found, 1.0) / np.where(some, wanted, 1.0)
    penalty = np.where(ratio > 1, 1.0, np.exp(1 - 1 / np.minimum(ratio, 1.0)))
    return np.where(some, np.exp(np.log(precisions).mean(-1)) * penalty, 0.0)


def corpus_bleu(
    predictions: str | Sequence[str],
    references: str | Sequence[References],
    *,
    max_order: int = 4,
    smooth: bool = False,
) -> float:
    """BLEU of a corpus, 0..1, higher is better: the numbers of Hugging Face `evaluate`, "bleu".

    A single text is a corpus of one. `references` holds one text, or a list of texts, per prediction. `smooth` adds one
    to every count. Empty texts on either side of the whole corpus: 0.0. Raises ValueError for lists of unequal length.

    >>> round(corpus_bleu(["the cat sat on the mat"], ["the cat sat on a mat"]), 4)
    0.5373
    """
    pairs = zip(
        [predictions] if isinstance(predictions, str) else predictions,
        [references] if isinstance(references, str) else references,
        strict=True,
    )
    counts = [bleu_counts(found, wanted, max_order=max_order) for found, wanted in pairs]
    sums = [sum(column) for column in zip(*counts, strict=True)]
    return float(bleu_of_sums(sums, smooth=smooth)) if sums else 0.0


def sentence_bleu(prediction: Sequence[str], reference: Sequence[str]) -> float:
    """BLEU-4 of one list of words against another, 0..1: the numbers of NLTK's `sentence_bleu` without smoothing.

    NLTK gives an order without matches the smallest float instead of zero, so that short or unlike texts score about
    1e-78 to 1e-231; only texts without a common word score 0. Kept: Fox's page scores are means of these.
    """
    logarithms = []
    for order in range(1, 5):
        found = ngram_counts(prediction, order)
        matches = (found & ngram_counts(reference, order)).total()
        if not matches and order == 1:
            return 0.0
        logarithms.append(math.log(matches / max(1, found.total()) or sys.float_info.min))
    penalty = min(1.0, math.exp(1 - len(reference) / len(prediction)))
    return penalty * math.exp(math.fsum(0.25 * logarithm for logarithm in logarithms))
