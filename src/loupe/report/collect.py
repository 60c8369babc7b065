"""Runs as the report shows them: those of one benchmark on the same data side by side, and their samples one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from loupe.benchmarks.registry import benchmark_of_run
from loupe.errors import LoupeError
from loupe.explanation import Explanation
from loupe.pipeline import open_samples
from loupe.report.costs import Costs, costs
from loupe.report.facts import FactIndex
from loupe.report.flags import Flags
from loupe.report.formulas import Formulas
from loupe.report.group_titles import short_names, tell_apart
from loupe.report.judged_fields import fields_of
from loupe.report.markup import without_surrogates
from loupe.report.missing_data import missing_data
from loupe.report.partial_runs import Summarize, other_composites, without
from loupe.report.pictures import picture_bytes
from loupe.report.samples import Answer, SampleJob
from loupe.report.summaries import rightly_empty, shown_diagnostic, summary_row
from loupe.report.terminal import format_value
from loupe.report.values import sample_values, shown_values
from loupe.runs.folder import Place, RunFolder
from loupe.typed import encode_json
from loupe.types import Benchmark, Measure, Prediction, PublishedRow, Result, Sample, SampleScores

JsonObject: TypeAlias = dict[str, Any]

#: Single measurements (fields, facts, tables) listed for one answer; `scores.jsonl` has them all.
UNIT_LIMIT = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """One run in a group: where its records stand, without the records.

    `known` are its scores without details, where they are at hand; `name` is a label in place of the engine's name;
    `left_out` are composites that `result` is without (loupe.report.partial_runs).
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
        for row in self.run.scores() if self.result is not None else ():
            yield msgspec.structs.replace(row, details={})

    def scores_of(self, ident: str) -> SampleScores | None:
        """All scores of one sample."""
        return self.run.read_scores(self.scores[ident]) if ident in self.scores else None


@dataclass(slots=True, kw_only=True)
class Group:
    """Runs of one benchmark on the same data. `note`: what could not be found again; `changed`: that references are not
    those of the scores; `published`: figures of others."""

    entrants: list[Entrant]
    benchmark: Benchmark | None
    note: str = ""
    changed: str = ""
    summary: list[JsonObject] = field(default_factory=list)
    flags: Flags = field(default_factory=Flags)
    facts: FactIndex = field(default_factory=FactIndex)
    formulas: Formulas = field(default_factory=Formulas)
    costs: list[Costs] = field(default_factory=list)
    published: list[PublishedRow] = field(default_factory=list)
    apart: str = ""

    @property
    def title(self) -> str:
        """What the group is called: the benchmark's title, or its id where the benchmark is gone; and what tells it
        `apart` from other groups of one report."""
        title = self.benchmark.title if self.benchmark else self.entrants[0].run.info.benchmark_id
        return f"{title}, {self.apart}" if self.apart else title

    @property
    def key(self) -> str:
        """What the group is called in addresses inside the report."""
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
                unit: Literal["fraction", "number"] = "fraction" if result.units.get(name) == "fraction" else "number"
                better = result.directions.get(name, True)
                found.setdefault(name, Measure(name=name, higher_is_better=better, unit=unit))
        return tuple(found.values())

    @property
    def headline(self) -> str:
        """The measure that ranks the engines ("" where nothing is scored)."""
        if self.benchmark is not None:
            return self.benchmark.headline_measure
        return self.results[0].headline if self.results else ""


def collect(paths: Sequence[Path]) -> list[Group]:
    """The runs, grouped by benchmark, version and data, best first. Raises RunError for a path without a run."""
    groups: dict[tuple[str, str, str], list[Entrant]] = {}
    for path in paths:
        run = RunFolder.open(path)
        info = run.info
        entrant = Entrant(run=run, result=run.result(), predictions=run.prediction_places(), scores=run.score_places())
        groups.setdefault((info.benchmark_id, info.version, info.reference_digest), []).append(entrant)
    found = []
    for entrants in groups.values():
        names = short_names([entrant.run.info for entrant in entrants])
        found.append(make_group([replace(one, name=name) for one, name in zip(entrants, names, strict=True)]))
    tell_apart(found)
    return found


def make_group(entrants: list[Entrant]) -> Group:
    """A group of runs of one benchmark, best first."""
    name = entrants[0].run.info.benchmark
    try:
        group = Group(entrants=entrants, benchmark=benchmark_of_run(name))
    except (LoupeError, OSError) as error:
        group = Group(entrants=entrants, benchmark=None, note=missing_data(entrants[0].run, error))
    summarize = group.benchmark.summarize if group.benchmark else None
    group.entrants = _comparable(group, summarize)
    # Where no run has the headline, they stand in the order of the first measure that any has.
    order = sorted(group.measures, key=lambda measure: measure.name != group.headline)
    told = next((one for one in order if any(_value(entrant, one) is not None for entrant in group.entrants)), None)

    def goodness(entrant: Entrant) -> float:
        value = _value(entrant, told) if told else None
        return float("-inf") if value is None or told is None else value if told.higher_is_better else -value

    group.entrants.sort(key=goodness, reverse=True)
    for entrant in group.entrants:
        group.costs.append(costs(group.measures, entrant.counts(), headline=group.headline, summarize=summarize))
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


