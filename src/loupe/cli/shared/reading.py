"""Plans carried out one after another, under supervision: what `run`, `infer`, `draft` and suites share."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from loupe.cli.shared.errors import INTERRUPTED, MISSING, SOME_FAILED, continue_command, report_error, show_error
from loupe.cli.shared.exit_verdict import worst_code
from loupe.cli.shared.output import complain, say
from loupe.cli.shared.progress import Overall, supervise
from loupe.errors import EngineUnavailableError, LoupeError
from loupe.types import FAILED

if TYPE_CHECKING:
    from loupe.pipeline import Plan
    from loupe.runs.folder import RunFolder

#: `loupe.pipeline.run` or `infer`; they take a `keeper` of servers, too.
Stage: TypeAlias = "Callable[..., Coroutine[Any, Any, RunFolder]]"
T = TypeVar("T")


@dataclass(frozen=True)
class Carried(Generic[T]):
    """The outcome of plans: results of those that went on, why the others failed by name, and the worst exit code."""

    found: list[tuple[Plan, T]]
    failed: dict[str, str]
    code: int

    @property
    def results(self) -> list[T]:
        """The results of those that went on."""
        return [result for _, result in self.found]


def read_all(plans: Sequence[Plan], stage: Stage, *, plain: bool, in_series: bool = False) -> Carried[RunFolder]:
    """Read all pages of every plan; of several, what came of each is said as soon as it is known."""
    from loupe.benchmarks.folders.own import unlisted_files, unread_pages
    from loupe.benchmarks.registry import is_own_folder
    from loupe.servers.keeper import Keeper

    overall = Overall(len(plans))

    def read(plan: Plan) -> tuple[RunFolder, int]:
        overall.number += 1
        several = overall if overall.total > 1 else None
        folder, code = read_one(plan, partial(stage, keeper=keeper), plain=plain, overall=several)
        if several:
            say(f"{overall.line()} · {name_of(plan)} on {plan.benchmark}: {_came_of(folder)}")
        return folder, code

    for folder in dict.fromkeys(plan.benchmark for plan in plans if is_own_folder(plan.benchmark)):
        for line in (*unlisted_files(Path(folder)), *unread_pages(Path(folder))):
            say(f"{folder}: {line}" if len(plans) > 1 else line)
    with Keeper(say=say) as keeper:
        return carry_out(plans, read, in_series=in_series)


def _came_of(folder: RunFolder) -> str:
    """The headline of a run, or how many answers it has where it is not scored."""
    from loupe.results.matrix import cell_text, make_matrix
    from loupe.results.scored_here import result_of

    if result_of(folder) is None:
        places = folder.prediction_places()
        failed = sum(place.mark in FAILED for place in places.values())
        return f"{len(places):,} of {folder.info.total:,} read" + (f", {failed:,} failed" if failed else "")
    matrix = make_matrix([folder])
    return cell_text(next(iter(matrix.rows[0].cells.values())), matrix.columns[0].unit)


def name_of(plan: Plan) -> str:
    """Return the name of a run: the name it was given, which tells repeats apart, or its engine's."""
    return plan.name or plan.label


def carry_out(plans: Sequence[Plan], act: Callable[[Plan], tuple[T, int]], *, in_series: bool = False) -> Carried[T]:
    """Carry out plans one after another; one that cannot go on does not stop the next one, Ctrl-C does.

    An engine that could not be reached twice in a row is gone for what is left. The error of a single plan is raised,
    unless it is what is left of several benchmarks (`in_series`).
    """
    found: list[tuple[Plan, T]] = []
    failed: dict[str, str] = {}
    codes: list[int] = []
    lost: Counter[str] = Counter()
    several = in_series or len(plans) > 1
    named = in_series or len({plan.benchmark for plan in plans}) > 1
    for plan in plans:
        name = f"{name_of(plan)} on {plan.benchmark}" if named else name_of(plan)
        if lost[plan.label] > 1:
            failed[name] = "skipped: the engine was unreachable twice in a row"
            continue
        try:
            result, code = act(plan)
        except KeyboardInterrupt:
            if not several:
                raise
            codes.append(INTERRUPTED)
            break
        except Exception as error:  # the border where one run must not end the others
            if not several:
                raise
            failed[name], code = report_error(error, name)
            codes.append(code)
            lost[plan.label] += isinstance(error, EngineUnavailableError)
            continue
        lost[plan.label] = 0
        found.append((plan, result))
        codes.append(code)
        if code == INTERRUPTED:
            break
    return Carried(found, failed, worst_code(codes))


def read_one(plan: Plan, stage: Stage, *, plain: bool, overall: Overall | None = None) -> tuple[RunFolder, int]:
    """Carry out one plan under supervision, and say how to continue if it stopped early."""
    from loupe.inference.progress import Progress

    progress = Progress(engine=name_of(plan), benchmark=plan.benchmark, said=overall.said if overall else set())
    progress.overall = overall.line if overall else None
    try:
        folder = asyncio.run(supervise(stage(plan, progress), progress, plain=plain))
    except asyncio.CancelledError:
        say(f"{_stopped(overall)}; to continue: {continue_command()}")
        raise KeyboardInterrupt from None
    except LoupeError:
        if progress.done:
            say(f"{progress.done:,} answers are kept; to continue: {continue_command()}")
        raise
    if progress.remark:
        say(progress.remark)
    if progress.stopping:
        ended = progress.resumed + progress.done
        unscored = ", not scored yet" if ended == progress.total else ""
        read = f"{ended:,} of {progress.total:,} samples are read{unscored}"
        say(f"{_stopped(overall)}; {read}; to continue: {continue_command()}")
        return folder, INTERRUPTED
    if folder.info.stopped:
        needed = re.search(r"needs --max-cost ([\d.,]+)", folder.info.stopped)
        hint = f"to continue: {continue_command(max_cost=needed[1].replace(',', '') if needed else '')}"
        show_error(f"{name_of(plan)}: {folder.info.stopped}", hint)
        return folder, MISSING
    return folder, _failed(folder, name_of(plan), is_new=progress.failed == progress.done)


def _stopped(overall: Overall | None) -> str:
    return overall.stopped() if overall else "stopped"


def _failed(folder: RunFolder, name: str, *, is_new: bool) -> int:
    """Say what to do about failed samples. Returns the exit code: not 0 if every sample of the run failed."""
    from loupe.engines.chat.remedies import remedies

    places = folder.prediction_places()
    failed = [place for place in places.values() if place.mark in FAILED]
    known = remedies(folder.read_predictions(failed), folder.info.defining.get("image"))
    if not (is_new and failed and len(failed) == len(places)):
        for count, what in known:
            complain("hint:", "cyan", f"{count:,} of {len(failed):,} failed samples: {what}")
        return 0
    first = folder.read_prediction(failed[0])
    if known:
        what = known[0][1]
    elif all(place.mark == "rejected" for place in failed):
        what = "it reads none of these samples: give it others (a parser of PDF text needs PDF files)"
    else:
        what = "repeat the command to try again"
    show_error(
        f"{name}: all {len(failed):,} samples failed; the first: {first.error or first.outcome}",
        f"these numbers say nothing about the engine; {what}",
    )
    return SOME_FAILED
