"""Several benchmarks with one command: `loupe run A B C`, `loupe infer A B C`, `--suite NAME` (docs/suites.md).

One table at the end and, for `run`, a results file for each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from loupe import __version__
from loupe.benchmarks.registry import data_set, filed_as, get_benchmark, is_installed, is_own_folder
from loupe.cli.shared.chosen_engines import engine_names, open_engines
from loupe.cli.shared.errors import SOME_FAILED, report_error
from loupe.cli.shared.exit_verdict import worst_code
from loupe.cli.shared.flags import Flags
from loupe.cli.shared.options import as_asked, download_data, plans_of
from loupe.cli.shared.output import as_json, print_line, say, table
from loupe.cli.shared.reading import Carried, Stage, read_all
from loupe.cli.shared.suite_files import ALL, Entry, entries_of, find_suite, suite_places
from loupe.errors import DatasetError, LoupeError, MissingToolError, UsageError, word
from loupe.typed import encode_json
from loupe.types import FAILED

if TYPE_CHECKING:
    from loupe.results.matrix import Matrix
    from loupe.runs.folder import RunFolder
    from loupe.types import Sample

F = TypeVar("F", bound=Callable[..., Any])

#: The results of the last call; those of each call have the time in their name.
LATEST = "results-latest.json"


class SuiteResults(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a results file: what was asked, the table, what is not in it and why, and every result in full."""

    suite: str
    benchmarks: list[Entry]
    created: str
    loupe: str
    skipped: dict[str, str]
    failed: dict[str, str]
    table: Matrix
    results: list[dict[str, object]]


@dataclass(frozen=True)
class Series:
    """Benchmarks to be read one after another, as the suite of this name or as a row.

    `skipped` says why not which; `asked` has the others, with what the command line says of them.
    """

    suite: str
    entries: list[Entry]
    engines: list[str]
    skip_missing: bool
    skipped: dict[str, LoupeError] = field(default_factory=dict)
    asked: list[Entry] = field(default_factory=list)

    def reasons(self) -> dict[str, str]:
        """Reasons to leave out benchmarks, one line each: those without data first, then those without a package."""
        ordered = sorted(self.skipped.items(), key=lambda item: isinstance(item[1], MissingToolError))
        # The layout that was expected is for who runs this benchmark alone.
        return {name: error.message.partition("; expected")[0] for name, error in ordered}


def benchmarks_argument(function: F) -> F:
    """`BENCHMARK...`: none with `--suite`."""
    return click.argument("benchmarks", metavar="[BENCHMARK]...", nargs=-1)(function)


def suite_options(function: F) -> F:
    """`--suite` and `--skip-missing`."""
    skip = click.option("--skip-missing", is_flag=True, help="Skip benchmarks whose data is missing.")
    suite = click.option("--suite", metavar="NAME", help="A list of benchmarks, such as core (docs/suites.md).")
    return suite(skip(function))


def refuse(single: Mapping[str, object]) -> None:
    """Raise UsageError for an option that goes with a single benchmark; `single` has those options and their values."""
    if flag := next((flag for flag, given in single.items() if given), ""):
        raise UsageError(f"{flag} goes with a single benchmark only", hint="show the whole table: loupe compare")


def series_of(names: Sequence[str], suite: str | None, *, skip_missing: bool) -> Series | None:
    """List what to read in turn; None for a single benchmark. Raises UsageError for neither, and for both."""
    if names and suite:
        raise UsageError("name benchmarks or --suite, not both", hint=f"run: loupe run --suite {word(suite)}")
    if suite:
        found = find_suite(suite)
        return Series(suite, entries_of(found.benchmarks), found.engines, skip_missing)
    if not names:
        raise UsageError("missing argument 'BENCHMARK'", hint="see the options: loupe run --help")
    for name in names:
        if name != ALL and not is_installed(name) and not Path(name).exists() and name in suite_places():
            raise UsageError(f"{name} is a suite", hint=f"run: loupe run --suite {word(name)}")
    if len(names) > 1 or ALL in names:
        return Series("", entries_of(names), [], skip_missing)
    if skip_missing:
        raise UsageError("--skip-missing goes with several benchmarks", hint="leave --skip-missing out")
    return None


def run_series(series: Series, flags: Flags, *, strict: bool, json: bool, plain: bool) -> tuple[int, list[RunFolder]]:
    """Read and score every benchmark with every engine asked for; returns the exit code and the runs.

    What was done before is not done again. Raises DatasetError, naming them all, for benchmarks without data unless
    they are to be skipped, and UsageError for options that only a single benchmark can have.
    """
    from loupe.pipeline import run

    carried = read_series(series, flags, run, plain=plain)
    document = _document(series, carried)
    file = _store(document, flags.runs)
    if json:
        as_json(document)
    else:
        _show(document, file, flags.runs, plain=plain)
    failed = strict and any(map(_has_failed, carried.results))
    return worst_code([carried.code, SOME_FAILED if failed else 0]), carried.results


