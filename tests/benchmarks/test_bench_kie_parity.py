"""Key information extraction against docext @ 0edc8f5 and `strict_json`, which the cases call seed000: all to 1e-9."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks import get_benchmark, handwritten_forms, nanonets_kie
from loupe.benchmarks.shared.fields.documents import Document, score_document
from loupe.benchmarks.shared.fields.json_answers import (
    JSON_REPAIR_VERSION,
    json_repair_version,
    parse_like_docext,
    parse_strictly,
)
from loupe.types import Prediction, Sample
from tests.support.shared import cases

TOLERANCE = 1e-9
DOCUMENTS = cases("oracles/kie/documents.jsonl")
FORMS = cases("oracles/kie/handwritten_forms.jsonl")
#: Answers that are a number, a truth value, null or a text: docext crashes (`error:AttributeError`); here the document
#: has no fields, and only the fields that are rightly empty count.
DOCEXT_CRASHES = {"kie-s0029", "kie-s0055", "kie-s0071", "kie-s0100", "kie-s0131", "kie-s0144", "kie-s0175", "hwf-s026"}


def name(case: dict[str, Any]) -> str:
    return str(case["id"])


def near(values: list[float]) -> Any:
    return pytest.approx(values, abs=TOLERANCE, rel=0)


def anls_counts(sample: Sample, answer: str) -> list[tuple[float, ...]]:
    return [each.counts for each in score_document(sample, Prediction(text=answer)) if each.measure == "anls"]


@pytest.mark.parametrize("case", DOCUMENTS, ids=name)
def test_documents_score_as_in_docext_and_strict_json(case: dict[str, Any]) -> None:
    checked = nanonets_kie.verify_case(case)
    assert [ours for ours, _ in checked] == near([official for _, official in checked])


@pytest.mark.parametrize("case", DOCUMENTS, ids=name)
def test_answers_are_parsed_as_in_docext_and_strict_json(case: dict[str, Any]) -> None:
    docext, strict = (case["expected"][key]["parsed"] for key in ("docext", "seed000"))
    assert (parse_like_docext(case["input"]["response"]) or {}) == (docext if isinstance(docext, dict) else {})
    assert (parse_strictly(case["input"]["response"]) or {}) == (strict if isinstance(strict, dict) else {})


@pytest.mark.parametrize("case", DOCUMENTS, ids=name)
def test_every_field_scores_as_in_strict_json(case: dict[str, Any]) -> None:
    sample = Sample(id="x", truth=case["input"]["ground_truth"], tags={"variant": "strict_json"})
    expected = case["expected"]["seed000"]["field_scores"]
    found = [counts[0] for counts in anls_counts(sample, case["input"]["response"])]
    if expected == "error:not-a-dict":
        assert found == [float(not wanted) for wanted in sample.truth.values()]
    else:
        assert found == near(expected)


def test_cases_without_an_official_score_are_exactly_those_listed() -> None:
    without = {case["id"] for case in DOCUMENTS + FORMS if isinstance(case["expected"]["docext"]["score"], str)}
    assert without == DOCEXT_CRASHES


@pytest.mark.parametrize("case", [case for case in DOCUMENTS if case["id"] in DOCEXT_CRASHES], ids=name)
def test_where_docext_crashes_the_document_has_no_fields(case: dict[str, Any]) -> None:
    truth = case["input"]["ground_truth"]
    counts = anls_counts(Sample(id="x", truth=truth), case["input"]["response"])
    assert [value for value, _ in counts] == [float(not wanted) for wanted in truth.values()]


@pytest.mark.parametrize("case", cases("oracles/kie/datasets.jsonl"), ids=name)
def test_a_data_set_scores_the_mean_over_all_its_fields_as_in_docext(case: dict[str, Any]) -> None:
    counts = [
        each
        for document in case["input"]["documents"]
        for each in anls_counts(Sample(id="x", truth=document["ground_truth"]), document["response"])
    ]
    assert [sum(value for value, _ in counts) / len(counts)] == near([case["expected"]["docext_score"]])


@pytest.mark.parametrize("case", FORMS, ids=name)
def test_forms_are_flattened_and_scored_as_in_docext(case: dict[str, Any]) -> None:
    document = Document(id="x", image=Path(), truth=case["input"]["ground_truth"], place="here")
    found = handwritten_forms.fields_of(document, "docext")
    assert [list(pair) for pair in found.items()] == case["expected"]["docext"]["fields_in_order"]
    checked = handwritten_forms.verify_case(case)
    assert [ours for ours, _ in checked] == near([official for _, official in checked])


@pytest.mark.parametrize("case", FORMS, ids=name)
def test_forms_have_all_eleven_fields_in_the_order_of_strict_json(case: dict[str, Any]) -> None:
    document = Document(id="x", image=Path(), truth=case["input"]["ground_truth"], place="here")
    expected = case["expected"]["seed000"]["fields"]
    assert list(handwritten_forms.fields_of(document, "strict_json").items()) == list(expected.items())


def test_the_release_of_json_repair_is_the_one_of_the_official_values() -> None:
    assert json_repair_version() == JSON_REPAIR_VERSION


def test_both_benchmarks_are_found_by_their_id() -> None:
    assert [get_benchmark(each).headline_measure for each in ("nanonets_kie", "handwritten_forms")] == ["anls"] * 2
    assert json.loads(get_benchmark("nanonets_kie").reference(Sample(id="x", truth={"date": "1"}))) == {"date": "1"}
