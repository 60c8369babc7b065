"""`loupe verify`: shipped parity cases, and what it says when a score is off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loupe.errors import UsageError
from loupe.scoring import parity
from tests.support.command_line import loupe


def test_every_shipped_case_equals_the_official_value() -> None:
    found = list(parity.verify())
    assert {one.benchmark: one.differing for one in found if one.differing} == {}
    assert all(one.cases > 0 and not one.missing for one in found)


def test_a_score_that_is_off_is_named_and_ends_with_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = parity.verifiable()[0]
    lines = (parity.CASES / f"{name}.jsonl").read_text().splitlines()
    case = json.loads(lines[0])
    wrong = json.loads(
        json.dumps(case), parse_float=lambda text: float(text) + 0.25, parse_int=lambda text: int(text) + 1
    )
    (tmp_path / f"{name}.jsonl").write_text(json.dumps(case | {"expected": wrong["expected"]}))
    monkeypatch.setattr(parity, "CASES", tmp_path)
    monkeypatch.setattr(parity, "folders", lambda group: [])
    (found,) = parity.verify()
    assert found.differing == [case["id"]] and found.largest > 0.2


def test_an_unknown_benchmark_is_refused() -> None:
    with pytest.raises(UsageError, match="no parity cases for 'nope'"):
        list(parity.verify(["nope"]))
    with pytest.raises(UsageError, match="no version '9' here"):
        list(parity.verify(["dp_bench@9"]))


def test_a_version_may_be_named_as_everywhere() -> None:
    (found,) = parity.verify(["iam_lines@2002-lines"])
    assert found.benchmark == "iam_lines" and found.cases


def test_the_command_prints_a_line_for_each_benchmark(tmp_path: Path) -> None:
    done = loupe("verify", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [one["benchmark"] for one in json.loads(done.stdout)] == parity.verifiable()


def test_cases_that_nothing_here_can_compare_are_left_out_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (parity.CASES / "olmocr_bench.jsonl").read_text(encoding="utf-8").splitlines()
    tests = [json.loads(line)["input"].get("test", {}) for line in lines]
    monkeypatch.setattr(
        "loupe.benchmarks.olmocr_bench.parity_cases.missing_renderer", lambda: "no KaTeX; loupe setup math"
    )
    found = parity.verify_one("olmocr_bench")
    assert found.cases == found.identical == sum(test.get("type") != "math" for test in tests) < len(tests)
    assert "math tests were not compared: no KaTeX; loupe setup math" in found.deviations
