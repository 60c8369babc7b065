"""Assessments as tables: points, counts of what went wrong, intervals, and neighbours that cannot be told apart.

Points are the sums of the benchmark's scores, so a saved run has the same ones. Source: docs/select.md.
"""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import Any

from loupe.features.select.assessment import Assessment, clock
from loupe.features.select.benchmark import CATEGORY, TEXT_MEASURES, Phase, score_image, score_text
from loupe.features.select.documents import Truth
from loupe.features.select.questions import FIELDS
from loupe.features.select.serving import ModelList
from loupe.quantities import points
from loupe.results.sections import format_range
from loupe.results.tables.record import Table
from loupe.stats.analysis import Analysis
from loupe.stats.clusters import Row, sort_into_clusters
from loupe.stats.comparison import FEWEST
from loupe.stats.estimates import estimate
from loupe.stats.permutation import contrasts
from loupe.stats.proportions import mcnemar_exact, wilson_interval
from loupe.types import FAILED, Prediction, Sample, Score, Scored

#: From here on two models cannot be told apart.
LEVEL = 0.05
_POINTS = Analysis(TEXT_MEASURES[:1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One call, and what it was worth."""

    sample: Sample
    prediction: Prediction
    scored: Scored
    asked: bool

    @property
    def document(self) -> str:
        """The document that it was about."""
        return self.sample.group or self.sample.id

    @property
    def points(self) -> tuple[float, float]:
        """What it earned, and what it could have earned."""
        counts = [score.counts for score in self.scored.scores if score.measure == "score"]
        return (counts[0][0], counts[0][1]) if counts else (0.0, 0.0)

    @property
    def correct(self) -> bool:
        """True if the answer is right."""
        return bool(self.scored.details.get("correct"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One line of the table. `position` is None where the model did not come to the end; `interval` is that of `share`.

    `true_positives` to `false_positives` are of phase A; `categorised` to `names` (of how many) of phase B.
    """

    assessment: Assessment
    calls: list[Judged]
    score: int
    most: int
    counts: dict[str, int]
    timeouts: int
    errors: int
    unparsable: int
    seconds: float | None
    interval: tuple[float, float] | None
    position: int | None = None

    @property
    def share(self) -> float:
        """Points earned of those that could be."""
        return self.score / self.most if self.most else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two neighbours in the table that do not differ by documents fully right: `p` is the exact McNemar test's.

    `only_first` and `only_second` count the documents that one of them alone got fully right. Half of a document is
    nothing to that test: `points_p` is the paired permutation test's over points, None where there are too few
    documents for it, and in phase A, where a document is right or wrong.
    """

    first: Standing
    second: Standing
    p: float
    only_first: int = 0
    only_second: int = 0
    points_p: float | None = None

    @property
    def differs_in_points(self) -> bool:
        """True if the points tell apart what the documents do not."""
        return self.points_p is not None and self.points_p < LEVEL


def stand(phase: Phase, samples: Sequence[Sample], assessments: Sequence[Assessment]) -> list[Standing]:
    """All models, best first; equal scores share a position, and those that did not come to the end are last."""
    standings = [_standing(phase, samples, each) for each in assessments]
    standings.sort(
        key=lambda each: (
            bool(each.assessment.status),
            -each.score,
            each.assessment.elapsed,
            each.assessment.model.id,
        )
    )
    scores = [each.score for each in standings if not each.assessment.status]
    return [
        each if each.assessment.status else replace(each, position=1 + scores.index(each.score)) for each in standings
    ]


def like_neighbours(standings: Sequence[Standing]) -> list[Pair]:
    """Neighbours in the table whose difference is not significant, over documents fully right or not."""
    finished = [each for each in standings if each.position is not None]
    pairs = [_pair(first, second) for first, second in pairwise(finished)]
    return [pair for pair in pairs if pair.p >= LEVEL]


def _pair(first: Standing, second: Standing) -> Pair:
    mine, other = _right(first), _right(second)
    return Pair(
        first=first,
        second=second,
        p=mcnemar_exact(mine, other),
        only_first=sum(a and not b for a, b in zip(mine, other, strict=True)),
        only_second=sum(b and not a for a, b in zip(mine, other, strict=True)),
        points_p=_points_p(first, second) if "categorised" in first.counts and len(mine) >= FEWEST else None,
    )


def _points_p(first: Standing, second: Standing) -> float | None:
    mine, other = (sort_into_clusters(_point_rows(each.calls), ["score"]) for each in (first, second))
    found = contrasts(_POINTS, mine, other).get("score")
    return None if found is None else found.p_value()


def _standing(phase: Phase, samples: Sequence[Sample], assessment: Assessment) -> Standing:
    score = score_image if phase == "a" else score_text
    calls = [
        Judged(sample=sample, prediction=prediction, scored=score(sample, prediction), asked=number < assessment.asked)
        for number, (sample, prediction) in enumerate(zip(samples, assessment.predictions, strict=True))
    ]
    asked = [call for call in calls if call.asked]
    outcomes = [call.prediction.outcome for call in asked]
    points = round(sum(call.points[0] for call in calls))
    most = round(sum(call.points[1] for call in calls))
    return Standing(
        assessment=assessment,
        calls=calls,
        score=points,
        most=most,
        counts=_image_counts(calls) if phase == "a" else _text_counts(calls),
        timeouts=outcomes.count("timeout"),
        errors=sum(outcome in FAILED - {"timeout"} for outcome in outcomes),
        unparsable=sum(_sum([call.scored.scores for call in asked], "unparsable")),
        seconds=_median_seconds(asked),
        interval=wilson_interval(points, most) if phase == "a" else _bootstrapped(calls),
    )


def _image_counts(calls: Sequence[Judged]) -> dict[str, int]:
    found = {"TP": 0, "FN": 0, "TN": 0, "FP": 0}
    for call in calls:
        right, wrong = ("TP", "FN") if call.sample.truth["match"] else ("TN", "FP")
        found[right if call.correct else wrong] += 1
    return found


def _text_counts(calls: Sequence[Judged]) -> dict[str, int]:
    """How many were right, and (`_of`) of how many that could be judged."""
    scores = [call.scored.scores for call in calls]
    found: dict[str, int] = {}
    for measure in ("categorised", "extracted", "date", "name"):
        values = _sum(scores, measure)
        found |= {measure: sum(values), f"{measure}_of": len(values)}
    return found


def _sum(scores: Sequence[Sequence[Score]], measure: str) -> list[int]:
    return [round(score.counts[0]) for each in scores for score in each if score.measure == measure]


def _median_seconds(asked: Sequence[Judged]) -> float | None:
    """The median time of a document, all its calls together."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for call in asked:
        seconds[call.document] += call.prediction.seconds
    return median(seconds.values()) if seconds else None


def _bootstrapped(calls: Sequence[Judged]) -> tuple[float, float] | None:
    found = estimate(_POINTS, _point_rows(calls))["score"]
    return None if found.low is None or found.high is None else (found.low, found.high)


def _point_rows(calls: Sequence[Judged]) -> list[Row]:
    return [(call.document, score) for call in calls for score in call.scored.scores if score.measure == "score"]


def _right(standing: Standing) -> list[bool]:
    """For each document whether it earned all its points."""
    lost: dict[str, bool] = {}
    for call in standing.calls:
        earned, most = call.points
        lost[call.document] = lost.get(call.document, False) or earned < most
    return [not each for each in lost.values()]


def no_ground_truth(standing: Standing) -> list[str]:
    """Documents whose extraction could not be scored."""
    return [call.document for call in standing.calls if call.scored.details.get("no_ground_truth")]


def document_verdicts(standing: Standing) -> list[dict[str, object]]:
    """Every call with what came of it, for a file."""
    return [
        {
            "document": call.document,
            "call": call.sample.task or CATEGORY,
            "class": call.prediction.outcome if call.asked else "not asked",
            "points": call.points[0],
            "of": call.points[1],
            "answer": call.prediction.text,
            "error": call.prediction.error,
            "seconds": round(call.prediction.seconds, 3),
            **call.scored.details,
        }
        for call in standing.calls
    ]


TITLES: dict[Phase, str] = {"a": "vision models, by image", "b": "text models, by text"}
_HEAD = ("#", "model", "score", "max", "%")
_TAIL = ("timeouts", "err", "unp", "s/doc (median)", "elapsed")
_COLUMNS: dict[Phase, tuple[str, ...]] = {
    "a": ("TP", "FN", "TN", "FP"),
    "b": ("cat. correct", "extr. correct", "date ok", "name ok"),
}
_COUNTS: dict[Phase, tuple[str, ...]] = {
    "a": ("TP", "FN", "TN", "FP"),
    "b": ("categorised", "extracted", "date", "name"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """The outcome of one phase, and how it came about. `unread`: the ground truth that no person has confirmed."""

    phase: Phase
    document_type: str
    field: str
    positives: int
    negatives: int
    timeout: float
    models: ModelList
    served: str
    standings: list[Standing]
    unread: Sequence[Truth] = ()

    @property
    def drafters(self) -> Counter[str]:
        """How many of the unread files each model has drafted, alone or with another one."""
        return Counter(model for truth in self.unread for model in {truth.text_model, truth.vlm_model} - {""})


def sections(ranked: Ranked) -> list[Table]:
    """The table of a phase and all that stands under it."""
    header = (*_HEAD, *_COLUMNS[ranked.phase], *_TAIL)
    rows = [_row(ranked, standing) for standing in ranked.standings]
    found = [Table(title=f"{ranked.document_type}: {TITLES[ranked.phase]}", header=header, rows=rows, keys=2)]
    found += [Table(title="", rows=[(line,) for line in _notes(ranked)])]
    placed = [each for each in ranked.standings if each.position is not None]
    if placed:
        kind = "Wilson" if ranked.phase == "a" else "bootstrap over documents"
        intervals = [(str(each.position), name_of(each), points(each.share), _interval(each)) for each in placed]
        header = ("#", "model", "%", "95 % interval")
        found.append(Table(title=f"95 % interval of % ({kind})", header=header, rows=intervals, keys=2))
    if len(placed) > 1:
        found.append(_neighbours(ranked, like_neighbours(ranked.standings)))
    wrong = [(name_of(each), each.assessment.status, each.assessment.reason) for each in ranked.standings]
    wrong = [row for row in wrong if row[1]]
    if wrong:
        found.append(Table(title="not finished", header=("model", "status", "why"), rows=wrong, alarm=True))
    return found


def name_of(standing: Standing) -> str:
    """The model's id, with a mark where it is trained to transcribe."""
    model = standing.assessment.model
    return f"{model.id} (OCR)" if model.kind == "ocr" else model.id


def _row(ranked: Ranked, standing: Standing) -> tuple[str, ...]:
    place = str(standing.position) if standing.position is not None else standing.assessment.status
    elapsed = clock(standing.assessment.elapsed)
    if not standing.assessment.asked:
        return (place, _row_name(ranked, standing), *["–"] * (len(_HEAD) + len(_COLUMNS[ranked.phase]) + 2), elapsed)
    counts = [_count(ranked, standing, name) for name in _COUNTS[ranked.phase]]
    seconds = "–" if standing.seconds is None else f"{standing.seconds:.2f}"
    return (
        *(place, _row_name(ranked, standing), str(standing.score), str(standing.most), points(standing.share)),
        *counts,
        *(str(standing.timeouts), str(standing.errors), str(standing.unparsable), seconds, elapsed),
    )


def _row_name(ranked: Ranked, standing: Standing) -> str:
    """The name, marked where the model is measured by what it has written itself."""
    return name_of(standing) + (" *" if ranked.drafters[standing.assessment.model.id] else "")


def _count(ranked: Ranked, standing: Standing, name: str) -> str:
    """A count, with of how many it is where not every document has it."""
    if ranked.phase == "b" and name == "name" and not FIELDS[ranked.field].key:
        return "–"
    of = standing.counts.get(f"{name}_of")
    return str(standing.counts[name]) if of is None else f"{standing.counts[name]}/{of}"


def _notes(ranked: Ranked) -> list[str]:
    total = ranked.positives + ranked.negatives
    lines = [
        f"{total} documents ({ranked.positives} positive, {ranked.negatives} negative), timeout {ranked.timeout:g} s "
        f"per call, models: {ranked.models.source} list of {len(ranked.models.models)}, served by {ranked.served}"
    ]
    without = no_ground_truth(ranked.standings[0]) if ranked.phase == "b" and ranked.standings else []
    if without:
        lines.append(f"no ground truth, extraction not scored: {', '.join(without)}")
    if ranked.unread:
        drafted = ", ".join(f"{count} drafted by {model}" for model, count in ranked.drafters.items())
        lines += [f"* scored against its own drafts: {drafted}"] if drafted else []
        lines.append(
            f"ground truth of {len(ranked.unread)} of {ranked.positives} positive documents is unverified: "
            f"loupe review DIR --type {shlex.quote(ranked.document_type)}"
        )
    return lines


def _neighbours(ranked: Ranked, pairs: Sequence[Pair]) -> Table:
    """Neighbours that are alike by documents fully right; in phase B, where a document may be half right, by points."""
    in_full = "documents fully right" if ranked.phase == "b" else "documents"
    title = f"neighbours that are not significantly different by {in_full} (exact McNemar, p ≥ 0.05)"
    if not pairs:
        return Table(title=title, rows=[("none",)])
    header = ("#", "model", "model", "only first right", "only second right", "p")
    rows = [
        (
            *(f"{pair.first.position} and {pair.second.position}", name_of(pair.first), name_of(pair.second)),
            *(str(pair.only_first), str(pair.only_second), f"{pair.p:.3f}"),
            *([_by_points(pair)] if ranked.phase == "b" else []),
        )
        for pair in pairs
    ]
    return Table(title=title, header=(*header, *(["by points"] if ranked.phase == "b" else [])), rows=rows)


def _by_points(pair: Pair) -> str:
    if pair.points_p is None:
        return "too few documents"
    return f"p = {pair.points_p:.3f}: {'they differ' if pair.differs_in_points else 'no difference'}"


def _interval(standing: Standing) -> str:
    low, high = standing.interval or (None, None)
    return format_range(low, high, "fraction") or "–"


def json_document(ranked: Ranked) -> dict[str, Any]:
    """Everything of one phase; shares are fractions, times seconds."""
    return {
        "phase": ranked.phase,
        "type": ranked.document_type,
        "field": ranked.field,
        "positives": ranked.positives,
        "negatives": ranked.negatives,
        "timeout": ranked.timeout,
        "list": ranked.models.source,
        "served": ranked.served,
        "unread_ground_truth": {"documents": len(ranked.unread), "drafted_by": dict(ranked.drafters)},
        "models": [_json_model(each) for each in ranked.standings],
        "not_significantly_different": [
            {
                "models": [pair.first.assessment.model.id, pair.second.assessment.model.id],
                "p": pair.p,
                "only_first": pair.only_first,
                "only_second": pair.only_second,
                "points_p": pair.points_p,
            }
            for pair in like_neighbours(ranked.standings)
        ],
    }


def _json_model(standing: Standing) -> dict[str, Any]:
    assessment = standing.assessment
    return {
        "model": assessment.model.id,
        "kind": assessment.model.kind,
        "position": standing.position,
        "status": assessment.status or "ok",
        "reason": assessment.reason,
        "score": standing.score,
        "max": standing.most,
        "share": standing.share,
        "interval": list(standing.interval) if standing.interval else None,
        **standing.counts,
        "timeouts": standing.timeouts,
        "errors": standing.errors,
        "unparsable": standing.unparsable,
        "seconds_per_document": standing.seconds,
        "elapsed": assessment.elapsed,
        "server": assessment.facts,
        "calls": document_verdicts(standing),
    }
