"""A selection on disk: the documents, their texts and ground truth as they were, so that its runs are benchmark runs.

`loupe select --save` writes it; the folder opens as a benchmark wherever one is named.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from loupe.benchmarks.folders.own.folder_benchmark import DRAFTERS, TRUTH_TAG
from loupe.benchmarks.folders.selection.documents import Document
from loupe.benchmarks.folders.selection.prompts import EXTRACTION_TOKENS, VERDICT_TOKENS
from loupe.benchmarks.folders.selection.questions import (
    IMAGE_MEASURES,
    TEXT_MEASURES,
    Known,
    Phase,
    Rules,
    image_samples,
    score_image,
    score_text,
    text_samples,
)
from loupe.data import trust
from loupe.errors import DatasetError, UntrustedError
from loupe.files.folder import Folder
from loupe.files.foreign import real_path
from loupe.metrics.dates import DateOrder
from loupe.typed import encode_json, json_decoder
from loupe.types import UNDECODABLE, Benchmark, Conclusion, Sample, SampleScores

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
    """What part of the ground truth nobody has verified, and who drafted it: in the figures, as of an own folder."""
    drafts = sum(row.tags.get(TRUTH_TAG) == "draft" for row in rows)
    counts = {"verified": len(rows) - drafts, "unverified": drafts}
    return Conclusion(figures={TRUTH_TAG: {"samples": counts, DRAFTERS: dict(drafters)}}) if drafts else Conclusion()
