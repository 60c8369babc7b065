"""IAM lines against jiwer 4.0.0: corpus rates and means of whole lists through the benchmark, each to 1e-9."""

from __future__ import annotations

from typing import Any

import pytest

from loupe.benchmarks.iam_lines import verify_case
from tests.support.shared import cases

#: This case states means over six pairs but lists two (tests/metrics/test_metrics_oracles.py); its corpus rates hold.
MEANS_OF_OTHER_PAIRS = {"cwset-s001"}


@pytest.mark.parametrize("case", cases("oracles/cer_wer/corpus.jsonl"), ids=lambda case: case["id"])
def test_rates_of_a_split_are_those_of_jiwer(case: dict[str, Any]) -> None:
    checked = verify_case(case)[: 2 if case["id"] in MEANS_OF_OTHER_PAIRS else 4]
    assert [ours for ours, _ in checked] == pytest.approx([official for _, official in checked], abs=1e-9, rel=0)
