"""`loupe export`: answers and results of runs as files in the layouts that other people's scripts read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from loupe.cli.output import as_json, json_option, print_data, say
from loupe.errors import UsageError, did_you_mean, word

if TYPE_CHECKING:
    from loupe.report.request_layout import Exported

#: The values of --to that are layouts and no folders.
REQUEST, OMNIDOCBENCH, FAILED_TESTS = LAYOUTS = "request", "omnidocbench", "failed-tests"


@click.command("export")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--to",
    metavar="DIR|request|omnidocbench|failed-tests",
    help=(
        "A folder for the answers; or a layout: `request` (answers, results and a comparison as in docs/suites.md), "
        "`omnidocbench` (answers and results as its official evaluator files them), `failed-tests` (tests of "
        "olmOCR-Bench that no RUN passed, as JSON lines that can be run again)."
    ),
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR|FILE",
    help=(
        "Where a layout goes. Default: for request here, for omnidocbench RUN/official, for failed-tests "
        "failed_tests.jsonl."
    ),
)
@click.option("--raw", is_flag=True, help="Exactly what the engine gave, without the output adapters of the run.")
@json_option
def command(runs: tuple[Path, ...], to: str | None, output: Path | None, raw: bool, json: bool) -> None:
    """Write the answers of a run as files, for the official evaluators.

    One file per sample, in RUN/predictions unless --to says otherwise; samples without an answer get none. With
    `--to request` RUN may also be a root such as `runs`, for all runs below it.
    """
    _refuse_misspelled(to)
    if output is not None and to not in LAYOUTS:
        layouts = " or ".join(f"--to {layout}" for layout in LAYOUTS)
        raise UsageError(f"--output goes with {layouts}", hint="loupe export RUN --to DIR")
    if to == FAILED_TESTS:
        _export_failed_tests(runs, output or Path("failed_tests.jsonl"), json=json)
    elif to == OMNIDOCBENCH:
        _export_omnidocbench(runs, output, raw=raw, json=json)
    elif to == REQUEST:
        _export_request(runs, output or Path(), raw=raw, json=json)
    else:
        _export_answers(runs, Path(to) if to else None, raw=raw, json=json)


def _refuse_misspelled(to: str | None) -> None:
    """Raise UsageError where a new folder would get a name that is nearly that of a layout."""
    if to is None or to in LAYOUTS or Path(to).name != to or Path(to).exists():
        return
    if meant := did_you_mean(to.lower(), LAYOUTS):
        raise UsageError(f"--to {to}: no such layout{meant}", hint=f"a folder of this name: --to ./{to}")


def _export_answers(runs: tuple[Path, ...], target: Path | None, *, raw: bool, json: bool) -> None:
    from loupe.files.folder import Folder
    from loupe.report.request_layout import write_answers
    from loupe.runs.folder import RunFolder

    if target and len(runs) > 1:
        raise UsageError(
            "several runs do not go into one folder", hint=f"loupe export {word(runs[0])} --to {word(target)}"
        )
    exported = []
    for run in map(RunFolder.open, runs):
        exported.append(write_answers(run, Folder(target) if target else run.files / "predictions", raw=raw))
    if json:
        documents = [{"folder": each.folder, "written": each.written, "failed": each.failed} for each in exported]
        as_json(documents[0] if len(documents) == 1 else {"runs": documents})
        return
    for each in exported:
        print_data(each.folder)
        _say_counts(each)


def _export_request(runs: tuple[Path, ...], root: Path, *, raw: bool, json: bool) -> None:
    from loupe.report.request_layout import write_request_layout

    exported, comparison = write_request_layout(expand(runs), root, raw=raw)
    if json:
        as_json({"runs": exported, "comparison": str(comparison)})
        return
    for each in exported:
        print_data(each.folder)
        print_data(each.results)
        _say_counts(each)
    print_data(comparison)


def _export_omnidocbench(runs: tuple[Path, ...], root: Path | None, *, raw: bool, json: bool) -> None:
    from loupe.report.omnidocbench_layout import write_omnidocbench_layout

    exported = [write_omnidocbench_layout(run, root, raw=raw) for run in runs]
    if json:
        as_json({"runs": exported})
        return
    for each in exported:
        print_data(each.folder)
        print_data(each.results)
        _say_counts(each)


def _export_failed_tests(runs: tuple[Path, ...], file: Path, *, json: bool) -> None:
    from loupe.cli.comparable import refuse_strangers
    from loupe.report.failed_tests import write_failed_tests
    from loupe.runs.folder import RunFolder

    folders = [RunFolder.open(run) for run in runs]
    refuse_strangers(folders)
    found = write_failed_tests(folders, file)
    if json:
        as_json(found)
        return
    print_data(found.file)
    by = "failed" if len(runs) == 1 else f"failed by all {len(runs)} runs"
    say(f"{found.failed:,} of {found.tests:,} tests {by}")


def _say_counts(exported: Exported) -> None:
    say(f"{exported.written:,} answers written, {exported.failed:,} samples have none")


def expand(paths: tuple[Path, ...]) -> list[Path]:
    """Run folders as given, and all runs below a path that is the root of some. Raises for a path that is neither."""
    from loupe.cli.runs import open_run
    from loupe.runs.folder import find_runs

    found: list[Path] = []
    for path in paths:
        below, damaged = ([], {}) if (path / "run.json").exists() else find_runs(path)
        for error in damaged.values():
            say(f"left out: {error.message}")
        found += [folder.path for folder in below] or [open_run(path).path]
    if not found:
        raise UsageError("no run to report on", hint="loupe runs lists them")
    return list(dict.fromkeys(found))
