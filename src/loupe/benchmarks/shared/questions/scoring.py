"""From answers to points: references and answers as the variant has them, and what all question sets do with a rule.

Protocol: docs/protocols/qa.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, get_args

from loupe.benchmarks.shared.questions.asking import Variant
from loupe.benchmarks.shared.questions.data import QuestionSet
from loupe.benchmarks.shared.questions.faults import FAULTS
from loupe.errors import UsageError
from loupe.metrics import anls
from loupe.types import (
    Benchmark,
    Conclusion,
    FormatFault,
    Load,
    Measure,
    ParityCases,
    Prediction,
    Sample,
    SampleScores,
    Score,
    ScoreFunction,
)

#: What an answer earns by measure; gets the answer, the references, and the variant.
Rule: TypeAlias = Callable[[str, Sequence[str], Variant], Mapping[str, float]]

DEVIATIONS = (
    "A question without any reference earns 0; VLMEvalKit and lmms-eval end their run at it.",
    "A failed answer earns 0, also where the reference is an empty text.",
)
_MARKED = re.compile(r"ANSWER:\s*(.*)")
_HIDDEN = "its answers are not public; `loupe export RUN --to submission` writes the file for the official server"

ANLS_MEASURES = (
    Measure(name="anls", title="ANLS"),
    Measure(name="partly_right", title="answers partly right (ANLS from 0.5, below 1)", higher_is_better=False),
    Measure(name="zeroed", title="answers alike, but below 0.5: counted 0", higher_is_better=False),
)


def answered(text: str, variant: Variant, *, whole: bool) -> str:
    """The part of an answer that a runner scores. `whole`: all of it where evalscope finds no mark, else nothing."""
    if variant == "vlmevalkit":
        return text
    if variant == "lmms_eval":
        return text.strip()
    marked = _MARKED.findall(text)
    return str(marked[-1]).strip() if marked else text.strip() if whole else ""


def anls_points(text: str, references: Sequence[str], variant: Variant) -> dict[str, float]:
    """ANLS of DocVQA and InfoVQA, 0..1, and whether it lies between right and wrong, or was cut to 0.

    Without any reference it is 0, where evalscope's is; the other programs end their run.
    """
    alike = anls(answered(text, variant, whole=True), references, threshold=0.0) if references else 0.0
    found = alike if alike >= 0.5 else 0.0
    return {"anls": found, "partly_right": float(0.5 <= alike < 1), "zeroed": float(0 < alike < 0.5)}


def question_benchmark(
    where: QuestionSet,
    load: Load,
    *,
    rule: Rule,
    measures: tuple[Measure, ...],
    faults: tuple[FormatFault, ...] = FAULTS,
    **more: Any,
) -> Benchmark:
    """A benchmark of a question set: the first measure ranks; `more` are further fields of Benchmark."""
    return Benchmark(
        title=where.title,
        version="1",
        task="question",
        usual_prompt="(each sample's own question, with the words of the runner around it)",
        measures=measures,
        load=load,
        score=scored_by(rule),
        conclude=partial(_conclude, measures[0].name),
        reference=reference_text,
        faults=faults,
        submission=partial(_submission, where.key) if where.hidden else None,
        max_tokens=2_048,
        **more,
    )


def scored_by(rule: Rule) -> ScoreFunction:
    """The score function of a set: the rule's points, none for a failed answer, no score where nobody has the truth."""

    def score(sample: Sample, prediction: Prediction) -> list[Score]:
        answers = sample.truth.get("answers")
        if answers is None:
            return []
        references = [answers] if isinstance(answers, str) else answers
        variant: Any = sample.scoring.get("variant", "vlmevalkit")
        points = rule(prediction.text, references, variant)
        if prediction.failed:  # no answer earns nothing, also where an empty one would hold an empty answer
            points = dict.fromkeys(points, 0.0)
        return [Score(measure=name, counts=(value, 1.0)) for name, value in points.items()]

    return score


def _conclude(headline: str, rows: Sequence[SampleScores]) -> Conclusion:
    """Says why there is no number where the answers of a split are not public."""
    hidden = bool(rows) and not any(row.scores for row in rows)
    return Conclusion(not_computed={headline: _HIDDEN} if hidden else {})


def reference_text(sample: Sample) -> str:
    """The first accepted answer; "" where nobody has one."""
    answers = sample.truth.get("answers") or ""
    return answers if isinstance(answers, str) else next(iter(answers), "")


def _submission(key: str, answers: Iterable[tuple[Sample, str]]) -> list[dict[str, Any]]:
    """What the official server takes: a list of objects with the id, as a number where it is one, and the answer.

    Raises UsageError for questions whose answers are public: no server scores these.
    """
    rows = []
    for sample, text in answers:
        if "answers" in sample.truth:
            raise UsageError(
                f"the answer to {sample.id} is public; the server takes those to the test split", hint="-o split=test"
            )
        variant: Any = sample.scoring.get("variant", "vlmevalkit")
        ident = int(sample.id) if re.fullmatch(r"[0-9]{1,18}", sample.id) else sample.id
        rows.append({key: ident, "answer": answered(text, variant, whole=True).strip()})
    return rows


def parity(rule: Rule, kind: str, headline: str) -> ParityCases:
    """The official cases of one kind, under every variant that scores it."""

    def compare(case: dict[str, Any]) -> list[tuple[float, float]]:
        given = case["input"]
        answers = given.get("answers", given.get("answer"))
        references = [answers] if isinstance(answers, str) else answers
        return [
            (rule(given["prediction"], references, variant)[headline], expected)
            for variant in get_args(Variant)
            if isinstance(expected := case["expected"].get(variant), float | int)
        ]

    def of_kind(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if case["kind"] == kind:
            yield case | {"tolerance": 1e-12}

    return ParityCases(compare=compare, oracles={"qa/cases.jsonl": of_kind}, deviations=DEVIATIONS)
