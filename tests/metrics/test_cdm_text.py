"""CDM's text stages: identical with the official programs on every case, bounded and plain on everything else."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loupe.metrics.cdm import colouring
from loupe.metrics.cdm.colouring import MAX_COLOURS, ColouredFormula, colour, filled_braces, palette
from loupe.metrics.cdm.parser import MAX_DEPTH, parse
from loupe.metrics.cdm.profiles import OMNIDOCBENCH, PROFILES, UNIMERNET
from loupe.metrics.cdm.token_reader import NotTokenizedError
from loupe.metrics.cdm.tokenizer import tokenize
from loupe.metrics.cdm.tokens import MAX_CHARACTERS, MAX_TOKENS, NotColouredError, check_size, matching_brace
from tests.support.shared import cases

TEXT = [(case, name) for case in cases("oracles/cdm_text/cases.jsonl") for name in case["expected"]]
RENDERS = [(case, name) for case in cases("oracles/cdm/renders.jsonl") for name in case["expected"]]
PIECE_LIST = (
    r"\frac \sqrt \hat \bar \mathbf \mathrm \rm \text \left \right ( ) [ ] { } { } ^ _ ' \over \begin{array} "
    r"\end{array} {lcr} & \sum \lim \limits \big \displaystyle \bf \color{red} \not = \dots \sin \operatorname * "
    r"\phantom \multirow \cline \\ \parbox \char 1 pt a b + - -- % $ ~ \label{x} \string \rule{1pt}{2pt} 中 \matrix "
    r"\{ \} \xrightarrow \stackrel \begin{tabular} \end{tabular} \hspace \footnote \' \raisebox \underbrace \textcolor"
)
PIECES = PIECE_LIST.split()
BRACED = [r"\hat", r"\bar", r"\frac", r"\sqrt", r"\stackrel", "{", "}", "[", "]", "a", ""]
SINGLE_PASS = {
    "length": (colouring._LENGTH, colouring._glued),
    "length in tables": (colouring._LENGTH, colouring._removed),
    "columns": (colouring._COLUMNS, colouring._with_glued_columns),
    "not and a sign": (colouring._NOT_SIGN, colouring._glued),
    "not and a command": (colouring._NOT_COMMAND, colouring._glued_to_blank),
    "string": (colouring._STRING, colouring._glued_to_blank),
    "big and a bracket": (colouring._BIG_BRACKET, colouring._glued_to_blank),
    "big and a command": (colouring._BIG_COMMAND, colouring._glued_to_blank),
    "acute": (colouring._ACUTE, colouring._glued_to_blank),
    "char": (colouring._CHAR, colouring._glued_in_braces),
    "rule": (colouring._RULE, colouring._glued),
    "colour": (colouring._COLOUR, colouring._removed),
}
formulas = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join),
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
)


def outcome(formula: str, name: str) -> ColouredFormula | str:
    try:
        return colour(formula, PROFILES[name])
    except NotColouredError as error:
        return str(error)


def comparable(formula: str, name: str) -> dict[str, Any]:
    tokenized = tokenize(formula, PROFILES[name])
    seen = {"template": tokenized.template, "tokenizer_ok": tokenized.parsed, "tokenized": tokenized.text}
    result = outcome(formula, name)
    if isinstance(result, str):
        return seen | {"error": True}
    return seen | {
        "normalized": result.normalized,
        "tokens": list(result.tokens),
        "n_colors": len(result.colours),
        "coloured": result.placeholders,
    }


@pytest.mark.parametrize(("case", "name"), TEXT, ids=[f"{case['id']}-{name}" for case, name in TEXT])
def test_every_text_case_comes_out_as_from_the_official_programs(case: dict[str, Any], name: str) -> None:
    expected = case["expected"][name]
    if "error" in expected:
        expected = expected | {"error": True}
    assert comparable(case["input"]["latex"], name) == expected


@pytest.mark.parametrize(("case", "name"), RENDERS, ids=[f"{case['id']}-{name}" for case, name in RENDERS])
def test_every_rendered_formula_is_given_to_tex_in_the_same_words(case: dict[str, Any], name: str) -> None:
    expected = case["expected"][name]
    result = outcome(case["input"]["latex"], name)
    if "coloured" in expected:
        assert isinstance(result, ColouredFormula)
        assert (result.normalized, result.tex) == (expected["normalized"], expected["coloured"])
        boxes = expected.get("boxes", [])
        assert [token for token, _ in boxes] == list(result.tokens[: len(boxes)])
    else:
        assert isinstance(result, str)


@settings(max_examples=300, deadline=None)
@given(formulas)
def test_any_text_is_coloured_or_refused_and_always_in_the_same_way(formula: str) -> None:
    for name in PROFILES:
        assert outcome(formula, name) == outcome(formula, name)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from([r"\hat", r"\bar", r"\frac", r"\sqrt", r"\stackrel", "{", "}", "[", "]", "a", ""]), max_size=14
    )
)
def test_braces_are_filled_in_as_by_the_plain_procedure(tokens: list[str]) -> None:
    def filled(fill: Any) -> list[str] | None:
        try:
            return fill(list(tokens))
        except (NotColouredError, IndexError):
            return None

    assert filled(lambda row: filled_braces(row, OMNIDOCBENCH)) == filled(plainly_filled_braces)


GLUED_LIST = (
    r"\big \not \string \in = < ( | x \color [ R ] { } red \rule \hspace 1 . pt \char ' \begin{array} lcr \' \Bigg"
)
GLUED = GLUED_LIST.split(" ")


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(GLUED), max_size=16).map(" ".join), st.sampled_from(list(SINGLE_PASS)))
def test_one_pass_rewrites_as_the_official_search_and_replace(text: str, name: str) -> None:
    pattern, rewrite = SINGLE_PASS[name]
    text = f" {text} "
    assert colouring._rewritten(pattern, text, rewrite) == colouring._rewritten_one_by_one(pattern, text, rewrite)


def plainly_filled_braces(tokens: list[str]) -> list[str]:
    """docs/protocols/cdm.md#normaliser, step 12, by its words: the list is written anew at each step."""
    position = 0
    while position < len(tokens):
        before = tokens[:position]
        if tokens[position] in (r"\hat", r"\bar"):
            run = [tokens[position]]
            while tokens[position + len(run) :][:1] in ([r"\hat"], [r"\bar"]):
                run.append(tokens[position + len(run)])
            rest = tokens[position + len(run) :]
            size = matching_brace(rest, 0) if rest[0] == "{" else 0
            argument = rest[1:size] if rest[0] == "{" else rest[:1]
            tokens = before + [piece for command in run for piece in (command, "{")] + argument
            tokens += ["}"] * len(run) + rest[size + 1 :]
        elif tokens[position] in (r"\frac", r"\stackrel", r"\sqrt"):
            rest = tokens[position + 1 :]
            if tokens[position] == r"\sqrt" and rest[0] == "[":
                size = matching_brace(rest, 0, "[", "]") + 1
                before, rest = [*before, tokens[position], *rest[:size]], rest[size:]
            else:
                before = [*before, tokens[position]]
            rest = rest if rest[0] == "{" else ["{", rest[0], "}", *rest[1:]]
            if tokens[position] != r"\sqrt":
                size = matching_brace(rest, 0) + 1
                before, rest = before + rest[:size], rest[size:]
                rest = rest if rest[0] == "{" else ["{", rest[0], "}", *rest[1:]]
            tokens = before + rest
        position += 1
    return tokens


