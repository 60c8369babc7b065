"""`loupe run`: read and score in one go; what was done before is not done again."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from loupe.benchmarks.registry import benchmark_id, full_name, get_benchmark, is_own_folder
from loupe.cli.shared.beside import by_measure_option, by_option, check_tag, published_of, published_option, show_beside
from loupe.cli.shared.exit_verdict import (
    fail_under_option,
    measure_of,
    parse_floor,
    strict_option,
    verdict,
    worst_code,
)
from loupe.cli.shared.flags import Flags
from loupe.cli.shared.lazy import GroupedCommand, in_group
from loupe.cli.shared.options import allow_unverified, make_plans, reading_options
from loupe.cli.shared.output import as_json, json_option, plain_option, print_line, say, tables
from loupe.cli.shared.reading import read_all
from loupe.cli.shared.repeated_runs import show_repeats, spreads
from loupe.cli.shared.suites import benchmarks_argument, refuse, run_series, series_of, suite_options
from loupe.cli.shared.summaries import Summaries, summary_options
from loupe.cli.shared.until import asked_until, read_until, until_options, with_pages
from loupe.errors import DatasetError, RunError
from loupe.hooks import called
from loupe.typed import convert
from loupe.types import PublishedRow, Result

if TYPE_CHECKING:
    from loupe.results.tables.record import Table


@click.command("run", cls=GroupedCommand)
@benchmarks_argument
@reading_options
@allow_unverified
@strict_option
@fail_under_option
@json_option
@plain_option
@in_group("Several benchmarks", suite_options)
@in_group("Generated pages, without end", until_options)
@in_group("What is shown", by_measure_option, by_option, published_option, summary_options)
@click.pass_context
def command(
    context: click.Context, /, benchmarks: tuple[str, ...], suite: str | None, json: bool, plain: bool, **flags: Any
) -> None:
    """Read the pages of benchmarks with engines, and score the answers.

    BENCHMARK is an id from `loupe bench list` (its beginning is enough, or id@version), a folder of your own pages, or
    a Python file; `all` is every installed one. Several are read one after another into one table. Without an engine,
    the OpenAI-compatible server that runs on this machine is asked; where none answers, rapidocr reads. The same
    command again continues where it stopped.
    """
    from loupe.results.scored_here import result_of

    strict, fail_under, skip_missing = (flags.pop(name) for name in ("strict", "fail_under", "skip_missing"))
    by, with_published, measure = flags.pop("by"), flags.pop("with_published"), flags.pop("by_measure")
    goal = {name: flags.pop(name) for name in ("until", "until_difference", "max_pages")}
    summaries = Summaries(junit=flags.pop("junit"), markdown=flags.pop("markdown"))
    reading = convert(flags, Flags)
    series = series_of(benchmarks, suite, skip_missing=skip_missing)
    if series is not None:
        refuse({"--fail-under": fail_under, "--by": by, "--with-published": with_published, "--until": goal["until"]})
        refuse({"--by-measure": measure})
        code, folders = run_series(series, reading, strict=strict, json=json, plain=plain)
        summaries.of_runs(folders)
        context.exit(code)
    benchmark = full_name(benchmarks[0])
    with pointing_to_check(benchmark):
        floor = parse_floor(fail_under, measure_of(get_benchmark(benchmark), measure))
        published = published_of(benchmark_id(benchmark), get_benchmark(benchmark).version) if with_published else []
        until = asked_until(benchmark, goal["until"], goal["until_difference"], goal["max_pages"])
        plans = make_plans(benchmark, with_pages(reading, until) if until else reading)
        if by:
            check_tag(by, plans[0])
        from loupe.pipeline import run

        say_of_cache(benchmark)
        carried = read_until(plans, until, plain=plain) if until else read_all(plans, run, plain=plain)
    results = [(folder.path, result) for folder in carried.results if (result := result_of(folder)) is not None]
    summaries.of_runs(carried.results, floor, measure)
    codes = [carried.code, *(verdict(result, floor, strict=strict) for _, result in results)]
    several = list(spreads(plans, results)) if reading.repeats > 1 else []
    if json:
        repeats = {"repeats": [found for found, _ in several]} if several else {}
        as_json(json_document(results, several=len(plans) > 1, published=published, measure=measure) | repeats)
    else:
        for number, (path, result) in enumerate(results):
            if number and not plain:
                print_line()
            show_result(path, result, plain=plain, measure=measure)
        if reading.repeats == 1:
            show_ranking([path for path, _ in results], plain=plain, measure=measure)
        show_repeats(several, plain=plain)
        codes.append(show_beside([result for _, result in results], published, by, plain=plain, measure=measure))
        _say_next([path for path, _ in results])
        if carried.failed:
            say(f"not read, for the errors above: {', '.join(carried.failed)}")
    context.exit(worst_code(codes))


@contextmanager
def pointing_to_check(benchmark: str) -> Iterator[None]:
    """To the first problem of a folder of one's own, add the command that names all of them."""
    try:
        yield
    except DatasetError as error:
        if is_own_folder(benchmark) and not isinstance(error, RunError):
            every = f"all problems at once: loupe bench check {shlex.quote(benchmark)}"
            error.hint = f"{error.hint}; {every}" if error.hint else every
        raise


