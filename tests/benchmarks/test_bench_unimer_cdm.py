"""CDM in UniMER-Test: official figures from a scored run, drawn in batches; and what happens without TeX."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from loupe.benchmarks.shared import formula_images
from loupe.benchmarks.unimer_test import benchmark, conclude, prepare, score
from loupe.errors import MissingToolError, UsageError
from loupe.metrics import cdm_pairs
from loupe.metrics.cdm.drawing import rendering
from loupe.pipeline.plan import survey
from loupe.scoring.pool import ScorePool
from loupe.scoring.scorer import describe
from loupe.types import Prediction, Sample, Scored
from tests.support.shared import cases
from tests.support.synthetic import write_prepared
from tests.support.tex import need_tex

PAIRS = cases("oracles/cdm/cases.jsonl")


def asked(gt: str, pred: str, ident: str = "f") -> tuple[Sample, Prediction]:
    return Sample(id=ident, truth=gt, tags={"subset": "spe"}), Prediction(sample=ident, text=pred)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    formula_images._cache.cache_clear()


def test_a_scored_run_has_cdm_overall_and_rate_of_exact_formulas() -> None:
    need_tex("unimernet")
    pairs = [asked("x ^ { 2 }", "x^2", "a"), asked("y = 2 z + 3 x", "y=2x+3z", "b"), asked(r"\frac { a", "x", "c")]
    with ScorePool("unimer_test", jobs=1) as pool:
        rows = [future.result() for future in [pool.submit(*pair) for pair in pairs]]
    assert not any(row.error for row in rows)
    found = {name: [one.counts for row in rows for one in row.scores if one.measure == name] for name in ("cdm",)}
    assert found["cdm"] == [(1.0, 1.0), (0.714, 1.0)]
    conclusion = conclude(rows)
    assert conclusion.figures == {"cdm_profile": "unimernet", "mean_score": 0.857, "exp_rate": 0.5}
    assert any("leaves out 1 of 3" in warning for warning in conclusion.warnings)


@pytest.mark.parametrize(("profile", "f1"), [("unimernet", 1.0), ("omnidocbench", 0.857)])
def test_the_version_of_cdm_is_an_option(profile: str, f1: float) -> None:
    need_tex("unimernet")
    need_tex("omnidocbench")
    sample, prediction = asked(
        r"\lim_{x\to 0}\frac{\sin x}{x}=1", r"\mathop{\lim}_{x \to 0}\frac{\operatorname{sin}x}{x}=1"
    )
    sample = replace(sample, scoring={"cdm": "on", "cdm_profile": profile})
    scored = score(sample, prediction)
    assert [one.counts for one in scored.scores if one.measure == "cdm"] == [(f1, 1.0)]
    row = describe(sample, prediction, scored=scored, error="")
    assert conclude([row]).figures["cdm_profile"] == profile


def test_a_prediction_that_is_not_drawn_is_zero_and_named() -> None:
    need_tex("unimernet")
    sample, prediction = asked("x", r"\frac{a+b{c")
    scored = score(sample, prediction)
    assert [one.counts for one in scored.scores if one.measure == "cdm"] == [(0.0, 1.0)]
    row = describe(sample, prediction, scored=scored, error="")
    assert any("CDM is 0 for 1 of 1" in warning and "no page 1" in warning for warning in conclude([row]).warnings)


def test_an_answer_that_is_no_unicode_can_be_stored() -> None:
    scored = score(*asked("x", "x\ud800"))
    assert msgspec.json.encode(scored.details)


def test_what_was_prepared_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    need_tex("unimernet")
    pair = asked("x ^ { 2 }", "x^2 + q")
    prepare([pair])
    monkeypatch.setattr(rendering, "set_formulas", None)
    assert next(one.counts[0] for one in score(*pair).scores if one.measure == "cdm") > 0
    # In another process, too: memory forgotten, the file is left.
    formula_images._cache.cache_clear()
    assert next(one.counts[0] for one in score(*pair).scores if one.measure == "cdm") > 0


def test_without_tex_everything_else_is_scored_and_the_result_says_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    missing = MissingToolError("CDM needs TeX, and this is missing: pdflatex", hint="sudo apt-get install it")
    monkeypatch.setattr(formula_images, "missing_tools", lambda profile: missing)
    sample, prediction = asked("x", "x")
    prepare([(sample, prediction)])
    scored = score(sample, prediction)
    assert isinstance(scored, Scored)
    assert {one.measure for one in scored.scores} >= {"edit_distance", "bleu", "exprate"}
    assert not [one for one in scored.scores if one.measure.startswith("cdm")]
    (warning,) = conclude([describe(sample, prediction, scored=scored, error="")]).warnings
    assert "not computed" in warning and "pdflatex" in warning and "sudo apt-get install it" in warning
    assert formula_images.cdm_tools("unimernet") == {"CDM": ""}


def test_an_unwrapped_answer_that_is_not_drawn_is_named() -> None:
    need_tex("unimernet")
    sample, prediction = asked("x + y", "```latex\n\\frac{a+b{c\n```")
    row = describe(sample, prediction, scored=score(sample, prediction), error="")
    (bare,) = [one for one in conclude([row]).warnings if one.startswith("CDM of unwrapped answers")]
    assert "is 0 for 1 of 1 formulas that are not drawn: no page 1" in bare


def test_options_of_cdm_are_no_part_of_the_data_and_off_computes_none(tmp_path: Path) -> None:
    write_prepared("unimer_test", tmp_path / "data", 2)
    names = ({}, {"cdm": "off"}, {"cdm_profile": "omnidocbench"})
    seen = [survey(benchmark, "unimer_test", tmp_path / "data", options) for options in names]
    assert len({(each.data_digest, each.truth_digest) for each in seen}) == 1
    asked = [[sample.scoring["cdm"] for sample in benchmark.load(tmp_path / "data", **options)] for options in names]
    assert asked == [["on"] * 2, ["off"] * 2, ["on"] * 2]
    sample = next(iter(benchmark.load(tmp_path / "data", cdm="off")))
    scored = score(sample, Prediction(sample=sample.id, text="x"))
    assert not any("cdm" in one.measure for one in scored.scores) and scored.details == {}
    concluded = conclude([describe(sample, Prediction(sample=sample.id), scored=scored, error="")])
    assert (concluded.figures, concluded.warnings) == ({}, [])
    assert concluded.not_computed["cdm"] == concluded.not_computed["cdm_exprate"] == "CDM is switched off (-o cdm=off)"


@pytest.mark.slow
def test_the_official_mean_of_all_pairs() -> None:
    need_tex("unimernet")
    found = cdm_pairs([(case["input"]["pred"], case["input"]["gt"]) for case in PAIRS])
    official = [case["expected"]["unimernet"] for case in PAIRS]
    kept = [case["F1"] for case in official if not case.get("dropped")]
    ours = [one.f1 for one in found if one.counted]
    assert (len(ours), sum(ours)) == (len(kept), pytest.approx(sum(kept), abs=1e-9))
    assert sum(one.is_exact for one in found) == sum(value == 1 for value in kept)


def test_a_run_that_names_an_option_of_the_past_says_so_in_a_line(tmp_path: Path) -> None:
    write_prepared("unimer_test", tmp_path / "data", 1)
    with pytest.raises(UsageError) as found:
        survey(benchmark, "unimer_test", tmp_path / "data", {"renderer": "ghostscript"})
    assert found.value.message == "UniMER-Test has no option 'renderer'"
    assert found.value.hint.startswith("remove it from the options in run.json; options: subset,")
