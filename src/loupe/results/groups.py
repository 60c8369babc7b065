"""Runs side by side: those of one benchmark on the same data, best first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from loupe.benchmarks.registry import benchmark_of_run
from loupe.errors import LoupeError
from loupe.results.costs import Costs, Counts, costs
from loupe.results.group_titles import run_names, shown_version
from loupe.results.headline import Headline, check_measure, headline_of
from loupe.results.missing_data import missing_data
from loupe.results.partial_runs import Summarize, other_composites, without
from loupe.results.scored_here import marked, result_of
from loupe.runs.folder import RunFolder
from loupe.runs.info import RunInfo
from loupe.runs.installed import title_apart
from loupe.runs.places import Place
from loupe.stats.analysis import Analysis
from loupe.types import Benchmark, Measure, PublishedRow, Result, Sample, SampleScores, Unit

#: What the units in a result mean; others are plain numbers.
_UNITS: Mapping[str, Unit] = {"fraction": "fraction", "count": "count"}

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """One run in a group: where its records stand, without the records.

    `known` are its scores without details, where they are at hand; `name` is a label in place of the engine's name;
    `left_out` are composites that `result` is without (loupe.results.partial_runs).
    """

    run: RunFolder
    result: Result | None
    predictions: Mapping[str, Place]
    scores: Mapping[str, Place]
    known: Mapping[str, SampleScores] | None = None
    name: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The engine's name as the report shows it."""
        return self.name or self.run.info.engine

    def counts(self) -> Iterator[SampleScores]:
        """The scores of every sample without their details, which may be large."""
        if self.known is not None:
            yield from self.known.values() if self.result is not None else ()
            return
        yield from self.run.counts() if self.result is not None else ()

    def scores_of(self, ident: str) -> SampleScores | None:
        """All scores of one sample."""
        return self.run.read_scores(self.scores[ident]) if ident in self.scores else None


@dataclass(kw_only=True)
class Group:
    """Runs of one benchmark on the same data. `note`: what could not be found again; `changed`: that references are not
    those of the scores; `published`: figures of others; `samples`: they themselves, where they are at hand;
    `has_layouts`: that engines tell where they saw the parts of pages; `uncompared`: why the runs have no ranks;
    `ranked`: the measure that ranks them, once that is decided."""

    entrants: list[Entrant]
    benchmark: Benchmark | None
    note: str = ""
    changed: str = ""
    costs: list[Costs] = field(default_factory=list)
    published: list[PublishedRow] = field(default_factory=list)
    apart: str = ""
    samples: Sequence[Sample] | None = None
    has_layouts: bool = False
    uncompared: str = ""
    ranked: Headline | None = None

    @property
    def called(self) -> str:
        """The benchmark's title, or its id where the benchmark is gone; a folder is never called like a benchmark."""
        info = self.entrants[0].run.info
        return title_apart(info.benchmark, self.benchmark.title) if self.benchmark else info.benchmark_id

    @property
    def title(self) -> str:
        """What the group is called, with what tells it `apart` from others of one report, and which part of a set the
        largest run has read."""
        largest = max((entrant.run.info for entrant in self.entrants), key=lambda info: info.total)
        return ", ".join(filter(None, [self.called, self.apart, largest.part]))

    @property
    def key(self) -> str:
        """The name of the group in addresses inside the report."""
        info = self.entrants[0].run.info
        digest = info.reference_digest[:6]
        return f"{info.benchmark_id}@{info.version}" + (f"+{digest}" if digest else "")

    @property
    def results(self) -> list[Result]:
        """The finished results of the group."""
        return [entrant.result for entrant in self.entrants if entrant.result is not None]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Measures by importance: from the benchmark, else as far as the results tell."""
        if self.benchmark is not None:
            return self.benchmark.measures_of(name for result in self.results for name in result.measures)
        found: dict[str, Measure] = {}
        for result in self.results:
            for name in result.measures:
                unit = _UNITS.get(result.units.get(name, ""), "number")
                better = result.directions.get(name, True)
                found.setdefault(name, Measure(name=name, higher_is_better=better, unit=unit))
        return tuple(found.values())

    @property
    def headline(self) -> str:
        """The measure that ranks the engines; "" if nothing is scored and the benchmark is gone."""
        found = (self.ranked or headline_of(self.results)).measure
        return found or (self.benchmark.headline_measure if self.benchmark else "")

    @property
    def headline_note(self) -> str:
        """The reason why another measure than the benchmark's headline ranks the engines, in one sentence."""
        return self.ranked.note if self.ranked else ""

    @property
    def analysis(self) -> Analysis:
        """The analysis of its scores."""
        return Analysis(self.measures, self.benchmark.summarize if self.benchmark else None, self.headline)


