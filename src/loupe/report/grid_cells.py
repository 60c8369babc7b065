"""What the grid of samples shows and sorts by: of each answer its class, one value and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from loupe.report.markup import without_surrogates
from loupe.results.sections import format_diagnostic
from loupe.types import FAILED, Sample, SampleScores

if TYPE_CHECKING:
    from loupe.report.samples import Answer
    from loupe.results.groups import Entrant, Group

JsonObject: TypeAlias = dict[str, Any]

#: Diagnostics of one answer that are true or false.
_FLAGS = frozenset({"empty", "truncated", "loop", "text_on_blank"})


def rightly_empty(scores: SampleScores | None) -> bool:
    """Whether this is no answer to a page with neither ink nor ground truth; only such pages have the diagnostic."""
    return scores is not None and scores.outcome == "empty" and scores.diagnostics.get("text_on_blank") == 0.0


def summary_row(
    group: Group,
    sample: Sample,
    tags: Mapping[str, str],
    answers: Sequence[tuple[Answer, bool]],
) -> JsonObject:
    """What the grid shows and sorts by: for each engine the outcome and one value, by the first measure it has."""
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
    """What to call a sample without a record: failed only where the result counts it, and its run was asked for it."""
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
