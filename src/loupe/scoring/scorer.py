"""Scoring one sample: adapters, the benchmark's `score`, diagnostics; what fails is an error of this sample alone."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence

import msgspec

from loupe.engines.adapters.steps import apply_adapters
from loupe.scoring.diagnostics import diagnose
from loupe.scoring.digest import score_digest
from loupe.types import Benchmark, Prediction, Sample, SampleScores, Score, Scored


def score_sample(
    benchmark: Benchmark, sample: Sample, prediction: Prediction, adapters: Sequence[str], *, lost: str = ""
) -> SampleScores:
    """Score one prediction; never raises an Exception.

    A failed prediction is scored as an empty answer. So is one whose scorer raises, or has cost a worker before
    (`lost` says how); `error` then holds the reason, and there is no digest, so that scoring again tries again. Scores
    are empty only if the empty answer cannot be scored either.
    """
    text = "" if prediction.failed else apply_adapters(prediction.text, adapters)
    error, scored = lost, None
    if not lost:
        scored, error = _try_score(benchmark, sample, prediction, text)
    if scored is None:
        scored, again = _try_score(benchmark, sample, prediction, "")
        error = f"{error}; an empty answer: {again}" if again and again != error else error
    return describe(
        sample,
        prediction,
        scored=scored,
        diagnostics={} if lost else _try_diagnose(benchmark, sample, prediction, text),
        error=error,
        digest="" if error else score_digest(benchmark, sample, prediction, adapters),
    )


def prepare_samples(benchmark: Benchmark, pairs: Sequence[tuple[Sample, Prediction]], adapters: Sequence[str]) -> None:
    """Let the benchmark do for many samples what it can do for them together; never raises an Exception.

    Where it fails nothing is lost: each sample is then scored as if there had been no preparation.
    """
    if benchmark.prepare is None:
        return
    with contextlib.suppress(Exception):
        benchmark.prepare([(sample, _answer(one, adapters)) for sample, one in pairs])


def _answer(prediction: Prediction, adapters: Sequence[str]) -> Prediction:
    """The prediction as scorers see it."""
    text = "" if prediction.failed else apply_adapters(prediction.text, adapters)
    return msgspec.structs.replace(prediction, text=text, reasoning=None, response=None)


def describe(
    sample: Sample,
    prediction: Prediction,
    *,
    error: str,
    scored: Scored | None = None,
    diagnostics: dict[str, float] | None = None,
    digest: str = "",
) -> SampleScores:
    """The line of `scores.jsonl` for this sample; `error` is why scoring failed, before it why there is no answer."""
    return SampleScores(
        sample=sample.id,
        group=sample.group,
        tags={str(key): str(value) for key, value in sample.tags.items()},
        outcome=prediction.outcome,
        scores=scored.scores if scored else [],
        diagnostics=diagnostics or {},
        details=dict(scored.details) if scored else {},
        error="; ".join(filter(None, (prediction.error if prediction.failed else "", error))),
        digest=digest,
    )


def _try_score(benchmark: Benchmark, sample: Sample, prediction: Prediction, text: str) -> tuple[Scored | None, str]:
    try:
        answer = msgspec.structs.replace(prediction, text=text, reasoning=None, response=None)
        found = benchmark.score(sample, answer)
        scores, details = (found.scores, found.details) if isinstance(found, Scored) else (found, {})
        return Scored(scores=_checked(benchmark, scores), details=details), ""
    except Exception as error:  # noqa: BLE001  the border where one sample must not end a run
        return None, one_line(error)


def _try_diagnose(benchmark: Benchmark, sample: Sample, prediction: Prediction, text: str) -> dict[str, float]:
    try:
        return diagnose(benchmark, sample, prediction, text)
    except Exception:  # noqa: BLE001  the same border; the share of such samples is itself a diagnostic
        return {"failed": 1.0}


def _checked(benchmark: Benchmark, scores: Sequence[Score]) -> list[Score]:
    """Scores with plain floats. Raises ValueError for what would spoil a sum: unknown measures, nan, infinity."""
    names = {measure.name for measure in benchmark.measures}
    checked = []
    for score in scores:
        if score.measure not in names and benchmark.further is None:
            raise ValueError(f"measure {score.measure!r} is not one of the benchmark's: {', '.join(sorted(names))}")
        counts = tuple(float(count) for count in score.counts)
        if not counts or not all(map(math.isfinite, counts)):
            raise ValueError(f"measure {score.measure!r} has counts {counts}")
        tags = {str(key): str(value) for key, value in score.tags.items()}
        checked.append(Score(measure=score.measure, counts=counts, unit=str(score.unit), tags=tags))
    return checked


def one_line(error: BaseException) -> str:
    """Format an exception as one line of bounded length."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:300] if text else type(error).__name__
