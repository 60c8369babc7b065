"""`loupe score RUN RUN…` and `loupe score runs`: many runs scored again, and what moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loupe.cli.shared.beside import show_beside
from loupe.cli.shared.errors import report_error
from loupe.cli.shared.exit_verdict import Floor, measure_of, parse_floor, verdict, worst_code
from loupe.cli.shared.output import as_json, say, tables
from loupe.cli.shared.run_paths import is_root
from loupe.errors import RunError, UsageError, word
from loupe.files.foreign import real_path

if TYPE_CHECKING:
    from loupe.pipeline.plan import Executor
    from loupe.results.comparing.moved_results import Rescored
    from loupe.runs.folder import RunFolder
    from loupe.runs.info import RunInfo
    from loupe.types import Result


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is asked of every run. `data` holds a folder for each benchmark, as the store does."""

    jobs: int | None = None
    data: Path | None = None
    strict: bool = False
    fail_under: str | None = None
    measure: str = ""
    by: str = ""
    executor: Executor | None = None
    fresh: bool = False


@dataclass(kw_only=True)
class _Outcome:
    """What came of the runs: those with a result, why others have none, and their exit codes."""

    rescored: list[Rescored] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    codes: list[int] = field(default_factory=lambda: [0])


def are_runs(targets: Sequence[str]) -> bool:
    """Whether several runs are meant, or a folder of runs: the first target is one, and no benchmark."""
    from loupe.benchmarks.folders.own.config import SAMPLES
    from loupe.benchmarks.registry import is_installed

    first = Path(targets[0])
    if is_installed(targets[0]) or not first.is_dir() or (first / SAMPLES).exists():
        return False
    return is_root(first) or (len(targets) > 1 and (first / "run.json").exists())


def score_runs(targets: Iterable[str], wanted: Wanted, *, json: bool, plain: bool) -> int:
    """Score every run that is named or lies below a folder that is; one that fails costs only itself.

    Returns the worst exit code. Raises RunError where there is no run at all.
    """
    from loupe.results.headline import check_measure

    outcome = _Outcome()
    folders = _runs_at(map(Path, targets), outcome)
    for number, folder in enumerate(folders, 1):
        say(f"{number:,} of {len(folders):,}: {folder.path}")
        try:
            _score_one(folder, wanted, outcome)
        except Exception as error:  # noqa: BLE001  the border where one run must not end the others
            _failed(folder.path, error, outcome)
    check_measure(wanted.measure, [each.now for each in outcome.rescored])
    if json:
        as_json(_document(outcome, wanted.measure))
    else:
        from loupe.results.comparing.moved_results import moved_sections

        tables(moved_sections(outcome.rescored, outcome.failed, wanted.measure), plain=plain)
        outcome.codes.append(show_beside([each.now for each in outcome.rescored], [], wanted.by, plain=plain))
    return worst_code(outcome.codes)


def _runs_at(paths: Iterable[Path], outcome: _Outcome) -> list[RunFolder]:
    """Every run at or below these paths, once; a damaged one is named."""
    from loupe.runs.folder import find_runs
    from loupe.runs.opening import open_run

    found: dict[Path, RunFolder] = {}
    for path in paths:
        try:
            below, damaged = find_runs(path) if is_root(path) else ([open_run(path)], {})
        except RunError as error:
            below, damaged = [], {path: error}
        found |= {real_path(folder.path): folder for folder in below}
        for place, fault in damaged.items():
            _failed(place, fault, outcome)
    if not found:
        raise RunError("none of these is a run that can be read", hint="list your runs: loupe runs")
    return list(found.values())


def _score_one(folder: RunFolder, wanted: Wanted, outcome: _Outcome) -> None:
    from loupe.pipeline import score_run
    from loupe.results.comparing.moved_results import Rescored

    before, data = _result(folder), _data_of(folder.info, wanted.data)
    floor = floor_of(folder.info, data, wanted)
    now = score_run(folder.path, jobs=wanted.jobs, data=data, say=say, executor=wanted.executor, fresh=wanted.fresh)
    outcome.rescored.append(Rescored(run=str(folder.path), before=before, now=now))
    outcome.codes.append(verdict(now, floor, strict=wanted.strict))


def _data_of(info: RunInfo, data: Path | None) -> Path | None:
    """Where the data of a run lies; a folder of one's own that is not below `data` stays where it is."""
    from loupe.cli.shared.suite_files import Entry
    from loupe.cli.shared.suites import data_of
    from loupe.pipeline.rescoring import is_folder

    if data is not None and is_folder(info):
        own = data / Path(info.benchmark).stem
        return own if own.is_dir() else None
    found = data_of(Entry(benchmark=info.benchmark), data)
    return Path(found) if found else None


def floor_of(info: RunInfo, data: Path | None, wanted: Wanted) -> Floor | None:
    """Return what `--fail-under` asks of a run whose data lies at `data`."""
    from loupe.benchmarks import benchmark_of_run
    from loupe.pipeline.rescoring import moved_to

    if not wanted.fail_under:
        return None
    info = moved_to(info, data) if data else info
    return parse_floor(wanted.fail_under, measure_of(benchmark_of_run(info.benchmark), wanted.measure))


def _result(folder: RunFolder) -> Result | None:
    """The result so far; a damaged one is made anew like a missing one."""
    from loupe.results.scored_here import result_of

    try:
        return result_of(folder)
    except RunError:
        return None


def _failed(path: Path, error: Exception, outcome: _Outcome) -> None:
    outcome.failed[str(path)], code = report_error(error, str(path))
    outcome.codes.append(code)


def _document(outcome: _Outcome, measure: str) -> dict[str, object]:
    """Every result in full, what moved in each, and which runs have none."""
    from loupe.results.comparing.moved_results import moves
    from loupe.results.headline import result_document

    return {
        "runs": [{"run": each.run, **result_document(each.now, measure)} for each in outcome.rescored],
        "moved": {each.run: moves(each) for each in outcome.rescored if each.before and moves(each)},
        "new": [each.run for each in outcome.rescored if each.before is None],
        "failed": outcome.failed,
    }


def refuse_single(targets: Sequence[str], given: dict[str, bool]) -> None:
    """Raise UsageError for an option that goes with one run only."""
    if flag := next((flag for flag, is_given in given.items() if is_given), ""):
        hint = "show the whole table: loupe compare" if flag == "--with-published" else f"run: loupe score RUN {flag} …"
        raise UsageError(f"{flag} goes with one run, not with {' '.join(map(word, targets))}", hint=hint)
