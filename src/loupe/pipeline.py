"""The line in one place: what `loupe run`, `infer` and `score` do, callable from Python.

samples → predictions.jsonl → scores.jsonl → result.json; each arrow can be done again from the file on its left.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from loupe.benchmarks import benchmark_id, get_benchmark
from loupe.benchmarks.registry import check_options
from loupe.data.digests import source_digest
from loupe.engines.registry import Profile, engine_module, slug
from loupe.errors import DatasetError, LoupeError
from loupe.inference.journal import Journal
from loupe.inference.progress import Progress
from loupe.inference.prompts import make_request, template_for
from loupe.inference.scheduler import Policy, Scheduler, TimeoutsExceededError
from loupe.runs.files import RecordLog
from loupe.runs.folder import Place, RunFolder, check_same, claim
from loupe.runs.info import RunInfo, digest_of, host_facts, package_versions, signature
from loupe.scoring.adapters import apply_adapters, check_adapters
from loupe.scoring.pool import ScorePool, score_digest
from loupe.scoring.running import RunningScore
from loupe.scoring.summary import summarise
from loupe.types import FAILED, RETRIED, Benchmark, Engine, Prediction, Request, Result, Sample, SampleScores

#: Predictions that may wait for their score before inference waits too; bounds memory when scoring is the slower part.
_SCORING_AHEAD = 256


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One engine on one benchmark. `redo` names classes of done samples to ask again; `name` files the run apart."""

    benchmark: str
    label: str
    profile: Profile
    runs: Path = Path("runs")
    name: str = ""
    data: Path | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    limit: int | None = None
    fresh: bool = False
    redo: frozenset[str] = frozenset()
    jobs: int | None = None
    policy: Policy | None = None

    @property
    def path(self) -> Path:
        """The run folder: `runs/<engine or name>/<benchmark>`."""
        return self.runs / slug(self.name or self.label) / slug(benchmark_id(self.benchmark))


@dataclass(frozen=True)
class Survey:
    """What one pass over the samples found, without opening a page."""

    ids: tuple[str, ...]
    data_digest: str
    prompts: dict[str, str]


async def run(plan: Plan, progress: Progress) -> RunFolder:
    """Infer and score in one go; scoring runs beside inference. Raises LoupeError; what was done is kept."""
    return await _infer(plan, progress, scoring=True)


async def infer(plan: Plan, progress: Progress) -> RunFolder:
    """Ask the engine for every sample that has no good answer yet, and stop there."""
    return await _infer(plan, progress, scoring=False)


def score_run(path: Path, *, jobs: int | None = None) -> Result:
    """Score the predictions of a run again; unchanged samples are reused. No engine, no network."""
    old = RunFolder.open(path)
    with claim(path, old.info) as folder:
        return asyncio.run(_score(folder, jobs=jobs))


def open_samples(info: RunInfo) -> Iterator[Sample]:
    """The samples of a run again, in order, as many as it asked for. Raises DatasetError where the data is gone."""
    benchmark = get_benchmark(info.benchmark)
    return _samples(benchmark, Path(info.data) if info.data else None, info.options, info.limit)


def _samples(
    benchmark: Benchmark, data: Path | None, options: Mapping[str, str], limit: int | None
) -> Iterator[Sample]:
    for count, sample in enumerate(benchmark.load(data, **check_options(benchmark, options))):
        if limit is not None and count >= limit:
            return
        yield sample


def survey(benchmark: Benchmark, plan: Plan) -> Survey:
    """Read through all samples once: ids (unique), a digest of everything that is asked and expected, prompts.

    The digest covers the whole data set, also beyond `--limit`, so that a limited run can be continued without one.
    """
    ids: list[str] = []
    seen: set[str] = set()
    prompts: dict[str, str] = {}
    ident = benchmark_id(plan.benchmark)

    def parts() -> Iterator[list[object]]:
        for sample in _samples(benchmark, plan.data, plan.options, None):
            if sample.id in seen:
                raise DatasetError(f"{plan.benchmark}: two samples have the id {sample.id!r}", hint="ids must differ")
            seen.add(sample.id)
            ids.append(sample.id)
            task = sample.task or benchmark.task
            if not sample.prompt and task not in prompts:
                template = template_for(task, profile=plan.profile, benchmark=benchmark, benchmark_id=ident)
                prompts[task] = template
            yield [sample.id, sample.prompt, sample.text, task, sample.truth, *map(source_digest, sample.images)]

    digest = digest_of(parts())
    if not ids:
        raise DatasetError(f"{plan.benchmark}: no samples", hint=f"loupe bench show {plan.benchmark}")
    return Survey(tuple(ids), digest, prompts)


