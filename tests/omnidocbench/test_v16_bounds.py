"""OmniDocBench 1.6 on hostile formulas: the same as the textbook patterns on short ones, and bounded on long ones."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.benchmarks.omnidocbench import answer_formulas, figures
from loupe.benchmarks.omnidocbench.delimiters import passes_over
from loupe.benchmarks.omnidocbench.figures import cdm_inputs
from loupe.benchmarks.omnidocbench.formula_lines import end_without_spacing, lines_of, without_end_labels
from loupe.benchmarks.omnidocbench.formula_normalization import normalize_bare_formula
from loupe.benchmarks.omnidocbench.records import Item

_SPACING = re.compile(r"(?:\\(?:qquad|quad|[,;!>:])|~|\s)+\Z")
_TAG, _LABEL = re.compile(r"\\tag\*?\{[^{}]*\}"), re.compile(r"\\label\{[^{}]*\}")
_NUMBER = re.compile(r"[A-Za-z0-9.\-#]+|(?:\\[A-Za-z#]+)+")
_ARRAY = re.compile(r"(\\begin\{array\})\s*(\{[^}]*\})(.*?)(\\end\{array\})", re.DOTALL)
_MATRIX = re.compile(r"(\\begin\{(matrix|pmatrix)\})()(.*?)(\\end\{\2\})", re.DOTALL)


def formulas(*pieces: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(pieces), max_size=14).map("".join)


@given(formulas("x", " ", "\\", ",", r"\,", r"\;", r"\quad", r"\qquad", "quad", "~", "\n"))
def test_spacing_goes_from_the_end_as_by_the_pattern(text: str) -> None:
    commands = (r"\qquad", r"\quad", *("\\" + sign for sign in ",;!>:"), "~")
    assert text[: end_without_spacing(text, commands)] == _SPACING.sub("", text)


@given(
    formulas(
        "(1)", "[2]", "(", ")", "]", "a", " ", r"\,", "~", r"\tag{", r"\tag*{3}", "}", r"\label{a}", r"\A", r"\quad"
    )
)
def test_labels_go_from_the_end_one_after_the_other(text: str) -> None:
    assert without_end_labels(text) == textbook_without_end_labels(text)


def textbook_without_end_labels(text: str) -> str:
    text = _LABEL.sub("", text).rstrip()
    while True:
        tag = _TAG.search(text)
        if tag and tag.end() == len(text):
            text = _SPACING.sub("", text[: tag.start()])
            continue
        start = text.rfind({")": "(", "]": "["}.get(text[-1:], "\0"), 0, -1)
        label, before = text[start + 1 : -1].strip(), text[:start]
        apart = not before or before[-1].isspace() or re.search(r"\\(?:qquad|quad|[,;!>:])|~", before[-10:])
        if start < 0 or not apart or not _NUMBER.fullmatch(label) or re.fullmatch("[a-z]{1,3}", label):
            return text
        text = _SPACING.sub("", before)


CELLS = formulas(
    r"\begin{array}", r"\begin{matrix}", r"\begin{pmatrix}", r"\end{array}", r"\end{matrix}", r"\end{pmatrix}",
    "{l}", "{", "}", " ", "&", r"\\", "a", "{ b }", "{{c}}",
)  # fmt: skip


@given(CELLS)
def test_cells_are_closed_in_the_environments_that_the_pattern_finds(text: str) -> None:
    for ours, pattern in ((figures._ARRAY_CELLS, _ARRAY), (figures._MATRIX_CELLS, _MATRIX)):
        assert figures._with_close_cells(text, ours) == pattern.sub(textbook_close_cells, text)


def textbook_close_cells(found: re.Match[str]) -> str:
    columns, body, end = found.groups()[-3:]
    parts = figures._parts
    rows = ("&".join(textbook_without_outer_braces(cell) for cell in parts(row, "&")) for row in parts(body, r"\\"))
    return found[1] + columns + r"\\".join(rows) + end


@given(formulas("{", "}", "a", " ", "{ ", " }", "\n"))
def test_outer_braces_go_one_by_one(text: str) -> None:
    assert figures._without_outer_braces(text) == textbook_without_outer_braces(text)


def textbook_without_outer_braces(text: str) -> str:
    text = text.strip()
    while len(text) > 2 and text[0] == "{" and text[1:-1].strip():
        depths = [text[: end + 1].count("{") - text[: end + 1].count("}") for end in range(len(text))]
        if 0 not in depths or depths.index(0) != len(text) - 1:
            break
        text = text[1:-1].strip()
    return text


MANY = 60_000
HOSTILE: dict[str, str] = {
    "numbers": r"\begin{aligned} a \\ b \end{aligned}" + " (1)" * MANY,
    "spacing before a number": r"\begin{aligned} a \\ b \end{aligned} x" + r"\, " * MANY + "y (1)",
    "arrays without an end": r"\begin{array}{l}" * MANY + "&",
    "matrices without an end": r"\begin{matrix}" * MANY + "&",
    "outer braces": "{" * MANY + r"\begin{matrix} a \end{matrix}" + "}" * MANY,
    "braces in a cell": r"\begin{matrix}" + "{" * MANY + "a" + "}" * MANY + r"\end{matrix}",
    "fonts": r"\begin{matrix}" + r"\mathbf{" * MANY + "a" + "}" * MANY + r"\end{matrix}",
    "phantoms that form phantoms": r"\pha" * MANY + r"\phantom{a}" + "ntom{}" * MANY,
    "spacing that is not at the end": r"( 1 ) a" + r"\quad " * MANY + "b",
}


@pytest.mark.parametrize(
    "handle",
    [
        normalize_bare_formula,
        lines_of,
        lambda formula: cdm_inputs(formula, formula),
        lambda formula: answer_formulas.with_margins_apart(
            Item(category="equation_isolated", content=rf"\[ {formula} \]", start=0, end=len(formula))
        ),
    ],
    ids=["normal form", "lines", "input of CDM", "margins"],
)
@pytest.mark.parametrize("formula", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_formula_is_read_in_bounded_time(formula: str, handle: Callable[[str], object]) -> None:
    handle(formula)  # with the pattern that this replaces it takes from a minute to hours: the suite's limit ends it


def test_passes_are_enough_for_any_formula_that_is_drawn() -> None:
    assert len(passes_over("x" * 10_000)) > 10_000 / len(r"\mathbf{}") and len(passes_over("x" * 1_000_000)) < 30
