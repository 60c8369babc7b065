"""`loupe run`: read and score in one go; what was done before is not done again."""

from __future__ import annotations

import asyncio
import re
import shlex
import sys
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click
import msgspec

from loupe.cli.adapters import suggest_adapters
from loupe.cli.beside import by_option, published_of, published_option, show_beside
from loupe.cli.errors import INTERRUPTED, MISSING, SOME_FAILED, show_error
from loupe.cli.options import Flags, allow_unverified, make_plans, reading_options
from loupe.cli.output import as_json, json_option, plain_option, print_line, say, tables
from loupe.cli.progress import supervise
from loupe.cli.repeats import show_repeats, spreads
from loupe.cli.suites import SUITES, check_target, run_suite
from loupe.cli.verdict import declared_headline, fail_under_option, parse_floor, strict_option, verdict, worst_code
from loupe.errors import DatasetError, LoupeError, RunError
from loupe.typed import convert
from loupe.types import FAILED, Measure, PublishedRow, Result

if TYPE_CHECKING:
    from loupe.pipeline import Plan
    from loupe.report.terminal import Section
    from loupe.runs.folder import RunFolder

#: `loupe.pipeline.run` or `infer`; they take a `keeper` of servers, too.
Stage: TypeAlias = "Callable[..., Coroutine[Any, Any, RunFolder]]"
T = TypeVar("T")


@click.command("run")
@click.argument("benchmark", required=False, default="")
@click.option("--suite", type=click.Choice(list(SUITES)), help="A list of benchmarks instead of one (docs/suites.md).")
@click.option("--skip-missing", is_flag=True, help="With --suite: leave out benchmarks whose data is not here.")
@reading_options
@allow_unverified
@strict_option
@fail_under_option
@published_option
@by_option
@json_option
@plain_option
@click.pass_context
def command(
    context: click.Context, /, benchmark: str, suite: str | None, json: bool, plain: bool, **flags: Any
) -> None:
    """Read the pages of a benchmark with an engine, and score the answers.

    BENCHMARK is an id from `loupe bench list` (or id@version), a folder of your own pages, or a Python file. Without
    an engine, the OpenAI-compatible server that runs on this machine is asked; where none answers, rapidocr reads.
    The same command again continues where it stopped.
    """
    strict, fail_under, skip_missing = (flags.pop(name) for name in ("strict", "fail_under", "skip_missing"))
    by, with_published = flags.pop("by"), flags.pop("with_published")
    single = {"--fail-under": fail_under, "--by": by, "--with-published": with_published}
    check_target(benchmark, suite, skip_missing=skip_missing, single=single)
    if suite:
        reading = convert(flags, Flags)
        context.exit(run_suite(suite, reading, skip_missing=skip_missing, strict=strict, json=json, plain=plain))
    with pointing_to_check(benchmark):
        headline = headline_of(benchmark)
        floor = parse_floor(fail_under, headline)
        published = published_of(benchmark.partition("@")[0]) if with_published else []
        plans = make_plans(benchmark, convert(flags, Flags))
        from loupe.pipeline import run

        say_of_cache(benchmark)
        folders, worst = read_all(plans, run, plain=plain, unit=headline.unit)
    results = [(folder.path, result) for folder in folders if (result := folder.result()) is not None]
    codes = [worst, *(verdict(result, floor, strict=strict) for _, result in results)]
    several = list(spreads(plans, results)) if flags["repeats"] > 1 else []
    if json:
        repeats = {"repeats": [found for found, _ in several]} if several else {}
        as_json(json_document(results, several=len(plans) > 1, published=published) | repeats)
    else:
        for number, (path, result) in enumerate(results):
            if number and not plain:
                print_line()
            show_result(path, result, plain=plain)
        if flags["repeats"] == 1:
            show_ranking([path for path, _ in results], plain=plain)
        show_repeats(several, plain=plain)
        codes.append(show_beside([result for _, result in results], published, by, plain=plain))
        _say_next([path for path, _ in results])
    context.exit(worst_code(codes))


@contextmanager
def pointing_to_check(benchmark: str) -> Iterator[None]:
    """To the first problem of a folder of one's own, add the command that names all of them."""
    try:
        yield
    except DatasetError as error:
        if Path(benchmark).is_dir() and not isinstance(error, RunError):
            every = f"all problems at once: loupe bench check {shlex.quote(benchmark)}"
            error.hint = f"{error.hint}; {every}" if error.hint else every
        raise


def headline_of(benchmark: str) -> Measure:
    """The headline measure of a benchmark, as declared."""
    from loupe.benchmarks.registry import get_benchmark

    return declared_headline(get_benchmark(benchmark))


def say_of_cache(benchmark: str) -> None:
    """Say once that what a benchmark draws cannot be kept: nothing fails, but the next time takes as long."""
    from loupe.benchmarks import get_benchmark
    from loupe.data.cache import why_not_kept

    if get_benchmark(benchmark).prepare and (why := why_not_kept()):
        say(f"{why}; what is drawn now is drawn again another time")


def read_all(plans: list[Plan], stage: Stage, *, plain: bool, unit: str) -> tuple[list[RunFolder], int]:
    """Read all pages of every plan. Returns the run folders and the worst exit code, as `carry_out`."""
    from loupe.servers.keeper import Keeper

    with Keeper(say=say) as keeper:
        read = partial(read_one, stage=partial(stage, keeper=keeper), plain=plain, unit=unit)
        folders, worst = carry_out(plans, read)
    return [folder for _, folder in folders], worst


