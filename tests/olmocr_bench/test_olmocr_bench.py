"""olmOCR-Bench from end to end: official folders, all ten candidates, repeats and missing answers, by the command.

Math tests need a renderer, so they are left out here; every other test, category and type is compared.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks.olmocr_bench.conclusion import _by_category, official_interval
from loupe.errors import UsageError
from loupe.pipeline import score_run
from tests.support.command_line import loupe
from tests.support.shared import shared

E2E = shared("oracles/olmocr_bench/e2e")
DATA = shared("data/olmocr_bench/sample_data")
EXPECTED = {name: json.loads((E2E / f"expected_{name}.json").read_text()) for name in ("sample", "split")}
CANDIDATES = [(name, candidate) for name, found in EXPECTED.items() for candidate in found]
SCORED = [(name, candidate) for name, candidate in CANDIDATES if candidate != "missing_one"]


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both folders of the oracle in the official layout, made of links."""
    found = {}
    for name, tests in (("sample", DATA), ("split", E2E / "split")):
        folder = tmp_path_factory.mktemp(name)
        sample = [*(E2E / "sample_candidates").iterdir(), DATA / "olmocr_pipeline"]
        candidates = sample if name == "sample" else [*(E2E / "split" / "candidates").iterdir()]
        for path in [DATA / "pdfs", *tests.glob("*.jsonl"), *candidates]:
            (folder / path.name).symlink_to(path)
        found[name] = folder
    return found


