"""Score how well vectors retrieve: nDCG, recall and others for texts, regions and both, next to BM25 and chance.

Protocol: docs/embedding.md; definitions of embeddings-benchmark/mteb @ a905523 (`retrieval_metrics.py`) and trec_eval:
linear gain, ties in descending order of document ids. Queries without a relevant page are left out and counted.
Intervals: bootstrap over queries. Two runs are compared by the queries of both (docs/statistics.md).

BM25 over the texts of pages is a baseline that needs no model, and a cheap measure of what OCR errors cost retrieval.
Source: Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with the inverse document
frequency that cannot be negative, log(1 + (N - n + 0.5) / (n + 0.5)), as Lucene has it; k1 = 1.2, b = 0.75.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from loupe.errors import DatasetError, word
from loupe.features.embed.inputs import Query
from loupe.features.embed.vectors import Embeddings
from loupe.files.folder import Folder
from loupe.stats.analysis import Analysis
from loupe.stats.comparison import Difference, compare
from loupe.typed import json_decoder
from loupe.types import UNDECODABLE, Measure, SampleScores, Score

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
    """Compute what all orders of the pages give on average: nDCG and recall."""
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


DRAWS, SEED = 1000, 0
#: Queries at a time: bounds the memory of their scores.
_CHUNK = 64


@dataclass(frozen=True, kw_only=True)
class MeanScore:
    """A mean over queries with its 95 % interval; `mteb_rounded` is what MTEB prints."""

    value: float
    low: float | None
    high: float | None
    mteb_rounded: float


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """The scores by system ("max", "text", "regions", "bm25", "random") and measure; `per_query` for comparisons."""

    queries: int
    without_relevant: int
    pages: int
    scores: Mapping[str, Mapping[str, MeanScore]]
    per_query: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)
    draws: int = DRAWS
    seed: int = SEED


#: Measures whose values by query are kept.
KEPT = ("ndcg@5", "ndcg@10", "recall@5", "recall@10")


def score(found: Embeddings, queries: Sequence[Query], texts: Iterable[str] | None = None) -> Retrieval:
    """Score the rankings of queries with relevance. `texts` of the pages, in their order, for BM25.

    Raises DatasetError where the queries are not those of the matrix, or none has a relevant page.
    """
    if found.queries is None or [query.query_id for query in queries] != found.query_ids:
        raise DatasetError("the queries do not match queries.npy", hint="run: loupe embed RUN --queries FILE")
    judged = [number for number, query in enumerate(queries) if query.relevant]
    if not judged:
        raise DatasetError("no query names a relevant page", hint='"relevant": {"page id": 1} in the queries')
    values = _by_model(found, queries, judged)
    if texts is not None:
        index = Bm25(texts)
        ranked = rankings(lambda place: index.scores(queries[judged[place]].text), len(judged), found.page_ids)
        values["bm25"] = [
            all_measures(pages, queries[number].relevant) for number, pages in zip(judged, ranked, strict=True)
        ]
    values["random"] = [
        {
            name: value
            for k in CUTOFFS
            for name, value in expected_at_random(queries[number].relevant, len(found.page_ids), k).items()
        }
        for number in judged
    ]
    return Retrieval(
        queries=len(judged),
        without_relevant=len(queries) - len(judged),
        pages=len(found.page_ids),
        scores={system: _scores(rows) for system, rows in values.items()},
        per_query={
            system: {
                queries[number].query_id: {name: row[name] for name in KEPT}
                for number, row in zip(judged, rows, strict=True)
            }
            for system, rows in values.items()
            if system != "random"
        },
    )


def _by_model(found: Embeddings, queries: Sequence[Query], judged: Sequence[int]) -> dict[str, list[dict[str, float]]]:
    """Measures of the model's rankings: texts, regions, and the better of both for each page."""
    assert found.queries is not None
    place = {page: number for number, page in enumerate(found.page_ids)}
    owners = np.array([place[line.page_id] for line in found.region_lines], dtype=np.int64)
    with_regions = len(owners) > 0
    systems = ("max", "text", "regions") if with_regions else ("text",)
    values: dict[str, list[dict[str, float]]] = {system: [] for system in systems}
    for start in range(0, len(judged), _CHUNK):
        chunk = judged[start : start + _CHUNK]
        asked = np.asarray(found.queries[chunk])
        scores: dict[str, Floats] = {"text": similarities(asked, found.texts)}
        if with_regions:
            scores["regions"] = best_region(similarities(asked, found.regions), owners, len(place))
            scores["max"] = np.maximum(scores["text"], scores["regions"])
        for system in systems:
            table = scores[system]
            ranked = rankings(table.__getitem__, len(chunk), found.page_ids)
            values[system] += [
                all_measures(pages, queries[number].relevant) for number, pages in zip(chunk, ranked, strict=True)
            ]
    return values


def _scores(rows: Sequence[Mapping[str, float]]) -> dict[str, MeanScore]:
    """Means with intervals; a single query has none."""
    names = list(rows[0])
    table = np.array([[row[name] for name in names] for row in rows])
    weights = np.random.default_rng(SEED).multinomial(len(rows), [1 / len(rows)] * len(rows), size=DRAWS)
    drawn = weights @ table / len(rows)
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    means = table.mean(axis=0)
    several = len(rows) > 1
    return {
        name: MeanScore(
            value=float(means[column]),
            low=float(low[column]) if several else None,
            high=float(high[column]) if several else None,
            # MTEB leaves its mean reciprocal rank as it is.
            mteb_rounded=float(means[column]) if name.startswith("mrr") else round(float(means[column]), 5),
        )
        for column, name in enumerate(names)
    }


class _Stored(msgspec.Struct):
    per_query: dict[str, dict[str, dict[str, float]]]


def differences(here: Retrieval, folder: Path, name: str = "retrieval.json") -> Mapping[str, Mapping[str, Difference]]:
    """These scores minus those of another folder, by system and measure, over the queries of both.

    Raises DatasetError where the other folder has no scores, or no query is the same.
    """
    try:
        there = json_decoder(_Stored).decode(Folder(folder).read(name)).per_query
    except (*UNDECODABLE, OSError):
        raise DatasetError(
            f"{folder}: no {name} that can be read", hint=f"make it: loupe embed {word(folder)} --queries FILE"
        ) from None
    shared = [system for system in here.per_query if system in there]
    if not any(here.per_query[system].keys() & there[system].keys() for system in shared):
        raise DatasetError(f"{folder}: it shares no queries with this run", hint="both need the same --queries")
    analysis = Analysis([Measure(name=measure) for measure in KEPT])
    return {system: compare(analysis, _rows(here.per_query[system]), _rows(there[system])) for system in shared}


def _rows(queries: Mapping[str, Mapping[str, float]]) -> list[SampleScores]:
    return [
        SampleScores(
            sample=query,
            scores=[Score(measure=name, counts=(value, 1.0)) for name, value in values.items() if name in KEPT],
        )
        for query, values in queries.items()
    ]
