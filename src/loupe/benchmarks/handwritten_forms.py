"""Handwritten-Forms: up to eleven fields of handwritten death certificates; similarity over all fields of all forms.

Protocol: docs/benchmarks/handwritten_forms.md. Official scorer: NanoNets/docext @ 0edc8f5.
"""

from __future__ import annotations

import json
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

Split: TypeAlias = Literal["val", "validation", "train"]

#: Where each field stands in the nested ground truth. docext leaves out person.death and person_data.birth_day.
PLACES: Mapping[tuple[str, str], str] = {
    ("person", "name"): "name_of_deceased",
    ("person", "county"): "place_of_death_county",
    ("person", "city"): "place_of_death_city",
    ("person", "State file #"): "State file #",
    ("person_data", "Gender"): "deceased_gender",
    ("person_data", "Race"): "deceased_race",
    ("person_data", "status"): "deceased_status",
    ("person_data", "Age"): "deceased_age",
    ("person_data", "birth_place"): "birth_place",
    ("relation", "Father"): "father_name",
    ("relation", "Mother"): "mother_name",
}
#: The order in which all variants but `docext` ask.
FIELDS = (
    "name_of_deceased",
    "deceased_gender",
    "deceased_race",
    "deceased_status",
    "deceased_age",
    "birth_place",
    "place_of_death_county",
    "place_of_death_city",
    "State file #",
    "father_name",
    "mother_name",
)
_LAYOUT = "data/val-*.parquet (columns image, ground_truth), or the prepared form (metadata.jsonl)"


def load(root: Path | None, split: Split = "val", variant: Variant = OFFICIAL) -> Iterator[Sample]:
    """Yield the forms of one split in file order; an id is split and row. `val` and `validation` are the same."""
    splits = (split,) if split == "train" else ("val", "validation")
    for document in find_documents(root, "handwritten_forms", splits, column="ground_truth", layout=_LAYOUT):
        yield make_sample(document, fields_of(document, variant), variant)


def fields_of(document: Document, variant: Variant) -> dict[str, str]:
    """The ground truth as a variant wants it: docext the fields that a form has, the others always all eleven."""
    found = flatten_like_docext(object_of(document))
    if not found:
        raise DatasetError(
            f"{document.place}: no field of a form found",
            hint='expected {"gt_parse": {"person": {...}, "person_data": {...}, "relation": {...}}}',
        )
    return found if variant == OFFICIAL else {name: found.get(name, "") for name in FIELDS}


def flatten_like_docext(truth: Mapping[str, Any]) -> dict[str, str]:
    """The fields of a nested ground truth, in the order in which its keys occur; missing keys give no field.

    A ground truth that is flat already (the prepared form) is taken as it is.
    """
    nested = truth.get("gt_parse", truth)
    if not isinstance(nested, dict):
        return {}
    if nested.keys() & set(FIELDS):
        return {name: field_text(value) for name, value in nested.items() if name in FIELDS}
    return {
        PLACES[section, key]: field_text(value)
        for section, values in nested.items()
        if isinstance(values, dict)
        for key, value in values.items()
        if (section, key) in PLACES
    }


def verify_case(case: dict[str, Any]) -> list[tuple[float, float]]:
    """(ours, official) for one shipped parity case: docext's score."""
    truth = flatten_like_docext(json.loads(case["input"]["ground_truth"]))
    return verify_document(case, truth)


benchmark = Benchmark(
    title="Handwritten-Forms",
    version="docext-0edc8f5",
    task="fields",
    paper="https://github.com/NanoNets/docext",
    data=DataSet(
        repo="Rasi1610/DeathSe43_44_checkbox",
        patterns=("*val*.parquet",),
        licence="not stated; personal data of deceased people: do not pass the images on",
        note="89 forms",
    ),
    parity=ParityCases(
        compare=verify_case, deviations=DEVIATIONS, oracles={"kie/handwritten_forms.jsonl": oracle_case}
    ),
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
