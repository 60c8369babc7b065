"""The formulas of OmniDocBench 1.6: every way to pair them that the official evaluator tries, and what CDM gets."""

from __future__ import annotations

from typing import Any

import pytest

from loupe.benchmarks.omnidocbench import formula_lines
from loupe.benchmarks.omnidocbench.figures import cdm_fields, cdm_inputs
from loupe.benchmarks.omnidocbench.formula_candidates import Best, Candidate, candidates, choose
from loupe.benchmarks.omnidocbench.records import Block, Item, MatchedSample, PredictedItem, Work
from loupe.benchmarks.omnidocbench.rules import V1_6
from tests.support.shared import cases

ORACLES = "oracles/omnidocbench_v16/stages"
#: Cases name so many candidates at most.
LISTED = 60
#: The evaluator cannot reach the branch for formulas that were matched to text
#: (docs/protocols/omnidocbench_v16.md#second-match).
FORMULAS = ("", "equation_inline", "equation_isolated")
PREPARED = [case for case in cases(f"{ORACLES}/cdm_prepare.jsonl") if case["input"]["pred_category_type"] in FORMULAS]


@pytest.mark.parametrize("case", cases(f"{ORACLES}/formula_match.jsonl"), ids=lambda case: case["id"])
def test_formulas_are_paired_in_the_official_ways(case: dict[str, Any]) -> None:
    given = sides(case)
    found = list(candidates(*given, V1_6, Work(), Best(exhaustive=True)))
    official = case["expected"]["candidates"]
    assert [one.name for one in found[: len(official)]] == [name for name, _ in official]
    assert len(found) == len(official) or len(official) == LISTED
    for one, (_, key) in zip(found, official, strict=False):
        assert list(one.key) == pytest.approx([float(value) for value in key], abs=1e-9)


@pytest.mark.parametrize("case", cases(f"{ORACLES}/formula_match.jsonl"), ids=lambda case: case["id"])
def test_the_official_way_to_pair_formulas_is_chosen(case: dict[str, Any]) -> None:
    chosen = choose(*sides(case), V1_6, Work())
    assert (chosen.name if chosen else None) == case["expected"]["chosen"]
    rows = [official_row(row) for row in rows_of(chosen)]
    assert [{**row, "edit": None} for row in rows] == [{**row, "edit": None} for row in case["expected"]["rows"]]
    assert [row["edit"] for row in rows] == pytest.approx([row["edit"] for row in case["expected"]["rows"]], abs=1e-9)


@pytest.mark.parametrize("case", PREPARED, ids=lambda case: case["id"])
def test_cdm_gets_the_official_formulas(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    fields, inputs = cdm_fields(given["gt"], given["pred"]), cdm_inputs(given["gt"], given["pred"])
    assert fields.gt_cdm == expected.get("gt_cdm", "")
    assert fields.pred_cdm_alt == expected.get("pred_cdm_alt", "")
    assert [inputs.reference, inputs.prediction, inputs.alternative or None] == expected["engine_inputs"]


def sides(case: dict[str, Any]) -> tuple[list[Block], list[PredictedItem], list[MatchedSample]]:
    blocks = [
        Block(category=each["category_type"], latex=each["latex"], order=each["order"], attribute=each["attribute"])
        for each in case["input"]["gt_formulas"]
    ]
    pool = [
        Item(category=category, fine_category=fine or "", start=start, end=end, content=content)
        for category, fine, (start, end), content in case["expected"]["pool"]
    ]
    return (
        sorted(blocks, key=lambda block: block.order or 0),
        [PredictedItem(index, item) for index, item in enumerate(pool)],
        [sample_of(row) for row in case["expected"]["current"]],
    )


def sample_of(row: dict[str, Any]) -> MatchedSample:
    return MatchedSample(
        gt_idx=tuple(row["gt_idx"]),
        pred_idx=tuple(index for index in row["pred_idx"] if index != ""),
        gt=row["gt"],
        pred=row["pred"],
        norm_gt=row["norm_gt"],
        norm_pred=row["norm_pred"],
        gt_category_type="equation_isolated",
        pred_category_type=row["pred_category_type"],
        gt_position=tuple(None if place == "" else place for place in row["gt_position"]),
        pred_position=None if row["pred_position"] == "" else row["pred_position"],
        gt_attribute=(),
        edit=row["edit"],
        step="none",
        distance=row["edit"],
    )


def rows_of(chosen: Candidate | None) -> list[MatchedSample]:
    return list(chosen.rows()) if chosen else []


def official_row(row: MatchedSample) -> dict[str, Any]:
    fields = cdm_fields(row.gt, row.pred)
    of_cdm = {"gt_cdm": fields.gt_cdm, "pred_cdm_alt": fields.pred_cdm_alt}
    return {
        "gt_idx": list(row.gt_idx),
        "pred_idx": list(row.pred_idx) or [""],
        "gt_position": ["" if place is None else place for place in row.gt_position],
        "pred_position": "" if row.pred_position is None else row.pred_position,
        "pred_category_type": row.pred_category_type,
        "norm_gt": row.norm_gt,
        "norm_pred": row.norm_pred,
        "edit": row.edit,
        "gt": row.gt,
        "pred": row.pred,
    } | {name: value for name, value in of_cdm.items() if value}


def test_a_matrix_in_aligned_stands_alone_whatever_the_names_and_empty_groups_stay() -> None:
    matrix = r"\begin{bmatrix}1\end{bmatrix}"
    equation = matrix + r"=\begin{pmatrix}2\end{pmatrix}"
    for end in ("aligned", "aligned*"):
        answer = rf"\begin{{aligned}} & {equation} \\ \end{{{end}}}"
        assert cdm_fields(matrix, answer).pred_cdm_alt == equation
    assert cdm_fields(matrix, r"\begin{bmatrix}\mathbf{}1\end{bmatrix}").pred_cdm_alt == ""


def test_an_environment_that_begins_behind_two_backslashes_in_a_group_counts() -> None:
    assert formula_lines.rows_of(r"{\\begin{x}} \\ c") == [r"{\\begin{x}} \\ c"]
