"""BM25 over the texts of pages: a baseline that needs no model, and a cheap measure of what OCR errors cost retrieval.

Source: Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the inverse document
frequency that cannot be negative, log(1 + (N - n + 0.5) / (n + 0.5)), as Lucene has it; k1 = 1.2, b = 0.75.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from loupe.studies.embed.page_order import Floats

K1, B = 1.2, 0.75
#: Runs of letters that are written without spaces, and words of everything else.
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
_PARTS = re.compile(rf"([{_CJK}]+)|([^\W{_CJK}]+)")


def terms(text: str) -> Iterator[str]:
    """Words in lower case; Chinese, Japanese and Korean as pairs of characters, a single one as itself.

    >>> list(terms("The 3rd 光学压缩"))
    ['the', '3rd', '光学', '学压', '压缩']
    """
    for found in _PARTS.finditer(text.lower()):
        run = found[1]
        if run is None:
            yield found[0]
        elif len(run) == 1:
            yield run
        else:
            yield from (run[start : start + 2] for start in range(len(run) - 1))


class Bm25:
    """An index of documents, in their order."""

    def __init__(self, documents: Iterable[str]) -> None:
        postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = []
        for number, text in enumerate(documents):
            counted = Counter(terms(text))
            lengths.append(counted.total())
            for term, count in counted.items():
                postings[term].append((number, count))
        self._postings = dict(postings)
        self._lengths = np.array(lengths, dtype=np.float64)

    def scores(self, query: str) -> Floats:
        """The score of every document; -inf for those that share no term with the query."""
        found = np.full(len(self._lengths), -np.inf)
        mean = float(self._lengths.mean()) if len(self._lengths) else 0.0
        for term, weight in Counter(terms(query)).items():
            listed = self._postings.get(term)
            if not listed:
                continue
            rarity = math.log(1 + (len(self._lengths) - len(listed) + 0.5) / (len(listed) + 0.5))
            places = np.array([number for number, _ in listed])
            counts = np.array([count for _, count in listed], dtype=np.float64)
            norm = K1 * (1 - B + B * self._lengths[places] / mean)
            gain = weight * rarity * counts * (K1 + 1) / (counts + norm)
            found[places] = np.where(np.isneginf(found[places]), 0.0, found[places]) + gain
        return np.round(found, 12)
