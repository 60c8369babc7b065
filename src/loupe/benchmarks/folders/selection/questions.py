"""What is asked about documents, as samples, and what the answers are worth: the two benchmarks of model selection.

Source: docs/select.md. A document of phase B is two samples of a group: categorisation and, for positives, extraction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from loupe.benchmarks.folders.own.folder_benchmark import TRUTH_TAG
from loupe.benchmarks.folders.selection.documents import Document
from loupe.benchmarks.folders.selection.extractions import match_extraction, parse_extraction
from loupe.benchmarks.folders.selection.prompts import FIELDS, extraction_prompt, image_prompt, text_prompt
from loupe.benchmarks.folders.selection.verdicts import parse_verdict
from loupe.metrics.dates import DateOrder
from loupe.types import Measure, Prediction, Sample, Score, Scored

Phase: TypeAlias = Literal["a", "b"]
CATEGORY, EXTRACTION = "category", "extraction"

IMAGE_MEASURES = (
    Measure(name="score"),
    Measure(name="positives_found"),
    Measure(name="negatives_refused"),
    Measure(name="unparsable", higher_is_better=False),
)
TEXT_MEASURES = (
    Measure(name="score"),
    Measure(name="categorised"),
    Measure(name="extracted"),
    Measure(name="date"),
    Measure(name="name"),
    Measure(name="unparsable", higher_is_better=False),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What decides about points: the type, the field beside the date, and what a negative document of phase B earns."""

    document_type: str
    field: str = "company"
    negative_points: int = 2
    date_order: DateOrder = "dmy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a document: its text, and its ground truth where it is a positive one.

    `unverified`: no person has confirmed that; `drafters` are the models that wrote it.
    """

    text: str = ""
    date: str = ""
    name: str = ""
    unverified: bool = False
    drafters: tuple[str, ...] = ()


def image_samples(documents: Sequence[Document], rules: Rules) -> Iterator[Sample]:
    """Phase A: is it?, once for each document."""
    for document in documents:
        yield Sample(
            id=document.id,
            images=(document.page,),
            prompt=image_prompt(rules.document_type),
            truth={"match": document.positive, "type": rules.document_type},
            task=CATEGORY,
            tags={"folder": document.folder},
        )


def text_samples(documents: Sequence[Document], known: Mapping[str, Known], rules: Rules) -> Iterator[Sample]:
    """Phase B: is it?, and for positive documents: which values? The page itself is not shown: the text is all."""
    field = FIELDS[rules.field]
    for document in documents:
        one = known[document.id]
        group = document.id
        yield Sample(
            id=f"{document.id}#{CATEGORY}",
            prompt=text_prompt(rules.document_type, one.text),
            truth={
                "match": document.positive,
                "type": rules.document_type,
                "points": 1 if document.positive else rules.negative_points,
            },
            group=group,
            task=CATEGORY,
            tags={"folder": document.folder, "call": CATEGORY},
        )
        if document.positive:
            yield Sample(
                id=f"{document.id}#{EXTRACTION}",
                prompt=extraction_prompt(rules.document_type, field, one.text),
                truth={
                    "date": one.date,
                    "name": one.name if field.key else "",
                    "field": rules.field,
                    "order": rules.date_order,
                },
                group=group,
                task=EXTRACTION,
                tags={
                    "folder": document.folder,
                    "call": EXTRACTION,
                    **({TRUTH_TAG: "draft"} if one.unverified else {}),
                },
            )


def score_image(sample: Sample, prediction: Prediction) -> Scored:
    """One point for the right word; both words, neither, or no answer at all is wrong on both sides."""
    correct, unparsable, details = _verdict(sample.truth, prediction)
    share = "positives_found" if sample.truth["match"] else "negatives_refused"
    counts = (float(correct), 1.0)
    scores = [Score(measure="score", counts=counts), Score(measure=share, counts=counts)]
    return Scored(scores=[*scores, _share("unparsable", unparsable)], details=details)


def score_text(sample: Sample, prediction: Prediction) -> Scored:
    """Points of one of a document's two calls.

    A negative document earns all its points by categorisation. A positive one whose ground truth is empty has no
    extraction to score.
    """
    if sample.task == CATEGORY:
        correct, unparsable, details = _verdict(sample.truth, prediction)
        points = sample.truth["points"]
        scores = [Score(measure="score", counts=(float(points * correct), float(points)))]
        scores += [_share("categorised", correct), _share("unparsable", unparsable)]
        return Scored(scores=scores, details=details)
    return _score_extraction(sample.truth, prediction)


def _verdict(truth: dict[str, Any], prediction: Prediction) -> tuple[bool, bool, dict[str, Any]]:
    """Whether the verdict is right, whether an answer holds none, and what to keep."""
    verdict = None if prediction.failed else parse_verdict(prediction.text, truth["type"])
    correct = verdict == ("yes" if truth["match"] else "no")
    return correct, verdict is None and not prediction.failed, {"verdict": verdict or "", "correct": correct}


def _score_extraction(truth: dict[str, Any], prediction: Prediction) -> Scored:
    field = FIELDS[truth["field"]]
    found = parse_extraction("" if prediction.failed else prediction.text, field)
    details: dict[str, Any] = {"date": found.date, "name": found.name}
    if not (truth["date"] or truth["name"]):
        return Scored(scores=[], details={**details, "no_ground_truth": True})
    match = match_extraction(found, truth["date"], truth["name"], field=field, date_order=truth["order"])
    # An answer without JSON is wrong also where the truth lacks the one value or the other.
    correct = match.date and match.name and found.parsable
    scores = [_share("score", correct), _share("extracted", correct)]
    scores += [_share("date", match.date)] if truth["date"] else []
    scores += [_share("name", match.name)] if truth["name"] else []
    scores.append(_share("unparsable", not (found.parsable or prediction.failed)))
    details |= {"date_ok": match.date, "name_ok": match.name, "rule": match.rule or "", "correct": correct}
    return Scored(scores=scores, details=details)


def _share(measure: str, holds: bool) -> Score:
    return Score(measure=measure, counts=(float(holds), 1.0))