def carry_out(plans: Sequence[Plan], act: Callable[[Plan], tuple[T, int]]) -> tuple[list[tuple[Plan, T]], int]:
    """Carry out plans one after another; an engine that cannot go on does not stop the next one, Ctrl-C does.

    Returns what came of each one that went on, and the worst exit code. With a single plan its error is raised.
    """
    found: list[tuple[Plan, T]] = []
    worst = 0
    for plan in plans:
        try:
            result, code = act(plan)
        except LoupeError as error:
            if len(plans) == 1:
                raise
            show_error(f"{plan.label}: {error.message}", error.hint)
            worst = max(worst, error.exit_code)
            continue
        found.append((plan, result))
        worst = max(worst, code)
        if code == INTERRUPTED:
            break
    return found, worst


def read_one(plan: Plan, stage: Stage, *, plain: bool, unit: str) -> tuple[RunFolder, int]:
    """Carry out one plan under supervision, and say how to continue if it stopped early."""
    from loupe.inference.progress import Progress

    progress = Progress(engine=plan.name or plan.label, benchmark=plan.benchmark)
    try:
        folder = asyncio.run(supervise(stage(plan, progress), progress, plain=plain, unit=unit))
    except asyncio.CancelledError:
        say(f"stopped; to continue: {continue_command()}")
        raise KeyboardInterrupt from None
    except LoupeError:
        if progress.done:
            say(f"{progress.done:,} answers are kept; to continue: {continue_command()}")
        raise
    if progress.remark:
        say(progress.remark)
    if progress.stopping:
        ended = progress.resumed + progress.done
        say(f"stopped; {ended:,} of {progress.total:,} samples are read; to continue: {continue_command()}")
        return folder, INTERRUPTED
    if folder.info.stopped:
        needed = re.search(r"needs --max-cost ([\d.,]+)", folder.info.stopped)
        hint = f"to continue: {continue_command(max_cost=needed[1].replace(',', '') if needed else '')}"
        show_error(f"{plan.label}: {folder.info.stopped}", hint)
        return folder, MISSING
    if progress.failed == progress.done and (every := _nothing_answered(folder)):
        show_error(f"{plan.label}: {every}", "the numbers say nothing about the engine; the same command asks again")
        return folder, SOME_FAILED
    return folder, 0


def _nothing_answered(folder: RunFolder) -> str:
    """That every sample failed, with the first reason; "" where one has an answer."""
    places = folder.prediction_places()
    if not places or any(place.mark not in FAILED for place in places.values()):
        return ""
    first = folder.read_prediction(next(iter(places.values())))
    return f"all {len(places):,} samples failed; the first: {first.error or first.outcome}"


def continue_command(*, max_cost: str = "") -> str:
    """The command of this process once more, without --fresh, which would start over, and without any key.

    `max_cost` takes the place of the one that was given: with that it would stop at once.
    """
    words, skip = ["loupe"], False
    left_out = ("--api-key", *(["--max-cost"] if max_cost else []))
    for word in sys.argv[1:]:
        kept = not (skip or word == "--fresh" or word.startswith(tuple(f"{option}=" for option in left_out)))
        skip = word in left_out and not skip
        words += [_without_query(word)] if kept and not skip else []
    return shlex.join([*words, *(["--max-cost", max_cost] if max_cost else [])])


def _without_query(word: str) -> str:
    """A word of the command; of an address, whose query may hold a key, only the names of its parameters."""
    return re.sub(r"([?&][\w.-]+=)[^&\s]*", r"\1...", word)


def json_document(
    results: list[tuple[Path, Result]], *, several: bool = False, published: Sequence[PublishedRow] = ()
) -> dict[str, Any]:
    """One result as an object with its run folder; where several engines were asked for, a list under `runs`."""
    listed = [{"run": str(path), **msgspec.to_builtins(result)} for path, result in results]
    document = listed[0] if listed and not several else {"runs": listed}
    return document | ({"published": published} if published else {})


def show_result(path: Path, result: Result, *, plain: bool) -> None:
    """The tables of one result with its worst samples, its signature, and where it is stored."""
    from loupe.report.class_tables import class_sections
    from loupe.report.terminal import result_sections

    tables([*result_sections(result, _worst_samples(path)), *class_sections(result)], plain=plain)
    print_line(result.signature)
    print_line(f"saved in {path}")
    suggest_adapters(path)


def _worst_samples(path: Path) -> Section | None:
    """The samples that cost a run most; none where only one was read."""
    from loupe.benchmarks.registry import benchmark_of_run
    from loupe.report.worst_samples import worst_section
    from loupe.runs.folder import RunFolder

    folder = RunFolder.open(path)
    rows = (msgspec.structs.replace(row, details={}) for row in folder.scores())
    return worst_section(benchmark_of_run(folder.info.benchmark), rows) if len(folder.score_places()) > 1 else None


def show_ranking(paths: list[Path], *, plain: bool) -> None:
    """Several engines as one table, best first, and what their difference would have to be to be seen."""
    if len(paths) < 2:
        return
    from loupe.cli.compare import ranking

    print_line()
    tables(ranking(paths), plain=plain)


def _say_next(paths: list[Path]) -> None:
    if paths:
        runs = " ".join(shlex.quote(str(path)) for path in paths)
        say(f"pages and answers: loupe report {runs} -o report.html")
    if len(paths) > 1:
        say(f"differences:       loupe compare {runs}")
