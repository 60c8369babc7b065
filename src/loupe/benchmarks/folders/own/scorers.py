"""How answers to each task of the folder format are scored, as counts that add up.

Definitions: docs/scoring-rules.md. Every function takes (answer, reference, comparison) and accepts any answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from loupe.benchmarks.folders.own.class_labels import label_of
from loupe.benchmarks.folders.own.facts import score_facts
from loupe.benchmarks.folders.own.field_types import absent_or_not, alike, canonical_key, same_text
from loupe.benchmarks.folders.own.normalization import (
    Comparison,
    prepare_formula,
    prepare_markdown,
    prepare_text,
    separate_words,
)
from loupe.benchmarks.folders.own.table_similarity import score_teds
from loupe.benchmarks.folders.own.tables import read_table
from loupe.benchmarks.shared.fences import remove_fence
from loupe.explanation import JudgedField
from loupe.metrics import (
    anls,
    character_errors,
    contains_answer,
    exact_match,
    normalized_edit_similarity,
    rate_of_sums,
    relaxed_accuracy,
    word_errors,
)
from loupe.metrics.absent import is_absent
from loupe.types import Measure, Score

INVENTED = Measure(name="invented", title="invented values", higher_is_better=False)
NO_OBJECT = "the answer is no JSON object"

Scorer: TypeAlias = Callable[[str, Any, Comparison], list[Score]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskScoring:
    """The measures of a task, its headline first, and the function that makes their counts."""

    measures: tuple[Measure, ...]
    score: Scorer


def score_text(answer: str, reference: str, comparison: Comparison) -> list[Score]:
    """Edit similarity of the page, and the edits that corpus CER and WER are made from."""
    found, wanted = prepare_text(answer, comparison), prepare_text(reference, comparison)
    return [
        Score(measure="text_similarity", counts=(normalized_edit_similarity(found, wanted), 1.0)),
        Score(measure="cer", counts=character_errors(found, wanted)),
        Score(measure="wer", counts=word_errors(separate_words(found), separate_words(wanted))),
    ]


def score_markdown(answer: str, reference: str, comparison: Comparison) -> list[Score]:
    """Edit similarity of two Markdown texts in one spelling."""
    found, wanted = (_fold(prepare_markdown(text), comparison) for text in (answer, reference))
    return [Score(measure="markdown_similarity", counts=(normalized_edit_similarity(found, wanted), 1.0))]


def score_formula(answer: str, reference: str, comparison: Comparison) -> list[Score]:
    """Edit similarity of LaTeX without meaningless white space. Case always counts: it means something."""
    similarity = normalized_edit_similarity(prepare_formula(answer), prepare_formula(reference))
    return [Score(measure="formula_similarity", counts=(similarity, 1.0))]


def score_table(answer: str, reference: str, comparison: Comparison) -> list[Score]:
    """F1 of cells: each cell earns the edit similarity to the cell at the same place of the other table; and TEDS."""
    found, wanted = read_table(answer), read_table(reference)
    earned = sum(
        normalized_edit_similarity(prepare_text(found[place], comparison), prepare_text(text, comparison))
        for place, text in wanted.items()
        if place in found
    )
    cells = len(found) + len(wanted)
    cell_f1 = Score(measure="cell_f1", counts=(2 * earned / cells if cells else 1.0, 1.0))
    return [cell_f1, score_teds(answer, reference, comparison)]


def score_fields(answer: str, reference: Mapping[str, str], comparison: Comparison) -> list[Score]:
    """One score per wanted field. An answer that is no JSON object has no field, and shows in `json_validity`."""
    valid, judged = judge_fields(answer, reference, comparison)
    scores = [Score(measure="json_validity", counts=(float(valid), 1.0))]
    for field in judged:
        scores.append(Score(measure="field_similarity", counts=(field.value, 1.0), unit=field.name))
        scores.append(Score(measure="field_accuracy", counts=(float(field.value == 1.0), 1.0), unit=field.name))
    return [*scores, *(invented_values(judged) if valid else [])]


def invented_values(judged: Iterable[JudgedField], tags: Callable[[str], dict[str, str]] = lambda _: {}) -> list[Score]:
    """For every field that the page does not have: whether the answer, a JSON object, has a value for it."""
    return [
        Score(
            measure=INVENTED.name,
            counts=(float(not is_absent(field.given)), 1.0),
            unit=field.name,
            tags=tags(field.name),
        )
        for field in judged
        if is_absent(field.wanted)
    ]


def judge_fields(answer: str, reference: Mapping[str, str], comparison: Comparison) -> tuple[bool, list[JudgedField]]:
    """Whether the answer is a JSON object, and every wanted field with how alike the two texts are."""
    fields = read_fields(answer, reference)
    judged = []
    for name, wanted in reference.items():
        given = (fields or {}).get(canonical_key(name), "")
        found, right = prepare_text(given, comparison), prepare_text(wanted, comparison)
        similarity = normalized_edit_similarity(found, right)
        rule = same_text(given, wanted) if similarity == 1.0 else alike(similarity, found, right)
        if similarity < 1.0 and (is_absent(given) or is_absent(wanted)):
            similarity, rule = absent_or_not(given, wanted)
        rule = rule if fields is not None else NO_OBJECT
        judged.append(JudgedField(name=name, wanted=wanted, given=given, value=similarity, rule=rule))
    return fields is not None, judged


def score_question(answer: str, reference: list[str], comparison: Comparison) -> list[Score]:
    """ANLS: the best similarity over the accepted answers; below one half it is 0. Case never counts."""
    return [Score(measure="anls", counts=(anls(answer, reference), 1.0))]


def score_relaxed(answer: str, reference: list[str], comparison: Comparison) -> list[Score]:
    """1 if a number is within 5 % of an accepted one, or a text equals one but for case, as ChartQA has it."""
    right = max((relaxed_accuracy(answer.strip(), each.strip()) for each in reference), default=0.0)
    return [Score(measure="relaxed_accuracy", counts=(right, 1.0))]


def score_exact(answer: str, reference: list[str], comparison: Comparison) -> list[Score]:
    """1 if the answer is an accepted one, but for case and white space around it."""
    return [Score(measure="exact_match", counts=(exact_match(answer, reference), 1.0))]


def score_contains(answer: str, reference: list[str], comparison: Comparison) -> list[Score]:
    """1 if an accepted answer occurs in the answer, whatever stands around it; case never counts."""
    return [Score(measure="contains", counts=(contains_answer(answer, reference), 1.0))]


def score_class(answer: str, reference: str, comparison: Comparison, *, labels: Collection[str] = ()) -> list[Score]:
    """1 if the answer is the label and nothing else, but for case, white space, stops and pairs of marks around it."""
    right = label_of(answer, labels or (reference,)) == (label_of(reference, labels) or reference)
    return [Score(measure="accuracy", counts=(float(right), 1.0))]


def read_fields(answer: str, wanted: Collection[str] = ()) -> dict[str, str] | None:
    """The fields of a JSON object in an answer, keys in one spelling; None if it is no JSON object.

    Of keys that are one name the one spelled as in `wanted` counts, else the first. Numbers keep the digits that were
    written, null is "", lists and objects are JSON again.

    >>> read_fields('```json\\n{"Total": 12.50, "Tax": null}\\n```')
    {'total': '12.50', 'tax': ''}
    """
    try:
        found = json.loads(
            remove_fence(answer), parse_float=str, parse_int=str, parse_constant=str, object_pairs_hook=_first_of_each
        )
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    spelled = [name for name in wanted if name in found]
    return _first_of_each((canonical_key(key), _field_text(found[key])) for key in (*spelled, *found))


def _first_of_each(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Readers of JSON keep the last of equal keys: a model that repeats itself would overwrite its own answer."""
    kept: dict[str, Any] = {}
    for key, value in pairs:
        kept.setdefault(key, value)
    return kept


