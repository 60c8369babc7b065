"""CDM's matching: the official numbers on every case, and what must hold for any lists of boxes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loupe.metrics.cdm.matching import (
    MAX_TRIALS,
    CdmScore,
    TokenBox,
    consistent_pairs,
    match,
    ransac_inliers,
    score_of_counts,
)
from loupe.metrics.cdm.profiles import OMNIDOCBENCH, PROFILES, UNIMERNET, CdmProfile
from loupe.metrics.cdm.tokens import similar_name
from tests.support.shared import cases

MATCHER = cases("oracles/cdm/matcher.jsonl")
PAIRS = [(case, name) for case in cases("oracles/cdm/cases.jsonl") for name in case["expected"]]
RENDERS = {case["input"]["latex"]: case["expected"] for case in cases("oracles/cdm/renders.jsonl")}

edges = st.integers(0, 400)
boxes = st.one_of(st.just([]), st.tuples(edges, edges, edges, edges).map(list))
token_lists = st.lists(
    st.tuples(st.sampled_from(["x", "y", r"\to", r"\rightarrow", r"\leq", r"\le"]), boxes), max_size=14
)


def scored(given_lists: dict[str, Any], profile: CdmProfile) -> CdmScore:
    return match(
        [(token, box) for token, box in given_lists["pred"]],
        [(token, box) for token, box in given_lists["gt"]],
        prediction_size=tuple(given_lists["pred_size"]),
        reference_size=tuple(given_lists["gt_size"]),
        profile=profile,
    )


@pytest.mark.parametrize("case", MATCHER, ids=[case["id"] for case in MATCHER])
def test_every_matcher_case_has_the_official_score(case: dict[str, Any]) -> None:
    expected = case["expected"]
    score = scored(case["input"], PROFILES[case["profile"]])
    assert score.counted == ("dropped" not in expected)
    if score.counted:
        assert (score.precision, score.recall, score.f1) == (expected["precision"], expected["recall"], expected["F1"])
        assert len(score.matched) == expected.get("matched", len(score.matched))


@pytest.mark.parametrize(("case", "name"), PAIRS, ids=[f"{case['id']}-{name}" for case, name in PAIRS])
def test_every_pair_of_official_boxes_has_the_official_score(case: dict[str, Any], name: str) -> None:
    sides = {side: RENDERS[case["input"][side]][name] for side in ("gt", "pred")}
    lists = {side: sides[side].get("boxes") or [] for side in sides}
    sizes = {f"{side}_size": sides[side].get("size") or [1, 1] for side in sides}
    score = scored(lists | sizes, PROFILES[name])
    expected = case["expected"][name]
    assert score.counted == ("dropped" not in expected)
    if score.counted:
        assert (score.precision, score.recall, score.f1) == (expected["precision"], expected["recall"], expected["F1"])


@settings(max_examples=200, deadline=None)
@given(token_lists, token_lists)
def test_any_lists_have_a_score_within_bounds_and_each_token_one_place(
    prediction: list[TokenBox], reference: list[TokenBox]
) -> None:
    for profile in (OMNIDOCBENCH, UNIMERNET):
        score = match(prediction, reference, prediction_size=(400, 300), reference_size=(300, 400), profile=profile)
        assert 0 <= score.f1 <= 1 and 0 <= score.precision <= 1 and 0 <= score.recall <= 1
        if score.rendered:
            of_prediction, of_reference = zip(*score.matched, strict=True) if score.matched else ((), ())
            assert sorted([*of_prediction, *score.unmatched_prediction]) == list(range(len(prediction)))
            assert sorted([*of_reference, *score.unmatched_reference]) == list(range(len(reference)))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("xyz"), st.tuples(edges, edges, edges, edges)), min_size=1, max_size=30))
def test_a_formula_matches_itself(reference: list[TokenBox]) -> None:
    for profile in PROFILES.values():
        score = match(reference, reference, prediction_size=(400, 400), reference_size=(400, 400), profile=profile)
        assert score.f1 == 1.0 and score.is_exact


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(4, 40), st.integers(2, 3))
def test_ransac_comes_to_the_same_as_one_trial_after_the_other(seed: int, count: int, samples: int) -> None:
    chance = np.random.default_rng(seed)
    source = chance.integers(0, 600, (count, 2)).astype(float)
    target = source + np.where(chance.random((count, 1)) < 0.6, 7.0, chance.normal(0, 60, (count, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ransac_inliers(source, target, samples=samples, threshold=20.0)
    assert found.tolist() == plain_ransac(source, target, samples, 20.0).tolist()


def plain_ransac(source: Any, target: Any, samples: int, threshold: float) -> Any:
    """docs/protocols/cdm.md#ransac by its words, one trial at a time."""
    generator = np.random.default_rng(42)
    sample = generator.choice(len(source), samples, replace=False)
    best, best_count, best_sum, trials, trial = np.zeros(len(source), bool), 0, np.inf, float(MAX_TRIALS), 0
    while trial < trials:
        trial += 1
        start, end = source[sample], target[sample]
        sample = generator.choice(len(source), samples, replace=False)
        spread = np.linalg.norm(start - start.mean(0), axis=1).mean()
        scale = np.linalg.norm(end - end.mean(0), axis=1).mean() / (spread + 1e-10)
        centre = source.mean(0)
        moved = scale * (source - centre) + centre + (end.mean(0) - start.mean(0))
        residuals = np.sqrt(((moved - target) ** 2).sum(1))
        near = residuals < threshold
        total = residuals.dot(residuals)
        if near.sum() > best_count or (near.sum() == best_count and total < best_sum):
            best, best_count, best_sum = near, near.sum(), total
            if best_count:
                epsilon = np.finfo(float).eps
                miss = max(epsilon, 1 - (best_count / len(source)) ** samples)
                trials = min(trials, np.ceil(np.log(epsilon) / np.log(miss)))
            if best_sum <= 0:
                break
    return best