def test_the_first_colours_are_the_darkest_blues_and_black_is_none_of_them() -> None:
    assert palette(19)[:2] == ((0, 0, 15), (0, 0, 30))
    assert palette(19)[16:] == ((0, 0, 255), (0, 15, 0), (0, 15, 15))
    assert len(set(palette(MAX_COLOURS))) == MAX_COLOURS
    assert (0, 0, 0) not in palette(MAX_COLOURS)


def test_tokens_beyond_the_palette_keep_their_placeholder() -> None:
    result = colour("x" * (MAX_COLOURS + 1), OMNIDOCBENCH)
    assert result.tex.endswith(f"{{x}} \\mathcolor[RGB]{{<color_{MAX_COLOURS}>}}{{x}}")


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(NotColouredError):
        colour("\ud835", UNIMERNET)


def test_groups_may_be_nested_to_a_stated_depth_and_no_further() -> None:
    within = MAX_DEPTH - 1
    assert parse("{" * within + "x" + "}" * within)
    with pytest.raises(NotTokenizedError):
        parse("{" * MAX_DEPTH + "x" + "}" * MAX_DEPTH)


def test_too_many_tokens_are_refused() -> None:
    with pytest.raises(NotColouredError):
        check_size(["x"] * (MAX_TOKENS + 1))


def test_spans_on_which_upstream_never_ends_are_refused() -> None:
    for formula in (r"a \multirow b c d", r"\multirow", r"tabular \cline x", r"{ \sqrt [ \widehat ] { x } }"):
        assert isinstance(outcome(formula, "unimernet"), str)


HOSTILE = {
    "unclosed environments": r"\begin{align}",
    "unclosed labels": r"\label{",
    "labels to be taken out": r"\label{x}",
    "labels across lines": "\\label{\u2028",
    "open braces": "{",
    "nested fractions": r"\frac{",
    "accents in a row": r"\hat",
    "accents apart": r"\hat ",
    "switches in a row": r"\bf ",
    "scripts": "x^",
    "primes": "'",
    "units without end": r"\begin{tabular}hskip",
    "row gaps of blanks": "tabular{[" + " " * 60_000,
    "big in a row": r"{\big \big ",
    "parboxes": r"{\parbox {",
    "parboxes and closed braces": r"{\parbox { } } } } } }",
    "operators": r"\sin",
    "arrays": r"\begin{array}{c}\end{array}",
    "empty labels": r"\label {}",
    "dollars": "$",
    "digits": r"\rule{" + "1" * 60_000,
    "nested tables": r"\begin{tabular}{c}",
    "rm": r"{\rm{",
    "groups": "{x}",
    "brackets": r"\sqrt [ ",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_up_to_the_limit_takes_bounded_time(text: str) -> None:
    text *= MAX_CHARACTERS // len(text)
    for name in ("omnidocbench", "unimernet", "omnidocbench_v16"):
        started = time.process_time()
        outcome(text, name)
        assert time.process_time() - started < 5


def test_different_overlapping_finds_take_bounded_time() -> None:
    text = "{" + " ".join(rf"\big \big \a{number} " for number in range(10_000))
    started = time.process_time()
    assert isinstance(outcome(text[:MAX_CHARACTERS], "unimernet"), str)
    assert time.process_time() - started < 5


def test_random_long_text_takes_bounded_time() -> None:
    chance = random.Random(6)
    for glue in ("", " "):
        text = glue.join(chance.choices(PIECES, k=40_000))[:MAX_CHARACTERS]
        for name in ("unimernet", "omnidocbench_v16"):
            started = time.process_time()
            outcome(text, name)
            assert time.process_time() - started < 5


def test_a_megabyte_is_refused_at_once() -> None:
    assert outcome("x" * 1_000_000, "unimernet") == f"more than {MAX_CHARACTERS} characters"
