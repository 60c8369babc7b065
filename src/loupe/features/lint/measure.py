"""What faults of form cost: every answer is scored as it is, with one fault mended at a time, and with all of them.

Which faults there are, and how they are mended, adapters and the benchmark say (`adapter_faults`, `Benchmark.faults`).
Nothing here changes a run or any of its numbers.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import msgspec

from loupe.benchmarks import benchmark_id, benchmark_of_run, get_benchmark
from loupe.benchmarks.registry import benchmark_ids
from loupe.engines.adapters.steps import STEPS, apply_adapters
from loupe.errors import DatasetError, MissingToolError, RunError, UsageError, word
from loupe.features.lint.adapter_faults import FOREIGN, faults_of_pages, is_linted
from loupe.features.lint.mended_answers import versions
from loupe.pipeline.answer_files import read_answers, refuse_foreign
from loupe.pipeline.existing_answers import find_all
from loupe.pipeline.plan import open_samples, samples_of
from loupe.runs.folder import RunFolder, find_runs
from loupe.runs.info import RunInfo
from loupe.scoring.pool import ScorePool
from loupe.stats.analysis import Analysis
from loupe.stats.estimates import estimate
from loupe.types import Benchmark, FormatFault, Prediction, Sample, SampleScores, Values

#: Pages whose versions may wait for their scores.
_AHEAD = 32


class PageLint(msgspec.Struct, frozen=True, kw_only=True):
    """One page: the lines on which each fault begins, and what the page is worth as it is and mended.

    `alone` holds the values with one fault mended, `mended` with all. Without ground truth all of them are empty.
    """

    page: str
    faults: dict[str, list[int]]
    official: Values = {}
    alone: dict[str, Values] = {}
    mended: Values = {}


class FaultSum(msgspec.Struct, frozen=True, kw_only=True):
    """One fault over all pages, and the values of the whole set if it alone were mended; none if nothing mends it.

    `adapter` is the step that takes it away from answers that are here, "" where none does.
    """

    name: str
    meaning: str
    places: int
    pages: int
    mended: Values = {}
    adapter: str = ""


class Lint(msgspec.Struct, frozen=True, kw_only=True):
    """All pages, those that mending changes most first. `no_truth` says why costs are unknown, if they are.

    `official` are the values of the answers as they are; only these have the benchmark's name. `adapters` are the steps
    of the run, if it is one, and those that mend what is here.
    """

    benchmark: str
    version: str
    answers: str
    read: int
    missing: int
    directions: dict[str, bool]
    units: dict[str, str]
    faults: list[FaultSum]
    pages: list[PageLint]
    official: Values = {}
    mended: Values = {}
    no_truth: str = ""
    adapters: list[str] = []


class _Linted(msgspec.Struct, frozen=True, kw_only=True):
    """A page's faults, those that an adapter takes away, and the scores of all its versions; None: no answer."""

    page: str
    faults: dict[str, list[int]] | None
    adapted: frozenset[str] = frozenset()
    scores: dict[str, SampleScores] = {}


def lint(
    path: Path,
    benchmark: str = "",
    *,
    data: Path | None = None,
    options: Mapping[str, str] | None = None,
    limit: int | None = None,
    jobs: int | None = None,
) -> Lint:
    """Look through the answers of a run, or those in a folder or file for `benchmark`; `limit`: to its first samples.

    Without ground truth the faults are found all the same; where `data` is given, it must be there. Raises UsageError
    for a benchmark that knows no faults, and for a path without any answer.
    """
    if (path / "run.json").is_file():
        folder = RunFolder.open(path)
        name, load, found = _of_run(folder, benchmark, data)
        asked, steps = folder.info.options, folder.info.adapters
    elif path.exists():
        asked, steps = dict(options or {}), []
        name, load, found = _of_folder(path, benchmark, data, asked)
    else:
        raise RunError(f"no answers at {path}", hint="run: loupe lint FOLDER --for omnidocbench")
    chosen = benchmark_of_run(name)
    _need_official_mode(chosen, path, asked)
    if not is_linted(chosen):
        raise UsageError(
            f"lint has nothing for answers to {name}: they are no pages, and no faults of their form are known",
            hint=f"see its options: loupe bench show {word(name)}",
        )
    no_truth = ""
    try:
        samples: list[str] = [sample.id for sample in islice(load(), limit)]
    except (DatasetError, MissingToolError) as error:
        if data is not None:
            raise
        samples, no_truth = [], error.message
    answers = found(samples or None)
    refuse_foreign(path, answers.values())
    if not any(not answer.failed for answer in answers.values()):
        raise UsageError(f"{path}: no answer to any page of {name}", hint="name answers after pages: PAGE.md")
    if no_truth:
        pages = [_linted(chosen, ident, answer) for ident, answer in islice(answers.items(), limit)]
    else:
        pages = asyncio.run(_score(name, chosen, islice(load(), limit), answers, jobs))
    return _sum_up(path, name, chosen, pages, no_truth, steps)


