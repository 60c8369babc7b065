"""`loupe bench`: which benchmarks there are, what each asks and measures, and whether one of yours is right."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

import click

from loupe.benchmarks.registry import (
    benchmark_names,
    data_set,
    full_name,
    get_benchmark,
    is_own_folder,
    opened_by_feature,
    shown_options,
)
from loupe.cli.shared.lazy import SuggestingGroup
from loupe.cli.shared.output import as_json, json_option, plain_option, print_line, say, table
from loupe.errors import DatasetError, LoupeError, UsageError, word
from loupe.quantities import counted
from loupe.runs.installed import is_installed
from loupe.types import Benchmark

if TYPE_CHECKING:
    from loupe.cli.shared.suite_files import Entry, Suite


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
    found = {name: get_benchmark(name) for name in benchmark_names()}
    if json:
        as_json([describe(ident, benchmark) for ident, benchmark in found.items()])
        return
    rows = [
        (ident, item.version, item.task, item.headline_measure, "here" if is_here(ident) else "not here", item.title)
        for ident, item in found.items()
    ]
    table(("benchmark", "version", "task", "headline", "data", "title"), rows, plain=plain)
    say("data that is not here: loupe data get BENCHMARK")
    say("a folder of your own works the same way: loupe run ./mydocs (docs/own-data.md)")
    say("several with one command: loupe run A B C; lists of them: loupe bench suites")


@command.command("show")
@click.argument("benchmark")
@json_option
def show(benchmark: str, json: bool) -> None:
    """Show what BENCHMARK asks, measures, and which options it takes."""
    benchmark = full_name(benchmark)
    facts = describe(benchmark, get_benchmark(benchmark))
    if not json:
        facts["data"] = "here" if facts["data"] else f"not here (loupe data get {benchmark})"
    if is_own_folder(benchmark) and opened_by_feature(Path(benchmark)) is None:
        facts |= describe_folder(Path(benchmark))
    if json:
        as_json(facts)
        return
    for key, value in facts.items():
        lines = value if isinstance(value, list) else [value]
        for index, each in enumerate(filter(None, lines)):
            print_line(f"{key if index == 0 else '':<10} {_option_line(each) if isinstance(each, dict) else each}")


@command.command("suites")
@json_option
@plain_option
def list_suites(json: bool, plain: bool) -> None:
    """List the suites: benchmarks that `loupe run --suite NAME` runs together, each with its options.

    They come from Loupe, from ~/.config/loupe/suites.toml, and from the loupe.toml of this folder,
    once you trust it.
    """
    from loupe.cli.shared.suite_files import SHIPPED, find_suite, suite_places

    found: dict[str, tuple[str, Suite | None]] = {}
    for name, place in suite_places().items():
        where = "loupe" if place == SHIPPED else str(place)
        try:
            found[name] = where, find_suite(name)
        except LoupeError as error:
            say(f"{name}: {error.message}")
            found[name] = where, None
    if json:
        as_json([{"name": name, "where": where, "suite": suite} for name, (where, suite) in found.items()])
        return
    rows = [
        (name, line, ", ".join(suite.engines), where) if first or plain else ("", line, "", "")
        for name, (where, suite) in found.items()
        if suite
        for first, line in zip(chain([True], repeat(False)), map(_entry_line, suite.benchmarks), strict=False)
    ]
    table(("suite", "benchmark", "engines", "where"), rows, plain=plain)


def _entry_line(entry: str | Entry) -> str:
    """`iam_lines -o text=raw --limit 200`."""
    if isinstance(entry, str):
        return entry
    options = [f"-o {name}={value}" for name, value in entry.texts.items()]
    part = [f"--{name} {value}" for name in ("limit", "sample", "seed", "data") if (value := getattr(entry, name))]
    return " ".join([entry.benchmark, *options, *part])


@command.command("check")
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER | FILE.py | ID")
@click.option(
    "--data",
    type=click.Path(exists=True, path_type=Path),
    metavar="DIR",
    help="Data of a FILE.py or an installed benchmark.",
)
@json_option
def check(folder: Path, data: Path | None, json: bool) -> None:
    """Check a FOLDER of your own pages; every problem is named with its file and line.

    For a benchmark in FILE.py, or an installed one by its ID: checks what it declares, its samples, and the scores of
    right answers to the first ones.
    """
    from loupe.benchmarks.folders.own import check_folder, not_in_samples, open_truth

    if not folder.exists() and is_installed(name := full_name(str(folder))):
        folder = Path(name)
    if opened_by_feature(folder) or (not folder.is_dir() and (folder.suffix == ".py" or is_installed(str(folder)))):
        from loupe.pipeline.benchmark_check import checked_apart

        hint = "CONTRIBUTING.md has a file to copy"
        if folder.exists() and folder.suffix != ".py":
            hint = f"answers that exist already need no pages: loupe score {word(folder)} ANSWERS"
        _show_problems(folder, checked_apart(folder, data), hint, json=json)
        named = f" --data {word(data)}" if data else ""
        say(f"{folder}: no problem found; loupe run {word(folder)}{named}")
        return
    if data:
        raise UsageError(
            "--data goes with a FILE.py or an installed benchmark; a folder has its pages",
            hint=f"see every problem: loupe bench check {word(folder)}",
        )
    problems = [str(problem) for problem in check_folder(folder)]
    for line in not_in_samples(folder):
        say(line)
    _show_problems(folder, problems, "docs/own-data.md describes the format", json=json)
    say(f"{folder}: no problem found; {open_truth(folder) or f'loupe run {word(folder)}'}")


def _show_problems(place: Path, problems: Sequence[str], hint: str, *, json: bool) -> None:
    """Print them. Raises DatasetError where there is one."""
    if json:
        as_json({"folder": str(place), "problems": problems})
    else:
        for problem in problems:
            print_line(problem)
    if problems:
        raise DatasetError(f"{place}: {counted(len(problems), 'problem')}", hint=hint)


def is_here(name: str) -> bool:
    """True if the data of a benchmark is where a run looks for it by itself; there is nothing to fetch for some."""
    from loupe.data.hub.store import default_root

    found = data_set(name)
    return found is None or default_root(found.place).exists()


def describe(ident: str, benchmark: Benchmark) -> dict[str, Any]:
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
        "options": options_of(benchmark),
        "paper": benchmark.paper,
        "hub": benchmark.data.repo if benchmark.data else "",
        "data": is_here(ident),
    }


def describe_folder(folder: Path) -> dict[str, str | list[str]]:
    """Describe a folder of one's own: samples by task, and its settings that are not the usual ones."""
    from loupe.benchmarks.folders.own import open_truth, survey_folder

    tasks, settings = survey_folder(folder)
    return {
        "samples": f"{sum(tasks.values()):,}",
        "tasks": [f"{task} ({count:,})" for task, count in tasks.items()],
        "truth": open_truth(folder),
        "settings": settings,
    }


def options_of(benchmark: Benchmark) -> list[dict[str, str | list[str]]]:
    """The options of a benchmark: name, default, and what a value may be (`values` where they can be counted)."""
    return [
        {"name": name, "default": _as_typed(parameter.default), **_values(parameter)}
        for name, parameter in shown_options(benchmark).items()
    ]


def _values(parameter: inspect.Parameter) -> dict[str, str | list[str]]:
    kind = parameter.annotation
    if get_origin(kind) is Literal:
        return {"values": [str(value) for value in get_args(kind)]}
    if kind is bool:
        return {"values": ["true", "false"]}
    return {"kind": {int: "N", float: "X"}.get(kind, "TEXT")}


def _as_typed(default: object) -> str:
    """A default as it would be typed; "" for none."""
    if default in (inspect.Parameter.empty, None):
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)


def _option_line(option: Mapping[str, str | list[str]]) -> str:
    """`-o split=val|train (default: val)`."""
    taken = "|".join(option.get("values", ())) or option["kind"]
    return f"-o {option['name']}={taken} (default: {option['default'] or 'none'})"
