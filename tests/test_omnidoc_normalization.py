"""Texts, formulas and tables of OmniDocBench 1.5 before they are compared: every official case, and any string."""

from __future__ import annotations

from typing import Any

import pytest

from loupe.benchmarks.omnidoc.formula_normalization import normalize_formula
from loupe.benchmarks.omnidoc.table_normalization import normalize_table
from loupe.benchmarks.omnidoc.text_normalization import formulas_to_unicode, normalize_text
from loupe.metrics.table_tree import TedsError
from loupe.metrics.teds import teds, teds_struct
from tests.shared import cases

STAGES = "oracles/omnidocbench/stages"


@pytest.mark.parametrize("case", cases(f"{STAGES}/normalize_text.jsonl"), ids=lambda case: case["id"])
def test_a_text_is_normalised_as_officially(case: dict[str, Any]) -> None:
    text = case["input"]["text"]
    assert {"unicode": formulas_to_unicode(text), "norm": normalize_text(text)} == case["expected"]


@pytest.mark.parametrize("case", cases(f"{STAGES}/normalize_formula.jsonl"), ids=lambda case: case["id"])
def test_a_formula_is_normalised_as_officially(case: dict[str, Any]) -> None:
    assert normalize_formula(case["input"]["latex"]) == case["expected"]["norm"]


@pytest.mark.parametrize("case", cases(f"{STAGES}/table.jsonl"), ids=lambda case: case["id"])
def test_a_table_is_normalised_and_compared_as_officially(case: dict[str, Any]) -> None:
    prediction, reference = case["input"]["pred_html"], case["input"]["gt_html"]
    normal = normalize_table(prediction), normalize_table(reference)
    assert normal == (case["expected"]["norm_pred"], case["expected"]["norm_gt"])
    pair = normal[0] or prediction, normal[1] or reference
    found = zero_where_it_raises(teds, *pair), zero_where_it_raises(teds_struct, *pair)
    assert found == pytest.approx((case["expected"]["TEDS"], case["expected"]["TEDS_structure_only"]), abs=1e-9)


def zero_where_it_raises(metric: Any, prediction: str, reference: str) -> float:
    try:
        return float(metric(prediction, reference))
    except TedsError:
        return 0.0