def _need_official_mode(benchmark: Benchmark, path: Path, options: Mapping[str, str]) -> None:
    """Costs are told in official numbers, so a mode that has none is refused. Raises UsageError."""
    mode = inspect.signature(benchmark.load).parameters.get("mode")
    if mode is not None and options.get("mode", mode.default) != mode.default:
        raise UsageError(
            f"{path}: faults are measured on official numbers, which mode={options['mode']} does not have",
            hint=f"answers in a folder, without -o mode={options['mode']}",
        )


_Load = Callable[[], Iterable[Sample]]
_Find = Callable[[Sequence[str] | None], dict[str, Prediction]]


def _of_run(folder: RunFolder, wanted: str, data: Path | None) -> tuple[str, _Load, _Find]:
    """The benchmark of a run, its samples, and its answers as they are scored."""
    info: RunInfo = folder.info
    if wanted and benchmark_id(wanted) != info.benchmark_id:
        raise UsageError(
            f"{folder.path} is a run of {info.benchmark_id}, not of {benchmark_id(wanted)}",
            hint=f"run: loupe lint {word(folder.path)}",
        )
    info = msgspec.structs.replace(info, data=str(data)) if data else info

    def found(_: Sequence[str] | None) -> dict[str, Prediction]:
        return {
            ident: msgspec.structs.replace(one, text=apply_adapters(one.text, info.adapters))
            for ident, one in folder.predictions().items()
        }

    return info.benchmark, partial(open_samples, info), found


def _of_folder(path: Path, wanted: str, data: Path | None, options: Mapping[str, str]) -> tuple[str, _Load, _Find]:
    if not wanted:
        runs = [run.path for run in find_runs(path)[0]]
        listed = f"loupe lint {word(runs[0])}" if runs else "loupe runs"
        hint = f"name a run: {listed}; answers of a benchmark: loupe lint {word(path)} --for {_with_faults()[0]}"
        raise UsageError(f"{path} is not a run", hint=hint)
    load = partial(samples_of, get_benchmark(wanted), data, options)

    def found(asked: Sequence[str] | None) -> dict[str, Prediction]:
        if asked is None:
            return {answer.sample: answer for answer in read_answers(wanted, path, samples=tuple)}
        return dict(find_all(wanted, path, load, asked, asked).found)

    return wanted, load, found


def _with_faults() -> list[str]:
    return [ident for ident in benchmark_ids() if is_linted(get_benchmark(ident))]


def _linted(benchmark: Benchmark, ident: str, answer: Prediction) -> _Linted:
    if answer.failed:
        return _Linted(page=ident, faults=None)
    faults = faults_of_pages(benchmark)
    found = versions(answer.text, faults)[0]
    return _Linted(page=ident, faults=found, adapted=_adapted(answer.text, faults, found))


def _adapted(text: str, faults: Iterable[FormatFault], found: Container[str]) -> frozenset[str]:
    """Those of the faults found whose adapter changes this answer."""
    named = [fault for fault in faults if fault.adapter and fault.name in found]
    return frozenset(fault.name for fault in named if apply_adapters(text, [fault.adapter]) != text)


