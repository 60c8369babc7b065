"""Fields scored by their types: dates and amounts by value, names by rules, numbers without spaces, texts by ANLS.

Rules: docs/scoring-rules.md. Only folders with a table `[fields]` are scored so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from loupe.benchmarks.folders.own.config import FolderConfig
from loupe.benchmarks.folders.own.field_types import canonical_key, judge_field
from loupe.benchmarks.folders.own.normalization import Comparison
from loupe.benchmarks.folders.own.scorers import (
    INVENTED,
    NO_OBJECT,
    QUESTION_RULES,
    TASKS,
    TaskScoring,
    invented_values,
    judge_fields,
    read_fields,
    score_class,
)
from loupe.explanation import JudgedField
from loupe.types import Measure, Score

MEASURES = (
    Measure(name="field_score", title="fields by type"),
    Measure(name="field_accuracy", title="fields right"),
    Measure(name="json_validity", title="answers that are JSON"),
    INVENTED,
)


def scoring_of(task: str, config: FolderConfig, labels: Collection[str] = ()) -> TaskScoring:
    """How a folder scores a task; `labels` are those that its classes have."""
    if task == "class":
        return TaskScoring(measures=TASKS[task].measures, score=partial(score_class, labels=labels))
    if task == "fields" and config.fields:
        return TaskScoring(measures=MEASURES, score=partial(score_typed_fields, config))
    return QUESTION_RULES[config.questions] if task == "question" else TASKS[task]


def score_typed_fields(
    config: FolderConfig, answer: str, reference: Mapping[str, str], comparison: Comparison
) -> list[Score]:
    """One score per field of the folder, tagged with its name; one that the reference does not have is empty in it.

    An answer that is no JSON object has no field.
    """
    valid, judged = judge_typed_fields(config, answer, reference, comparison)
    scores = [Score(measure="json_validity", counts=(float(valid), 1.0))]
    for field in judged:
        tags = {"field": field.name}
        scores.append(Score(measure="field_score", counts=(field.value, 1.0), unit=field.name, tags=tags))
        right = float(field.value == 1.0)
        scores.append(Score(measure="field_accuracy", counts=(right, 1.0), unit=field.name, tags=tags))
    return [*scores, *(invented_values(judged, lambda name: {"field": name}) if valid else [])]


def judge_typed_fields(
    config: FolderConfig, answer: str, reference: Mapping[str, str], comparison: Comparison
) -> tuple[bool, list[JudgedField]]:
    """Whether the answer is a JSON object, and every field of the folder with the rule that decided."""
    found = read_fields(answer, config.fields)
    judged = []
    for name, kind in config.fields.items():
        wanted, given = reference.get(name, ""), (found or {}).get(canonical_key(name), "")
        value, rule = judge_field(kind, given, wanted, comparison=comparison, order=config.date_order)
        rule = rule if found is not None else NO_OBJECT
        judged.append(JudgedField(name=name, wanted=wanted, given=given, value=value, rule=rule))
    return found is not None, judged


def judge(config: FolderConfig, answer: str, reference: Mapping[str, str], comparison: Comparison) -> list[JudgedField]:
    """The fields of an answer as they were scored, with or without types."""
    judged = judge_typed_fields(config, answer, reference, comparison) if config.fields else None
    return (judged or judge_fields(answer, reference, comparison))[1]