async def _infer(plan: Plan, progress: Progress, *, scoring: bool) -> RunFolder:
    check_adapters(plan.profile.adapters)
    benchmark = get_benchmark(plan.benchmark)
    found = await asyncio.to_thread(survey, benchmark, plan)
    info = make_info(plan, benchmark, found)
    progress.engine, progress.benchmark, progress.total = plan.label, plan.benchmark, info.total
    with claim(plan.path, info, fresh=plan.fresh) as folder:
        asked = found.ids[: info.total]
        places = folder.prediction_places()
        again = RETRIED | plan.redo
        done = {ident for ident in asked if ident in places and places[ident].mark not in again}
        progress.resumed = len(done)
        failure: LoupeError | None = None
        if len(done) < len(asked):
            try:
                await _ask(plan, benchmark, folder, progress, done, scoring=scoring)
            except TimeoutsExceededError as error:
                failure = error
        stopped = failure.message if failure else "interrupted" if progress.stopping else ""
        folder.write_info(msgspec.structs.replace(folder.info, stopped=stopped))
        _export(folder, benchmark, asked)
        if scoring and not progress.stopping:
            progress.note = "scoring"
            await _score(folder, jobs=plan.jobs)
        return folder


def make_info(plan: Plan, benchmark: Benchmark, found: Survey) -> RunInfo:
    """The `run.json` of a plan."""
    total = len(found.ids) if plan.limit is None else min(plan.limit, len(found.ids))
    info = RunInfo(
        benchmark=str(Path(plan.benchmark).resolve()) if Path(plan.benchmark).exists() else plan.benchmark,
        benchmark_id=benchmark_id(plan.benchmark),
        version=benchmark.version,
        engine=plan.name or plan.label,
        profile=msgspec.to_builtins(plan.profile),
        defining=plan.profile.defining(),
        data=str(plan.data.resolve()) if plan.data else "",
        options=dict(plan.options),
        data_digest=found.data_digest,
        prompt_digest=digest_of([sorted(found.prompts.items())]) if any(found.prompts.values()) else "",
        prompts=found.prompts,
        adapters=list(plan.profile.adapters),
        packages=package_versions(),
        host=host_facts(),
        limit=plan.limit,
        total=total,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    parts = plan.profile.signature()
    # An engine with a token limit that its profile leaves open takes the benchmark's.
    if "t" in parts and "max" not in parts:
        parts = {"img": parts.pop("img", "none"), "max": str(benchmark.max_tokens), **parts}
    return msgspec.structs.replace(info, signature=signature(info, parts))


async def _ask(
    plan: Plan, benchmark: Benchmark, folder: RunFolder, progress: Progress, done: set[str], *, scoring: bool
) -> None:
    """The inference stage: open the engine, ask for what is missing, score beside it if wanted."""
    ident = benchmark_id(plan.benchmark)
    waiting: dict[str, Sample] = {}

    def requests() -> Iterator[Request]:
        for sample in _samples(benchmark, plan.data, plan.options, plan.limit):
            if sample.id not in done:
                if scoring:
                    waiting[sample.id] = sample
                yield make_request(sample, profile=plan.profile, benchmark=benchmark, benchmark_id=ident)

    async with _engine(plan) as engine, _live_scoring(plan, benchmark, folder, progress, scoring=scoring) as score:
        facts = dict(engine.facts)
        info = msgspec.structs.replace(folder.info, facts=facts)
        if "model" in folder.info.facts:
            check_same(folder.path, folder.info, info)
        folder.write_info(info)
        policy = plan.policy or Policy(concurrency=plan.profile.concurrency or 1, retries=plan.profile.retries)
        progress.started = time.monotonic()
        async with Journal(RecordLog(folder.predictions_file)) as journal:

            async def keep(prediction: Prediction) -> None:
                await journal.keep(prediction)
                if scoring:
                    await score(waiting.pop(prediction.sample), prediction)

            await Scheduler(engine, policy, progress, keep).ask_all(requests())


@asynccontextmanager
async def _engine(plan: Plan) -> AsyncIterator[Engine]:
    async with engine_module(plan.profile.kind).open_engine(plan.profile) as engine:
        yield engine


@asynccontextmanager
async def _live_scoring(
    plan: Plan, benchmark: Benchmark, folder: RunFolder, progress: Progress, *, scoring: bool
) -> AsyncIterator[Callable[[Sample, Prediction], Awaitable[None]]]:
    """Score predictions as they come. What is not scored when inference ends is scored by the scoring stage."""
    if not scoring:
        yield _score_later
        return
    running = RunningScore(benchmark)
    places = asyncio.Semaphore(_SCORING_AHEAD)
    tasks: set[asyncio.Task[None]] = set()
    with ScorePool(plan.benchmark, plan.profile.adapters, jobs=plan.jobs) as pool, RecordLog(folder.scores_file) as log:

        async def score(sample: Sample, prediction: Prediction) -> None:
            try:
                scores = await pool.score(sample, prediction)
            finally:
                places.release()
            log.append([msgspec.json.encode(scores)], sync=False)
            running.add(scores)
            progress.headline, progress.headline_name = running.estimate(), benchmark.headline_measure

        async def start(sample: Sample, prediction: Prediction) -> None:
            await places.acquire()
            task = asyncio.create_task(score(sample, prediction))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        try:
            yield start
            progress.note = "scoring"
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()


async def _score_later(sample: Sample, prediction: Prediction) -> None:
    """What `infer` does instead of scoring."""


async def _score(folder: RunFolder, *, jobs: int | None) -> Result:
    """The scoring stage: every sample in order, reusing lines whose digest still fits; then the result."""
    info = folder.info
    benchmark = get_benchmark(info.benchmark)
    predictions, scored = folder.prediction_places(), folder.score_places()
    rows: list[SampleScores] = []
    missing: list[str] = []
    began = time.monotonic()
    with ScorePool(info.benchmark, info.adapters, jobs=jobs) as pool:

        async def one(sample: Sample) -> SampleScores:
            prediction = folder.read_prediction(predictions[sample.id])
            place = scored.get(sample.id)
            if place and place.mark == score_digest(benchmark, sample, prediction, info.adapters):
                return folder.read_scores(place)
            return await pool.score(sample, prediction)

        window: deque[asyncio.Task[SampleScores]] = deque()
        for sample in open_samples(info):
            if sample.id not in predictions:
                missing.append(sample.id)
                continue
            window.append(asyncio.create_task(one(sample)))
            if len(window) >= _SCORING_AHEAD:
                rows.append(await window.popleft())
        rows += await asyncio.gather(*window)
    folder.write_scores(msgspec.json.encode(row) for row in rows)
    result = summarise(
        benchmark,
        rows,
        benchmark_name=info.benchmark_id,
        engine=info.engine,
        signature=info.signature,
        total=info.total,
        missing=missing,
        speed=_speed(folder, predictions, time.monotonic() - began),
    )
    if info.stopped:
        warning = f"partial: {info.stopped}; {len(rows)} of {info.total} samples have an answer"
        result = msgspec.structs.replace(result, warnings=[*result.warnings, warning])
    folder.write_result(result)
    return result


def _speed(folder: RunFolder, places: Mapping[str, Place], scoring_seconds: float) -> dict[str, float]:
    """Seconds per answered page as the engine needed them, and tokens where it counted them."""
    answered = [place for place in places.values() if place.mark not in FAILED]
    seconds, tokens, count = 0.0, 0, len(answered)
    for prediction in folder.read_predictions(answered):
        seconds += prediction.seconds
        tokens += prediction.output_tokens or 0
    speed = {"seconds_per_page": seconds / count if count else 0.0, "scoring_seconds": scoring_seconds}
    return speed | ({"output_tokens_per_page": tokens / count} if tokens else {})


def _export(folder: RunFolder, benchmark: Benchmark, asked: tuple[str, ...]) -> None:
    """Write the answers as files that any upstream script can read: the text as it is scored. Failed ones have none."""

    def texts() -> Iterator[tuple[str, str]]:
        places = folder.prediction_places()
        answered = {ident: places[ident] for ident in asked if ident in places and places[ident].mark not in FAILED}
        for ident, prediction in zip(answered, folder.read_predictions(answered.values()), strict=True):
            yield ident, apply_adapters(prediction.text, folder.info.adapters)

    folder.export_predictions(texts(), benchmark.suffix)
