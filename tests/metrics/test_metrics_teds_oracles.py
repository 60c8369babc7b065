"""TEDS against the official evaluators, case by case; the one deviation is what other versions of the parser do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from loupe.metrics.teds import Variant, teds, teds_struct
from loupe.metrics.teds.table_tree import TedsError
from tests.support.shared import cases, shared, shared_cases

ORACLE_CASES = cases("oracles/teds/cases.jsonl")
VARIANTS: dict[str, Variant] = {
    "ibm": "ibm",
    "omnidocbench": "omnidocbench",
    "trm": "table_recognition_metric",
    "dpbench": "dpbench",
}


def score(case: dict[str, Any], metric: str, variant: Variant) -> float | dict[str, str]:
    function = {"teds": teds, "teds_struct": teds_struct}[metric]
    try:
        return function(case["input"]["pred_html"], case["input"]["gt_html"], variant=variant)
    except TedsError as error:
        return {"error": error.upstream}


def different(found_in: list[dict[str, Any]], variant: str, metric: str) -> dict[str, tuple[Any, Any]]:
    """Ours and the official score of the cases that differ, by id."""
    pairs = {
        case["id"]: (score(case, metric, VARIANTS[variant]), case["expected"][variant][metric]) for case in found_in
    }
    return {
        name: (found, expected)
        for name, (found, expected) in pairs.items()
        if found != (expected if isinstance(expected, dict) else pytest.approx(expected, abs=1e-9))
    }


@pytest.mark.parametrize("metric", ["teds", "teds_struct"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_case_scores_as_the_official_evaluator_does(variant: str, metric: str) -> None:
    assert len(ORACLE_CASES) == 376
    assert different(ORACLE_CASES, variant, metric) == {}


@pytest.mark.parametrize("metric", ["teds", "teds_struct"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_case_on_a_real_table_scores_as_the_official_evaluator_does(variant: str, metric: str) -> None:
    real = shared_cases("oracles/teds/pubtabnet_cases.jsonl")
    assert len(real) == 57
    assert different(real, variant, metric) == {}


@pytest.mark.parametrize(
    ("prediction", "reference", "official", "official_struct"),
    [
        ("<tr><td>kitten</td></tr>", "<tr><td>sitting</td></tr>", 0.8571428571428572, 1.0),
        ("<tr><td><b>a</b></td><td>b</td></tr>", "<tr><td>a</td></tr>", 0.5833333333333334, 0.75),
        ("", "", 1.0, 1.0),
        ("<thead><tr><th>x</th></tr></thead>", "<tr><td colspan=2>x</td></tr>", 0.5, 0.5),
    ],
)
def test_the_newest_table_recognition_metric_divides_by_the_nodes_of_its_trees(
    prediction: str, reference: str, official: float, official_struct: float
) -> None:
    pair = [f"<html><body><table>{rows}</table></body></html>" for rows in (prediction, reference)]
    variant: Variant = "table_recognition_metric@0.0.6"
    assert teds(pair[0], pair[1], variant=variant) == pytest.approx(official, abs=1e-9)
    assert teds_struct(pair[0], pair[1], variant=variant) == pytest.approx(official_struct, abs=1e-9)


def test_the_sample_predictions_of_ibm_get_their_published_scores() -> None:
    folder = shared("data/pubtabnet")
    predictions = json.loads((folder / "sample_pred.json").read_text(encoding="utf-8"))
    truths = json.loads((folder / "sample_gt.json").read_text(encoding="utf-8"))
    expected = json.loads(shared("oracles/teds/ibm_sample_scores.json").read_text(encoding="utf-8"))
    for name, scores in expected.items():
        pair = predictions.get(name, ""), truths[name]["html"]
        assert teds(*pair, variant="ibm") == pytest.approx(scores["teds"], abs=1e-9), name
        assert teds_struct(*pair, variant="ibm") == pytest.approx(scores["teds_struct"], abs=1e-9), name
    assert len(expected) == 20
