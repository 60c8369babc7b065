"""How well vectors retrieve: nDCG, recall and the others for texts, regions and both, beside BM25 and chance.

Protocol: docs/embedding.md. Queries without a relevant page are left out and counted. Intervals: bootstrap over
queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from loupe.errors import DatasetError
from loupe.studies.embed.bm25 import Bm25
from loupe.studies.embed.inputs import Query
from loupe.studies.embed.matrices import Embeddings
from loupe.studies.embed.page_order import (
    CUTOFFS,
    Floats,
    all_measures,
    best_region,
    expected_at_random,
    rankings,
    similarities,
)

DRAWS, SEED = 1000, 0
#: Queries at a time: bounds the memory of their scores.
_CHUNK = 64


@dataclass(frozen=True, kw_only=True)
class Score:
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
    scores: Mapping[str, Mapping[str, Score]]
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
        raise DatasetError("the queries do not match queries.npy", hint="loupe embed RUN --queries FILE")
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


def _scores(rows: Sequence[Mapping[str, float]]) -> dict[str, Score]:
    """Means with intervals; a single query has none."""
    names = list(rows[0])
    table = np.array([[row[name] for name in names] for row in rows])
    weights = np.random.default_rng(SEED).multinomial(len(rows), [1 / len(rows)] * len(rows), size=DRAWS)
    drawn = weights @ table / len(rows)
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    means = table.mean(axis=0)
    several = len(rows) > 1
    return {
        name: Score(
            value=float(means[column]),
            low=float(low[column]) if several else None,
            high=float(high[column]) if several else None,
            # MTEB leaves its mean reciprocal rank as it is.
            mteb_rounded=float(means[column]) if name.startswith("mrr") else round(float(means[column]), 5),
        )
        for column, name in enumerate(names)
    }
