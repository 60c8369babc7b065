"""Score answers to each task of the folder format, as counts that add up, and list the measures of a folder.

Fields are compared by their types; labels give a confusion matrix, precision, recall and F1.
Definitions: docs/scoring-rules.md. Every function takes (answer, reference, comparison) and accepts any answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import msgspec

from loupe.benchmarks.folders.own.config import (
    FolderConfig,
    absent_or_not,
    alike,
    canonical_key,
    judge_field,
    label_of,
    same_text,
)
from loupe.benchmarks.folders.own.facts import score_facts
from loupe.benchmarks.folders.own.normalization import (
    Comparison,
    prepare_formula,
    prepare_markdown,
    prepare_text,
    score_teds,
    separate_words,
)
from loupe.benchmarks.folders.own.tables import read_table
from loupe.benchmarks.shared.answer_texts import remove_fence
from loupe.benchmarks.shared.mean_of_parts import mean_of_parts
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
from loupe.metrics.field_values import is_absent
from loupe.stats.analysis import Analysis
from loupe.stats.estimates import FEWEST_OF_PART, estimate
from loupe.types import Measure, SampleScores, Score, Values

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
    """Judge every wanted field by how alike the two texts are; first of the pair: the answer is a JSON object."""
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


MEASURES = (
    Measure(name="field_score", title="fields by type"),
    Measure(name="field_accuracy", title="fields right"),
    Measure(name="json_validity", title="answers that are JSON"),
    INVENTED,
)


def scoring_of(task: str, config: FolderConfig, labels: Collection[str] = ()) -> TaskScoring:
    """Return the scoring of a task in a folder; `labels` are those that its classes have."""
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
    """Judge every field of the folder, with the rule that decided; first of the pair: the answer is a JSON object."""
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


#: In place of a label: the answer was none of them, or there was no answer.
UNKNOWN, NONE = "none of the labels", "no answer"
#: With more labels the matrix is no table any more.
MOST_LABELS = 40
#: The name in `figures` of a result.
FIGURE = "classes"

_RATIOS = Analysis([Measure(name="precision"), Measure(name="recall"), Measure(name="f1")])


def class_details(answer: str, reference: str, labels: Sequence[str]) -> dict[str, str]:
    """Return a sample's part of the matrix: the label it has, and the one that was answered."""
    answered = label_of(answer, labels) or (f"({UNKNOWN})" if answer.strip() else f"({NONE})")
    return {"label": label_of(reference, labels) or reference, "answered": answered}


def class_figures(rows: Iterable[SampleScores], labels: Sequence[str]) -> dict[str, Any]:
    """The matrix as truth → answered → samples, and for each label its three ratios; {} without any class.

    With more than 40 labels the matrix is empty.
    """
    pairs = [
        (row.group or row.sample, row.details["label"], row.details["answered"])
        for row in rows
        if row.details.keys() >= {"label", "answered"}
    ]
    used = {label for pair in pairs for label in pair[1:]}
    known = [label for label in labels if label in used]
    if not pairs:
        return {}
    concerned: dict[str, list[tuple[str, str, str]]] = {label: [] for label in known}
    for pair in pairs:
        for label in {*pair[1:]} & concerned.keys():
            concerned[label].append(pair)
    ratios = {label: _ratios(found, label) for label, found in concerned.items()}
    return {"matrix": _matrix(pairs, known) if len(known) <= MOST_LABELS else {}, "labels": ratios}


def _matrix(pairs: Sequence[tuple[str, str, str]], known: Sequence[str]) -> dict[str, dict[str, int]]:
    others = sorted({answered for _, _, answered in pairs} - set(known))
    matrix = {truth: dict.fromkeys([*known, *others], 0) for truth in known}
    for _, truth, answered in pairs:
        matrix[truth][answered] += 1
    return matrix


def without_labels(rows: Iterable[SampleScores]) -> list[str]:
    """A warning where there are answers, and not one of them is a label."""
    answered = [row.details["answered"] for row in rows if "answered" in row.details]
    if f"({UNKNOWN})" not in answered or set(answered) - {f"({UNKNOWN})", f"({NONE})"}:
        return []
    none = "no answer is one of the labels"
    return [f"{none}: plain OCR gives no labels, a vision model does (--base-url URL)"]


def _ratios(pairs: Sequence[tuple[str, str, str]], label: str) -> dict[str, Any]:
    scores = []
    for cluster, truth, answered in pairs:
        hit, wanted, given = float(truth == answered == label), float(truth == label), float(answered == label)
        counts = {"precision": (hit, given), "recall": (hit, wanted), "f1": (2 * hit, wanted + given)}
        # What has no part in a ratio must not count among its samples: two right out of two prove little.
        scores += [(cluster, Score(measure=name, counts=each)) for name, each in counts.items() if each[1]]
    found = estimate(_RATIOS, scores, fewest=FEWEST_OF_PART)
    occurs, given = (sum(pair[place] == label for pair in pairs) for place in (1, 2))
    sizes = {"precision": given, "recall": occurs, "f1": occurs}
    return {name: msgspec.to_builtins(msgspec.structs.replace(found[name], n=n)) for name, n in sizes.items()}


def measures_of(tasks: tuple[str, ...], config: FolderConfig) -> tuple[Measure, ...]:
    """Every measure, that which ranks first unless the folder names another."""
    own = tuple(measure for task in tasks for measure in scoring_of(task, config).measures)
    return (Measure(name="overall", title="mean of the tasks"), *own) if len(tasks) > 1 else own


def mean_of_headlines(tasks: tuple[str, ...], config: FolderConfig) -> Callable[[Values], Values]:
    """The `overall` of several tasks: the mean over those that occur."""
    names = [scoring_of(task, config).measures[0].name for task in tasks]

    def summarize(values: Values) -> Values:
        overall = mean_of_parts(values, names)
        return {} if overall is None else {"overall": overall}

    return summarize