def say_of_cache(benchmark: str) -> None:
    """Say once that what a benchmark draws cannot be kept: nothing fails, but the next time takes as long."""
    from loupe.data.user_folders import why_not_kept

    if get_benchmark(benchmark).prepare and (why := why_not_kept()):
        say(f"{why}; the same samples are drawn next time")


def json_document(
    results: list[tuple[Path, Result]],
    *,
    several: bool = False,
    published: Sequence[PublishedRow] = (),
    measure: str = "",
) -> dict[str, Any]:
    """Return one result as an object with its run folder, or `several` as a list under `runs`.

    `measure` is their headline, if it was asked for.
    """
    from loupe.results.headline import result_document

    listed = [{"run": str(path), **result_document(result, measure)} for path, result in results]
    document = listed[0] if listed and not several else {"runs": listed}
    return document | ({"published": published} if published else {})


def show_result(path: Path, result: Result, *, plain: bool, measure: str = "") -> None:
    """Show one result: its tables by `measure` with its worst samples, its signature, and where it is stored."""
    from loupe.results.class_tables import class_sections
    from loupe.results.headline import headline_of
    from loupe.results.sections import result_sections

    ranked = headline_of([result], measure)
    shown = msgspec.structs.replace(result, headline=ranked.measure)
    found = result_sections(shown, _worst_samples(path, ranked.measure), ranked.note)
    added = itertools.chain.from_iterable(called("result_tables", shown))
    tables([*found, *class_sections(shown), *added], plain=plain)
    print_line(result.signature)
    print_line(f"saved in {path}")
    for notes in called("result_notes", path):
        for note in notes:
            say(note)


def _worst_samples(path: Path, measure: str) -> Table | None:
    """Return the samples that cost a run most by `measure`; None if only one was read."""
    from loupe.benchmarks.registry import benchmark_of_run
    from loupe.results.worst_samples import worst_section
    from loupe.runs.folder import RunFolder

    folder = RunFolder.open(path)
    if len(folder.score_places()) < 2:
        return None
    return worst_section(benchmark_of_run(folder.info.benchmark), folder.counts(), measure)


def show_ranking(paths: list[Path], *, plain: bool, measure: str = "") -> None:
    """Several engines as one table, best first, and what their difference would have to be to be seen."""
    if len(paths) < 2:
        return
    from loupe.cli.compare import ranking

    print_line()
    tables(ranking(paths, measure), plain=plain)


def _say_next(paths: list[Path]) -> None:
    if paths:
        runs = " ".join(shlex.quote(str(path)) for path in paths)
        say(f"pages and answers: loupe report {runs} -o report.html")
    if len(paths) > 1:
        say(f"differences:       loupe compare {runs}")
