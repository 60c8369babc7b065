"""The stages of the line: infer, score, or both at once. Each leaves plain files behind and can be done again."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from loupe.benchmarks import benchmark_id, benchmark_of_run, get_benchmark
from loupe.data.seals import is_sealed, sealed
from loupe.engines.adapters.steps import apply_adapters, check_adapters
from loupe.engines.chat.endpoints import chosen_server, unlisted_model
from loupe.engines.chat.http_body import AnswerMemory, make_room
from loupe.engines.registry import Profile
from loupe.errors import DatasetError, LoupeError, word
from loupe.files.folder import Folder
from loupe.inference.budget import BudgetSpentError
from loupe.inference.drawer import Drawer
from loupe.inference.journal import Journal
from loupe.inference.progress import Progress
from loupe.inference.prompts import make_request
from loupe.inference.retries import RATE_WAITS, Policy
from loupe.inference.scheduler import Scheduler, TimeoutsExceededError
from loupe.pipeline import rescoring
from loupe.pipeline.answer_files import foreign_warnings
from loupe.pipeline.finished import (
    Remaining,
    check_finished,
    made_from,
    standing_result,
    unproven_origin,
    warnings_of_data,
)
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
from loupe.pipeline.spent import budget_of, parts_of, speed_of
from loupe.runs.folder import RunFolder, claim, uneven_measure
from loupe.runs.info import RunInfo, signature
from loupe.runs.places import Place
from loupe.scoring.pool import ScorePool, score_digest
from loupe.scoring.running import RunningScore
from loupe.scoring.summary import Origin, summarise
from loupe.servers.keeper import Keeper, open_profile
from loupe.servers.processes import Watch
from loupe.servers.record import EXTERNAL
from loupe.typed import encode_json
from loupe.types import FAILED, Benchmark, Engine, Prediction, Request, Result, Sample, SampleScores

if TYPE_CHECKING:
    from loupe.pipeline.plan import Executor

#: Predictions that may wait for their score before inference waits too; bounds memory when scoring is the slower part.
_SCORING_AHEAD = 256
#: More where samples are prepared together before they are scored, for large batches.
_PREPARED_AHEAD = 1024
#: For each scoring process, at least.
_EACH = 8
#: Answers that are written as files, too.
_MOST_FILES = 100_000
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
    executor: Executor | None = None,
    fresh: bool = False,
) -> Result:
    """`score_again` for who has no event loop."""
    return asyncio.run(
        score_again(place, jobs=jobs, options=options, data=data, say=say, executor=executor, fresh=fresh)
    )


async def score_again(
    place: Path | Folder,
    *,
    jobs: int | None = None,
    options: Mapping[str, str] | None = None,
    data: Path | None = None,
    say: Say | None = None,
    executor: Executor | None = None,
    fresh: bool = False,
) -> Result:
    """Score the predictions of a run again; unchanged samples are reused. No engine, no network.

    Only scores that this user's Loupe made are reused, and none if `fresh`. `data` is where the same data lies from now
    on, `options` of the benchmark are from now on those of the run. In a folder of one's own references may have
    changed, which `say` is told. Raises RunError if the ground truth is another one than the run was made on,
    UsageError for options under which other things would have been asked.
    """
    old = RunFolder.open(place)
    info = rescoring.moved_to(old.info, data) if data else old.info
    with claim(old.files, info) as folder:
        found, changed = rescoring.truth_of_now(folder)
        if changed and say:
            say(changed)
        if options and (info := rescoring.with_options(folder, options)) != folder.info:
            folder.drop_result()
            folder.write_info(info)
            found = rescoring.check_truth(folder)
        folder.write_info(msgspec.structs.replace(folder.info, signature=signature(folder.info)))
        standing = None if fresh else standing_result(folder, benchmark_of_run(folder.info.benchmark), found)
        if say and not standing and folder.is_of_others():
            say(_of_others(folder))
        if executor is not None and say is not None:
            executor.tell = say
        return standing or await _score(folder, found, jobs=jobs, executor=executor, fresh=fresh)


async def _infer(plan: Plan, progress: Progress, keeper: Keeper | None, *, scoring: bool) -> RunFolder:
    check_adapters(plan.profile.adapters)
    benchmark = get_benchmark(plan.benchmark)
    found = await asyncio.to_thread(survey, benchmark, plan.benchmark, plan.data, plan.options)
    if found.gone is not None and plan.profile.kind != "predictions":
        raise DatasetError(
            f"{plan.benchmark}: no page image found, not even {found.gone}",
            hint=f"answers that exist already need no pages: loupe score {word(plan.benchmark)} ANSWERS",
        )
    # Plain text is worth nothing as an answer to these, unless a variant of the benchmark looks for fields in it.
    if found.all_tasks <= {"fields", "class"} and "variant" not in plan.options:
        refuse_plain_ocr(plan, found.all_tasks)
    info = make_info(plan, benchmark, found)
    progress.engine, progress.benchmark = info.engine, plan.benchmark
    if plan.executor is not None:
        plan.executor.tell = progress.tell
    progress.remark = "" if plan.fresh else await asyncio.to_thread(rescoring.follow_before, plan.folder, info)
    rescoring.check_first(plan, info, found.ids)
    hint = rescoring.keep_both(plan.folder, info) or rescoring.keep_unchanged(
        plan, plan.folder, info, found.asked, asked_ids(found.ids, info)
    )
    with claim(plan.folder, info, fresh=plan.fresh, shared=plan.shared, hint=hint) as folder:
        if info.total < folder.info.total:
            progress.remark = " ".join(filter(None, (progress.remark, _not_smaller(folder, info))))
        asked = asked_ids(found.ids, folder.info)
        progress.remark = " ".join(
            filter(None, (progress.remark, rescoring.take_over(folder, plan, found.asked, asked)))
        )
        left = Remaining.of(asked, folder.prediction_places(), plan.redo)
        progress.total, progress.resumed = len(asked), len(left.done)
        failure: LoupeError | None = None
        if len(left.done) < len(asked):
            try:
                opened = _opened(plan, folder, progress, keeper)
                await _ask(_Work(plan, benchmark, folder, progress, scoring, found.asked), left, opened)
            except (TimeoutsExceededError, BudgetSpentError) as error:
                failure = error
        else:
            progress.tell(await check_finished(folder, plan.profile))
        stopped = failure.message if failure else "interrupted" if progress.stopping else ""
        folder.write_info(msgspec.structs.replace(folder.info, stopped=stopped))
        if scoring and not progress.stopping:
            progress.note = "scoring"
            if rescoring.own_folder_is_here(folder.info):
                # Somebody may have reviewed it while the engine was reading.
                found, changed = rescoring.truth_of_now(folder)
                progress.remark = changed or progress.remark
            if folder.is_of_others():
                progress.tell(_of_others(folder))
            await _score(folder, found, jobs=plan.jobs, executor=plan.executor)
        if plan.lasting:
            _export(folder, benchmark, asked, progress)
        return folder


def _opened(
    plan: Plan, folder: RunFolder, progress: Progress, keeper: Keeper | None
) -> AbstractAsyncContextManager[Engine]:
    """The engine of a plan: in this process, by an executor elsewhere, or on this machine."""
    if plan.opener is not None:
        return plan.opener()
    if plan.executor is not None and plan.executor.reads(plan.profile):
        return plan.executor.open_profile(plan.profile, progress, folder.info.facts)
    return open_profile(plan.profile, folder=folder.files, keeper=keeper, watch=watch_of(progress))


def _of_others(folder: RunFolder) -> str:
    return f"{folder.path}: its scores were not made by your Loupe on this machine, so they are made anew"


def _score_pool(benchmark: str, adapters: Sequence[str], jobs: int | None, executor: Executor | None) -> ScorePool:
    """The scorers: an executor elsewhere, or this machine."""
    return ScorePool(benchmark, adapters, jobs=jobs, hands=executor.hands(benchmark, adapters) if executor else None)


def _not_smaller(folder: RunFolder, wanted: RunInfo) -> str:
    option = "--sample" if wanted.sample and not wanted.sample.ids else "--limit"
    return (
        f"{folder.path}: this run is finished with {folder.info.total:,} samples, so {option} {wanted.total:,} changes "
        f"nothing; --name NAME with it makes a run of {wanted.total:,}"
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """A run while it is made: what is asked, of which benchmark, and where answers, scores and progress go."""

    plan: Plan
    benchmark: Benchmark
    folder: RunFolder
    progress: Progress
    scoring: bool
    asked: Mapping[str, str]


async def _ask(work: _Work, left: Remaining, opened: AbstractAsyncContextManager[Engine]) -> None:
    """The inference stage: open the engine, ask for what is left, score beside it if wanted."""
    plan, benchmark, folder = work.plan, work.benchmark, work.folder
    ident = benchmark_id(plan.benchmark)
    waiting: dict[str, Sample] = {}
    result_stands = True
    part = folder.info.limit, folder.info.sample

    def requests() -> Iterator[Request]:
        ordered = left.in_order(lambda: samples_of(benchmark, plan.data, plan.options, *part))
        for sample in drawer.following(ordered):
            if work.scoring:
                waiting[sample.id] = sample
            yield make_request(sample, profile=plan.profile, benchmark=benchmark, benchmark_id=ident)

    drawer = Drawer(plan.benchmark if benchmark.draw else "")
    async with opened as engine, drawer, _live_scoring(work) as score:
        work.progress.tell(chosen_server(engine.facts))
        folder.record_facts(engine.facts)
        if new := [note for note in _notes_of(engine.facts) if note not in folder.info.notes]:
            folder.write_info(msgspec.structs.replace(folder.info, notes=[*folder.info.notes, *new]))
        policy = plan.policy or policy_of(plan.profile)
        budget = budget_of(plan, folder)
        work.progress.started = time.monotonic()
        async with Journal(folder.predictions_log(), sync=work.plan.lasting) as journal:

            async def keep(prediction: Prediction) -> None:
                nonlocal result_stands
                if result_stands:
                    folder.drop_result()
                    result_stands = False
                if digest := work.asked.get(prediction.sample):
                    prediction = msgspec.structs.replace(prediction, asked=digest)
                await journal.keep(prediction)
                if work.scoring:
                    await score(waiting.pop(prediction.sample), prediction)

            await Scheduler(drawer.before(engine), policy, work.progress, keep, budget).ask_all(requests())


def _notes_of(facts: Mapping[str, str]) -> Iterator[str]:
    """Notes beside the numbers on the servers that answered."""
    if facts.get("server_origin") == EXTERNAL:
        yield _UNKNOWN_SERVER
    if differ := facts.get("servers_differ"):
        yield f"answers come from servers that differ: {differ}"
    if unlisted := unlisted_model(facts):
        yield unlisted


def policy_of(profile: Profile) -> Policy:
    """The patience that a profile asks for its engine."""
    return Policy(
        concurrency=profile.concurrency or 1,
        retries=profile.retries,
        # No retries means one attempt, whatever the server's reason.
        max_rate_waits=RATE_WAITS if profile.retries else 0,
        max_timeouts=profile.max_timeouts,
        errors_before_check=profile.errors_before_check,
    )


def watch_of(progress: Progress) -> Watch:
    """The words of a starting server to the person, and the patience with it."""

    def say(note: str) -> None:
        progress.note = note

    return Watch(say=say, stopping=lambda: progress.stopping, hurry=lambda: progress.hurried)


@asynccontextmanager
async def _live_scoring(work: _Work) -> AsyncIterator[Callable[[Sample, Prediction], Awaitable[None]]]:
    """Score predictions as they come. What is not scored when inference ends is scored by the scoring stage."""
    if not work.scoring:
        yield _score_later
        return
    plan, benchmark, progress = work.plan, work.benchmark, work.progress
    running = RunningScore(benchmark)
    tasks: set[asyncio.Task[None]] = set()
    with (
        _score_pool(plan.benchmark, plan.profile.adapters, plan.jobs, plan.executor) as pool,
        work.folder.scores_log() as log,
    ):
        ahead = _ahead(benchmark, pool)
        places = asyncio.Semaphore(ahead)

        async def score(sample: Sample, prediction: Prediction) -> None:
            try:
                scores = await pool.score(sample, prediction)
            finally:
                places.release()
            log.append([encode_json(sealed(scores, prediction))], sync=False)
            running.add(scores)
            progress.headline = running.estimate()

        async def start(sample: Sample, prediction: Prediction) -> None:
            nonlocal ahead
            if len(prediction.text) > _LONG_ANSWER:
                return
            for _ in range(ahead, _ahead(benchmark, pool)):  # a cluster grows
                places.release()
                ahead += 1
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


def _ahead(benchmark: Benchmark, pool: ScorePool) -> int:
    """The number of samples that may wait for their scores: enough for all processes, of which a cluster has many."""
    return max(_PREPARED_AHEAD if benchmark.prepare else _SCORING_AHEAD, _EACH * pool.most())


async def _score_later(sample: Sample, prediction: Prediction) -> None:
    """A stand-in for scoring in `infer`."""


class _ChangedScoresError(Exception):
    """Somebody has changed the stored scores."""


async def _score_samples(
    folder: RunFolder,
    benchmark: Benchmark,
    predictions: Mapping[str, Place],
    scored: Mapping[str, Place],
    *,
    jobs: int | None,
    executor: Executor | None,
) -> str:
    """Store the scores of every sample with a prediction, in order, and return the sha256 of their file.

    Lines of `scored` are reused where they were made here and still fit. The result of the scores before goes as soon
    as these are complete. Raises _ChangedScoresError, and stores nothing, where those of one measure have different
    numbers of counts and some were reused.
    """
    info, memory = folder.info, AnswerMemory()
    counts: dict[str, int] = {}
    written = hashlib.sha256()

    def keep(row: SampleScores) -> None:
        if uneven_measure(row, counts) and scored:
            raise _ChangedScoresError
        line = encode_json(row)
        written.update(line + b"\n")
        write(line)

    with (
        _score_pool(info.benchmark, info.adapters, jobs, executor) as pool,
        folder.reader() as read,
        folder.score_reader() as read_scores,
        folder.digest_reader() as digest,
        folder.new_scores() as write,
    ):

        async def one(sample: Sample) -> SampleScores:
            with memory.hold():
                await make_room(predictions[sample.id].length)
                prediction = read(predictions[sample.id])
                place = scored.get(sample.id)
                if place and digest(place).digest == score_digest(benchmark, sample, prediction, info.adapters):
                    row = read_scores(place)
                    if row.sample == sample.id and is_sealed(row, prediction):
                        return row
                return sealed(await pool.score(sample, prediction), prediction)

        window: deque[asyncio.Task[SampleScores]] = deque()
        try:
            for sample in open_samples(info):
                if sample.id not in predictions:
                    continue
                window.append(asyncio.create_task(one(sample)))
                if len(window) >= _ahead(benchmark, pool):
                    keep(await window.popleft())
            for row in await asyncio.gather(*window):
                keep(row)
        finally:
            for task in window:
                task.cancel()
            await asyncio.gather(*window, return_exceptions=True)
        folder.drop_result()
    return written.hexdigest()


async def _score(
    folder: RunFolder, found: Survey, *, jobs: int | None, executor: Executor | None, fresh: bool = False
) -> Result:
    """The scoring stage: every sample in order, reusing lines whose digest still fits; then the result."""
    info = folder.info
    benchmark = benchmark_of_run(info.benchmark)
    answers = hashlib.sha256()
    predictions = folder.prediction_places(answers.update)
    began = time.monotonic()
    try:
        scored = {} if fresh else folder.score_places()
        scores = await _score_samples(folder, benchmark, predictions, scored, jobs=jobs, executor=executor)
    except _ChangedScoresError:  # The answers are still there.
        scores = await _score_samples(folder, benchmark, predictions, {}, jobs=jobs, executor=executor)
    missing = [sample for sample in asked_ids(found.ids, info) if sample not in predictions]
    rows = folder.stored_scores()
    scoring_seconds, speed = time.monotonic() - began, speed_of(folder, predictions)
    parts = parts_of(folder, predictions)
    result = summarise(
        benchmark,
        rows,
        Origin(
            benchmark=info.benchmark_id,
            engine=info.engine,
            signature=info.signature,
            total=info.total,
            part=info.part,
        ),
        missing=missing,
        speed=speed.figures | parts.figures | {"scoring_seconds": scoring_seconds},
    )
    foreign = foreign_warnings(folder, predictions)
    warnings = [*result.warnings, *speed.warnings, *parts.warnings, *foreign]
    result = msgspec.structs.replace(result, currency=speed.currency, warnings=warnings)
    if info.stopped:
        answered = sum(count for outcome, count in result.outcomes.items() if outcome not in FAILED)
        warning = f"partial: {info.stopped}; {answered} of {info.total} samples have an answer"
        result = msgspec.structs.replace(result, warnings=[*result.warnings, warning])
    warnings = [*result.warnings, *info.notes, *warnings_of_data(info)]
    result = msgspec.structs.replace(result, warnings=warnings, data_origin=unproven_origin(info))
    made = made_from(folder, benchmark, found, answers.hexdigest())
    folder.write_result(result, made_from=made, scores=scores, answers=answers.hexdigest())
    return result


def _export(folder: RunFolder, benchmark: Benchmark, asked: tuple[str, ...], progress: Progress) -> None:
    """Write the answers as files that any upstream script can read: the text as it is scored. Failed ones have none.

    Very many are left out: their folder would cost more than the run.
    """
    if len(asked) > _MOST_FILES:
        progress.tell(
            f"{len(asked):,} answers are in predictions.jsonl; to make files: loupe export {word(folder.path)}"
        )
        return

    def texts() -> Iterator[tuple[str, str]]:
        places = folder.prediction_places()
        answered = {ident: places[ident] for ident in asked if ident in places and places[ident].mark not in FAILED}
        for ident, prediction in zip(answered, folder.read_predictions(answered.values()), strict=True):
            yield ident, apply_adapters(prediction.text, folder.info.adapters)

    folder.export_predictions(texts(), benchmark.suffix)