def sample_jobs(group: Group, *, folder: Path, embed: bool) -> Iterator[SampleJob]:
    """Every sample of the group in the order of its data; what the grid needs is appended to `group.summary`."""
    seen: set[str] = set()
    for sample in _samples(group):
        if sample.id not in seen:
            seen.add(sample.id)
            yield sample_job(group, sample, folder=folder, embed=embed)
    for entrant in group.entrants:
        for ident in entrant.predictions:
            if ident not in seen:
                seen.add(ident)
                yield sample_job(group, Sample(id=ident), folder=folder, embed=embed)


def _samples(group: Group) -> Iterator[Sample]:
    """The samples again that any run asked for; none, with a note, where the data is gone."""
    if group.benchmark is None:
        return
    runs = [entrant.run for entrant in group.entrants]
    try:
        yield from open_samples(*(run.info for run in runs))
    except Exception as error:  # noqa: BLE001  whatever half of a data set raises, numbers and answers are shown
        group.note = missing_data(max(runs, key=lambda run: run.info.total), error)


def image_bytes(group: Group, limit: int) -> int:
    """What the page images of a group weigh; counting stops above `limit`."""
    weight = 0
    for sample in _samples(group):
        weight += sum(map(picture_bytes, sample.images))
        if weight > limit:
            break
    return weight


def sample_job(group: Group, sample: Sample, *, folder: Path, embed: bool) -> SampleJob:
    """All that is shown of one sample; what the grid needs of it is appended to `group.summary`."""
    scored = [entrant.scores_of(sample.id) for entrant in group.entrants]
    answers = [_answer(group, entrant, sample, scores) for entrant, scores in zip(group.entrants, scored, strict=True)]
    for place, answer in enumerate(answers):
        group.flags.add(place, sample.id, answer.explanation)
        group.facts.add(place, len(group.summary), answer.facts)
        group.formulas.add(place, answer.explanation)
    tags = dict(sample.tags) or next((dict(scores.tags) for scores in scored if scores and scores.tags), {})
    right = [rightly_empty(scores) for scores in scored]
    group.summary.append(summary_row(group, sample, tags, list(zip(answers, right, strict=True))))
    return SampleJob(
        ident=sample.id,
        task=sample.task or (group.benchmark.task if group.benchmark else ""),
        images=sample.images,
        prompt=sample.prompt,
        text=sample.text,
        reference=reference_of(group, sample),
        answers=tuple(answers),
        folder=folder,
        embed=embed,
    )


def reference_of(group: Group, sample: Sample) -> str:
    """The text to compare with, "" where the truth is gone; where it is no text, its JSON says more than nothing."""
    if group.benchmark is None or sample.truth is None:
        return ""
    try:
        text = group.benchmark.reference(sample)
    except Exception as error:  # noqa: BLE001  one reference that cannot be shown must not end a report
        group.note = f"The reference of {sample.id} cannot be shown: {error}"
        return ""
    if text or isinstance(sample.truth, str):
        return text
    return msgspec.json.format(encode_json(sample.truth, enc_hook=str), indent=2).decode()


def _answer(group: Group, entrant: Entrant, sample: Sample, scores: SampleScores | None) -> Answer:
    place = entrant.predictions.get(sample.id)
    prediction = entrant.run.read_prediction(place) if place else None
    adapters = tuple(entrant.run.info.adapters)
    fields = fields_of(group.benchmark, sample, prediction, adapters)
    if scores is None:
        return Answer(prediction=prediction, adapters=adapters, fields=fields)
    units = {measure.name: measure.unit for measure in group.measures}
    values = values_of(group, scores)
    single = [score for score in scores.scores if score.unit]
    return Answer(
        prediction=prediction,
        adapters=adapters,
        values=tuple(shown_values(group.measures, values)),
        units=tuple(
            {
                "unit": without_surrogates(score.unit),
                "measure": score.measure,
                "value": format_value(
                    sample_values(group.measures, [score]).get(score.measure), units.get(score.measure, "number")
                ),
            }
            for score in single[:UNIT_LIMIT]
        ),
        hidden_units=max(0, len(single) - UNIT_LIMIT),
        diagnostics=tuple(shown_diagnostic(name, value) for name, value in scores.diagnostics.items()),
        scoring_error=_scoring_error(scores, prediction),
        explanation=_explanation(group, sample, scores),
        facts=group.facts.of_answer(group.benchmark, sample, prediction, scores, adapters),
        fields=fields,
    )


def _explanation(group: Group, sample: Sample, scores: SampleScores) -> Explanation | None:
    """How the answer was matched, where the benchmark tells and the ground truth is at hand."""
    if group.benchmark is None or group.benchmark.explain is None or sample.truth is None:
        return None
    try:
        return group.benchmark.explain(sample, scores)
    except Exception as error:  # noqa: BLE001  one sample that cannot be drawn must not end a report
        group.note = f"The match of {sample.id} cannot be drawn: {error}"
        return None


def _scoring_error(scores: SampleScores, prediction: Prediction | None) -> str:
    """Why scoring failed; the stored line names first why there is no answer, which is said elsewhere."""
    if prediction is None or not prediction.failed:
        return scores.error
    return scores.error.removeprefix(prediction.error).removeprefix("; ")


def values_of(group: Group, scores: SampleScores) -> dict[str, float]:
    """The measures of one answer. Of composites only the headline: others say nothing about a sample alone."""
    values = sample_values(group.measures, scores.scores)
    if group.benchmark is not None and group.headline not in values:
        whole = sample_values(group.measures, scores.scores, group.benchmark.summarize)
        values |= {name: value for name, value in whole.items() if name == group.headline}
    return values
