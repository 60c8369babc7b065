"""Assessments as a table: points, counts of what went wrong, intervals, and neighbours that cannot be told apart.

Source: docs/select.md. Points are the sums of the benchmark's scores, so a saved run has the same ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from loupe.benchmarks.folders.selection.questions import CATEGORY, TEXT_MEASURES, Phase, score_image, score_text
from loupe.stats.analysis import Analysis
from loupe.stats.clusters import Row, sort_into_clusters
from loupe.stats.comparison import FEWEST
from loupe.stats.estimates import estimate
from loupe.stats.permutation import contrasts
from loupe.stats.proportions import mcnemar_exact, wilson_interval
from loupe.studies.select.assessment import Assessment
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
        """Whether the answer is right."""
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
        """Whether the points tell apart what the documents do not."""
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
