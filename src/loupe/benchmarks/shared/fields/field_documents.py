"""Documents with their ground truth, from parquet files or the prepared form.

Layouts: docs/benchmarks/nanonets_kie.md, docs/benchmarks/handwritten_forms.md. The ground truth is an object, or a text
that is one as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loupe.benchmarks.shared.fields.prompts import docext_prompt
from loupe.benchmarks.shared.fields.scoring import OFFICIAL, Variant, variant_tags
from loupe.data.hub.store import default_root
from loupe.data.parquet import find_shards, rows
from loupe.data.prepared import is_prepared, read, refuse_options
from loupe.errors import DatasetError
from loupe.types import PageSource, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One page with its ground truth as stored; `place` names it in messages."""

    id: str
    image: PageSource
    truth: Any
    place: str


def find_documents(
    root: Path | None, ident: str, splits: Sequence[str], *, column: str, layout: str
) -> Iterator[Document]:
    """The documents of the first of these splits that is there. Raises DatasetError, naming the layout, if none is."""
    folder = default_root(ident) if root is None else root
    if is_prepared(folder):
        refuse_options(folder, split=splits[0] == "train")
        for number, prepared in enumerate(read(folder), 1):
            place = f"{folder}, document {number}"
            yield Document(id=prepared.sample_id, image=prepared.image, truth=prepared.ground_truth, place=place)
        return
    shards = find_shards(folder, *splits)
    if not shards:
        raise DatasetError(f"{folder}: no split {splits[0]!r} here; expected {layout}", hint=f"loupe data get {ident}")
    for index, row in enumerate(rows(shards, (column,))):
        place = f"{row.path}, row {row.number}"
        yield Document(id=f"{splits[0]}-{index:04d}", image=row.image(), truth=row[column], place=place)


def object_of(document: Document) -> Mapping[str, Any]:
    """The ground truth as an object. Raises DatasetError if it is none."""
    truth = document.truth
    if isinstance(truth, str):
        try:
            truth = json.loads(truth)
        except (ValueError, RecursionError):
            raise DatasetError(f"{document.place}: the ground truth is not JSON") from None
    if not isinstance(truth, Mapping):
        raise DatasetError(f"{document.place}: the ground truth is no object of fields")
    return truth


def field_text(value: Any) -> str:
    """A value of the ground truth as text; null is empty."""
    return "" if value is None else str(value)


def make_sample(document: Document, fields: Mapping[str, str], variant: Variant) -> Sample:
    """The sample of a document. docext asks for the fields that this document has; the others ask all alike."""
    prompt = docext_prompt(tuple(fields)) if variant == OFFICIAL else ""
    tags = variant_tags(variant)
    return Sample(id=document.id, images=(document.image,), truth=dict(fields), prompt=prompt, tags=tags)
