"""The two benchmarks of model selection: what is asked about documents, what answers are worth, and how both are saved.

A document of phase B is two samples of a group: categorisation and, for positives, extraction. `loupe select --save`
writes the documents, their texts and ground truth as they were; that folder opens as a benchmark wherever one is named.
Source: docs/select.md.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from loupe.benchmarks.folders.own.folder_benchmark import DRAFTERS, TRUTH_TAG
from loupe.data import trust
from loupe.errors import DatasetError, UntrustedError
from loupe.features.select.documents import Document
from loupe.features.select.questions import (
    EXTRACTION_TOKENS,
    FIELDS,
    VERDICT_TOKENS,
    extraction_prompt,
    image_prompt,
    match_extraction,
    parse_extraction,
    parse_verdict,
    text_prompt,
)
from loupe.files.folder import Folder
from loupe.files.foreign import real_path
from loupe.metrics.dates import DateOrder
from loupe.typed import encode_json, json_decoder
from loupe.types import UNDECODABLE, Benchmark, Conclusion, Measure, Prediction, Sample, SampleScores, Score, Scored

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
    """The rules for points: the type, the field beside the date, and what a negative document of phase B earns."""

    document_type: str
    field: str = "company"
    negative_points: int = 2
    date_order: DateOrder = "dmy"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The facts known about a document: its text, and its ground truth if it is a positive one.

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
    """Judge the verdict: right or not, whether an answer holds none, and what to keep."""
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


FILE = "selection.json"
#: How each phase is called where its runs are filed.
NAMES: dict[Phase, str] = {"a": "select_vlm", "b": "select_textllm"}
VERSION = "1"


class SavedDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One document, its text and its ground truth; `path` is relative to the folder of the selection.

    `unverified` ground truth is what models drafted; `drafters` are the engines of these in the runs.
    """

    path: str
    positive: bool
    text: str = ""
    date: str = ""
    name: str = ""
    unverified: bool = False
    drafters: list[str] = []


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `selection.json`."""

    phase: Phase
    document_type: str
    documents: list[SavedDocument]
    field: str = "company"
    negative_points: int = 2
    date_order: DateOrder = "dmy"


def save_selection(
    folder: Folder, phase: Phase, rules: Rules, documents: Sequence[Document], known: Mapping[str, Known]
) -> None:
    """Write the selection of one phase into a folder."""
    saved = Selection(
        phase=phase,
        document_type=rules.document_type,
        field=rules.field,
        negative_points=rules.negative_points,
        date_order=rules.date_order,
        documents=[_saved(folder.path, document, known.get(document.id, Known())) for document in documents],
    )
    folder.write(FILE, msgspec.json.format(encode_json(saved), indent=1) + b"\n")
    trust.remember(folder.path / FILE)


def _saved(folder: Path, document: Document, known: Known) -> SavedDocument:
    path = os.path.relpath(real_path(document.path), real_path(folder))
    return SavedDocument(
        path=path,
        positive=document.positive,
        text=known.text,
        date=known.date,
        name=known.name,
        unverified=known.unverified,
        drafters=list(known.drafters),
    )


def open_selection(folder: Path) -> Benchmark:
    """The benchmark of a saved selection. Raises DatasetError where its file is damaged."""
    file = folder / FILE
    try:
        selection = json_decoder(Selection).decode(Folder(folder).read(FILE))
    except (*UNDECODABLE, OSError) as error:
        raise DatasetError(f"{file}: {error}", hint="write it again: loupe select --save") from None
    if selection.documents and not trust.is_trusted(file):
        first = selection.documents[0].path
        effect = f"it names {len(selection.documents):,} documents to be read, the first {first[:200]}"
        raise UntrustedError(file, effect, changed=trust.was_trusted(file))
    rules = Rules(
        document_type=selection.document_type,
        field=selection.field,
        negative_points=selection.negative_points,
        date_order=selection.date_order,
    )
    documents = [Document(path=folder / each.path, positive=each.positive) for each in selection.documents]
    known = {
        document.id: Known(
            text=each.text,
            date=each.date,
            name=each.name,
            unverified=each.unverified,
            drafters=tuple(each.drafters),
        )
        for document, each in zip(documents, selection.documents, strict=True)
    }

    def load(root: Path | None) -> Iterator[Sample]:
        return image_samples(documents, rules) if selection.phase == "a" else text_samples(documents, known, rules)

    by_image = selection.phase == "a"
    return Benchmark(
        title=f"{'Vision' if by_image else 'Text'} models on {selection.document_type} documents",
        version=VERSION,
        task="category",
        measures=IMAGE_MEASURES if by_image else TEXT_MEASURES,
        load=load,
        score=score_image if by_image else score_text,
        max_tokens=VERDICT_TOKENS if by_image else EXTRACTION_TOKENS,
        conclude=partial(_conclusion, Counter(name for each in known.values() for name in each.drafters)),
    )


def _conclusion(drafters: Mapping[str, int], rows: Sequence[SampleScores]) -> Conclusion:
    """Report the ground truth that nobody has verified, and who drafted it: in the figures, as of an own folder."""
    drafts = sum(row.tags.get(TRUTH_TAG) == "draft" for row in rows)
    counts = {"verified": len(rows) - drafts, "unverified": drafts}
    return Conclusion(figures={TRUTH_TAG: {"samples": counts, DRAFTERS: dict(drafters)}}) if drafts else Conclusion()