AnyGroup = TypeVar("AnyGroup", bound=Group)


def group_runs(paths: Sequence[Path], kind: type[AnyGroup], measure: str = "") -> list[AnyGroup]:
    """Group runs by benchmark, version and data, best first; `measure` ranks those groups that have it.

    Raises RunError for a path without a run, UsageError for a measure that no run has.
    """
    groups: dict[tuple[str, str, str], list[Entrant]] = {}
    for path in paths:
        run = RunFolder.open(path)
        info = run.info
        entrant = Entrant(
            run=run, result=result_of(run), predictions=run.prediction_places(), scores=run.score_places()
        )
        groups.setdefault((info.benchmark_id, info.version, info.reference_digest), []).append(entrant)
    results = [entrant.result for entrants in groups.values() for entrant in entrants if entrant.result]
    check_measure(measure, results)
    found = []
    for entrants in groups.values():
        names = run_names([entrant.run for entrant in entrants])
        named = [replace(one, name=marked(name, one.result)) for one, name in zip(entrants, names, strict=True)]
        found.append(make_group(named, kind, measure=measure))
    tell_apart(found)
    return found


def make_group(entrants: list[Entrant], kind: type[AnyGroup], *, uncompared: str = "", measure: str = "") -> AnyGroup:
    """Make a group of runs of one benchmark, best first, by `measure` if any run has it.

    `uncompared` says why their samples are not looked at.
    """
    name = entrants[0].run.info.benchmark
    try:
        group = kind(entrants=entrants, benchmark=benchmark_of_run(name))
    except (LoupeError, OSError) as error:
        group = kind(entrants=entrants, benchmark=None, note=missing_data(entrants[0].run, error))
    summarize = group.benchmark.summarize if group.benchmark else None
    group.ranked = headline_of(group.results, measure)
    group.entrants = _comparable(group, summarize)
    told = next((one for one in group.measures if one.name == group.headline), None)

    def goodness(entrant: Entrant) -> float:
        value = _value(entrant, told) if told else None
        return float("-inf") if value is None or told is None else told.merit(value)

    group.entrants.sort(key=goodness, reverse=True)
    group.uncompared = uncompared
    for entrant in group.entrants:
        counts = Counts(() if uncompared else entrant.counts())
        group.costs.append(costs(group.measures, counts, headline=group.headline, summarize=summarize))
    return group


def _value(entrant: Entrant, measure: Measure) -> float | None:
    found = entrant.result.measures.get(measure.name) if entrant.result else None
    return found.value if found else None


def _comparable(group: Group, summarize: Summarize | None) -> list[Entrant]:
    """The runs, those over fewer samples without composites that would be made of less."""
    found = other_composites([entrant.result for entrant in group.entrants], group.measures, summarize)
    return [
        replace(entrant, result=without(entrant.result, names), left_out=names) if names and entrant.result else entrant
        for entrant, names in zip(group.entrants, found, strict=True)
    ]


def tell_apart(groups: Sequence[Group]) -> None:
    """Name what differs between groups of the same title: version, options, and where these do not differ, the data."""
    by_title: dict[str, list[Group]] = {}
    for group in groups:
        by_title.setdefault(group.called, []).append(group)
    for same in by_title.values():
        infos = [group.entrants[0].run.info for group in same]
        versions = [shown_version(info.version) for info in infos]
        options = [" ".join(f"{name}={value}" for name, value in sorted(info.options.items())) for info in infos]
        for group, info, version, option in zip(same, infos, versions, options, strict=True):
            parts = [version] if len(set(versions)) > 1 else []
            parts += [option or "default options"] if len(set(options)) > 1 else []
            parts += [_lettered(infos, info)] if (version, option) in _repeated(versions, options) else []
            group.apart = ", ".join(parts) if len(same) > 1 else ""


def _lettered(infos: Sequence[RunInfo], one: RunInfo) -> str:
    """`data B`, `fields B` or both: letters for what only digests tell apart."""
    data = list(dict.fromkeys(info.reference_digest for info in infos))
    said = [f"data {_letter(data.index(one.reference_digest))}"] if len(data) > 1 else []
    if len({info.version for info in infos if info.reference_digest == one.reference_digest}) > 1 or not said:
        versions = list(dict.fromkeys(info.version for info in infos))
        said.append(f"fields {_letter(versions.index(one.version))}")
    return ", ".join(said)


def _letter(place: int) -> str:
    return _LETTERS[place] if place < len(_LETTERS) else str(place + 1)


def _repeated(versions: Sequence[str], options: Sequence[str]) -> set[tuple[str, str]]:
    both = list(zip(versions, options, strict=True))
    return {each for each in both if both.count(each) > 1}
