"""The stages of the line: infer, score, or both at once. Each leaves plain files behind and can be done again."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import msgspec

from loupe.benchmarks import benchmark_id, benchmark_of_run, get_benchmark
from loupe.engines.answers.steps import apply_adapters, check_adapters
from loupe.engines.registry import Profile
from loupe.engines.shared.answer_memory import AnswerMemory, make_room
from loupe.engines.shared.endpoints import unlisted_model
from loupe.errors import DatasetError, LoupeError, word
from loupe.files.folder import Folder
from loupe.files.foreign import real_path
from loupe.inference.budget import BudgetSpentError
from loupe.inference.journal import Journal
from loupe.inference.progress import Progress
from loupe.inference.prompts import make_request
from loupe.inference.scheduler import RATE_WAITS, Policy, Scheduler, TimeoutsExceededError
from loupe.pipeline.mended_truth import follow_before, is_own_folder
from loupe.pipeline.parts import parts_of
from loupe.pipeline.plan import (
    Plan,
    Survey,
    asked_ids,
    make_info,
    open_samples,
    refuse_plain_ocr,
    samples_of,
    survey,
)
from loupe.pipeline.remaining import Remaining
from loupe.pipeline.rescoring import check_truth, truth_of_now, with_options
from loupe.pipeline.speed import speed_of
from loupe.pipeline.spending import budget_of
from loupe.pipeline.unchanged import remember_result, standing_result
from loupe.runs.folder import RunFolder, claim
from loupe.runs.info import RunInfo, signature
from loupe.scoring.pool import ScorePool, score_digest
from loupe.scoring.running import RunningScore
from loupe.scoring.summary import summarise
from loupe.servers.keeper import Keeper
from loupe.servers.record import EXTERNAL
from loupe.servers.served_engine import open_profile
from loupe.servers.watch import Watch
from loupe.typed import encode_json
from loupe.types import FAILED, Benchmark, Engine, Prediction, Request, Result, Sample, SampleScores

#: Predictions that may wait for their score before inference waits too; bounds memory when scoring is the slower part.
_SCORING_AHEAD = 256
#: More where samples are prepared together before they are scored, for large batches.
_PREPARED_AHEAD = 1024
#: Longer answers are not held until their turn comes: the scoring stage reads them again.
_LONG_ANSWER = 1_000_000
Say: TypeAlias = Callable[[str], None]
#: Its arguments may be others than those that the run names.
_UNKNOWN_SERVER = (
    "the server was running already: whether it has the arguments that the signature stands for is unknown"
)


async def run(plan: Plan, progress: Progress, *, keeper: Keeper | None = None) -> RunFolder:
    """Infer and score in one go; scoring runs beside inference. Raises LoupeError; what was done is kept.

    A server that the engine wants started stays with the `keeper` for the next run; without one it ends with this run.
    """
    return await _infer(plan, progress, keeper, scoring=True)


async def infer(plan: Plan, progress: Progress, *, keeper: Keeper | None = None) -> RunFolder:
    """Ask the engine for every sample that has no good answer yet, and stop there."""
    return await _infer(plan, progress, keeper, scoring=False)


def score_run(
    place: Path | Folder,
    *,
    jobs: int | None = None,
    options: Mapping[str, str] | None = None,
    data: Path | None = None,
    say: Say | None = None,
) -> Result:
    """Score the predictions of a run again; unchanged samples are reused. No engine, no network.

    `data` is where the same data lies from now on, `options` of the benchmark are from now on those of the run. In a
    folder of one's own references may have changed, which `say` is told. Raises RunError if the ground truth is another
    one than the run was made on, UsageError for options under which other things would have been asked.
    """
    old = RunFolder.open(place)
    info = msgspec.structs.replace(old.info, data=str(real_path(data))) if data else old.info
    with claim(old.files, info) as folder:
        found, changed = truth_of_now(folder)
        if changed and say:
            say(changed)
        if options and (info := with_options(folder, options)) != folder.info:
            folder.drop_result()
            folder.write_info(info)
            found = check_truth(folder)
        folder.write_info(msgspec.structs.replace(folder.info, signature=signature(folder.info)))
        standing = standing_result(folder, benchmark_of_run(folder.info.benchmark), found)
        return standing or asyncio.run(_score(folder, found, jobs=jobs))


async def _infer(plan: Plan, progress: Progress, keeper: Keeper | None, *, scoring: bool) -> RunFolder:
    check_adapters(plan.profile.adapters)
    benchmark = get_benchmark(plan.benchmark)
    found = await asyncio.to_thread(survey, benchmark, plan.benchmark, plan.data, plan.options)
    if found.gone is not None and plan.profile.kind != "predictions":
        raise DatasetError(
            f"{plan.benchmark}: no page is there, not even {found.gone}",
            hint=f"answers that exist already need no pages: loupe score {word(plan.benchmark)} ANSWERS",
        )
    # Plain text is worth nothing as an answer to these, unless a variant of the benchmark looks for fields in it.
    if found.all_tasks <= {"fields", "class"} and "variant" not in plan.options:
        refuse_plain_ocr(plan.name or plan.label, plan.profile, found.all_tasks)
    info = make_info(plan, benchmark, found)
    progress.engine, progress.benchmark = info.engine, plan.benchmark
    progress.remark = "" if plan.fresh else await asyncio.to_thread(follow_before, plan.folder, info)
    with claim(plan.folder, info, fresh=plan.fresh, shared=plan.shared) as folder:
        if info.total < folder.info.total:
            progress.remark = " ".join(filter(None, (progress.remark, _not_smaller(folder, info))))
        asked = asked_ids(found.ids, folder.info)
        left = Remaining.of(asked, folder.prediction_places(), plan.redo)
        progress.total, progress.resumed = len(asked), len(left.done)
        failure: LoupeError | None = None
        if len(left.done) < len(asked):
            try:
                opened = open_profile(plan.profile, folder=folder.files, keeper=keeper, watch=_watch(progress))
                await _ask(plan, benchmark, folder, progress, left, opened, scoring=scoring)
            except (TimeoutsExceededError, BudgetSpentError) as error:
                failure = error
        stopped = failure.message if failure else "interrupted" if progress.stopping else ""
        folder.write_info(msgspec.structs.replace(folder.info, stopped=stopped))
        if scoring and not progress.stopping:
            progress.note = "scoring"
            if is_own_folder(folder.info):
                # Somebody may have reviewed it while the engine was reading.
                found, changed = truth_of_now(folder)
                progress.remark = changed or progress.remark
            await _score(folder, found, jobs=plan.jobs)
        _export(folder, benchmark, asked)
        return folder


def _not_smaller(folder: RunFolder, wanted: RunInfo) -> str:
    return (
        f"{folder.path}: this run is finished with {folder.info.total:,} samples, so "
        f"{'--limit' if wanted.sample is None else '--sample'} {wanted.total:,} changes nothing; --name NAME with it "
        f"makes a run of {wanted.total:,}"
    )


async def _ask(
    plan: Plan,
    benchmark: Benchmark,
    folder: RunFolder,
    progress: Progress,
    left: Remaining,
    opened: AbstractAsyncContextManager[Engine],
    *,
    scoring: bool,
) -> None:
    """The inference stage: open the engine, ask for what is left, score beside it if wanted."""
    ident = benchmark_id(plan.benchmark)
    waiting: dict[str, Sample] = {}
    result_stands = True
    part = folder.info.limit, folder.info.sample

    def requests() -> Iterator[Request]:
        for sample in left.in_order(lambda: samples_of(benchmark, plan.data, plan.options, *part)):
            if scoring:
                waiting[sample.id] = sample
            yield make_request(sample, profile=plan.profile, benchmark=benchmark, benchmark_id=ident)

    async with opened as engine, _live_scoring(plan, benchmark, folder, progress, scoring=scoring) as score:
        folder.record_facts(engine.facts)
        if new := [note for note in _notes_of(engine.facts) if note not in folder.info.notes]:
            folder.write_info(msgspec.structs.replace(folder.info, notes=[*folder.info.notes, *new]))
        policy = plan.policy or policy_of(plan.profile)
        budget = budget_of(plan, folder)
        progress.started = time.monotonic()
        async with Journal(folder.predictions_log()) as journal:

            async def keep(prediction: Prediction) -> None:
                nonlocal result_stands
                if result_stands:
                    folder.drop_result()
                    result_stands = False
                await journal.keep(prediction)
                if scoring:
                    await score(waiting.pop(prediction.sample), prediction)

            await Scheduler(engine, policy, progress, keep, budget).ask_all(requests())


def _notes_of(facts: Mapping[str, str]) -> Iterator[str]:
    """What stands beside the numbers because of the servers that answered."""
    if facts.get("server_origin") == EXTERNAL:
        yield _UNKNOWN_SERVER
    if differ := facts.get("servers_differ"):
        yield f"answers come from servers that differ: {differ}"
    if unlisted := unlisted_model(facts):
        yield unlisted


def policy_of(profile: Profile) -> Policy:
    """How patient a profile wants Loupe to be with its engine."""
    return Policy(
        concurrency=profile.concurrency or 1,
        retries=profile.retries,
        # No retries means one attempt, whatever the server's reason.
        max_rate_waits=RATE_WAITS if profile.retries else 0,
        max_timeouts=profile.max_timeouts,
        errors_before_check=profile.errors_before_check,
    )


def _watch(progress: Progress) -> Watch:
    """What a server that is started tells the person, and whether it is to be waited for."""

    def say(note: str) -> None:
        progress.note = note

    return Watch(say=say, stopping=lambda: progress.stopping, hurry=lambda: progress.hurried)


@asynccontextmanager
async def _live_scoring(
    plan: Plan, benchmark: Benchmark, folder: RunFolder, progress: Progress, *, scoring: bool
) -> AsyncIterator[Callable[[Sample, Prediction], Awaitable[None]]]:
    """Score predictions as they come. What is not scored when inference ends is scored by the scoring stage."""
    if not scoring:
        yield _score_later
        return
    running = RunningScore(benchmark)
    places = asyncio.Semaphore(_PREPARED_AHEAD if benchmark.prepare else _SCORING_AHEAD)
    tasks: set[asyncio.Task[None]] = set()
    with ScorePool(plan.benchmark, plan.profile.adapters, jobs=plan.jobs) as pool, folder.scores_log() as log:

        async def score(sample: Sample, prediction: Prediction) -> None:
            try:
                scores = await pool.score(sample, prediction)
            finally:
                places.release()
            log.append([encode_json(scores)], sync=False)
            running.add(scores)
            progress.headline, progress.headline_name = running.estimate(), benchmark.headline_measure

        async def start(sample: Sample, prediction: Prediction) -> None:
            if len(prediction.text) > _LONG_ANSWER:
                return
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


async def _score(folder: RunFolder, found: Survey, *, jobs: int | None) -> Result:
    """The scoring stage: every sample in order, reusing lines whose digest still fits; then the result."""
    info = folder.info
    benchmark = benchmark_of_run(info.benchmark)
    predictions, scored = folder.prediction_places(), folder.score_places()
    rows: list[SampleScores] = []
    missing: list[str] = []
    began, memory = time.monotonic(), AnswerMemory()
    with ScorePool(info.benchmark, info.adapters, jobs=jobs) as pool, folder.reader() as read:

        async def one(sample: Sample) -> SampleScores:
            with memory.hold():
                await make_room(predictions[sample.id].length)
                prediction = read(predictions[sample.id])
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
            if len(window) >= (_PREPARED_AHEAD if benchmark.prepare else _SCORING_AHEAD):
                rows.append(await window.popleft())
        rows += await asyncio.gather(*window)
    folder.write_scores(encode_json(row) for row in rows)
    scoring_seconds, speed = time.monotonic() - began, speed_of(folder, predictions)
    parts = parts_of(folder, predictions)
    result = summarise(
        benchmark,
        rows,
        benchmark_name=info.benchmark_id,
        engine=info.engine,
        signature=info.signature,
        total=info.total,
        missing=missing,
        speed=speed.figures | parts.figures | {"scoring_seconds": scoring_seconds},
    )
    warnings = [*result.warnings, *speed.warnings, *parts.warnings]
    result = msgspec.structs.replace(result, currency=speed.currency, warnings=warnings)
    if info.stopped:
        answered = sum(row.outcome not in FAILED for row in rows)
        warning = f"partial: {info.stopped}; {answered} of {info.total} samples have an answer"
        result = msgspec.structs.replace(result, warnings=[*result.warnings, warning])
    result = msgspec.structs.replace(result, warnings=[*result.warnings, *info.notes])
    folder.write_result(result)
    remember_result(folder, benchmark, found)
    return result


def _export(folder: RunFolder, benchmark: Benchmark, asked: tuple[str, ...]) -> None:
    """Write the answers as files that any upstream script can read: the text as it is scored. Failed ones have none."""

    def texts() -> Iterator[tuple[str, str]]:
        places = folder.prediction_places()
        answered = {ident: places[ident] for ident in asked if ident in places and places[ident].mark not in FAILED}
        for ident, prediction in zip(answered, folder.read_predictions(answered.values()), strict=True):
            yield ident, apply_adapters(prediction.text, folder.info.adapters)

    folder.export_predictions(texts(), benchmark.suffix)
