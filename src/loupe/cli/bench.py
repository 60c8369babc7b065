"""`loupe bench`: which benchmarks there are, what each asks and measures, and whether a folder of yours is right."""

from __future__ import annotations

import inspect
from pathlib import Path

import click

from loupe.cli.lazy import SuggestingGroup
from loupe.cli.output import as_json, json_option, plain_option, print_line, say, table
from loupe.errors import DatasetError, word
from loupe.types import Benchmark


@click.group("bench", cls=SuggestingGroup)
def command() -> None:
    """List, show and check benchmarks and folders of your own."""


@command.command("list")
@json_option
@plain_option
def list_benchmarks(json: bool, plain: bool) -> None:
    """List the benchmarks that are installed.

    A folder in the folder format is a benchmark too: `loupe run ./mydocs`.
    """
    from loupe.benchmarks.registry import benchmark_ids, get_benchmark

    found = {ident: get_benchmark(ident) for ident in benchmark_ids()}
    if json:
        as_json([describe(ident, benchmark) for ident, benchmark in found.items()])
        return
    rows = [(ident, item.version, item.task, item.headline_measure, item.title) for ident, item in found.items()]
    table(("benchmark", "version", "task", "headline", "title"), rows, plain=plain)
    say("a folder of your own works the same way: loupe run ./mydocs (docs/own-data.md)")


@command.command("show")
@click.argument("benchmark")
@json_option
def show(benchmark: str, json: bool) -> None:
    """Show what BENCHMARK asks, measures, and which options it takes."""
    from loupe.benchmarks.registry import get_benchmark

    facts = describe(benchmark, get_benchmark(benchmark))
    if Path(benchmark).is_dir():
        facts |= describe_folder(Path(benchmark))
    if json:
        as_json(facts)
        return
    for key, value in facts.items():
        lines = value if isinstance(value, list) else [value]
        for index, each in enumerate(filter(None, lines)):
            print_line(f"{key if index == 0 else '':<10} {each}")


@command.command("check")
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
def check(folder: Path, json: bool) -> None:
    """Check a FOLDER of your own pages; every problem is named with its file and line."""
    from loupe.benchmarks.own import check_folder, count_drafts

    problems = [str(problem) for problem in check_folder(folder)]
    if json:
        as_json({"folder": str(folder), "problems": problems})
    else:
        for problem in problems:
            print_line(problem)
    if problems:
        count = f"{len(problems)} problem{'s' if len(problems) > 1 else ''}"
        raise DatasetError(f"{folder}: {count}", hint="docs/own-data.md describes the format")
    drafts = count_drafts(folder)
    unverified = f"nobody has verified the truth of {drafts:,} samples yet: loupe review {word(folder)}"
    say(f"{folder}: no problem found; {unverified if drafts else f'loupe run {word(folder)}'}")


def describe(ident: str, benchmark: Benchmark) -> dict[str, str | list[str]]:
    """Everything a person or a program may want to know about one benchmark."""
    measures = [
        f"{measure.name} ({'higher' if measure.higher_is_better else 'lower'} is better)"
        + (" *" if measure.name == benchmark.headline_measure else "")
        for measure in benchmark.measures
    ]
    return {
        "id": ident.partition("@")[0],
        "version": benchmark.version,
        "title": benchmark.title,
        "task": benchmark.task,
        "headline": benchmark.headline_measure,
        "measures": measures,
        "prompt": benchmark.usual_prompt or benchmark.prompt,
        "options": [f"-o {name}={default}" for name, default in load_options(benchmark).items()],
        "paper": benchmark.paper,
        "hub": benchmark.hub,
    }


def describe_folder(folder: Path) -> dict[str, str | list[str]]:
    """What a folder of one's own holds: samples by task, and its settings that are not the usual ones."""
    from loupe.benchmarks.own import survey_folder

    tasks, settings = survey_folder(folder)
    return {
        "samples": f"{sum(tasks.values()):,}",
        "tasks": [f"{task} ({count:,})" for task, count in tasks.items()],
        "settings": settings,
    }


def load_options(benchmark: Benchmark) -> dict[str, object]:
    """The options of a benchmark with their defaults: the parameters of its `load` after the data folder."""
    parameters = list(inspect.signature(benchmark.load).parameters.values())[1:]
    kept = [item for item in parameters if item.kind in (item.POSITIONAL_OR_KEYWORD, item.KEYWORD_ONLY)]
    return {item.name: "" if item.default is item.empty else item.default for item in kept}
