"""`loupe export`: answers and results of runs as files in the layouts that other people's scripts read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from loupe.cli.shared.output import as_json, json_option, print_data, say
from loupe.cli.shared.run_paths import RunPath
from loupe.errors import UsageError, did_you_mean, word
from loupe.files.default_places import default_place
from loupe.quantities import counted

if TYPE_CHECKING:
    from loupe.results.exports.answers_and_results import Exported

#: The values of --to that are layouts and no folders.
EVALUATION, FAILED_TESTS = "evaluation", "failed-tests"
OMNIDOCBENCH, MDPBENCH = "omnidocbench", "mdpbench"
CSV, PARQUET, HUB, INSPECT = "csv", "parquet", "hf-eval-results", "inspect"
SUBMISSION = "submission"
LAYOUTS = (CSV, PARQUET, HUB, INSPECT, EVALUATION, OMNIDOCBENCH, MDPBENCH, FAILED_TESTS, SUBMISSION)


@click.command("export")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=RunPath())
@click.option(
    "--to",
    metavar="DIR|LAYOUT",
    help=(
        "A folder for the answers (a new one as `./DIR`); or a layout: `csv` (a row for each sample; a text that a "
        "spreadsheet may run, such as `- one`, gets an apostrophe), `parquet` (the same, with texts unchanged), "
        "`hf-eval-results` (for the model hub), `inspect` (a log for `inspect view`), `evaluation` (answers, results "
        "and a comparison as in docs/suites.md), `omnidocbench` and `mdpbench` (answers and results as their official "
        "evaluators file them), `failed-tests` (tests of olmOCR-Bench that no RUN passed, as JSON lines that can be "
        "run again), `submission` (the file that the official server of a hidden test set takes)."
    ),
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR|FILE",
    help=(
        "Where a layout goes. Default: samples.csv, samples.parquet, failed_tests.jsonl, submission.json, "
        "the folder logs for inspect, RUN/official for omnidocbench and mdpbench, here for evaluation and "
        "hf-eval-results."
    ),
)
@click.option("--raw", is_flag=True, help="Export the engine's raw answers, without the output adapters of the run.")
@json_option
def command(runs: tuple[Path, ...], to: str | None, output: Path | None, raw: bool, json: bool) -> None:
    """Write runs as files for other programs: answers, tables, logs, results.

    One file per sample, in RUN/predictions unless --to says otherwise; samples without an answer get none. With
    `--to evaluation`, `csv`, `parquet` or `inspect` RUN may also be a root such as `runs`, for all runs below it.
    """
    _refuse_unknown(to)
    if to in LAYOUTS and to not in (SUBMISSION, HUB):
        _say_not_here(runs)
    if output is not None and to not in LAYOUTS:
        raise UsageError(
            f"--output goes with --to {', '.join(LAYOUTS)}",
            hint="write answers to a folder: loupe export RUN --to ./DIR",
        )
    if to in (CSV, PARQUET):
        _export_table(runs, output or default_place(f"samples.{to}"), parquet=to == PARQUET, raw=raw, json=json)
    elif to == HUB:
        _export_to_hub(runs, output or Path(), json=json)
    elif to == INSPECT:
        _export_logs(runs, output or default_place("logs", "-o logs"), raw=raw, json=json)
    elif to == FAILED_TESTS:
        _export_failed_tests(runs, output or default_place("failed_tests.jsonl"), json=json)
    elif to == SUBMISSION:
        _export_submission(runs, output or default_place("submission.json"), raw=raw, json=json)
    elif to in (OMNIDOCBENCH, MDPBENCH):
        _export_official(to, runs, output, raw=raw, json=json)
    elif to == EVALUATION:
        _export_evaluation(runs, output or Path(), raw=raw, json=json)
    else:
        _export_answers(runs, Path(to) if to else None, raw=raw, json=json)


def _say_not_here(runs: tuple[Path, ...]) -> None:
    """Name the runs whose numbers came from elsewhere, which not every layout can say itself."""
    from loupe.results.scored_here import NOT_HERE, marks, result_of
    from loupe.runs.folder import RunFolder

    for folder in map(RunFolder.open, expand(runs)):
        result = result_of(folder)
        if result and not result.scored_here:
            say(f"{folder.path}: {NOT_HERE}; make its scores here first: loupe score {word(folder.path)}")
        elif result and (mark := marks(result)):
            say(f"{folder.path}: {mark}, not proven to be the published set: loupe data verify")


def _refuse_unknown(to: str | None) -> None:
    """Raise UsageError for a bare word that is neither a layout nor a folder: a new folder is written as `./NAME`."""
    if to is None or to in LAYOUTS or Path(to).name != to or Path(to).is_dir():
        return
    raise UsageError(
        f"--to {to}: no such layout{did_you_mean(to.lower(), LAYOUTS)}",
        hint=f"choose one of {', '.join(LAYOUTS)}; or name a folder: --to {word(f'./{to}')}",
    )


def _export_answers(runs: tuple[Path, ...], target: Path | None, *, raw: bool, json: bool) -> None:
    from loupe.files.folder import Folder
    from loupe.results.exports.answers_and_results import write_answers
    from loupe.runs.folder import RunFolder

    if target and len(runs) > 1:
        path = target if target.is_absolute() else f"./{target}"
        raise UsageError(
            "several runs do not go into one folder", hint=f"export one: loupe export {word(runs[0])} --to {word(path)}"
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


def _export_evaluation(runs: tuple[Path, ...], root: Path, *, raw: bool, json: bool) -> None:
    from loupe.results.exports.answers_and_results import write_evaluation_layout

    exported, comparison = write_evaluation_layout(expand(runs), root, raw=raw)
    if json:
        as_json({"runs": exported, "comparison": str(comparison)})
        return
    for each in exported:
        print_data(each.folder)
        print_data(each.results)
        _say_counts(each)
    print_data(comparison)


def _export_official(to: str, runs: tuple[Path, ...], root: Path | None, *, raw: bool, json: bool) -> None:
    from loupe.results.exports.mdpbench import write_mdpbench_layout
    from loupe.results.exports.omnidocbench import write_omnidocbench_layout

    write = write_mdpbench_layout if to == MDPBENCH else write_omnidocbench_layout
    exported = [write(run, root, raw=raw) for run in runs]
    if json:
        as_json({"runs": exported})
        return
    for each in exported:
        print_data(each.folder)
        print_data(each.results)
        _say_counts(each)


def _export_failed_tests(runs: tuple[Path, ...], file: Path, *, json: bool) -> None:
    from loupe.results.comparing.comparable import refuse_strangers
    from loupe.results.exports.failed_tests import write_failed_tests
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


def _export_submission(runs: tuple[Path, ...], file: Path, *, raw: bool, json: bool) -> None:
    from loupe.results.exports.submission import write_submission
    from loupe.runs.folder import RunFolder

    if len(runs) > 1:
        raise UsageError("a submission is one run", hint=f"run: loupe export {word(runs[0])} --to {SUBMISSION}")
    written = write_submission(RunFolder.open(runs[0]), file, raw=raw)
    if json:
        as_json({"file": written.folder, "written": written.written, "failed": written.failed})
        return
    print_data(written.folder)
    _say_counts(written)


def _export_table(runs: tuple[Path, ...], file: Path, *, parquet: bool, raw: bool, json: bool) -> None:
    from loupe.results.exports.sample_tables import write_csv, write_parquet
    from loupe.runs.folder import RunFolder

    folders = [RunFolder.open(run) for run in expand(runs)]
    written = (write_parquet if parquet else write_csv)(folders, file, raw=raw)
    if json:
        as_json(written)
        return
    print_data(written.file)
    say(f"{written.samples:,} samples of {counted(len(folders), 'run')}")


def _export_to_hub(runs: tuple[Path, ...], root: Path, *, json: bool) -> None:
    from loupe.results.exports.hub_results import write_hub_results
    from loupe.runs.folder import RunFolder

    folders = [RunFolder.open(run) for run in runs]
    if len({folder.info.benchmark_id for folder in folders}) < len(folders):
        raise UsageError("a model has one file for each benchmark", hint="export one run of each")
    files = [str(write_hub_results(folder, root)) for folder in folders]
    if json:
        as_json({"files": files})
        return
    for file in files:
        print_data(file)
    say("these go into the repository of the model; check task_id against eval.yaml of the data set")


def _export_logs(runs: tuple[Path, ...], target: Path, *, raw: bool, json: bool) -> None:
    from loupe.results.exports.inspect_log import write_inspect_logs
    from loupe.runs.folder import RunFolder

    written = write_inspect_logs([RunFolder.open(run) for run in expand(runs)], target, raw=raw)
    if json:
        as_json({"logs": written})
        return
    for each in written:
        print_data(each.file)
    say(f"to look at them: inspect view --log-dir {word(target)}")


def _say_counts(exported: Exported) -> None:
    say(f"{exported.written:,} answers written, {exported.failed:,} samples have none")


def expand(paths: tuple[Path, ...]) -> list[Path]:
    """Run folders as given, and all runs below a path that is the root of some. Raises for a path that is neither."""
    from loupe.runs.folder import find_runs
    from loupe.runs.opening import open_run

    found: list[Path] = []
    for path in paths:
        below, damaged = ([], {}) if (path / "run.json").exists() else find_runs(path)
        for error in damaged.values():
            say(f"left out: {error.message}")
        found += [folder.path for folder in below] or [open_run(path).path]
    if not found:
        raise UsageError("no run to report on", hint="list your runs: loupe runs")
    return list(dict.fromkeys(found))
