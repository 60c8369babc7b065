"""Fields scored by their types: dates and amounts by value, names by rules, numbers without spaces, texts by ANLS.

Rules: docs/own-data.md. Only folders with a table `[fields]` are scored so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from loupe.benchmarks.own.config import FolderConfig
from loupe.benchmarks.own.field_types import canonical_key, field_score
from loupe.benchmarks.own.normalization import Comparison
from loupe.benchmarks.own.scorers import TASKS, TaskScoring, read_fields, score_class
from loupe.types import Measure, Score

MEASURES = (
    Measure(name="field_score", title="fields by type"),
    Measure(name="field_accuracy", title="fields right"),
    Measure(name="json_validity", title="answers that are JSON"),
)


def scoring_of(task: str, config: FolderConfig, labels: Collection[str] = ()) -> TaskScoring:
    """How a folder scores a task; `labels` are those that its classes have."""
    if task == "class":
        return TaskScoring(measures=TASKS[task].measures, score=partial(score_class, labels=labels))
    if task == "fields" and config.fields:
        return TaskScoring(measures=MEASURES, score=partial(score_typed_fields, config))
    return TASKS[task]


def score_typed_fields(
    config: FolderConfig, answer: str, reference: Mapping[str, str], comparison: Comparison
) -> list[Score]:
    """One score per field of the folder, tagged with its name; one that the reference does not have is empty in it.

    An answer that is no JSON object has no field.
    """
    found = read_fields(answer, config.fields)
    scores = [Score(measure="json_validity", counts=(float(found is not None), 1.0))]
    for name, kind in config.fields.items():
        wanted = reference.get(name, "")
        given = (found or {}).get(canonical_key(name), "")
        right = field_score(kind, given, wanted, comparison=comparison, order=config.date_order)
        tags = {"field": name}
        scores.append(Score(measure="field_score", counts=(right, 1.0), unit=name, tags=tags))
        scores.append(Score(measure="field_accuracy", counts=(float(right == 1.0), 1.0), unit=name, tags=tags))
    return scores
