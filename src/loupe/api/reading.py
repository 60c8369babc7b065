"""`loupe.run`, `loupe.arun` and `loupe.score`: pages read with an engine and scored, or answers that exist already.

Work runs in a thread with an event loop of its own, so it runs in a notebook with its own loop and in any
thread. Ctrl-C in the main thread reaches it.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeVar, Unpack

from loupe.api.bars import bar_here
from loupe.api.options import (
    DataOptions,
    EngineLike,
    ReadingOptions,
    checked,
    file_plan,
    make_plan,
    named_benchmark,
    texts_of,
)
from loupe.api.runs import Run, TemporaryFolder
from loupe.benchmarks.registry import check_options, get_benchmark
from loupe.engines.chat.remedies import remedy
from loupe.engines.registry import Profile, load_profile
from loupe.errors import RunError, UsageError
from loupe.files.folder import Folder
from loupe.files.foreign import real_path
from loupe.files.scratch import scratch_folder
from loupe.inference.progress import Progress
from loupe.pipeline import Plan, file_answers, score_again
from loupe.pipeline import run as read_and_score
from loupe.pipeline.supervision import watch
from loupe.typed import encode_json
from loupe.types import FAILED

T = TypeVar("T")


class Stops:
    """Ctrl-C in the main thread, handed on to whoever watches the run in another one."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._act: Callable[[], None] = lambda: None
        self._early = 0

    @contextmanager
    def told(self, act: Callable[[], None]) -> Iterator[None]:
        """In the block, in a running event loop, each Ctrl-C calls `act`."""
        self._act, self._loop = act, asyncio.get_running_loop()
        for _ in range(self._early):
            act()
        try:
            yield
        finally:
            self._loop = None

    def stop(self) -> None:
        """Somebody has pressed Ctrl-C."""
        if self._loop is None:
            self._early += 1
        else:
            self._loop.call_soon_threadsafe(self._act)


def finish(work: Callable[[], Coroutine[Any, Any, T]], stops: Stops) -> T:
    """Do `work` in a thread with its own event loop, and return what it returns. Raises what it raises."""
    found: Future[T] = Future()

    def act() -> None:
        try:
            found.set_result(asyncio.run(work()))
        except BaseException as error:  # noqa: BLE001 - the border of a thread: it is raised where it is waited for
            found.set_exception(error)

    # A display of a notebook knows by the context which cell it belongs to.
    thread = threading.Thread(target=contextvars.copy_context().run, args=(act,), name="loupe-run", daemon=True)
    with _interrupts_go_to(stops):
        thread.start()
        try:
            thread.join()
        except BaseException:  # somebody else's way to end a call, such as a timeout by a signal
            stops.stop()
            stops.stop()
            raise
    return found.result()


@contextmanager
def _interrupts_go_to(stops: Stops) -> Iterator[None]:
    """In the block Ctrl-C stops the run well, where this is the main thread and Ctrl-C does what it usually does."""
    usual = threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if not usual:
        yield
        return
    signal.signal(signal.SIGINT, lambda _number, _frame: stops.stop())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


Told = Callable[[Callable[[], None]], AbstractContextManager[None]]


def run(benchmark: str, engine: EngineLike, **options: Unpack[ReadingOptions]) -> Run:
    """Read the pages of a benchmark with an engine, score the answers, and return the run.

    `benchmark` is an id (`loupe.benchmarks()` lists them), a folder of your own pages, or a Python file. `engine` is a
    name (`loupe.engines()`), a profile (`./vlm.toml`), the address of a server (`http://127.0.0.1:8000/v1`), a program
    (`command:…`), a function from a page to its text, or an object with `predict`. Options are those of `loupe run`.

    Ctrl-C finishes what is in flight, a second one gives it up; answers are kept, and the same call goes on. A folder
    with other settings is refused. Raises LoupeError, whose `hint` says what to do.

    >>> done = run("sample_pages", "pdf_text", limit=12, runs=None)
    >>> round(done["text_similarity"].value, 2), len(done.failures)
    (0.17, 10)

    A function is called in this process, so a model that is loaded stays where it is:

    >>> def blank(page):
    ...     return ""
    >>> run("sample_pages", blank, limit=3, runs=None).metrics()["text_similarity"]
    0.0
    """
    stops = Stops()
    plan, kept = make_plan(benchmark, engine, dict(options))
    progress = _progress_of(plan)
    return _warned(finish(lambda: _read(plan, kept, progress, stops.told, shown=options.get("progress", True)), stops))


async def arun(benchmark: str, engine: EngineLike, **options: Unpack[ReadingOptions]) -> Run:
    """Read and score as `run`, in your event loop: `await loupe.arun(...)`. Cancelling it keeps the answers.

    >>> asyncio.run(arun("sample_pages", "pdf_text", limit=12, runs=None))["text_similarity"].n
    12
    """
    plan, kept = await asyncio.to_thread(make_plan, benchmark, engine, dict(options))
    return _warned(await _read(plan, kept, _progress_of(plan), _nobody, shown=options.get("progress", True)))


