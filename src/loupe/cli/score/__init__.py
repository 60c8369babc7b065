"""`loupe score`: score what was read, again or for the first time, without any engine."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loupe.cli.score.several import Wanted, are_runs, floor_of, refuse_single, score_runs
from loupe.cli.shared.beside import (
    by_measure_option,
    by_option,
    published_of,
    published_option,
    show_beside,
)
from loupe.cli.shared.errors import report_error
from loupe.cli.shared.executor_options import ON, SHARED_DATA, open_executor
from loupe.cli.shared.exit_verdict import (
    Floor,
    fail_under_option,
    measure_of,
    parse_floor,
    strict_option,
    verdict,
    worst_code,
)
from loupe.cli.shared.options import SAMPLE, SEED, allow_unverified
from loupe.cli.shared.output import as_json, json_option, plain_option, runs_option, say, shared_option, tables
from loupe.cli.shared.run_paths import no_run_at
from loupe.errors import RunError, UsageError, word
from loupe.files.foreign import real_path
from loupe.typed import convert

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loupe.types import PublishedRow, Result


@click.command("score")
@click.argument("target", metavar="RUN... | BENCHMARK ANSWERS...", nargs=-1, required=True)
@click.option(
    "--data", type=click.Path(exists=True, path_type=Path), metavar="DIR", help="Local copy of the benchmark's data."
)
@click.option(
    "-o",
    "--option",
    multiple=True,
    metavar="KEY=VALUE",
    help="Option of the benchmark (bench show); for ANSWERS also 'adapters=[\"STEP\"]'. Repeat for several.",
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N samples.")
@SAMPLE
@SEED
@runs_option
@click.option("--name", default="", metavar="NAME", help="Name to file the run under. Default: that of the answers.")
@allow_unverified
@shared_option
@click.option(
    "--fresh",
    is_flag=True,
    help="Score every sample anew. Default: keep scores that you made on this machine and that still fit.",
)
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes. Default: one per core.")
@ON
@SHARED_DATA
@strict_option
@fail_under_option
@by_measure_option
@published_option
@by_option
@json_option
@plain_option
@click.pass_context
def command(
    context: click.Context,
    /,
    target: tuple[str, ...],
    fresh: bool,
    jobs: int | None,
    strict: bool,
    fail_under: str | None,
    by_measure: str,
    with_published: bool,
    by: str,
    on: str | None,
    shared_data: bool,
    json: bool,
    plain: bool,
    **flags: object,
) -> None:
    """Score the predictions of runs again, without an engine.

    A folder of runs stands for every run below it. Unchanged runs are only read; a table says what moved. Scores that
    you did not make on this machine are made anew. With --data,
    a RUN takes the same data from DIR from then on, for example after it was copied from another machine; for several
    runs, DIR holds one folder for each benchmark. An archive of `loupe pack` is unpacked and scored anew. A RUN on a
    folder of your own is scored against its current references, including any that were corrected since. With -o, a RUN
    is scored under other options of its benchmark, and keeps them. Options that change what its engine is asked are
    refused.

    With a BENCHMARK, ANSWERS are filed as a run and scored: a folder with one text file per sample, JSON lines with id
    and text, or JSON in the benchmark's official layout. Several ANSWERS are shown in one table; if one of
    them answers no sample, the others are still scored, and the exit code is 2. Steps clean answers before they are
    scored, as in a run: -o 'adapters=["html_comments"]' (docs/adapters.md).
    """
    target = _unpacked(target, flags["runs"])
    data = flags["data"]
    assert data is None or isinstance(data, Path)
    executor = open_executor(on, shared_data=shared_data)
    wanted = Wanted(
        jobs=jobs,
        data=data,
        strict=strict,
        fail_under=fail_under,
        measure=by_measure,
        by=by,
        executor=executor,
        fresh=fresh,
    )
    if are_runs(target):
        _check_flags(flags)
        refuse_single(target, {"-o": bool(flags["option"]), "--with-published": with_published})
        context.exit(score_runs(target, wanted, json=json, plain=plain))
    if len(target) == 1:
        scored = _score_run(target[0], wanted, flags, with_published=with_published)
    else:
        scored = _score_answers(target, wanted, flags, with_published=with_published)
    context.exit(_show(scored, wanted, json=json, plain=plain))


@dataclass(frozen=True, kw_only=True)
class _Scored:
    """Results with their folders, what they are held against, and what others have published."""

    results: list[tuple[Path, Result]]
    floor: Floor | None
    published: Sequence[PublishedRow] = ()
    codes: Sequence[int] = ()  # exit codes of answers that could not be filed


def _score_run(run: str, wanted: Wanted, flags: Mapping[str, object], *, with_published: bool) -> _Scored:
    """Score a run again, from then on with the data and under the options that are given."""
    from loupe.runs.folder import RunFolder

    if not (Path(run) / "run.json").exists():
        raise no_run_at(Path(run))
    _check_flags(flags)
    options = _options_of_run(run, flags["option"])
    floor = floor_of(RunFolder.open(Path(run)).info, wanted.data, wanted)
    results = _score([Path(run)], wanted, options=options, data=wanted.data)
    [(_, result)] = results
    published = published_of(result.benchmark, result.version) if with_published else []
    return _Scored(results=results, floor=floor, published=published)


def _score_answers(
    target: Sequence[str], wanted: Wanted, flags: Mapping[str, object], *, with_published: bool
) -> _Scored:
    """File answers to a benchmark, each as a run, and score them."""
    from loupe.benchmarks.registry import benchmark_id, full_name, get_benchmark

    if len(target) > 2 and flags.get("name"):
        raise UsageError(
            "--name is for one folder of answers",
            hint=f"score it: loupe score {word(target[0])} {word(target[1])} --name NAME",
        )
    benchmark = full_name(target[0])
    floor = parse_floor(wanted.fail_under, measure_of(get_benchmark(benchmark), wanted.measure))
    published = published_of(benchmark_id(benchmark), get_benchmark(benchmark).version) if with_published else []
    answers = list({real_path(one): one for one in map(Path, target[1:])}.values())
    paths: list[Path] = []
    failures: list[UsageError | RunError] = []
    for one, name in zip(answers, names_of(answers), strict=True):
        try:
            paths.append(take_answers(benchmark, one, {**flags, "name": flags["name"] or name}))
        except (UsageError, RunError) as error:
            failures.append(error)
    last = [] if paths else [failures.pop()]
    codes = [report_error(error)[1] for error in failures]
    if last:
        raise last[0]
    return _Scored(results=_score(paths, wanted), floor=floor, published=published, codes=codes)


def _score(
    paths: Sequence[Path],
    wanted: Wanted,
    *,
    options: Mapping[str, str] | None = None,
    data: Path | None = None,
) -> list[tuple[Path, Result]]:
    from loupe.benchmarks.registry import is_installed
    from loupe.cli.run import say_of_cache
    from loupe.pipeline import score_run
    from loupe.runs.folder import RunFolder

    # Files and folders that a run names are the business of what scores it.
    if is_installed(benchmark := RunFolder.open(paths[0]).info.benchmark):
        say_of_cache(benchmark)
    score = partial(score_run, jobs=wanted.jobs, say=say, executor=wanted.executor, fresh=wanted.fresh)
    return [(path, score(path, options=options, data=data)) for path in paths]


def _show(scored: _Scored, wanted: Wanted, *, json: bool, plain: bool) -> int:
    """Show the results, several in one table; returns the exit code."""
    from loupe.cli.run import json_document, show_result
    from loupe.results.headline import check_measure

    results = [result for _, result in scored.results]
    check_measure(wanted.measure, results)
    several = len(results) > 1
    code = worst_code([*scored.codes, *(verdict(result, scored.floor, strict=wanted.strict) for result in results)])
    if json:
        as_json(json_document(scored.results, several=several, published=scored.published, measure=wanted.measure))
        return code
    if not several:
        show_result(*scored.results[0], plain=plain, measure=wanted.measure)
    elif not scored.published:
        from loupe.results.result_table import candidate_sections

        tables(candidate_sections(results, measure=wanted.measure), plain=plain)
    code = worst_code([code, show_beside(results, scored.published, wanted.by, plain=plain, measure=wanted.measure)])
    if several:
        runs = " ".join(shlex.quote(str(path)) for path, _ in scored.results)
        say(f"pages and answers: loupe report {runs} -o report.html")
        say(f"differences:       loupe compare {runs}")
    return code


def _unpacked(target: tuple[str, ...], runs: object) -> tuple[str, ...]:
    """The run of a pack, which is unpacked below the root of the runs; anything else stays as it is."""
    from loupe.pipeline.packs import is_pack, unpack

    assert isinstance(runs, Path)
    if len(target) != 1 or not is_pack(Path(target[0])):
        return _placed(target, runs)
    folder = unpack(Path(target[0]), runs, again=True)  # A command that was stopped goes on.
    say(f"unpacked to {folder.path}")
    return (str(folder.path),)


def _placed(target: tuple[str, ...], runs: Path) -> tuple[str, ...]:
    """Return the paths of runs that are named below their root; a benchmark and its answers stay as they are."""
    from loupe.benchmarks.registry import is_installed
    from loupe.runs.opening import place_of_run

    if is_installed(target[0]) or place_of_run(Path(target[0]), runs) == Path(target[0]):
        return target
    return tuple(str(place_of_run(Path(each), runs)) for each in target)


def _options_of_run(run: str, pairs: object) -> dict[str, str]:
    from loupe.cli.shared.options import split_pairs
    from loupe.runs.folder import RunFolder

    options = split_pairs(convert(pairs, tuple[str, ...]), hint=f"score it: loupe score {word(run)} -o KEY=VALUE")
    if "adapters" in options:
        from loupe.pipeline.rescoring import score_anyway

        again = score_anyway(Path(run), RunFolder.open(Path(run)).info)
        raise UsageError(
            f"{run} was made with its own adapters, and keeps them",
            hint=f"score the same answers with others: {again} -o {word('adapters=' + options['adapters'])}",
        )
    return options


def _check_flags(flags: Mapping[str, object]) -> None:
    """Refuse what a run has settled already, instead of passing over it."""
    given = [
        f"--{name.replace('_', '-')}"
        for name in ("limit", "sample", "seed", "name", "shared", "allow_unverified")
        if flags.get(name) not in (None, "") and flags[name] is not False
    ]
    if given:
        raise UsageError(f"{given[0]} is for answers, not for a run", hint="score it: loupe score BENCHMARK ANSWERS")


def names_of(answers: Sequence[Path]) -> list[str]:
    """Names to file answers under: that of the file without its suffix, or of the folder.

    Where it comes twice, that of the nearest folder above that tells them apart.
    """
    # The name of a link is the one that was meant.
    typed = [real_path(path) if path.name in ("", "..") else real_path(path.parent) / path.name for path in answers]
    stems = [path.with_suffix("") if path.is_file() else path for path in typed]
    whole = [(path if stems.count(stem) > 1 else stem).parts for path, stem in zip(typed, stems, strict=True)]
    tails = [_telling_tail(parts, [other for other in whole if other != parts]) for parts in whole]
    firsts = [tail[0] for tail in tails]
    return [first if firsts.count(first) == 1 else "-".join(tail) for first, tail in zip(firsts, tails, strict=True)]


def _telling_tail(parts: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The shortest end of a path that no other one has."""
    depth = 1
    while depth < len(parts) and any(other[-depth:] == parts[-depth:] for other in others):
        depth += 1
    return parts[-depth:]


def take_answers(benchmark: str, answers: Path, flags: dict[str, object]) -> Path:
    """File existing answers as a run, in place of those filed before, and return its folder."""
    from loupe.cli.shared.flags import Flags
    from loupe.cli.shared.options import make_plans
    from loupe.pipeline import file_answers

    if not answers.exists():
        raise RunError(f"no answers at {answers}", hint=f"score it: loupe score {word(benchmark)} FOLDER_OR_FILE")
    reading = convert({**flags, "engine": (f"predictions:{answers}",)}, Flags)
    folder, found = file_answers(make_plans(benchmark, reading)[0], answers)
    double = len(found.double) + len(found.passed_over)
    say(
        f"{answers}: {len(found.found):,} answers; {len(found.missing):,} missing, {len(found.extra):,} extra, "
        f"{double:,} double" + (f"; not read: {len(found.unread):,} files" if found.unread else "")
    )
    return folder.path
