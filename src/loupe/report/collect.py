"""The samples of runs side by side, one by one, as the report shows them: page by page, and as cells of the grid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from loupe.explanation import Explanation, JudgedField
from loupe.pipeline import open_samples
from loupe.report.drawn_formulas import Formulas
from loupe.report.markup import without_surrogates
from loupe.report.pictures import picture_bytes
from loupe.report.samples import Answer, SampleJob
from loupe.report.stored_facts import FactIndex, fields_of
from loupe.results.flag_cells import Flags
from loupe.results.groups import Entrant, Group, group_runs
from loupe.results.missing_data import missing_data
from loupe.results.references import shown_reference
from loupe.results.sample_values import sample_values, shown_values
from loupe.results.sections import format_diagnostic, format_value
from loupe.runs.folder import RunFolder
from loupe.types import FAILED, Prediction, Sample, SampleScores

if TYPE_CHECKING:
    from loupe.report.samples import Answer
    from loupe.results.groups import Entrant, Group


JsonObject: TypeAlias = dict[str, Any]

#: Diagnostics of one answer that are true or false.
_FLAGS = frozenset({"empty", "truncated", "loop", "text_on_blank"})


def rightly_empty(scores: SampleScores | None) -> bool:
    """True if this is no answer to a page with neither ink nor ground truth; only such pages have the diagnostic."""
    return scores is not None and scores.outcome == "empty" and scores.diagnostics.get("text_on_blank") == 0.0


def summary_row(
    group: Group,
    sample: Sample,
    tags: Mapping[str, str],
    answers: Sequence[tuple[Answer, bool]],
) -> JsonObject:
    """A row of the grid: for each engine the outcome and one value, by the first measure it has."""
    engines = []
    for (answer, right), lost, entrant in zip(answers, group.costs, group.entrants, strict=True):
        values = {item["name"]: item["value"] for item in answer.values}
        outcome: str = answer.prediction.outcome if answer.prediction else _not_read(entrant)
        shown = shown_outcome(outcome, broken=bool(answer.scoring_error), right=right)
        measure, value = shown_value(group, values)
        engines.append([shown, measure, value, round(lost.by_sample.get(sample.id, 0.0), 7)])
    return {
        "id": without_surrogates(sample.id),
        "tags": {without_surrogates(key): without_surrogates(value) for key, value in tags.items()},
        "engines": engines,
    }


def _not_read(entrant: Entrant) -> str:
    """The class of a sample without a record: failed only if the result counts it, and its run was asked for it."""
    if len(entrant.predictions) >= entrant.run.info.total:
        return "unasked"
    return "missing" if entrant.result else "waiting"


def shown_outcome(outcome: str, *, broken: bool, right: bool) -> str:
    """The class of an answer as the grid shows it; `broken` says that scoring failed, `right` see `rightly_empty`."""
    if broken and outcome not in FAILED:
        outcome = "scorer"
    return "blank" if right else outcome


def shown_value(group: Group, values: Mapping[str, float]) -> tuple[str, float | None]:
    """The measure that tells of one answer, the headline if it has it, and its value."""
    order = sorted(group.measures, key=lambda measure: measure.name != group.headline)
    name = next((measure.name for measure in order if measure.name in values), "")
    return name, round(values[name], 5) if name else None


def shown_diagnostic(name: str, value: float) -> tuple[str, str]:
    """A diagnostic of one answer as (name, value); what does not apply has the value ""."""
    return name.replace("_", " "), ("yes" if value else "") if name in _FLAGS else format_diagnostic(name, value)


#: Single measurements (fields, facts, tables) listed for one answer; `scores.jsonl` has them all.
UNIT_LIMIT = 300


#: Samples of a group that are shown one by one; the tables above them are always of all.
SAMPLE_LIMIT = 25_000
#: Failures of one run that are among these in any case: the list of failures leads to them.
_FAILURES = 200


@dataclass(kw_only=True)
class SampledGroup(Group):
    """Runs side by side, and what their samples show as they are packed: rows of the grid, flags, facts, formulas.

    `part` says which samples these are where there are too many for one page ("": all).
    """

    summary: list[JsonObject] = field(default_factory=list)
    flags: Flags = field(default_factory=Flags)
    facts: FactIndex = field(default_factory=FactIndex)
    formulas: Formulas = field(default_factory=Formulas)
    part: str = ""


def collect(paths: Sequence[Path], measure: str = "") -> list[SampledGroup]:
    """Group the runs of a report as `group_runs` does."""
    return group_runs(paths, SampledGroup, measure)


def sample_jobs(group: SampledGroup, *, folder: Path, embed: bool) -> Iterator[SampleJob]:
    """The samples of the group in the order of its data; what the grid needs is appended to `group.summary`.

    Of more than `SAMPLE_LIMIT`, those that cost the runs most, and the first others; `group.part` says so.
    """
    total = _total(group)
    dearest = _dearest(group) if total > SAMPLE_LIMIT else frozenset[str]()
    others = SAMPLE_LIMIT - len(dearest)
    for sample in _all_samples(group):
        if sample.id not in dearest:
            others -= 1
            if others < 0:
                continue
        yield sample_job(group, sample, folder=folder, embed=embed)
    if others < 0:
        shown = f"{len(group.summary):,} of {total:,} samples are in this report: those that cost most, and the first"
        group.part = f"{shown} of the others. The tables are of all samples; lists of single ones are not."


def _total(group: SampledGroup) -> int:
    return max(max(entrant.run.info.total, len(entrant.predictions)) for entrant in group.entrants)


def _dearest(group: SampledGroup) -> frozenset[str]:
    """The samples that cost each run most, at most half of those that are shown, and the first that failed."""
    each = SAMPLE_LIMIT // 2 // len(group.entrants)
    found = {ident for costs in group.costs for ident in islice(costs.by_sample, each)}
    failed = (failure.sample for result in group.results for failure in result.failures[: min(_FAILURES, each)])
    return frozenset(found.union(failed))


def _all_samples(group: SampledGroup) -> Iterator[Sample]:
    """Each sample once, behind those of the data those that only have an answer."""
    seen: set[str] = set()
    idents = chain.from_iterable(entrant.predictions for entrant in group.entrants)
    for sample in chain(_samples(group), (Sample(id=ident) for ident in idents)):
        if sample.id not in seen:
            seen.add(sample.id)
            yield sample


def _samples(group: SampledGroup) -> Iterator[Sample]:
    """The samples again that any run asked for; none, with a note, where the data is gone."""
    if group.samples is not None:
        yield from group.samples
        return
    if group.benchmark is None:
        return
    runs = [entrant.run for entrant in group.entrants]
    try:
        yield from open_samples(*(run.info for run in runs))
    except Exception as error:  # noqa: BLE001  whatever half of a data set raises, numbers and answers are shown
        group.note = missing_data(max(runs, key=lambda run: run.info.total), error)


def image_bytes(group: SampledGroup, limit: int) -> int:
    """The size of the page images of a group; counting stops above `limit`, and so many are not even looked at."""
    if _total(group) > SAMPLE_LIMIT:
        return limit + 1
    weight = 0
    for sample in _samples(group):
        weight += sum(map(picture_bytes, sample.images))
        if weight > limit:
            break
    return weight


def sample_job(group: SampledGroup, sample: Sample, *, folder: Path, embed: bool) -> SampleJob:
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


def reference_of(group: SampledGroup, sample: Sample) -> str:
    """The text to compare with, "" if the truth is gone; where it is no text, its JSON says more than nothing."""
    if group.benchmark is None or sample.truth is None:
        return ""
    try:
        return shown_reference(group.benchmark, sample)
    except Exception as error:  # noqa: BLE001  one reference that cannot be shown must not end a report
        group.note = f"The reference of {sample.id} cannot be shown: {error}"
        return ""


def _answer(group: SampledGroup, entrant: Entrant, sample: Sample, scores: SampleScores | None) -> Answer:
    place = entrant.predictions.get(sample.id)
    prediction = entrant.run.read_prediction(place) if place else None
    adapters = tuple(entrant.run.info.adapters)
    asked = Answer(
        prediction=prediction,
        adapters=adapters,
        fields=_fields(group, sample, prediction, adapters),
        image_rule=_image_rule(entrant.run),
    )
    if scores is None:
        return asked
    units = {measure.name: measure.unit for measure in group.measures}
    values = values_of(group, scores)
    single = [score for score in scores.scores if score.unit]
    return replace(
        asked,
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
    )


def _image_rule(run: RunFolder) -> str:
    """The rule by which a run sent its pages; "" if nothing names it."""
    rule = run.info.profile.get("image")
    return rule if isinstance(rule, str) else ""


def _fields(
    group: SampledGroup, sample: Sample, prediction: Prediction | None, adapters: Sequence[str]
) -> tuple[JudgedField, ...]:
    """The fields of an answer with how each was judged; none, with a note, where that fails."""
    try:
        return fields_of(group.benchmark, sample, prediction, adapters)
    except Exception as error:  # noqa: BLE001  an answer whose fields cannot be told apart is shown as its text
        group.note = f"The fields of {sample.id} cannot be shown: {error}"
        return ()


def _explanation(group: SampledGroup, sample: Sample, scores: SampleScores) -> Explanation | None:
    """The match of the answer, if the benchmark tells and the ground truth is at hand."""
    if group.benchmark is None or group.benchmark.explain is None or sample.truth is None:
        return None
    try:
        return group.benchmark.explain(sample, scores)
    except Exception as error:  # noqa: BLE001  one sample that cannot be drawn must not end a report
        group.note = f"The match of {sample.id} cannot be shown: {error}"
        return None


def _scoring_error(scores: SampleScores, prediction: Prediction | None) -> str:
    """The reason that scoring failed; the stored line names first why there is no answer, which is said elsewhere."""
    if prediction is None or not prediction.failed:
        return scores.error
    return scores.error.removeprefix(prediction.error).removeprefix("; ")


def values_of(group: SampledGroup, scores: SampleScores) -> dict[str, float]:
    """The measures of one answer. Of composites only the headline: others say nothing about a sample alone."""
    values = sample_values(group.measures, scores.scores)
    if group.benchmark is not None and group.headline not in values:
        whole = sample_values(group.measures, scores.scores, group.benchmark.summarize)
        values |= {name: value for name, value in whole.items() if name == group.headline}
    return values