def _nobody(_stop: Callable[[], None]) -> AbstractContextManager[None]:
    """Nobody is told how to stop the run: who cancels the task does it."""
    return nullcontext()


def _progress_of(plan: Plan) -> Progress:
    return Progress(engine=plan.name or plan.label, benchmark=plan.benchmark)


async def _read(plan: Plan, kept: TemporaryFolder | None, progress: Progress, told: Told, *, shown: bool) -> Run:
    bar = bar_here(progress, shown=shown)
    try:
        folder = await watch(read_and_score(plan, progress), progress, told=told, refresh=bar.refresh, say=bar.say)
    except asyncio.CancelledError:
        if progress.stopping:
            raise _interrupted(progress) from None
        raise
    finally:
        bar.close()
    if progress.remark:
        bar.say(progress.remark)
        if bar.unseen:
            warnings.warn(progress.remark, stacklevel=3)
    if progress.stopping:
        raise _interrupted(progress)
    return Run(folder.path, kept)


def _interrupted(progress: Progress) -> KeyboardInterrupt:
    ended = progress.resumed + progress.done
    return KeyboardInterrupt(f"{ended:,} of {progress.total:,} samples are read; the same call goes on")


def _warned(run: Run) -> Run:
    """Say what must not be overlooked: a run that ended early, or answers that are all failures."""
    if run.info.stopped:
        warnings.warn(f"{run.engine}: {run.info.stopped}", stacklevel=3)
    elif run.result.total and len(failed := [one for one in run.failures if one.outcome in FAILED]) == run.result.total:
        first: Any = failed[0].error or failed[0].outcome
        what = remedy(failed[0].outcome, failed[0].error, run.info.defining.get("image"))
        said = f"{run.engine}: all {len(failed):,} samples failed; the first: {first}"
        warnings.warn(f"{said}; {what}" if what else said, stacklevel=3)
    return run


_ANSWERS = "answers.jsonl"


def score(benchmark: str, answers: str | os.PathLike[str] | Mapping[str, str], **options: Unpack[DataOptions]) -> Run:
    """Score answers to a benchmark: a folder, a file, or a mapping from sample id to text. No engine is needed.

    A folder has one text file for each sample; a file is JSON lines with id and text, or JSON in the official layout of
    the benchmark. Samples without an answer count as failed. Nothing is left behind unless `runs` names a folder.
    Options are those of `loupe score`. Raises LoupeError.

    >>> run = score("sample_pages", {"prose": "A page of prose.", "blank": ""})
    >>> run["text_similarity"].n, len(run.failures)
    (12, 17)
    """
    given = checked({"runs": None, **options}, DataOptions)
    benchmark = named_benchmark(benchmark)
    found = get_benchmark(benchmark)
    of_benchmark = texts_of(given["option"])
    check_options(found, of_benchmark, called=benchmark)
    plan, kept = file_plan(benchmark, of_benchmark, _engine(answers, str(given.get("name", ""))), given)
    path = _file(plan, answers)

    stops = Stops()

    async def work() -> None:
        scoring = asyncio.ensure_future(score_again(path, jobs=given.get("jobs")))

        def stop() -> None:
            scoring.cancel()

        with stops.told(stop):
            await scoring

    try:
        finish(work, stops)
    except asyncio.CancelledError:
        raise KeyboardInterrupt("scoring was stopped; the same call begins again") from None
    return Run(path, kept)


def _engine(answers: str | os.PathLike[str] | Mapping[str, str], name: str) -> tuple[str, Profile]:
    """The name to file answers under, and where they are from."""
    if isinstance(answers, Mapping):
        return name or "answers", load_profile(f"predictions:{_ANSWERS}")[1]
    hint = "give a folder, a file, or a mapping from sample id to text"
    if not isinstance(answers, str | os.PathLike):
        raise UsageError(f"answers is {type(answers).__name__}", hint=hint)
    path = Path(answers)
    if not path.exists():
        raise RunError(f"no answers at {path}", hint=hint)
    label, profile = load_profile(f"predictions:{path}")
    return name or (path.stem if path.is_file() else real_path(path).name) or label, profile


def _file(plan: Plan, answers: str | os.PathLike[str] | Mapping[str, str]) -> Path:
    """File the answers as a run, and return its folder."""
    if not isinstance(answers, Mapping):
        return file_answers(plan, Path(answers))[0].path
    for ident, text in answers.items():
        if not isinstance(ident, str) or not isinstance(text, str):
            raise UsageError(
                f"answers[{ident!r}] is {type(text).__name__}", hint="give a mapping from sample id to text"
            )
    lines = [encode_json({"id": str.__str__(ident), "text": str.__str__(text)}) for ident, text in answers.items()]
    with scratch_folder("loupe-answers-") as folder:
        Folder(folder).write(_ANSWERS, b"".join(line + b"\n" for line in lines))
        return file_answers(plan, folder / _ANSWERS)[0].path