def test_few_pairs_are_all_consistent() -> None:
    points = np.array([[0.0, 0.0], [500.0, 1.0], [9.0, 900.0]])
    assert consistent_pairs(points, points[::-1], rounds=3, samples=3, threshold=25.0).all()


def test_scores_are_rounded_so_that_very_long_formulas_may_miss_one() -> None:
    assert score_of_counts(1000, 1001, 1000)[2] == 1.0
    assert score_of_counts(999, 1000, 1000)[2] == 0.999


def test_a_side_without_boxes_is_zero_or_left_out() -> None:
    some: list[TokenBox] = [("x", [0, 0, 5, 5])]
    sizes: dict[str, Any] = {"prediction_size": (10, 10), "reference_size": (10, 10)}
    for profile, prediction, reference, counted in [
        (OMNIDOCBENCH, some, [], True),
        (UNIMERNET, some, [("x", [])], False),
        (UNIMERNET, [("x", [])], some, True),
    ]:
        score = match(prediction, reference, **sizes, profile=profile)
        assert (score.f1, score.rendered, score.counted) == (0.0, False, counted)


def test_tokens_that_look_alike_are_those_of_the_profile() -> None:
    assert similar_name(r"\to", newer=False) == similar_name(r"\leftarrow", newer=False) == "arrow"
    assert similar_name(r"\longrightarrow", newer=False) == r"\rightarrow"
    assert similar_name(r"\rightarrow", newer=True) == r"\to"
    assert similar_name(r"\neq", newer=True) != similar_name(r"\ne", newer=True)
    assert similar_name(r"\bigcup", newer=True) == similar_name("p", newer=True)
    assert similar_name(r"\varepsilon", newer=False) == "epsilon"
    assert similar_name(r"\varepsilon", newer=True) == r"\epsilon"