def infer_series(series: Series, flags: Flags, *, strict: bool, json: bool, plain: bool) -> int:
    """Read every benchmark with every engine asked for, and stop there; the rest is as for `run_series`."""
    from loupe.pipeline import infer

    carried = read_series(series, flags, infer, plain=plain)
    rows = [(folder, [place.mark for place in folder.prediction_places().values()]) for folder in carried.results]
    if json:
        runs = [{"run": str(folder.path), "signature": folder.info.signature} for folder, _ in rows]
        as_json({"runs": runs, "skipped": series.reasons(), "failed": carried.failed})
    else:
        header = ("engine", "benchmark", "read", "failed", "run")
        lines = [_read_line(folder, marks) for folder, marks in rows]
        table(header, lines, plain=plain)
        if rows:
            say(f"to score: loupe score {word(flags.runs if len(rows) > 1 else rows[0][0].path)}")
    failed = strict and any(mark in FAILED for _, marks in rows for mark in marks)
    return worst_code([carried.code, SOME_FAILED if failed else 0])


def _read_line(folder: RunFolder, marks: Sequence[str]) -> tuple[str, ...]:
    failed = sum(mark in FAILED for mark in marks)
    read = f"{len(marks):,} of {folder.info.total:,}" if len(marks) < folder.info.total else f"{len(marks):,}"
    return folder.info.engine, folder.info.benchmark_id, read, f"{failed:,}" if failed else "–", str(folder.path)


def read_series(series: Series, flags: Flags, stage: Stage, *, plain: bool) -> Carried[RunFolder]:
    """Check everything that can be known, then read; what is left out is added to `skipped` of the series."""
    if not engine_names(flags):
        flags = msgspec.structs.replace(flags, engine=tuple(series.engines))
    entries = [each for each in series.entries if _is_there(each.benchmark, series.skipped)]
    placed = [msgspec.structs.replace(each, data=data_of(each, flags.data)) for each in entries]
    asked, flags = as_asked(placed, flags)
    if flags.download:
        _download(asked, flags)
    asked = [each for each in asked if _has_samples(each, series.skipped, pages=_reads_pages(flags))]
    _check_missing(series, asked)
    series.asked.extend(asked)
    return read_all(plans_of(asked, open_engines(flags), flags), stage, plain=plain, in_series=True)


def _check_missing(series: Series, asked: Sequence[Entry]) -> None:
    """Raise DatasetError for what is missing, unless it is to be left out and something is left."""
    of = f" of suite {series.suite!r}" if series.suite else ""
    if series.skipped and not series.skip_missing:
        raise DatasetError(
            f"{len(series.skipped)} of {len(series.entries)} benchmarks{of} cannot be read here:",
            listed=[f"{each}: {reason}" for each, reason in series.reasons().items()],
            hint=_hint(series.skipped, skip=True),
        )
    for each, reason in series.reasons().items():
        say(f"skipped {each}: {reason}")
    if not asked:
        raise DatasetError(f"no benchmark{of} can be read here", hint=_hint(series.skipped, skip=False))


def _is_there(name: str, missing: dict[str, LoupeError]) -> bool:
    """True if a benchmark can be opened; why not is added to `missing`."""
    try:
        get_benchmark(name)
    except LoupeError as error:
        missing[name] = error
        return False
    return True


def _download(entries: Iterable[Entry], flags: Flags) -> None:
    """Fetch what is missing; what cannot be had is then missing like any other."""
    for entry in entries:
        try:
            download_data(entry, flags)
        except DatasetError as error:
            say(f"{entry.benchmark}: {error.message}")


def _reads_pages(flags: Flags) -> bool:
    """True if any engine wants to see pages; answers that exist already need none."""
    named = engine_names(flags)
    return not named or not all(each.strip().startswith("predictions:") for each in named)


def _has_samples(entry: Entry, missing: dict[str, LoupeError], *, pages: bool) -> bool:
    """True if a benchmark's samples can be had, one at least with its `pages`; why not is added to `missing`."""
    from loupe.pipeline.plan import samples_of

    data = None if entry.data is None else Path(entry.data)
    try:
        benchmark = get_benchmark(entry.benchmark)
        # Pages that are drawn when they are needed are not there yet.
        wanted = pages and benchmark.draw is None
        _check_samples(samples_of(benchmark, data, entry.texts), pages=wanted)
    except LoupeError as error:
        missing[entry.benchmark] = error
        return False
    except Exception as error:  # noqa: BLE001  the border where one benchmark must not end the others
        missing[entry.benchmark] = LoupeError(report_error(error, entry.benchmark)[0])
        return False
    return True


