"""CDM end to end against the official programs: which formulas are drawn, every box, every score."""

from __future__ import annotations

from typing import Any

import pytest

from loupe.metrics import cdm, cdm_pairs
from loupe.metrics.cdm import PROFILES
from loupe.metrics.cdm.drawing.rendering import Rendering, render
from tests.support.ghostscript import ghostscript
from tests.support.shared import cases
from tests.support.tex import need_ghostscript, need_tex, official_pixels

PAIRS = cases("oracles/cdm/cases.jsonl")
FORMULAS = cases("oracles/cdm/renders.jsonl")
OFFICIAL = ("omnidocbench", "unimernet")
need_tex(*OFFICIAL)


def rendered(profile: str) -> list[tuple[dict[str, Any], Rendering]]:
    drawn = render([case["input"]["latex"] for case in FORMULAS], profile=PROFILES[profile])
    return [(case["expected"][profile], one) for case, one in zip(FORMULAS, drawn, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("profile", OFFICIAL)
def test_the_fast_renderer_gives_the_official_scores_on_every_pair(profile: str) -> None:
    results = cdm_pairs([(case["input"]["pred"], case["input"]["gt"]) for case in PAIRS], profile=profile)
    for case, found in zip(PAIRS, results, strict=True):
        expected = case["expected"][profile]
        if expected.get("dropped"):
            assert not found.counted
        else:
            assert found.counted
            assert [found.precision, found.recall, found.f1] == [
                expected["precision"],
                expected["recall"],
                expected["F1"],
            ]


@pytest.mark.slow
@pytest.mark.parametrize("profile", OFFICIAL)
def test_the_fast_renderer_draws_what_the_official_one_draws_and_is_one_pixel_off_at_most(profile: str) -> None:
    for expected, found in rendered(profile):
        assert bool(expected.get("rendered")) == (not found.failure)
        if found.failure:
            assert found.failure in ("not coloured", "no page", "several pages")
            continue
        assert list(found.tokens) == [token for token, _ in expected["boxes"]]
        for box, (_, official) in zip(found.boxes, expected["boxes"], strict=True):
            assert len(box) == len(official)
            assert all(abs(ours - theirs) <= 1 for ours, theirs in zip(box, official, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("profile", OFFICIAL)
def test_the_exact_renderer_has_every_official_box(profile: str) -> None:
    need_ghostscript(profile)
    # One of eight here; all of them in the file that `perf/cdm.py --parity` writes: 2,801 of 2,801 boxes.
    some = [case for case in FORMULAS if case["expected"][profile].get("rendered")][::8]
    pixels = official_pixels()
    drawn = render([case["input"]["latex"] for case in some], profile=PROFILES[profile], draw=ghostscript)
    for case, found in zip(some, drawn, strict=True):
        expected = case["expected"][profile]
        assert list(found.size) == pytest.approx(expected["size"], abs=pixels)
        assert list(found.tokens) == [token for token, _ in expected["boxes"]]
        assert [list(box) for box in found.boxes] == [pytest.approx(box, abs=pixels) for _, box in expected["boxes"]]


def test_one_pair_has_characters_with_boxes_and_says_which_are_matched() -> None:
    found = cdm("y=2x+3z", "y = 2z + 3x")
    assert (found.f1, found.profile) == (0.714, "unimernet")
    assert [one.token for one in found.prediction if not one.matched] == ["x", "z"]
    assert all(len(one.box) == 4 for one in found.prediction)


def test_a_side_that_is_not_drawn_has_a_reason() -> None:
    pairs = [(r"\frac{a+b{c-d}", "x"), ("x", r"\frac{a"), ("", "x"), (r"\phantom{x}", "x")]
    broken, lost, empty, blank = cdm_pairs(pairs, profile="omnidocbench")
    assert (broken.f1, broken.prediction_failure, broken.reference_failure) == (0.0, "no page", "")
    assert lost.counted
    assert not cdm("x", r"\frac{a", profile="unimernet").counted
    assert empty.prediction_failure
    assert blank.prediction_failure == "nothing visible"


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ValueError, match="omnidocbench, unimernet, omnidocbench_pdflatex, omnidocbench_v16, mdpbench"):
        cdm("x", "x", profile="other")
