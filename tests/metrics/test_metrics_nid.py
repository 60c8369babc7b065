"""NID against the official DP-Bench evaluator and against the subsequences that it counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.metrics import nid
from loupe.metrics.edit import nid_dp_bench_v1
from tests.support.shared import cases

TEXTS = st.text(alphabet="ab \n渡é", max_size=12)
PAGES = [case for case in cases("oracles/nid/dpbench_nid.jsonl") if "gt_text" in case["expected"]]


@pytest.mark.parametrize("case", PAGES, ids=lambda case: case["id"])
def test_nid_of_a_page_is_that_of_the_official_evaluator(case: dict[str, Any]) -> None:
    expected = case["expected"]
    assert nid_dp_bench_v1(expected["pred_text"], expected["gt_text"]) == pytest.approx(expected["nid"], abs=1e-9)


def test_two_empty_texts_are_equal_but_for_the_official_evaluator() -> None:
    assert (nid("", ""), nid_dp_bench_v1("", "")) == (1.0, 0.01)


@given(TEXTS, TEXTS)
def test_nid_is_twice_the_longest_common_subsequence_over_both_lengths(a: str, b: str) -> None:
    total = len(a) + len(b)
    assert nid(a, b) == pytest.approx(2 * common_subsequence(a, b) / total if total else 1.0, abs=1e-12)


@given(TEXTS, TEXTS)
def test_nid_is_a_symmetric_fraction_and_one_only_for_equals(a: str, b: str) -> None:
    assert 0.0 <= nid(a, b) == nid(b, a) <= 1.0
    assert (nid(a, b) == 1.0) == (a == b)


def common_subsequence(a: str, b: str) -> int:
    lengths = [0] * (len(b) + 1)
    for character in a:
        diagonal = 0
        for place, other in enumerate(b, 1):
            diagonal, lengths[place] = (
                lengths[place],
                diagonal + 1 if character == other else max(lengths[place], lengths[place - 1]),
            )
    return lengths[-1]
