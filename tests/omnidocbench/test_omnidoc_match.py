"""The match of OmniDocBench 1.5: fast and plain agree on any page; windows, runs and overlaps one by one."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loupe.benchmarks.omnidocbench.line_match import groups_of, match_blocks, match_lines
from loupe.benchmarks.omnidocbench.lines import predicted_lines, truth_lines
from loupe.benchmarks.omnidocbench.neighbours import (
    RunOfPieces,
    distance_matrix,
    edits_within,
    merge_neighbours,
    short_window_distances,
    window_distance,
    without_overlaps,
)
from loupe.benchmarks.omnidocbench.page_match import match_page
from loupe.benchmarks.omnidocbench.records import Block, Item, PageMatch, PredictedItem, TooMuchWorkError, Work
from loupe.benchmarks.omnidocbench.rules import V1_5
from tests.support.omnidocbench import textbook_match as textbook

#: Few characters, so that windows fit by chance and distances are often equal.
words = st.text("abcß真", min_size=1, max_size=6)
lines = st.lists(words, min_size=1, max_size=8).map("".join)


@st.composite
def pages(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """Blocks, and the same cut, joined, misread, shuffled and with something new in between."""
    blocks = draw(st.lists(lines, min_size=1, max_size=5))
    pieces = []
    for block in blocks:
        cuts = sorted(draw(st.sets(st.integers(1, max(1, len(block) - 1)), max_size=4)))
        pieces += [block[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(block)], strict=True)]
    pieces = [draw(misread(piece)) for piece in pieces if draw(st.integers(0, 9))] + draw(st.lists(lines, max_size=2))
    joined = []
    for piece in draw(st.permutations(pieces)) if draw(st.booleans()) else pieces:
        if joined and not draw(st.integers(0, 4)):
            joined[-1] += piece
        else:
            joined.append(piece)
    return blocks, [line for line in joined if line] or ["a"]


@st.composite
def misread(draw: st.DrawFn, text: str) -> str:
    wrong = draw(st.dictionaries(st.integers(0, len(text)), st.sampled_from(["", "x", "ab"]), max_size=2))
    return "".join(wrong.get(index, character) for index, character in enumerate(text))


def fast(blocks: list[str], predicted: list[str]) -> list[textbook.Found]:
    distances = distance_matrix(blocks, predicted)
    columns = merge_neighbours(blocks, predicted, distances, Work(), longest_run=V1_5.longest_run)
    groups = groups_of(
        match_blocks(blocks, predicted, columns, Work(), [True] * len(blocks)), blocks, predicted, distances
    )
    return [textbook.Found(group.blocks, group.key, group.edit) for group in groups]


@settings(max_examples=120, deadline=None)
@given(pages())
def test_fast_and_plain_match_agree_on_any_page(page: tuple[list[str], list[str]]) -> None:
    found = fast(*page)
    assert found == textbook.quick_match(*page)
    assert textbook.is_partition(found, len(page[0]))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(words, min_size=4, max_size=12), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_fast_and_plain_match_agree_on_blocks_that_are_cut_into_words(blocks: list[list[str]], dice: Any) -> None:
    predicted = [word for block in blocks for word in block if dice.random() > 0.1]
    page = ["".join(block) for block in blocks], predicted or ["a"]
    assert fast(*page) == textbook.quick_match(*page)


@settings(max_examples=60, deadline=None)
@given(lines, st.lists(st.tuples(st.sampled_from(["a", "ab", "b", "x"]), st.integers(1, 12)), min_size=1, max_size=4))
def test_fast_and_plain_match_agree_on_lines_in_a_loop(block: str, loops: list[tuple[str, int]]) -> None:
    page = [block * 2, "xab"], [line for line, times in loops for _ in range(times)]
    assert fast(*page) == textbook.quick_match(*page)


@given(st.lists(lines, max_size=4), st.lists(lines, max_size=4))
def test_the_matrix_holds_the_very_floats_of_a_division_in_python(rows: list[str], columns: list[str]) -> None:
    assert np.array_equal(distance_matrix(rows, columns), textbook.matrix(rows, columns))


@given(words, lines, st.sampled_from([0.0, 0.2, 0.4, 0.6, math.inf]), st.sampled_from([0.0, 0.4, 0.6]))
def test_the_nearest_window_is_found_though_most_are_skipped(
    needle: str, text: str, bound: float, enough: float
) -> None:
    plain = textbook.window(needle, text)
    found = window_distance(needle, text, bound=bound, enough=enough)
    if plain is None or plain > bound:
        assert found == math.inf
    elif plain < enough:
        assert plain <= found < enough or found == plain
    else:
        assert found == plain


@given(st.lists(st.text("abc", min_size=3, max_size=3), min_size=1), lines)
def test_short_needles_are_fitted_at_once_as_one_by_one(needles: list[str], text: str) -> None:
    one_by_one = [window_distance(needle, text) for needle in needles]
    assert short_window_distances(needles, text, Work()) == one_by_one


@given(st.floats(0, 1), st.integers(1, 200))
def test_the_most_edits_within_a_bound_are_told_by_the_division(bound: float, length: int) -> None:
    edits = edits_within(bound, length)
    assert edits / length <= bound
    assert edits == length or (edits + 1) / length > bound


def candidates(*rows: tuple[int, int, float]) -> list[RunOfPieces]:
    return [RunOfPieces(range(start, stop), cost) for start, stop, cost in rows]


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        pytest.param([(0, 2, 0.5), (3, 4, 0.9)], [(0, 2), (3, 4)], id="all that stand apart"),
        pytest.param([(0, 2, 0.5), (1, 3, 0.1)], [(1, 3)], id="the cheaper of two"),
        pytest.param([(0, 2, 0.3), (1, 3, 0.3)], [(0, 2)], id="the first of two that cost the same"),
        pytest.param([(0, 2, 0.3), (1, 3, 0.25), (2, 4, 0.1)], [(0, 2), (2, 4)], id="the less mean cost"),
        pytest.param([(0, 2, 0.3), (0, 2, 0.1), (2, 3, 0.2)], [(0, 2), (2, 3)], id="one run wanted twice"),
    ],
)
def test_of_runs_that_overlap_is_kept(found: list[tuple[int, int, float]], kept: list[tuple[int, int]]) -> None:
    assert without_overlaps(candidates(*found)) == [range(*run) for run in kept]


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 4), st.sampled_from([0.1, 0.2, 0.3])), max_size=7))
def test_overlaps_are_resolved_as_in_the_plain_version(rows: list[tuple[int, int, float]]) -> None:
    found = candidates(*((start, start + length, cost) for start, length, cost in rows))
    kept = without_overlaps(found)
    assert [list(run) for run in kept] == textbook.resolve([(list(each.run), each.cost) for each in found])
    assert len({index for run in kept for index in run}) == sum(map(len, kept))


def page_of(*texts: str, category: str = "text_block", **more: Any) -> dict[str, Any]:
    blocks = [
        {"category_type": category, "text": text, "order": number, "anno_id": number, "attribute": {}}
        for number, text in enumerate(texts, start=1)
    ]
    return {"layout_dets": blocks + more.get("others", []), "extra": {"relation": more.get("relation", [])}}


def test_work_is_counted_and_ends() -> None:
    work = Work(most=10_000)
    work.spend(100, 100)
    with pytest.raises(TooMuchWorkError):
        work.spend(100, 100, times=100)


def test_lines_beyond_the_allowed_work_are_assigned_plainly_and_say_so() -> None:
    blocks = [Block(category="text_block", text=text) for text in ("one two three four", "five six seven", "eight")]
    items = [Item(category="text_all", content=text, start=0, end=0) for text in ("five six", "seven", "one two")]
    truth = truth_lines(blocks, "parity", V1_5)
    predicted = predicted_lines([PredictedItem(index, item) for index, item in enumerate(items)], "parity", V1_5)
    match = match_lines(truth, predicted, Work(most=1000), V1_5)
    assert (match.plain, match.upstream_seconds) == (True, None)
    assert [(group.blocks, group.key, group.step) for group in match.groups] == [
        ((0,), (2,), "plain assignment"),
        ((1,), (0,), "plain assignment"),
        ((2,), (1,), "plain assignment"),
    ]
    assert not match_lines(truth, predicted, Work(), V1_5).plain


def test_a_clean_page_is_far_from_upstreams_limit() -> None:
    match = match_page(page_of("one two three", "four five six"), "one two three\n\nfour five six")
    assert (match.facts.upstream_seconds, match.facts.would_time_out) == (0.0, False)


def test_a_long_block_cut_into_lines_reaches_upstreams_limit() -> None:
    dice = np.random.default_rng(4)
    words = ["".join(map(chr, dice.integers(97, 123, 7))) for _ in range(600)]
    pieces = [" ".join(words[start : start + 5]) for start in range(0, 600, 5)]
    match = match_page(page_of(" ".join(words), "the end"), "\n\n".join(pieces))
    assert match.facts.would_time_out
    assert match.text_block[0].step == "run merge"
    # Not all: the blanks that upstream puts between them make the run as long as the block before its end.
    assert len(match.text_block[0].pieces) == 117


def test_an_answer_that_loops_is_matched_in_time() -> None:
    start = time.process_time()
    match = match_page(page_of("The harbour lies quiet in the morning. " * 20, "the end"), "$a " * 10_000)
    assert not match.facts.plain_assignment
    assert time.process_time() - start < 5


def test_the_record_of_a_page_survives_json() -> None:
    match = match_page(page_of("one two three", "four five six"), "one two tree\n\nnothing\n\n---")
    assert msgspec.json.decode(msgspec.json.encode(match), type=PageMatch) == match
    assert json.loads(msgspec.json.encode(match))["text_block"][0]["step"] == "assignment"
