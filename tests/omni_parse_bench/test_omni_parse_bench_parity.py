"""Omni Parse Bench against the official program: pages test by test, summaries of runs, stages, characters."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from loupe.benchmarks.omni_parse_bench.parity_cases import compare_case, missing_renderer, with_id
from tests.support.shared import cases

PAGES = cases("oracles/omni_parse_bench/pages.jsonl")
RUNS = cases("oracles/omni_parse_bench/runs.jsonl")
STAGES = cases("oracles/omni_parse_bench/stages.jsonl")
CHARACTERS = cases("oracles/omni_parse_bench/chars.jsonl")


def graded(page: dict[str, Any]) -> list[dict[str, Any]]:
    """The tests of a page with the official verdicts, as `compare_case` takes them."""
    verdicts = {each["id"]: each["result"] for each in page["expected"]}
    known = {name: page["manifest"][name] for name in ("document", "suite")}
    return [
        {
            "page": page["manifest"]["page_id"],
            **known,
            "kind": test["test_type"],
            "derivation": test["derivation"],
            "tags": test["tags"],
            "verdict": verdicts[test["id"]],
        }
        for test in page["gold"]["tests"]
    ]


def differences(case: dict[str, Any]) -> list[tuple[float, float]]:
    pairs = compare_case(case)
    assert pairs is not None
    return [pair for pair in pairs if abs(pair[0] - pair[1]) > 1e-12]


def test_every_test_of_every_page_has_the_official_verdict() -> None:
    assert len(PAGES) == 124 and sum(len(page["gold"]["tests"]) for page in PAGES) == 2_093
    compared = 0
    for page in PAGES:
        pairs = compare_case(page)
        assert pairs is not None
        assert all(ours == official for ours, official in pairs), page["id"]
        compared += len(pairs)
    latex = sum("latex" in test["args"].get("content", {}) for page in PAGES for test in page["gold"]["tests"])
    assert compared == 2_093 - (latex if missing_renderer() else 0)


def test_summaries_of_runs_are_the_official_ones() -> None:
    by_id = {page["manifest"]["page_id"]: page for page in PAGES}
    assert len(RUNS) == 13
    for run in RUNS:
        verdicts = [test for ident in run["input"]["pages"] for test in graded(by_id[ident])]
        case = {"verdicts": verdicts, "with_pages": run["input"]["with_pages"], "expected": run["expected"]}
        assert differences(case) == [], run["id"]


def test_every_stage_gives_what_the_official_one_gives() -> None:
    counts: Counter[str] = Counter()
    for case in STAGES:
        if compare_case(case) is None:
            continue
        assert differences(case) == [], case["id"]
        counts[case["stage"]] += 1
    expected = Counter(case["stage"] for case in STAGES)
    if missing_renderer():
        pytest.skip(f"SKIPPED: {missing_renderer()}; stages symbols and gold were not compared")
    assert counts == expected and len(STAGES) == 719


def test_every_character_is_folded_as_officially() -> None:
    assert len(CHARACTERS) == 366
    assert [case["cp"] for case in CHARACTERS if differences(case)] == []
    [named] = with_id(CHARACTERS[0])
    assert named["id"] == f"opb-char-{CHARACTERS[0]['cp']}"
