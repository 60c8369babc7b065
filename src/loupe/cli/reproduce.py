"""`loupe reproduce`: what others have published, against what was measured here, with every setting that differs."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from loupe.cli.shared.output import as_json, json_option, plain_option, print_data, print_line, runs_option, say, tables
from loupe.cli.shared.run_paths import RunPath
from loupe.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from loupe.results.reproduction import Reproduction

_ALL = "list all: loupe reproduce"


@click.command("reproduce")
@click.argument("target", metavar="[ENGINE/BENCHMARK]", required=False, default="")
@click.option("--run", type=RunPath(), metavar="FOLDER", help="This run, whatever its engine is called.")
@runs_option
@json_option
@plain_option
def command(target: str, run: Path | None, runs: Path, json: bool, plain: bool) -> None:
    """Compare published figures with measured ones, and list settings that differ or are unknown.

    For ENGINE/BENCHMARK (`glm-ocr/omnidocbench@1.5`) the newest finished run is taken; if there is none, the command
    that would make it is printed. Without a target: every published figure that comes with Loupe, with its source.
    """
    if not target:
        if run is not None:
            raise UsageError("--run needs ENGINE/BENCHMARK", hint=_ALL)
        show_all(json=json, plain=plain)
        return
    found = reproductions(target, run, runs)
    if json:
        engine, _, benchmark = target.rpartition("/")
        as_json({"engine": engine, "benchmark": benchmark, "reproductions": found})
        return
    from loupe.results.published import reproduction_sections

    tables([section for each in found for section in reproduction_sections(each)], plain=plain)
    for path, signature in dict.fromkeys((each.run, each.signature) for each in found if each.run):
        print_line(signature)
        print_line(f"measured in {path}")
    commands = list(dict.fromkeys(each.command for each in found if each.command))
    if commands:
        say(f"no finished run of {target} below {runs}; to make one:")
    for command_line in commands:
        print_data(command_line)
    if any(" --serve " in command_line for command_line in commands):
        say("with a server that runs already: --base-url URL in place of --serve")
    if any(" ANSWERS " in f"{command_line} " for command_line in commands):
        say("ANSWERS are those of this engine; to ask a server for them: loupe run BENCHMARK -e vlm --base-url URL")


def reproductions(target: str, folder: Path | None, root: Path) -> list[Reproduction]:
    """Every published row about ENGINE on BENCHMARK against a run, or the newest that fits.

    Raises UsageError where nothing is published, or where the run is one of another benchmark.
    """
    from loupe.benchmarks.published import published_benchmarks, published_rows, rows_of_engine
    from loupe.benchmarks.registry import benchmark_id, full_name, get_benchmark
    from loupe.results.reproduction import checked_run, finished_runs, reproduce
    from loupe.runs.opening import open_run

    engine, slash, name = target.rpartition("/")
    name = full_name(name)
    if not (slash and engine and name):
        raise UsageError(
            f"{target!r} is not ENGINE/BENCHMARK", hint=f"run: loupe reproduce glm-ocr/omnidocbench; {_ALL}"
        )
    benchmark, ident = get_benchmark(name), benchmark_id(name)
    if ident not in published_benchmarks():
        raise UsageError(f"no published figures on {ident} here", hint=_ALL)
    rows = rows_of_engine(engine, ident, benchmark.version)
    if not rows:
        known = {each for row in published_rows(ident, benchmark.version) for each in (*row.engines, row.name)}
        raise UsageError(f"no published figure of {engine!r} on {ident}{did_you_mean(engine, known)}", hint=_ALL)
    if folder is not None:
        runs = [checked_run(open_run(folder), ident, benchmark.version)]
    else:
        # Found by its name at the source: runs and profiles have the id.
        engine = engine if any(engine in row.engines for row in rows) else rows[0].engines[0]
        runs = finished_runs(root, engine, ident, benchmark.version)
    return [reproduce(row, benchmark, runs, root) for row in rows]


def show_all(*, json: bool, plain: bool) -> None:
    """Every published row, benchmark by benchmark."""
    from loupe.benchmarks.published import published_benchmarks, published_rows
    from loupe.benchmarks.registry import get_benchmark
    from loupe.results.published import listing

    found = {ident: published_rows(ident) for ident in published_benchmarks()}
    if json:
        as_json([msgspec.to_builtins(row) for rows in found.values() for row in rows])
        return
    sections = [
        part
        for ident, rows in found.items()
        for _, of_version in itertools.groupby(rows, key=lambda row: row.version)
        for part in listing(ident, list(of_version), get_benchmark(ident).measures)
    ]
    tables(sections, plain=plain)
    say("against a run of yours: loupe reproduce ENGINE/BENCHMARK")