def score(root: Path, candidate: str, cwd: Path, *options: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The result of a candidate, and what is kept of each of its tests."""
    words = [word for option in ("math=skip", *options) for word in ("-o", option)]
    done = loupe("score", "olmocr_bench", root / candidate, "--data", root, "--json", "-j", "1", *words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    [file] = cwd.rglob("scores.jsonl")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    result: dict[str, Any] = json.loads(file.with_name("result.json").read_text(encoding="utf-8"))
    return result, [fact for row in rows for fact in row["details"]["tests"]]


def kinds_and_categories(root: Path) -> dict[str, tuple[str, str]]:
    """Type and category of every test that is written down."""
    return {row["id"]: (row["type"], file.stem) for file in root.glob("*.jsonl") for row in records(file)}


def records(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


@pytest.mark.parametrize(("name", "candidate"), SCORED)
def test_every_test_category_and_type_of_a_candidate_is_as_officially(
    roots: dict[str, Path], name: str, candidate: str, tmp_path: Path
) -> None:
    result, facts = score(roots[name], candidate, tmp_path)
    known = kinds_and_categories(roots[name])
    official = EXPECTED[name][candidate]
    passed = {ident: value for ident, value in official["tests_passed"].items() if known.get(ident, ("",))[0] != "math"}
    assert {fact["id"]: fact["passed"] for fact in facts} == passed
    categories: dict[str, list[bool]] = defaultdict(list)
    for ident, value in passed.items():
        categories[known[ident][1] if ident in known else "baseline"].append(value)
    rates = {category: sum(values) / len(values) for category, values in categories.items()}
    figures = result["figures"]
    assert {category: found["rate"] for category, found in figures["categories"].items()} == pytest.approx(rates)
    overall = sum(rates.values()) / len(rates)
    assert (figures["overall"], result["measures"]["overall"]["value"]) == pytest.approx((overall, overall), abs=1e-12)
    kinds = {kind: rate for kind, rate in official["type_pass_rate"].items() if kind != "math"}
    assert {kind: found["rate"] for kind, found in figures["types"].items()} == pytest.approx(kinds)
    assert {kind: found["tests"] for kind, found in figures["types"].items()} == {
        kind: count for kind, count in official["type_count"].items() if kind != "math"
    }


@pytest.mark.parametrize(("name", "candidate"), SCORED)
def test_overall_and_interval_of_official_outcomes_are_the_official_ones(
    roots: dict[str, Path], name: str, candidate: str
) -> None:
    official = EXPECTED[name][candidate]
    known = kinds_and_categories(roots[name])
    facts = [
        {"id": ident, "pdf": ident, "passed": passed, "category": known[ident][1] if ident in known else "baseline"}
        for ident, passed in official["tests_passed"].items()
    ]
    categories = _by_category(facts)
    order = [category.removesuffix(".jsonl") for category in official["ci95_over_20_seeds"]["category_order_for_seed0"]]
    assert list(categories) == order
    interval = official_interval(categories)
    assert list(interval) == pytest.approx(official["ci95_over_20_seeds"]["seed0"], abs=1e-12)


def test_a_missing_answer_counts_as_an_empty_one_and_voids_nothing(roots: dict[str, Path], tmp_path: Path) -> None:
    result, facts = score(roots["split"], "missing_one", tmp_path)
    assert result["outcomes"]["missing"] == 1
    assert result["measures"]["overall"]["value"] > 0.4
    lost = {fact["id"]: fact["passed"] for fact in facts if fact["pdf"] == "lincoln_letter.pdf"}
    assert lost
    assert not any(lost.values())


def test_a_missing_answer_voids_the_candidate_where_the_official_rule_is_asked_for(
    roots: dict[str, Path], tmp_path: Path
) -> None:
    result, facts = score(roots["split"], "missing_one", tmp_path, "missing=official")
    assert "missing=official" in result["signature"]
    assert result["figures"]["overall"] == 0.0 == result["measures"]["overall"]["value"]
    assert {found["rate"] for found in result["figures"]["categories"].values()} == {0.0}
    assert "interval" not in result["figures"]
    errors = result["measures"]["candidate_errors"]
    assert (errors["value"] >= 1, errors["low"], errors["high"]) == (True, None, None)
    assert "lincoln_letter.pdf" in result["figures"]["candidate_errors"]["first"][0]
    assert any("void" in warning for warning in result["warnings"])
    assert {fact["explanation"] for fact in facts if fact["pdf"] == "lincoln_letter.pdf"} == {"missing_file"}


def test_without_a_missing_answer_the_official_rule_changes_nothing(roots: dict[str, Path], tmp_path: Path) -> None:
    usual, _ = score(roots["sample"], "tesseract", tmp_path / "a")
    strict, _ = score(roots["sample"], "tesseract", tmp_path / "b", "missing=official")
    assert strict["figures"] == usual["figures"]
    assert strict["measures"]["overall"] == usual["measures"]["overall"]


def test_a_run_is_scored_again_under_options_that_ask_nothing_else_and_others_are_refused(
    roots: dict[str, Path], tmp_path: Path
) -> None:
    usual, _ = score(roots["sample"], "tesseract", tmp_path / "a")
    overall, half = 100 * usual["figures"]["overall"], 100 * usual["figures"]["interval"]["half_width"]
    assert usual["official"].startswith(f"official figures: {overall:.1f} ± {half:.1f} (")
    assert all(f"{kind} " in usual["official"] for kind in ("absent", "order", "present", "table"))
    assert "math tests are left out" in usual["warnings"][0]
    assert "-o math=render" in usual["warnings"][0]
    [run] = (tmp_path / "a").glob("runs/*/*")
    other = score_run(run, jobs=1, options={"missing": "official", "baseline": "skip"})
    assert "opt:baseline=skip|opt:math=skip|opt:missing=official" in other.signature
    assert "baseline" not in other.figures["categories"]
    for option, message in (
        ("nosuch=1", "no option 'nosuch'"),
        ("math=banana", "no such value"),
        ("variant=blur", "is asked otherwise"),
    ):
        with pytest.raises(UsageError, match=message):
            score_run(run, options=dict([option.split("=")]))
    back = score_run(run, jobs=1, options={"missing": "empty", "baseline": "include"})
    assert back.figures == usual["figures"]
    refused = loupe("score", run, "-o", "math=banana", cwd=tmp_path)
    assert (refused.returncode, "values: render, skip" in refused.stderr) == (2, True)
    refused = loupe("score", run, "--limit", "3", cwd=tmp_path)
    assert (refused.returncode, "--limit is for answers" in refused.stderr) == (2, True)


def test_samples_that_a_run_never_asked_for_are_not_scored_as_missing(roots: dict[str, Path], tmp_path: Path) -> None:
    score(roots["sample"], "tesseract", tmp_path / "a", "baseline=skip")
    [run] = (tmp_path / "a").glob("runs/*/*")
    with pytest.raises(UsageError, match="was not asked for"):
        score_run(run, options={"baseline": "include"})


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()


def test_pdf_text_runs_on_the_real_documents(roots: dict[str, Path], tmp_path: Path) -> None:
    done = loupe(
        "run", "olmocr_bench", "-e", "pdf_text", "--data", roots["sample"], "-o", "math=skip", "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert 0.5 < json.loads(done.stdout)["measures"]["overall"]["value"] < 0.9
    exported = {path.name for path in tmp_path.rglob("predictions/**/*.md")}
    assert "mattsnotes_pg3_repeat1.md" in exported


def test_several_candidates_make_one_table_with_published_rows_marked(roots: dict[str, Path], tmp_path: Path) -> None:
    root = roots["sample"]
    words = ("score", "olmocr_bench", root / "pdftotext", root / "tesseract", "--data", root, "-o", "math=skip")
    done = loupe(*words, "--with-published", "--plain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    first = lines[: lines.index([""])] if [""] in lines else lines
    assert [row[0] for row in first[1:3]] == ["pdftotext", "tesseract"]
    assert {row[1] for row in first[1:3]} == {"here"}
    assert ["v0.4.0 + Synth data, RLVR, souping", "published [2]", "82.4", "–", "1.1"] in lines
    assert any("allenai/olmocr" in cell for row in lines for cell in row)
    refused = loupe("score", "handwritten_forms", root / "tesseract", "--with-published", cwd=tmp_path)
    assert refused.returncode == 2
    assert "no published numbers for handwritten_forms" in refused.stderr
