"""`loupe run --suite`: a list of benchmarks with one command, one `results.json` and one table (docs/suites.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from loupe import __version__
from loupe.benchmarks.registry import benchmark_ids, get_benchmark
from loupe.cli.errors import INTERRUPTED, SOME_FAILED, show_error
from loupe.cli.options import Flags, download_data, make_plans
from loupe.cli.output import as_json, print_line, say
from loupe.errors import DatasetError, EngineUnavailableError, LoupeError, UsageError
from loupe.typed import encode_json

if TYPE_CHECKING:
    from loupe.pipeline import Plan
    from loupe.report.matrix import Matrix
    from loupe.runs.folder import RunFolder
    from loupe.servers.keeper import Keeper
    from loupe.types import Sample

#: In a suite: every installed benchmark that it does not name.
EVERY_OTHER = "*"

#: Suite → its benchmarks, in the order in which they are run. One that is not in this version counts as missing.
SUITES: Mapping[str, tuple[str, ...]] = {
    "core": ("ocrbench", "omnidocbench@1.5", "unimer_test", "pubtabnet", "nanonets_kie", "handwritten_forms"),
    "full": ("omnidocbench@1.5", "olmocr_bench", EVERY_OTHER),
}


class SuiteResults(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the combined `results.json`: the table, what is not in it and why, and every result in full."""

    suite: str
    created: str
    loupe: str
    skipped: dict[str, str]
    failed: dict[str, str]
    table: Matrix
    results: list[dict[str, object]]


def check_target(benchmark: str, suite: str | None, *, skip_missing: bool, single: Mapping[str, object]) -> None:
    """Raise UsageError unless there is a benchmark or a suite, and only options that go with it.

    `single` are options that go with one benchmark, and their values.
    """
    if not (benchmark or suite):
        raise UsageError("missing argument 'BENCHMARK'", hint="loupe run --help")
    if benchmark and suite:
        raise UsageError("run takes a benchmark or --suite, not both", hint=f"loupe run --suite {suite}")
    if skip_missing and not suite:
        raise UsageError("--skip-missing goes with --suite only", hint="loupe run --suite core --skip-missing")
    if suite and (flag := next((flag for flag, given in single.items() if given), "")):
        raise UsageError(f"{flag} goes with a single benchmark only", hint="loupe compare shows the whole table")


def run_suite(name: str, flags: Flags, *, skip_missing: bool, strict: bool, json: bool, plain: bool) -> int:
    """Run every benchmark of a suite with every engine asked for; returns the exit code.

    What was done before is not done again. Raises DatasetError, naming them all, for benchmarks without data unless
    they are to be skipped, and UsageError for options that only a single benchmark can have.
    """
    if flags.option:
        raise UsageError("--suite and -o do not go together", hint="loupe run BENCHMARK -o KEY=VALUE runs one of them")
    if flags.download:
        _download(suite_benchmarks(name), flags)
    names, skipped = available(suite_benchmarks(name), flags.data, pages=_reads_pages(flags))
    if skipped and not skip_missing:
        listed = "".join(f"\n  {each}: {reason}" for each, reason in skipped.items())
        raise DatasetError(
            f"suite {name!r} lacks {len(skipped)} of its benchmarks:{listed}", hint=_hint(name, skipped, skip=True)
        )
    for each, reason in skipped.items():
        say(f"skipped {each}: {reason}")
    if not names:
        raise DatasetError(f"no benchmark of suite {name!r} has its data here", hint=_hint(name, skipped, skip=False))
    folders, failed, worst = _run_all(names, flags, plain=plain)
    document = _document(name, folders, skipped=skipped, failed=failed)
    _show(document, flags.runs, json=json, plain=plain)
    return SOME_FAILED if strict and not worst and any(map(_has_failed, folders)) else worst


def _download(names: list[str], flags: Flags) -> None:
    """Fetch what is missing; what cannot be had is then missing like any other."""
    installed = benchmark_ids()
    for name in (each for each in names if each.partition("@")[0] in installed):
        try:
            download_data(name, flags)
        except DatasetError as error:
            say(f"{name}: {error.message}")


def suite_benchmarks(name: str) -> list[str]:
    """The benchmarks of a suite, each once. Raises UsageError for a suite that there is not."""
    if name not in SUITES:
        raise UsageError(f"no suite {name!r}", hint=f"suites: {', '.join(SUITES)}")
    named = SUITES[name]
    idents = {each.partition("@")[0] for each in named}
    others = [each for each in benchmark_ids() if each not in idents]
    return [one for each in named for one in (others if each == EVERY_OTHER else [each])]


def _reads_pages(flags: Flags) -> bool:
    """Whether any engine wants to see pages; answers that exist already need none."""
    named = [*flags.engine, *filter(None, flags.engines.split(","))]
    return not named or not all(each.strip().startswith("predictions:") for each in named)