async def _score(
    name: str, benchmark: Benchmark, samples: Iterable[Sample], answers: Mapping[str, Prediction], jobs: int | None
) -> list[_Linted]:
    """All versions of all pages, scored on all cores like any answer; each text once."""
    pages: list[_Linted] = []
    with ScorePool(name, jobs=jobs) as pool:

        async def one(sample: Sample) -> _Linted:
            answer = answers.get(sample.id) or Prediction(sample=sample.id, outcome="missing", error="no answer")
            if answer.failed:
                return _Linted(page=sample.id, faults=None, scores={"official": await pool.score(sample, answer)})
            every = faults_of_pages(benchmark)
            faults, forms = versions(answer.text, every)
            texts = dict.fromkeys(form.text for form in forms)
            waiting = [pool.score(sample, msgspec.structs.replace(answer, text=text)) for text in texts]
            scores = dict(zip(texts, await asyncio.gather(*waiting), strict=True))
            slim = {text: msgspec.structs.replace(row, details={}) for text, row in scores.items()}
            priced = {each.name: slim[each.text] for each in forms}
            adapted = _adapted(answer.text, every, faults)
            return _Linted(page=sample.id, faults=faults, adapted=adapted, scores=priced)

        window: deque[asyncio.Task[_Linted]] = deque()
        for sample in samples:
            window.append(asyncio.create_task(one(sample)))
            if len(window) >= _AHEAD:
                pages.append(await window.popleft())
        pages += await asyncio.gather(*window)
    return pages


def _sum_up(
    path: Path, name: str, benchmark: Benchmark, pages: Sequence[_Linted], no_truth: str, steps: Sequence[str]
) -> Lint:
    answered = [page for page in pages if page.faults is not None]
    official = _values(benchmark, pages, "official")
    computed = [measure for measure in benchmark.measures if measure.name in official]
    shown = [_page(benchmark, page) for page in answered]
    faults = [_fault(benchmark, fault, pages, shown) for fault in faults_of_pages(benchmark)]
    mending = {*steps, *(fault.adapter for fault in faults)}
    return Lint(
        benchmark=benchmark_id(name),
        version=benchmark.version,
        answers=str(path),
        read=len(answered),
        missing=len(pages) - len(answered),
        directions={each.name: each.higher_is_better for each in computed},
        units={each.name: each.unit for each in computed},
        faults=sorted(faults, key=lambda fault: (-_gain(benchmark, official, fault.mended), -fault.places)),
        pages=sorted(
            shown, key=lambda page: (-_gain(benchmark, page.official, page.mended), -_places(page), page.page)
        ),
        official=official,
        mended=_values(benchmark, pages, "mended"),
        no_truth=no_truth,
        adapters=[step for step in STEPS if step in mending],
    )


def _fault(benchmark: Benchmark, fault: FormatFault, pages: Sequence[_Linted], shown: Sequence[PageLint]) -> FaultSum:
    return FaultSum(
        name=fault.name,
        meaning=fault.meaning,
        places=sum(len(page.faults.get(fault.name, ())) for page in shown),
        pages=sum(fault.name in page.faults for page in shown),
        mended={} if fault is FOREIGN else _values(benchmark, pages, fault.name),
        adapter=fault.adapter if any(fault.name in page.adapted for page in pages) else "",
    )


def _page(benchmark: Benchmark, page: _Linted) -> PageLint:
    found = {version: _values(benchmark, [page], version) for version in page.scores}
    official, mended = found.pop("official", {}), found.pop("mended", {})
    found.pop(FOREIGN.name, None)
    return PageLint(page=page.page, faults=page.faults or {}, official=official, alone=found, mended=mended)


def _values(benchmark: Benchmark, pages: Iterable[_Linted], version: str) -> Values:
    """Every measure over pages, of this version where a page has it, else of its answer as it is."""
    rows = [
        (row.sample, score)
        for page in pages
        for row in [page.scores.get(version) or page.scores.get("official")]
        if row is not None
        for score in row.scores
    ]
    found = estimate(Analysis.of(benchmark).without_draws(), rows) if rows else {}
    return {name: one.value for name, one in found.items() if one.value is not None}


def _gain(benchmark: Benchmark, before: Values, after: Values) -> float:
    """How much better the second is, all measures together: an order to show things in, and no number to report."""
    measures = {measure.name: measure for measure in benchmark.measures}
    return sum(measures[name].merit(after[name] - value) for name, value in before.items() if name in after)


def _places(page: PageLint) -> int:
    return sum(map(len, page.faults.values()))
