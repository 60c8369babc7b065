"""CDM of OmniDocBench 1.6 and of MDPBench: identical with the official programs, and what is their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loupe.metrics import CdmResult, cdm_pairs
from loupe.metrics.cdm.colouring import colour
from loupe.metrics.cdm.drawing.pdf_pages import PageInk, ink_of_pixels, stacked
from loupe.metrics.cdm.drawing.rendering import formula_pages, layout, render
from loupe.metrics.cdm.matching import ALL_TRIALS, inliers_of_all_trials, match
from loupe.metrics.cdm.profiles import MDPBENCH, OMNIDOCBENCH, OMNIDOCBENCH_V16, UNIMERNET
from loupe.metrics.cdm.tokenizer import formula_tokens
from loupe.metrics.latex_nodes import is_damaged
from tests.support.ghostscript import exact_cdm, ghostscript
from tests.support.shared import cases
from tests.support.tex import need_ghostscript, need_tex, official_pixels

TEXT = cases("oracles/omnidocbench_v16/cdm_text.jsonl")
DRAWN = cases("oracles/omnidocbench_v16/cdm.jsonl")
MDP = cases("oracles/mdpbench/cdm_pairs.jsonl")


def pairs(found: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(case["input"]["pred"], case["input"]["gt"]) for case in found]


def assert_official(found: list[dict[str, Any]], results: list[CdmResult]) -> None:
    for case, one in zip(found, results, strict=True):
        expected = case["expected"]
        assert [one.precision, one.recall, one.f1] == [expected[name] for name in ("precision", "recall", "F1_score")]
        assert one.counted


@pytest.mark.parametrize("case", TEXT, ids=[case["id"] for case in TEXT])
def test_every_text_case_comes_out_as_from_the_official_program(case: dict[str, Any]) -> None:
    found, expected = colour(case["input"]["latex"], OMNIDOCBENCH_V16), case["expected"]
    assert found.parsed == bool(expected["tokenized"])
    assert (found.template, found.tokenized) == (expected["template"], expected["into_normaliser"])
    assert (found.normalized, found.placeholders) == (expected["normalized"], expected["coloured"])
    assert (list(found.tokens), len(found.colours)) == (expected["tokens"], expected["colours"])


@pytest.mark.parametrize("case", DRAWN, ids=[case["id"] for case in DRAWN])
def test_official_boxes_have_the_official_score(case: dict[str, Any]) -> None:
    expected = case["expected"]
    sides = {side: expected[side] or {"boxes": [], "size": [1, 1]} for side in ("pred", "gt")}
    prediction, reference = ([(token, box) for token, box in side["boxes"]] for side in sides.values())
    sizes = [tuple(side["size"]) for side in sides.values()]
    score = match(prediction, reference, prediction_size=sizes[0], reference_size=sizes[1], profile=OMNIDOCBENCH_V16)
    assert [score.precision, score.recall, score.f1] == [expected[name] for name in ("precision", "recall", "F1_score")]
    assert len(score.matched) == expected["tp"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "found"), [("omnidocbench_v16", DRAWN), ("mdpbench", MDP)], ids=["omnidocbench_v16", "mdpbench"]
)
def test_the_fast_renderer_gives_the_official_scores_on_every_pair(profile: str, found: list[dict[str, Any]]) -> None:
    need_tex(profile)
    assert_official(found, cdm_pairs(pairs(found), profile=profile))


@pytest.mark.slow
def test_the_exact_renderer_has_every_official_box() -> None:
    need_ghostscript("omnidocbench_v16")
    some = DRAWN[::12]  # all of them: perf/cdm.py --parity
    pixels, results = official_pixels(), exact_cdm(pairs(some), "omnidocbench_v16")
    assert_official(some, results)
    for case, one in zip(some, results, strict=True):
        for side, characters, size in (
            ("gt", one.reference, one.reference_size),
            ("pred", one.prediction, one.prediction_size),
        ):
            expected = case["expected"][side] or {"boxes": [], "size": [0, 0]}
            boxes = [(token, box) for token, box in expected["boxes"] if box]
            assert [each.token for each in characters] == [token for token, _ in boxes]
            assert [list(each.box) for each in characters] == [pytest.approx(box, abs=pixels) for _, box in boxes]
            assert list(size) == pytest.approx(expected["size"], abs=pixels)


@pytest.mark.slow
def test_the_exact_renderer_gives_mdpbenchs_scores() -> None:
    need_ghostscript("mdpbench")
    assert_official(MDP[::12], exact_cdm(pairs(MDP[::12]), "mdpbench"))


def test_mdpbench_writes_the_colour_before_a_group_and_is_the_same_otherwise() -> None:
    for formula in (r"\frac{a}{b}_2", r"\text{中}", r"\unread{ $"):
        ours, other = colour(formula, MDPBENCH), colour(formula, OMNIDOCBENCH)
        assert ours.tex == other.tex.replace(r"\mathcolor[RGB]", r"\color[RGB]")
        assert (ours.tokens, ours.colours, ours.template) == (other.tokens, other.colours, other.template)


# Each was compared with what upstream's own code makes of it.
READ = {
    r"x^{'}": "x ^ { ' }",
    r"x'^2": "x ^ { 2 }",
    "x'''": r"x ^ { \prime \prime \prime }",
    "x^": "x ^",
    "x_a^": "x _ { a }",
    r"\text{x \limits y}": r"\mathrm { x ~ y }",
    r"\text{\foo  y}": r"\mathrm { \foo ~ y }",
    r"\binom{n}k": r"\binom n k",
    r"\binom a & b": r"\binom { } { } a & b",
    r"\binom{a} bc": r"\binom a { b c }",
    r"\binom{a}\begin{matrix}a&b\end{matrix}": r"\binom a { a & b }",
    r"\tfrac 1 2": r"\frac { } { } 1 2",
    r"\hat\mathbf{x}": r"\hat { \mathbf { x } }",
    r"\begin{array}c a\end{array}": r"\begin{array} { } { a } \end{array}",
    r"\begin{matrix}\{ & b\\c&\end{matrix}": r"\begin{array} { l l } { \{ } & { b } \\ { c } & \end{array}",
    r"\left\left(a\right)\right)": r"\left\left ( a \right) \right)",
    r"\operatorname{ sin }x \operatorname{s in}y": r"\sin x \sin y",
    r"\rule{-1.0em}{2 pt}": r"\rule { -1 em } { 2 pt }",
    r"a---b": "a -- - b",
    r"\mathrm{a--b}": r"\mathrm { a - - b }",
}


@pytest.mark.parametrize("formula", READ)
def test_rare_constructions_are_tokenised_as_upstream_does(formula: str) -> None:
    assert formula_tokens(formula) == READ[formula]


def test_what_does_not_close_is_left_as_it_is() -> None:
    for damaged in ("{", r"\left( x", r"\begin{a}\end{b}", "$", "x" * 20_001):
        assert is_damaged(damaged, longest=20_000) and formula_tokens(damaged) == ""
    for whole in (r"\{", r"\left_x", r"\$", r"\leftarrow"):
        assert not is_damaged(whole, longest=20_000), whole


def test_what_does_not_fit_its_paper_is_set_on_a_larger_one() -> None:
    need_tex("omnidocbench_v16")
    formulas = [colour(tex, OMNIDOCBENCH_V16) for tex in ("x", "x+" * 60 + "y", r"\rule{2cm}{25cm}")]
    pages = formula_pages(formulas, OMNIDOCBENCH_V16)
    assert [page.overfull for page in pages] == [False] * 3
    assert pages[0].pdf not in (pages[1].pdf, pages[2].pdf)
    # Where no paper is large enough, the largest is taken as it is.
    assert formula_pages([colour(r"\rule{2cm}{90cm}", OMNIDOCBENCH_V16)], OMNIDOCBENCH_V16)[0].overfull


def test_pages_are_put_below_each_other_only_where_the_profile_does_so() -> None:
    need_ghostscript("omnidocbench_v16")
    two_pages, one_page = r"x \newpage y", "x y"
    for draw in (layout, ghostscript):
        joined, single = render([two_pages, one_page], profile=OMNIDOCBENCH_V16, draw=draw)
        assert joined.failure == "" and joined.size[1] > 1000 > single.size[1]
        assert [bool(box) for box in joined.boxes] == [True, False, True]
    assert render([two_pages], profile=UNIMERNET)[0].failure == "several pages"


def test_a_stack_of_pages_has_their_ink_in_its_place() -> None:
    first, second = PageInk(100, 50), PageInk(80, 40)
    first.add(15, (1, 2, 3, 4))
    second.add(15, (5, 6, 7, 8))
    found = stacked([first, second])
    assert (found.width, found.height, found.colours[15], found.all) == (100, 90, (1, 2, 7, 58), (1, 2, 7, 58))


def test_colours_that_are_off_by_one_count_and_no_others() -> None:
    page = np.full((4, 6, 3), 255, dtype=np.uint8)
    page[1, 1], page[1, 3], page[2, 4] = (0, 1, 14), (0, 0, 16), (0, 0, 17)
    ink = ink_of_pixels(page)
    assert ink.boxes([(0, 0, 15)]) == ((),)
    found = ink.with_rounded_colours()
    found.crops_within_page = True
    assert found.crop == (0, 0, 6, 4)
    assert found.boxes([(0, 0, 15), (0, 0, 30)]) == ((0, 0, 4, 2), ())


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 30))
def test_ransac_comes_to_the_same_as_all_trials_one_after_the_other(seed: int, count: int) -> None:
    chance = np.random.default_rng(seed)
    source = chance.integers(0, 600, (count, 2)).astype(float)
    target = source + np.where(chance.random((count, 1)) < 0.5, 7.0, chance.normal(0, 90, (count, 2)))
    found = inliers_of_all_trials(source, target, samples=2, threshold=30.0)
    assert found.tolist() == plainly(source, target).tolist()


def plainly(source: Any, target: Any) -> Any:
    """docs/protocols/omnidocbench_v16.md#cdm-ransac by its words."""
    generator = np.random.default_rng(2026)
    best, best_count, best_sum = np.zeros(len(source), bool), 0, np.inf
    for _ in range(ALL_TRIALS):
        sample = generator.choice(np.arange(len(source)), 2, replace=False)
        start, end = source[sample], target[sample]
        spread = np.linalg.norm(start - start.mean(0), axis=1).mean()
        scale = np.linalg.norm(end - end.mean(0), axis=1).mean() / (spread + 1e-10)
        centre = source.mean(0)
        moved = scale * (source - centre) + centre + (end.mean(0) - start.mean(0))
        residuals = np.sqrt(((moved - target) ** 2).sum(1))
        near = residuals < 30.0
        count, total = int(near.sum()), float(residuals[near].sum())
        if count and (count > best_count or (count == best_count and total < best_sum)):
            best, best_count, best_sum = near, count, total
    return best