def _field_text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _fold(text: str, comparison: Comparison) -> str:
    return text.casefold() if comparison.ignore_case else text


def _lower(name: str, title: str) -> Measure:
    return Measure(name=name, title=title, higher_is_better=False, value=rate_of_sums)


def _question(name: str, title: str, score: Scorer) -> TaskScoring:
    return TaskScoring(measures=(Measure(name=name, title=f"questions ({title})"),), score=score)


#: What makes an answer to a question right, by `questions` of loupe.toml.
QUESTION_RULES: Mapping[str, TaskScoring] = {
    "anls": _question("anls", "ANLS", score_question),
    "relaxed": _question("relaxed_accuracy", "relaxed accuracy", score_relaxed),
    "exact": _question("exact_match", "exact", score_exact),
    "contains": _question("contains", "contained", score_contains),
}
#: Every task of the folder format.
TASKS: Mapping[str, TaskScoring] = {
    "text": TaskScoring(
        measures=(
            Measure(name="text_similarity", title="text"),
            _lower("cer", "character errors"),
            _lower("wer", "word errors"),
        ),
        score=score_text,
    ),
    "markdown": TaskScoring(measures=(Measure(name="markdown_similarity", title="markdown"),), score=score_markdown),
    "table": TaskScoring(
        measures=(Measure(name="cell_f1", title="table cells"), Measure(name="teds", title="TEDS")), score=score_table
    ),
    "formula": TaskScoring(measures=(Measure(name="formula_similarity", title="formula"),), score=score_formula),
    "fields": TaskScoring(
        measures=(
            Measure(name="field_similarity", title="fields"),
            Measure(name="field_accuracy", title="fields exactly right"),
            Measure(name="json_validity", title="answers that are JSON"),
            INVENTED,
        ),
        score=score_fields,
    ),
    "question": QUESTION_RULES["anls"],
    "facts": TaskScoring(measures=(Measure(name="facts", title="facts that hold"),), score=score_facts),
    "class": TaskScoring(measures=(Measure(name="accuracy", title="classes (accuracy)"),), score=score_class),
}