def available(names: Iterable[str], data: Path | None, *, pages: bool) -> tuple[list[str], dict[str, str]]:
    """The benchmarks whose samples can be had, one at least with its `pages`; and why not, for each of the others."""
    found: list[str] = []
    missing: dict[str, str] = {}
    for name in names:
        if name.partition("@")[0] not in benchmark_ids():
            missing[name] = f"not in Loupe {__version__}"
            continue
        try:
            _check_samples(get_benchmark(name).load(data_of(name, data)), pages=pages)
        except LoupeError as error:
            # The layout that was expected is for who runs this benchmark alone.
            missing[name] = error.message.partition("; expected")[0]
        else:
            found.append(name)
    return found, missing


def _check_samples(samples: Iterable[Sample], *, pages: bool) -> None:
    """Raise DatasetError where there is no sample, or pages are wanted and not one of them is there."""
    from loupe.data.digests import is_there

    gone = None
    for sample in samples:
        if not (pages and sample.images) or is_there(sample.images[0]):
            return
        gone = gone or sample.images[0]
    raise DatasetError(f"no page is there, not even {gone}" if gone else "no samples")


def data_of(name: str, data: Path | None) -> Path | None:
    """Where a benchmark's data lies below `--data`, which holds one folder for each, as the store does.

    None, the benchmark's own default, without `--data` and for benchmarks that have nothing to fetch.
    """
    from loupe.data.sets import known_sets

    ident = name.partition("@")[0]
    if data is None or ident not in known_sets():
        return None
    own = data / ident
    return own if own.exists() else data / known_sets()[ident].place


def _hint(suite: str, missing: Mapping[str, str], *, skip: bool) -> str:
    """What brings the data; and, where `skip`, what goes on without it."""
    from loupe.data.sets import known_sets

    idents = [each.partition("@")[0] for each in missing]
    wanted = [each for each in idents if each in known_sets() and each in benchmark_ids()]
    get = [f"loupe data get {' '.join(wanted)}"] if wanted else []
    leave = [f"loupe run --suite {suite} --skip-missing leaves them out"] if skip else []
    return ", or ".join(get + leave) or "loupe data list"


def _run_all(names: list[str], flags: Flags, *, plain: bool) -> tuple[list[RunFolder], dict[str, str], int]:
    """Engine by engine, benchmark by benchmark; one that cannot go on does not stop the others.

    Returns the run folders, what went wrong by engine and benchmark, and the worst exit code.
    """
    from loupe.servers.keeper import Keeper

    with Keeper(say=say) as keeper:
        return _run_each(names, flags, keeper, plain=plain)


def _run_each(
    names: list[str], flags: Flags, keeper: Keeper, *, plain: bool
) -> tuple[list[RunFolder], dict[str, str], int]:
    folders: list[RunFolder] = []
    failed: dict[str, str] = {}
    worst = 0
    for first in make_plans(names[0], msgspec.structs.replace(flags, data=None)):
        for name in names:
            plan = dataclasses.replace(first, benchmark=name, data=data_of(name, flags.data))
            try:
                code = _run_one(plan, folders, keeper, plain=plain)
            except LoupeError as error:
                show_error(f"{plan.label} on {name}: {error.message}", error.hint)
                worst = max(worst, error.exit_code)
                # An engine that is gone is gone for the benchmarks that are left, too.
                gone = isinstance(error, EngineUnavailableError)
                lost = names[names.index(name) :] if gone else [name]
                failed |= {f"{plan.label} on {each}": error.message for each in lost}
                if gone:
                    break
                continue
            worst = max(worst, code)
            if code == INTERRUPTED:
                return folders, failed, worst
    return folders, failed, worst


def _run_one(plan: Plan, folders: list[RunFolder], keeper: Keeper, *, plain: bool) -> int:
    from loupe.cli.run import headline_of, read_one
    from loupe.pipeline import run

    say(f"{plan.label} on {plan.benchmark}")
    stage = partial(run, keeper=keeper)
    folder, code = read_one(plan, stage, plain=plain, unit=headline_of(plan.benchmark).unit)
    folders.append(folder)
    return code


def _has_failed(folder: RunFolder) -> bool:
    from loupe.report.terminal import failed_count

    result = folder.result()
    return result is not None and failed_count(result) > 0


def _document(suite: str, folders: list[RunFolder], *, skipped: dict[str, str], failed: dict[str, str]) -> SuiteResults:
    from loupe.report.matrix import make_matrix

    results = [(folder, folder.result()) for folder in folders]
    return SuiteResults(
        suite=suite,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        loupe=__version__,
        skipped=skipped,
        failed=failed,
        table=make_matrix(folders),
        results=[{"run": str(folder.path), **msgspec.to_builtins(result)} for folder, result in results if result],
    )


def _show(document: SuiteResults, runs: Path, *, json: bool, plain: bool) -> None:
    """Store the combined results below the root of the runs, and print them."""
    from loupe.cli.overview import show_matrix
    from loupe.runs.folder import runs_folder

    file = runs / "results.json"
    runs_folder(runs).write(file.name, msgspec.json.format(encode_json(document), indent=2) + b"\n")
    if json:
        as_json(document)
        return
    show_matrix(document.table, plain=plain)
    print_line(f"saved in {file}")
    say(f"pages and answers: loupe report {runs} -o report.html")
