"""The runs that a command is given: run folders, or folders of runs; one that cannot be read costs only itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from loupe.cli.shared.errors import USAGE
from loupe.cli.shared.output import say
from loupe.errors import RunError, UsageError, word
from loupe.files.default_places import RUNS
from loupe.results.scored_here import result_of
from loupe.runs.folder import RunFolder, find_runs
from loupe.runs.opening import open_run, place_of_run
from loupe.types import UNDECODABLE, Result


class RunPath(click.Path):
    """A run, or a folder of runs, by its path or by its name below the root of runs (--runs, which is read first)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(path_type=Path, **options)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path."""
        options = ctx.command.params if ctx else []
        roots = [ctx.params.get(each.name or "") for each in options if ctx and "--runs" in each.opts]
        return super().convert(place_of_run(Path(value), next(filter(None, roots), RUNS)), param, ctx)


def is_root(path: Path) -> bool:
    """True if this is no run, but a folder of runs."""
    return not (path / "run.json").exists() and any(find_runs(path))


def no_run_at(path: Path) -> RunError:
    """That there is no run; with the folder of runs that is meant where a project is named."""
    meant = f"; did you mean {path / 'runs'}?" if is_root(path / "runs") else ""
    return RunError(f"no run at {path}{meant}", hint="list your runs: loupe runs")


def readable_runs(paths: Sequence[Path], *, least: int = 1, scored: bool = False) -> tuple[list[Path], dict[str, str]]:
    """The runs at these paths, or below them, that can be read to the end; and by path why not, for the others.

    `scored` asks for a result, too. Those left out are named. Raises RunError for the first of them where fewer than
    `least` runs are left.
    """
    found: list[RunFolder] = []
    wrong: dict[Path, RunError] = {}
    for path in paths:
        try:
            below, damaged = find_runs(path) if is_root(path) else ([open_run(path)], {})
        except RunError as error:
            wrong[path] = no_run_at(path) if is_root(path / "runs") else error
            continue
        found += below
        wrong |= damaged
    wrong |= {folder.path: fault for folder in found if (fault := _fault(folder, scored=scored))}
    kept = list(dict.fromkeys(folder.path for folder in found if folder.path not in wrong))
    if wrong and len(kept) < least:
        raise next(iter(wrong.values()))
    for fault in wrong.values():
        say(f"left out: {fault.message}" + (f" ({fault.hint})" if fault.hint else ""))
    return kept, {str(path): fault.message for path, fault in wrong.items()}


def _fault(folder: RunFolder, *, scored: bool) -> RunError | None:
    """Return what is wrong with the files of a run, all of which are read."""
    try:
        if result_of(folder, whole=False) is None and scored:
            return RunError(f"{folder.path} has no scores yet", hint=f"score it: loupe score {word(folder.path)}")
        for _ in folder.read_predictions(folder.prediction_places().values()):
            pass
        for _ in folder.scores():
            pass
    except RunError as error:
        return error
    except (*UNDECODABLE, OSError) as error:
        return RunError(f"{folder.path} cannot be read: {error}", hint=f"score it: loupe score {word(folder.path)}")
    return None


def check_measure_of(folders: Sequence[RunFolder], measure: str) -> None:
    """Raise UsageError for a `--by-measure` that no run has, and only say so where a run may still bring it."""
    from loupe.results.headline import check_measure

    if not measure:
        return
    results = [_result(folder) for folder in folders]
    try:
        check_measure(measure, [result for result in results if result])
    except UsageError as error:
        if all(results):
            raise
        say(f"{error.message}; a run that is not scored yet may bring it")


def _result(folder: RunFolder) -> Result | None:
    """The result, if there is one; what is wrong with a damaged one is said where the run is listed."""
    try:
        return result_of(folder, whole=False)
    except RunError:
        return None


def exit_with(left_out: object) -> None:
    """End the command with the code of bad input where something was left out."""
    if left_out:
        click.get_current_context().exit(USAGE)
