"""Upstream's tests of its own sample pages: those pages are not ours, so these cases lie in the shared folder."""

from __future__ import annotations

from typing import Any

from tests.support.shared import shared_parameters

CASES = "oracles/olmocr_bench/cases.jsonl"


def sample_parameters(*, math: bool) -> list[Any]:
    """As parameters of a test, either the math tests or the others; without the folder, one that skips."""

    def wanted(case: dict[str, Any]) -> bool:
        return not case or (case["id"].startswith("sample-") and (case["input"]["test"]["type"] == "math") == math)

    return [one for one in shared_parameters(CASES) if wanted(one.values[0])]
