"""`loupe.run` and `loupe.arun`: read the pages of a benchmark with an engine, and score the answers."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Unpack

from loupe.api.bars import bar_here
from loupe.api.blocking import Stops, finish
from loupe.api.options import EngineLike, ReadingOptions, make_plan
from loupe.api.runs import Run
from loupe.api.temporary import TemporaryFolder
from loupe.engines.chat.remedies import remedy
from loupe.inference.progress import Progress
from loupe.pipeline import Plan
from loupe.pipeline import run as read_and_score
from loupe.pipeline.supervision import watch
from loupe.types import FAILED

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
