"""`loupe runs`: what has been run here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loupe.cli.shared.beside import by_measure_option
from loupe.cli.shared.output import as_json, console, json_option, plain_option, runs_option, say, table
from loupe.errors import RunError

if TYPE_CHECKING:
    from loupe.runs.folder import RunFolder


@click.command("runs")
@runs_option
@by_measure_option
@json_option
@plain_option
def command(runs: Path, by_measure: str, json: bool, plain: bool) -> None:
    """List the runs here with their headline measure."""
    from loupe.cli.shared.run_paths import check_measure_of
    from loupe.runs.folder import find_runs

    found, damaged = find_runs(runs)
    check_measure_of(found, by_measure)
    rows = [describe(folder, by_measure) for folder in found] + [
        unreadable(path, error) for path, error in damaged.items()
    ]
    rows.sort(key=lambda row: str(row["run"]))
    if json:
        as_json(rows)
        return
    if not rows:
        say(f"no run below {runs}; to make some: loupe demo")
        return
    header = ["run", "benchmark", "engine", "headline", "n", "created"]
    shown = header
    if not plain:
        rows = [{**row, "created": str(row["created"]).replace("T", " ")[:16]} for row in rows]
        shown = fitting(header, rows, console().width)
    table(shown, [tuple(str(row[key]) for key in shown) for row in rows], plain=plain)
    for note in dict.fromkeys(f"{row['benchmark']}: {row['note']}" for row in rows if row["note"]):
        say(note)
    if len(shown) < len(header):
        hidden = ", ".join(name for name in header if name not in shown)
        say(f"this terminal is too narrow for: {hidden}; to see every column: loupe runs --plain")


def fitting(header: list[str], rows: Sequence[Mapping[str, object]], width: int) -> list[str]:
    """The columns for which a terminal is wide enough; the path says the most, and mostly benchmark and engine, too."""
    needed = {name: 3 + max(len(name), *(len(str(row[name])) for row in rows)) for name in header}
    for name in ("created", "engine", "benchmark", "n"):
        if sum(needed.values()) > width:
            needed.pop(name)
    return list(needed)


def unreadable(path: Path, error: RunError) -> dict[str, str | int | float | None]:
    """A run that is there but cannot be read, in the form of `describe`."""
    row: dict[str, str | int | float | None] = dict.fromkeys(("benchmark", "engine", "n", "created"), "–")
    said = {
        "headline": f"damaged: {error.message}",
        "measure": None,
        "value": None,
        "note": "",
        "failed": None,
        "scored_here": None,
    }
    return {"run": str(path), **row, **said}


def describe(folder: RunFolder, measure: str = "") -> dict[str, str | int | float | None]:
    """Describe one run in a line, by `measure` or else the one that ranks it.

    `value` is a fraction or a number, and `note` says why `measure` is not the benchmark's headline.
    """
    from loupe.results.headline import format_headline, headline_of
    from loupe.results.scored_here import result_of
    from loupe.results.sections import failed_count, unread_count

    try:
        result = result_of(folder, whole=False)
    except RunError as error:
        return unreadable(folder.path, error)
    ranked = headline_of([result], measure) if result else None
    failed = failed_count(result) if result else 0
    unread = unread_count(result) if result else 0
    estimate = result.measures[ranked.measure] if result and ranked else None
    bare = " (no interval)" if estimate and estimate.value is not None and estimate.low is None else ""
    flaw = f"{bare}, only {result.total - unread:,} of {result.total:,} read" if result and unread else bare
    flaw += f", {failed - unread:,} of {result.total:,} failed" if result and failed > unread else ""
    return {
        "run": str(folder.path),
        "benchmark": f"{folder.info.benchmark_id}@{folder.info.version}",
        "engine": folder.info.engine,
        "headline": format_headline(result, measure, reason=False) + flaw
        if result
        else f"{_progress(folder)}, not scored",
        "measure": ranked.measure if ranked else None,
        "value": estimate.value if estimate else None,
        "note": ranked.note if ranked else "",
        "failed": failed,
        "scored_here": result.scored_here if result else None,
        "n": folder.info.total,
        "created": folder.info.created,
    }


def _progress(folder: RunFolder) -> str:
    """Say how far an unfinished run has come."""
    try:
        return f"{len(folder.prediction_places()):,} of {folder.info.total:,} read"
    except RunError as error:
        return f"damaged: {error.message}"
