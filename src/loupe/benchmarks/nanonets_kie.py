"""Nanonets-KIE: eight fields of receipts and invoices as JSON; similarity over all fields of all documents.

Protocol: docs/benchmarks/nanonets_kie.md. Official scorer: NanoNets/docext @ 0edc8f5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from loupe.benchmarks.shared.fields.documents import (
    DEVIATIONS,
    KIE,
    MEASURES,
    OFFICIAL,
    Document,
    Variant,
    docext_prompt,
    field_text,
    find_documents,
    json_prompt,
    judge_document,
    make_sample,
    object_of,
    oracle_case,
    reference_text,
    score_document,
    verify_document,
)
from loupe.benchmarks.shared.fields.json_answers import answer_tools
from loupe.errors import DatasetError
from loupe.types import Benchmark, DataSet, ParityCases, Sample

Split: TypeAlias = Literal["test", "train"]

FIELDS = (
    "date",
    "doc_no_receipt_no",
    "seller_address",
    "seller_gst_id",
    "seller_name",
    "seller_phone",
    "total_amount",
    "total_tax",
)
_LAYOUT = "data/test-*.parquet (columns image, annotations), or the prepared form (metadata.jsonl)"


def load(root: Path | None, split: Split = "test", variant: Variant = OFFICIAL) -> Iterator[Sample]:
    """Yield the documents of one split in file order; an id is split and row."""
    for document in find_documents(root, "nanonets_kie", (split,), column="annotations", layout=_LAYOUT):
        yield make_sample(document, fields_of(document, variant), variant)


def fields_of(document: Document, variant: Variant) -> dict[str, str]:
    """The ground truth as a variant wants it: docext in the order of the file, the others always all eight fields."""
    annotations = object_of(document)
    found = {name: field_text(annotations[name]) for name in annotations if name in FIELDS}
    if not found:
        raise DatasetError(f"{document.place}: none of the fields {', '.join(FIELDS)}")
    return found if variant == OFFICIAL else {name: found.get(name, "") for name in FIELDS}


def verify_case(case: dict[str, Any]) -> list[tuple[float, float]]:
    """(ours, official) for one shipped parity case: docext's score and that of `strict_json`."""
    truth: Mapping[str, str] = case["input"]["ground_truth"]
    return verify_document(case, truth)


benchmark = Benchmark(
    title="Nanonets-KIE",
    version="docext-0edc8f5",
    task="fields",
    paper="https://github.com/NanoNets/docext",
    data=DataSet(
        repo="nanonets/key_information_extraction",
        patterns=("*.parquet",),
    ),
    parity=ParityCases(compare=verify_case, deviations=DEVIATIONS, oracles={"kie/documents.jsonl": oracle_case}),
    prompt=json_prompt(FIELDS),
    usual_prompt=docext_prompt(FIELDS),
    measures=MEASURES,
    load=load,
    score=score_document,
    fields=judge_document,
    composite=KIE,
    tools=answer_tools,
    reference=reference_text,
)
