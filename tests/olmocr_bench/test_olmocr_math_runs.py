"""olmOCR-Bench with math tests, end to end: all ten candidates of the oracle, by the command, in scoring processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loupe.benchmarks.shared.equations.rendering.chromium import font_files
from loupe.data.hub.katex import katex_folder
from tests.support.command_line import loupe
from tests.support.math_renderer import need_renderer
from tests.support.shared import shared

pytestmark = pytest.mark.browser
need_renderer()
E2E = shared("oracles/olmocr_bench/e2e")
DATA = shared("data/olmocr_bench/sample_data")
#: Its outcome depends on fonts.
FONT_SENSITIVE = "math_2503_04086_00"
EXPECTED = {name: json.loads((E2E / f"expected_{name}.json").read_text()) for name in ("sample", "split")}
SCORED = [(name, candidate) for name, found in EXPECTED.items() for candidate in found if candidate != "missing_one"]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of the commands: a cache of their own, shared by all of them; KaTeX as it is here."""
    return {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache")), "LOUPE_KATEX_DIR": str(katex_folder())}


@pytest.mark.parametrize(("name", "candidate"), SCORED)
def test_every_test_and_the_score_of_a_candidate_are_as_officially(
    name: str, candidate: str, tmp_path: Path, cache: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in cache.items():
        monkeypatch.setenv(variable, value)
    root = tmp_path / "root"
    root.mkdir()
    tests = DATA if name == "sample" else E2E / "split"
    folder = next(
        path / candidate
        for path in (DATA, E2E / "sample_candidates", E2E / "split" / "candidates")
        if (path / candidate).is_dir() and (name == "sample" or path == E2E / "split" / "candidates")
    )
    for path in (DATA / "pdfs", *tests.glob("*.jsonl"), folder):
        (root / path.name).symlink_to(path)
    done = loupe("score", "olmocr_bench", root / candidate, "--data", root, "--json", "-j", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [scores] = tmp_path.rglob("scores.jsonl")
    rows = [json.loads(line) for line in scores.read_text(encoding="utf-8").splitlines()]
    assert not any(row["error"] for row in rows)
    passed = {fact["id"]: fact["passed"] for row in rows for fact in row["details"]["tests"]}
    official = EXPECTED[name][candidate]
    if not font_files():
        passed[FONT_SENSITIVE] = official["tests_passed"][FONT_SENSITIVE]
    assert passed == official["tests_passed"]
    if font_files():
        figures = json.loads(scores.with_name("result.json").read_text(encoding="utf-8"))["figures"]
        assert figures["overall"] == pytest.approx(official["overall"], abs=1e-12)
        kinds = {kind: found["rate"] for kind, found in figures["types"].items()}
        assert kinds == pytest.approx(official["type_pass_rate"])


def test_without_katex_a_run_is_refused_before_it_starts_unless_math_tests_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOUPE_KATEX_DIR", str(tmp_path))
    words = ("score", "olmocr_bench", DATA / "olmocr_pipeline", "--data", DATA, "--json")
    refused = loupe(*words, cwd=tmp_path)
    assert refused.returncode == 4
    assert "KaTeX 0.16.21 is not in" in refused.stderr
    assert "loupe setup math" in refused.stderr
    without = loupe(*words, "-o", "math=skip", cwd=tmp_path)
    assert without.returncode == 0, without.stderr
