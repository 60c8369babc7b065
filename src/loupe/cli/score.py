"""`loupe score`: score what was read, again or for the first time, without any engine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loupe.cli.beside import by_option, published_of, published_option, show_beside
from loupe.cli.options import SAMPLE, SEED, allow_unverified
from loupe.cli.output import as_json, json_option, plain_option, runs_option, say, shared_option, tables
from loupe.cli.verdict import (
    Floor,
    declared_headline,
    fail_under_option,
    parse_floor,
    strict_option,
    verdict,
    worst_code,
)
from loupe.errors import RunError, UsageError, word
from loupe.files.foreign import real_path
from loupe.typed import convert

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loupe.types import PublishedRow


@click.command("score")
@click.argument("target", metavar="RUN | BENCHMARK ANSWERS...", nargs=-1, required=True)
@click.option(
    "--data", type=click.Path(exists=True, path_type=Path), metavar="DIR", help="Local copy of the benchmark's data."
)
@click.option("-o", "--option", multiple=True, metavar="KEY=VALUE", help="Option of the benchmark (bench show).")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N samples.")
@SAMPLE
@SEED
@runs_option
@click.option("--name", default="", metavar="NAME", help="Name to file the run under. Default: that of the answers.")
@allow_unverified
@shared_option
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Processes. Default: one per core.")
@strict_option
@fail_under_option
@published_option
@by_option
@json_option
@plain_option
@click.pass_context
def command(
    context: click.Context,
    /,
    target: tuple[str, ...],
    jobs: int | None,
    strict: bool,
    fail_under: str | None,
    with_published: bool,
    by: str,
    json: bool,
    plain: bool,
    **flags: object,
) -> None:
    """Score the predictions of a run again; no engine is needed.

    With --data, a RUN takes the same data from DIR from then on, for example after it was copied from another machine.
    A RUN on a folder of your own is scored against its references as they are now, also where they were mended since.
    With -o, a RUN is scored under other options of its benchmark, which are its own from then on, as long as its engine
    would have been asked the same.

    With a BENCHMARK, ANSWERS are filed as a run and scored: a folder with one text file per sample, JSON lines with id
    and text, or JSON in the benchmark's official layout. Several ANSWERS are shown in one table.
    """
    if len(target) == 1 and not Path(target[0]).is_dir():
        raise RunError(f"no run at {target[0]}", hint="loupe runs lists them")
    _check_flags(target, flags)
    if len(target) > 2 and flags.get("name"):
        raise UsageError(
            "--name is for one folder of answers", hint=f"loupe score {word(target[0])} {word(target[1])} --name NAME"
        )
    from loupe.benchmarks.registry import benchmark_ids
    from loupe.cli.run import json_document, say_of_cache, show_result
    from loupe.pipeline import score_run
    from loupe.runs.folder import RunFolder

    options = _options_of_run(target[0], flags["option"]) if len(target) == 1 else {}
    moved = flags["data"] if len(target) == 1 else None
    assert moved is None or isinstance(moved, Path)
    paths = [Path(target[0])]
    floor = _floor_of(target, fail_under) if fail_under else None
    published: list[PublishedRow] = []
    if len(target) > 1:
        published = published_of(target[0].partition("@")[0]) if with_published else []
        answers = list({real_path(one): one for one in map(Path, target[1:])}.values())
        paths = [
            take_answers(target[0], one, {**flags, "name": flags["name"] or name})
            for one, name in zip(answers, names_of(answers), strict=True)
        ]
    # Files and folders that a run names are the business of what scores it.
    if (benchmark := RunFolder.open(paths[0]).info.benchmark) in benchmark_ids():
        say_of_cache(benchmark)
    results = [(path, score_run(path, jobs=jobs, options=options, data=moved, say=say)) for path in paths]
    if with_published and not published:
        published = published_of(results[0][1].benchmark, results[0][1].version)
    code = worst_code(verdict(result, floor, strict=strict) for _, result in results)
    if json:
        as_json(json_document(results, several=len(results) > 1, published=published))
        context.exit(code)
    if len(results) == 1:
        show_result(*results[0], plain=plain)
    elif not published:
        from loupe.report.candidates import candidate_sections

        tables(candidate_sections([result for _, result in results]), plain=plain)
    code = worst_code([code, show_beside([result for _, result in results], published, by, plain=plain)])
    if len(results) > 1:
        runs = " ".join(shlex.quote(str(path)) for path, _ in results)
        say(f"pages and answers: loupe report {runs} -o report.html")
        say(f"differences:       loupe compare {runs}")
    context.exit(code)


def _options_of_run(run: str, pairs: object) -> dict[str, str]:
    from loupe.cli.options import split_pairs

    return split_pairs(convert(pairs, tuple[str, ...]), hint=f"loupe score {word(run)} -o KEY=VALUE")


def _floor_of(target: Sequence[str], text: str) -> Floor | None:
    from loupe.benchmarks import benchmark_of_run, get_benchmark
    from loupe.runs.folder import RunFolder

    if len(target) > 1:
        return parse_floor(text, declared_headline(get_benchmark(target[0])))
    return parse_floor(text, declared_headline(benchmark_of_run(RunFolder.open(Path(target[0])).info.benchmark)))


def _check_flags(target: tuple[str, ...], flags: Mapping[str, object]) -> None:
    """Refuse what a run has settled already, instead of passing over it."""
    names = ("limit", "sample", "seed", "name", "shared", "allow_unverified") if len(target) == 1 else ()
    given = [
        f"--{name.replace('_', '-')}"
        for name in names
        if flags.get(name) not in (None, "") and flags[name] is not False
    ]
    if given:
        raise UsageError(f"{given[0]} is for answers, not for a run", hint="loupe score BENCHMARK ANSWERS")


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
    from loupe.cli.options import Flags, make_plans
    from loupe.pipeline import file_answers

    if not answers.exists():
        raise RunError(f"no answers at {answers}", hint=f"loupe score {word(benchmark)} FOLDER_OR_FILE")
    reading = convert({**flags, "engine": (f"predictions:{answers}",)}, Flags)
    folder, found = file_answers(make_plans(benchmark, reading)[0], answers)
    double = len(found.double) + len(found.passed_over)
    say(
        f"{answers}: {len(found.found):,} answers; {len(found.missing):,} missing, {len(found.extra):,} extra, "
        f"{double:,} double" + (f"; not read: {len(found.unread):,} files" if found.unread else "")
    )
    return folder.path