def _check_samples(samples: Iterable[Sample], *, pages: bool) -> None:
    """Raise DatasetError where there is no sample, or pages are wanted and not one of them is there."""
    from loupe.data.digests import is_there

    gone = None
    for sample in samples:
        if not (pages and sample.images) or is_there(sample.images[0]):
            return
        gone = gone or sample.images[0]
    raise DatasetError(f"no page image found, not even {gone}" if gone else "no samples")


def data_of(entry: Entry, data: Path | None) -> str | None:
    """Find a benchmark's data: below `--data`, with one folder for each as in the store, or as written.

    None, the benchmark's own default, for benchmarks that have nothing to fetch.
    """
    if data is None or is_own_folder(entry.benchmark):
        return entry.data
    if (own := data / filed_as(entry.benchmark)).exists():
        return str(own)
    found = data_set(entry.benchmark)
    return str(data / found.place) if found else entry.data


def _hint(missing: Mapping[str, LoupeError], *, skip: bool) -> str:
    """Say what brings the data; what brings packages and programs; and, if `skip`, what goes on without them."""
    tools: dict[str, list[str]] = {}
    for each, error in missing.items():
        if isinstance(error, MissingToolError):
            tools.setdefault(error.hint, []).append(each)
    # A copy of the data has a command of its own, which its benchmark names.
    copies = [error.hint for error in missing.values() if error.hint and "--source" in error.hint]
    others = {each: error for each, error in missing.items() if error.hint not in copies}
    lacking = [name for each, error in others.items() if (name := _data_to_get(each, error))]
    get = ([f"download it: loupe data get {' '.join(lacking)}"] if lacking else []) + copies
    install = [f"for {', '.join(names)}: {command}" for command, names in tools.items()]
    steps = get + install or ["list them: loupe bench list"]
    leave = ["or add --skip-missing to leave them out"] if skip else []
    return ("; " if len(steps) > 1 else ", ").join(steps + leave)


def _data_to_get(name: str, error: LoupeError) -> str:
    """The data set to fetch; "" if there is none, or if only a package or a program is missing."""
    from loupe.data.hub.store import default_root

    found = data_set(name)
    here = found is not None and isinstance(error, MissingToolError) and default_root(found.place).exists()
    return "" if found is None or here else found.id


def _has_failed(folder: RunFolder) -> bool:
    from loupe.results.scored_here import result_of
    from loupe.results.sections import failed_count

    result = result_of(folder)
    return result is not None and failed_count(result) > 0


def _document(series: Series, carried: Carried[RunFolder]) -> SuiteResults:
    from loupe.results.matrix import make_matrix
    from loupe.results.scored_here import result_of

    results = [(folder, result_of(folder)) for folder in carried.results]
    asked = {entry.benchmark: entry for entry in series.asked}
    return SuiteResults(
        suite=series.suite,
        benchmarks=[asked.get(entry.benchmark, entry) for entry in series.entries],
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        loupe=__version__,
        skipped=series.reasons(),
        failed=carried.failed,
        table=make_matrix(carried.results),
        results=[
            {"run": str(folder.path), "addresses": folder.info.addresses, **msgspec.to_builtins(result)}
            for folder, result in results
            if result
        ],
    )


def _store(document: SuiteResults, runs: Path) -> Path:
    """Keep the results below the root of the runs: in a file of their own, and as the latest ones."""
    from loupe.files.folder import Folder

    folder = Folder(runs)
    data = msgspec.json.format(encode_json(document), indent=2) + b"\n"
    stem = f"results-{datetime.fromisoformat(document.created):%Y%m%dT%H%M%SZ}"
    for number in count(1):
        name = f"{stem}.json" if number == 1 else f"{stem}-{number}.json"
        try:
            folder.write_new(name, data)
        except FileExistsError:
            continue  # Another call ended in the same second.
        break
    folder.write(LATEST, data)
    return runs / name


def _show(document: SuiteResults, file: Path, runs: Path, *, plain: bool) -> None:
    from loupe.cli.shared.overview import show_matrix

    show_matrix(document.table, plain=plain)
    for name, reason in document.failed.items():
        say(f"failed: {name}: {reason}")
    print_line(f"saved in {file}")
    if document.results:
        say(f"pages and answers: loupe report {word(runs)} -o report.html")
