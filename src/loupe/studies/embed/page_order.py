"""Pages ranked for each query, and what a ranking is worth.

Protocol: docs/embedding.md; definitions of embeddings-benchmark/mteb @ a905523 (`retrieval_metrics.py`) and trec_eval:
linear gain, ties in descending order of document ids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

#: Cut-offs of MTEB.
CUTOFFS = (1, 3, 5, 10, 20, 100, 1000)
#: Rows of the corpus that are multiplied at a time: bounds the memory of large ones.
_BLOCK = 4096
Floats: TypeAlias = npt.NDArray[np.float64]


class Tiebreak:
    """The order of documents: descending score, then descending id, as trec_eval has it."""

    def __init__(self, ids: Sequence[str]) -> None:
        place = np.empty(len(ids), dtype=np.int64)
        place[sorted(range(len(ids)), key=lambda number: ids[number])] = np.arange(len(ids))
        self._place = place

    def ranked(self, scores: Floats, depth: int = max(CUTOFFS)) -> list[int]:
        """The best documents of one query; those with a score of -inf are not ranked."""
        order = np.lexsort((-self._place, -scores))[:depth]
        return [int(number) for number in order if scores[number] != -np.inf]


def similarities(queries: npt.NDArray[np.float32], corpus: npt.NDArray[np.float32]) -> Floats:
    """Dot products, shape (queries, corpus). Rows of zeros, which stand for failures, match nothing: -inf.

    Products of float32 are summed in float64 and rounded, so that equal vectors tie on every machine.
    """
    asked = queries.astype(np.float64)
    found = np.empty((len(queries), len(corpus)))
    for start in range(0, len(corpus), _BLOCK):
        block = np.asarray(corpus[start : start + _BLOCK], dtype=np.float64)
        part = np.round(asked @ block.T, 12)
        part[:, ~block.any(axis=1)] = -np.inf
        found[:, start : start + _BLOCK] = part
    found[~asked.any(axis=1), :] = -np.inf
    return found


def best_region(scores: Floats, pages: npt.NDArray[np.int64], count: int) -> Floats:
    """Scores of pages, shape (queries, count): the best of their regions, -inf for pages without any."""
    best = np.full((count, len(scores)), -np.inf)
    np.maximum.at(best, pages, scores.T)
    return best.T


def measures(ranked: Sequence[str], relevant: Mapping[str, int], k: int) -> dict[str, float]:
    """The measures of one query at a cut-off; `relevant` has at least one page, grades are above 0."""
    gains = [relevant.get(page, 0) for page in ranked[:k]]
    hits = [number for number, gain in enumerate(gains, 1) if gain > 0]
    found, total = len(hits), len(relevant)
    return {
        f"ndcg@{k}": _dcg(gains) / _dcg(sorted(relevant.values(), reverse=True)[:k]),
        f"recall@{k}": found / total,
        f"r_cap@{k}": found / min(total, k),
        f"precision@{k}": found / k,
        f"map@{k}": math.fsum(number / position for number, position in enumerate(hits, 1)) / total,
        f"mrr@{k}": 1 / hits[0] if hits else 0.0,
        f"hit_rate@{k}": float(bool(hits)),
    }


def expected_at_random(relevant: Mapping[str, int], pages: int, k: int) -> dict[str, float]:
    """What all orders of the pages give on average: nDCG and recall."""
    mean_gain = sum(relevant.values()) / pages
    depth = min(k, pages)
    return {
        f"ndcg@{k}": _dcg([mean_gain] * depth) / _dcg(sorted(relevant.values(), reverse=True)[:k]),
        f"recall@{k}": depth / pages,
    }


def _dcg(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(position + 1) for position, gain in enumerate(gains, 1))


def all_measures(ranked: Sequence[str], relevant: Mapping[str, int]) -> dict[str, float]:
    """Every measure at every cut-off."""
    return {name: value for k in CUTOFFS for name, value in measures(ranked, relevant, k).items()}


def rankings(score: Callable[[int], Floats], queries: int, ids: Sequence[str]) -> Iterator[list[str]]:
    """The ids of the pages for each query in turn, best first."""
    order = Tiebreak(ids)
    return ([ids[number] for number in order.ranked(score(query))] for query in range(queries))
