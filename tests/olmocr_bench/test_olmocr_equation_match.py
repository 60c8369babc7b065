"""Comparing drawn equations: search and neighbours equal their textbook forms, MathML is as a real parser has it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from loupe.benchmarks.shared.equations.equation_match import (
    DIRECTIONS,
    TOLERANCE,
    Budget,
    Symbols,
    UndecidedError,
    characters,
    embed,
    presentation,
    symbols_of,
    without_spaces,
)
from loupe.benchmarks.shared.equations.rendering.drawing import Box, Drawing
from tests.support.shared import cases

_places = st.integers(0, 40).map(lambda quarter: quarter * 1.75)


@st.composite
def symbol_lists(draw: st.DrawFn, most: int = 7) -> Symbols:
    placed = draw(st.lists(st.tuples(st.sampled_from("ab"), _places, _places), max_size=most))
    return Symbols("".join(each[0] for each in placed), [each[1] for each in placed], [each[2] for each in placed])


def textbook_neighbour(symbols: Symbols, of: int, direction: str) -> int | None:
    """Look at all others, one after the other; strictly nearer ones replace the one found."""
    along, aside = (symbols.ys, symbols.xs) if direction in ("up", "down") else (symbols.xs, symbols.ys)
    sign = 1 if direction in ("up", "left") else -1
    best, nearest = None, 0.0
    for other in range(len(symbols.text)):
        distance = sign * (along[of] - along[other])
        if (
            other != of
            and distance > 0
            and abs(aside[other] - aside[of]) <= TOLERANCE
            and (best is None or distance < nearest)
        ):
            best, nearest = other, distance
    return best


def fits(reference: Symbols, hypothesis: Symbols, assigned: Sequence[int]) -> bool:
    """Whether the last of these assignments was a valid choice after the others."""
    symbol, candidate = len(assigned) - 1, assigned[-1]
    if candidate in assigned[:-1] or reference.text[symbol] != hypothesis.text[candidate]:
        return False
    for direction in DIRECTIONS:
        asked = textbook_neighbour(reference, symbol, direction)
        if asked is None:
            continue
        there = textbook_neighbour(hypothesis, candidate, direction)
        if there is None or (
            assigned[asked] != there if asked < symbol else hypothesis.text[there] != reference.text[asked]
        ):
            return False
    return True


def textbook_embeds(reference: Symbols, hypothesis: Symbols, assigned: tuple[int, ...] = ()) -> bool:
    """Assign one symbol after the other, and go back when stuck."""
    if len(assigned) == len(reference.text):
        return True
    return any(
        fits(reference, hypothesis, (*assigned, candidate))
        and textbook_embeds(reference, hypothesis, (*assigned, candidate))
        for candidate in range(len(hypothesis.text))
    )


@given(symbol_lists(most=12))
def test_neighbours_are_the_nearest_symbols_in_their_row_or_column(symbols: Symbols) -> None:
    for direction in DIRECTIONS:
        expected = [textbook_neighbour(symbols, each, direction) for each in range(len(symbols.text))]
        assert symbols.neighbours[direction] == expected


@given(symbol_lists(most=5), symbol_lists(most=7))
def test_an_assignment_is_found_where_going_back_and_forth_finds_one(reference: Symbols, hypothesis: Symbols) -> None:
    found = embed(reference, hypothesis)
    assert (found is not None) == textbook_embeds(reference, hypothesis)
    if found is not None:
        assert all(fits(reference, hypothesis, found[: each + 1]) for each in range(len(found)))


@given(symbol_lists(most=7), st.data())
def test_a_part_of_an_equation_that_lost_no_neighbour_is_found_in_it(whole: Symbols, data: st.DataObject) -> None:
    kept = sorted(data.draw(st.sets(st.sampled_from(range(len(whole.text))))) if whole.text else [])
    part = Symbols(
        "".join(whole.text[each] for each in kept), [whole.xs[each] for each in kept], [whole.ys[each] for each in kept]
    )
    found = embed(part, whole)
    assert (found is not None) == textbook_embeds(part, whole)


def test_equal_symbols_in_many_places_do_not_take_for_ever() -> None:
    """Fifteen symbols without neighbours for fourteen places: going back and forth tries 14! ways."""
    apart = [20.0 * each for each in range(15)]
    reference = Symbols("a" * 15, apart, apart)
    hypothesis = Symbols("a" * 14 + "b", apart, apart)
    assert embed(reference, hypothesis) is None
    assert embed(reference, Symbols("a" * 15, apart, apart)) is not None


def test_a_long_line_of_equal_symbols_is_searched_quickly() -> None:
    assert embed(line("aba"), line("ab" * 10_000)) is not None
    assert embed(line("a" * 300), line("a" * 5_000)) is not None
    assert embed(line("a" * 300 + "b"), line("a" * 5_000)) is None


def test_a_search_that_takes_too_many_steps_is_given_up() -> None:
    with pytest.raises(UndecidedError):
        embed(line("aba"), line("ababab"), Budget(10))


def test_the_searches_of_one_test_share_their_steps() -> None:
    budget = Budget(1_000)
    assert embed(line("aba"), line("ababab"), budget) is not None
    assert 0 < budget.left < 1_000
    with pytest.raises(UndecidedError):
        embed(line("a" * 30), line("a" * 500), budget)
    with pytest.raises(UndecidedError):
        embed(line("aba"), line("ababab"), budget)


def line(text: str) -> Symbols:
    """Symbols side by side."""
    return Symbols(text, [10.0 * each for each in range(len(text))], [0.0] * len(text))


def test_a_span_of_several_characters_is_cut_into_equal_parts() -> None:
    drawing = Drawing(texts=["a\u200bb", "\u200b"], boxes=[Box(10, 0, 8, 6), Box(0, 0, 1, 1)])
    assert symbols_of(drawing) == Symbols("ab", [12.0, 16.0], [3.0, 3.0])
    assert characters(drawing.texts) == "ab"


RENDERED = [
    case["expected"]["mathml"]
    for case in cases("oracles/olmocr_bench/katex_render.jsonl")
    if not case["expected"]["error"]
]


def parsed(mathml: str) -> str:
    """What a real XML parser finds in `semantics`, written again."""
    semantics = BeautifulSoup(mathml, "xml").find("semantics")
    assert semantics is not None
    return without_spaces("".join(str(child) for child in semantics if getattr(child, "name", "") != "annotation"))


@pytest.mark.parametrize("mathml", RENDERED)
def test_mathml_contains_what_a_parser_says_it_contains(mathml: str) -> None:
    inside, ours = parsed(mathml), presentation(mathml)
    assert ours.startswith("<m") and ours.endswith(">")
    for other in RENDERED:
        assert (inside in parsed(other)) == (ours in presentation(other))


@pytest.mark.parametrize("text", ["a&nbsp;b", "a\u00a0b", "&amp;nbsp;", "&lt;mrow&gt;", "\U0001d538", "\u2009\ufeff"])
def test_spaces_and_escapes_in_mathml_are_as_a_parser_has_them(text: str) -> None:
    mathml = f"<math><semantics><mrow><mi>{text}</mi></mrow><annotation>{text}</annotation></semantics></math>"
    assert presentation(mathml) == parsed(mathml)


def test_what_may_not_stand_in_xml_is_dropped_as_by_a_parser() -> None:
    text = "a".join(map(chr, {*range(0x20), *range(0x7F, 0xA0), *range(0xFFF0, 0x10000)} - {0x26, 0x3C}))
    mathml = f"<math><semantics><mrow><mi>{text}</mi></mrow><annotation>x</annotation></semantics></math>"
    assert presentation(mathml) == parsed(mathml)
