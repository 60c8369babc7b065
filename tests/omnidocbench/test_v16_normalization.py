"""Texts, formulas, tables and their lines in OmniDocBench 1.6: every official case, and any string in bounded time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import pytest
from bs4 import BeautifulSoup
from hypothesis import given
from hypothesis import strategies as st

from loupe.benchmarks.omnidocbench.formula_lines import lines_of, with_logic_braces
from loupe.benchmarks.omnidocbench.formula_normalization import (
    convert_guarded,
    latex_to_text,
    normalize_bare_formula,
    without_circles,
    without_delimiters,
    without_tags,
)
from loupe.benchmarks.omnidocbench.lines import no_order_for_lines, split_block_lines, split_item
from loupe.benchmarks.omnidocbench.records import Block, Item
from loupe.benchmarks.omnidocbench.rules import MDPBENCH, V1_5, V1_6
from loupe.benchmarks.omnidocbench.text_normalization import (
    guarded_formulas_to_unicode,
    normalize_guarded_text,
    normalize_table_1_6,
    refusal,
    with_formulas_normalized,
)
from loupe.benchmarks.shared import latex_characters_2_10
from loupe.metrics.table_normalization import CELL_TEXTS, OMNIDOCBENCH_1_6, plain_cell, simplify, simplify_plain
from loupe.metrics.teds import teds, teds_struct
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError
from tests.support.shared import cases

STAGES = "oracles/omnidocbench_v16/stages"


@pytest.mark.parametrize("case", cases(f"{STAGES}/normalize_text.jsonl"), ids=lambda case: case["id"])
def test_a_text_is_normalised_as_officially(case: dict[str, Any]) -> None:
    text = case["input"]["text"]
    assert case["expected"] == {
        "unicode": guarded_formulas_to_unicode(text),
        "norm": normalize_guarded_text(text),
        "with_norm_formula": with_formulas_normalized(text),
    }


@pytest.mark.parametrize("case", cases(f"{STAGES}/normalize_formula.jsonl"), ids=lambda case: case["id"])
def test_a_formula_is_normalised_as_officially(case: dict[str, Any]) -> None:
    latex = case["input"]["latex"]
    assert case["expected"] == {
        "norm": normalize_bare_formula(latex),
        "delimiters_stripped": without_delimiters(latex),
        "tags_stripped": without_tags(latex),
    }


@pytest.mark.parametrize("case", cases(f"{STAGES}/latex_to_text.jsonl"), ids=lambda case: case["id"])
def test_latex_becomes_text_behind_the_official_guards(case: dict[str, Any]) -> None:
    latex = case["input"]["latex"]
    formula = without_tags(without_delimiters(without_circles(latex)))
    found = {"text": latex_to_text(latex, latex), "formula_to_text": latex_to_text(formula, latex)}
    assert found == case["expected"]


@pytest.mark.parametrize("case", cases(f"{STAGES}/table.jsonl"), ids=lambda case: case["id"])
def test_a_table_is_normalised_and_compared_as_officially(case: dict[str, Any]) -> None:
    prediction, reference = case["input"]["pred_html"], case["input"]["gt_html"]
    expected = case["expected"]
    normal = normalize_table_1_6(prediction), normalize_table_1_6(reference)
    assert normal == (expected["norm_pred"], expected["norm_gt"])
    assert [plain_cell(cell) for cell in case["input"]["cells"]] == expected["cells"]
    pair = normal[0] or prediction, normal[1] or reference
    found = zero_where_it_raises(teds, *pair), zero_where_it_raises(teds_struct, *pair)
    assert found == pytest.approx((expected["TEDS"], expected["TEDS_structure_only"]), abs=1e-9)


def zero_where_it_raises(metric: Callable[..., float], prediction: str, reference: str) -> float:
    try:
        return float(metric(prediction, reference, variant="omnidocbench"))
    except TedsError:
        return 0.0


@pytest.mark.parametrize("case", cases(f"{STAGES}/split.jsonl"), ids=lambda case: case["id"])
def test_a_formula_falls_into_the_official_lines(case: dict[str, Any]) -> None:
    formula, order, start = (case["input"][key] for key in ("formula", "order", "start"))
    blocks = split_block_lines([Block(category="equation_isolated", latex=formula, order=order)])
    item = Item(category="equation_isolated", content=formula, start=start, end=start + len(formula))
    assert case["expected"] == {
        "gt": [[block.latex, block.order] for block in blocks],
        "pred": [[part.content, [part.start, part.end]] for part in split_item(item)],
        "logic_brace": with_logic_braces(formula),
    }


def test_a_line_ends_with_the_text_behind_its_environment_and_its_number() -> None:
    formula = r"$$\begin{aligned}a\\b\end{aligned} c \tag{1} d$$"
    last = list(split_item(Item(category="equation_isolated", content=formula, start=7, end=7 + len(formula))))[-1]
    assert (last.content, last.start, last.end) == (r"\[b c  d\]", 27, 7 + len(formula) - 3)


def test_lines_without_an_order_end_upstream_and_have_none_here() -> None:
    block = Block(category="equation_isolated", latex=r"a \\ b")
    assert no_order_for_lines([block])
    assert [part.order for part in split_block_lines([block])] == [None, None]


def test_versions_convert_the_same_formula_by_their_own_pylatexenc() -> None:
    text = r"$\mu值_1$"
    assert V1_5.normalize_text(text) == "μ值_1"
    assert V1_6.normalize_text(text) == MDPBENCH.normalize_text(text) == "_1"
    assert (V1_5.latex_to_text(r"\upalpha").text, MDPBENCH.latex_to_text(r"\upalpha").text) == ("α", "")


def test_a_formula_beyond_the_limits_says_so() -> None:
    assert convert_guarded("{" * 200 + "\\a" + "}" * 200).guard == "beyond limits"
    assert latex_characters_2_10.convert("a" * 10_001) == (None, True, "")
    assert latex_characters_2_10.convert(r"\href{a}{b}") == (None, False, "ValueError")


def test_a_table_that_the_parser_refuses_names_what_ends_upstream() -> None:
    table = "<table><tr><td><![a](b)</td></tr></table>"
    assert normalize_table_1_6(table) == ""
    assert refusal(table, "") == "ParserRejectedMarkup"


MARKUP = (
    *("<table>", "</table>", "<tr>", "</tr>", "<td>", "</td>", "<th>", "</th>", "<tbody>", "</tbody>", "<b>", "</b>"),
    *("<!-- $c$ -->", "&lt;", "&amp;", "$x$", r"\times", r"\%", "✓", "–", "-", " ", "\n", "a", "<br>", "<script>"),
    *("</script>", "<td/>", "\u200b", "Ａ", "&nbsp;", "<math alttext='$a$'>", "</math>", "<span>", "</span>"),
)


def texts_of_cells(markup: str) -> str:
    """The second reading as upstream writes it down, with the parser that it uses."""
    soup = BeautifulSoup(markup, "html.parser")
    for cell in soup.find_all(["td", "th"]):
        for text in cell.find_all(string=True):
            if (plain := plain_cell(str(text))) != str(text):
                text.replace_with(plain)
    return str(soup)


@given(st.lists(st.sampled_from(MARKUP), max_size=15).map(lambda parts: "<table><tr><td>" + "".join(parts)))
def test_texts_of_cells_are_replaced_as_in_the_tree(markup: str) -> None:
    written = simplify(markup, OMNIDOCBENCH_1_6)
    assert simplify(written, CELL_TEXTS) == texts_of_cells(written)


@given(st.lists(st.sampled_from(MARKUP[:10] + MARKUP[13:17]), max_size=12).map("".join))
def test_the_short_way_through_plain_tables_gives_the_same(markup: str) -> None:
    markup = f"<table><tr><td>{markup}</td></tr></table>"
    plain = simplify_plain(markup, CELL_TEXTS)
    assert plain is None or plain == simplify("<!--c-->" + markup, CELL_TEXTS).removeprefix("<!--c-->")


FORMULA = (
    *("$", "$$", r"\[", r"\]", r"\(", r"\)", "{", "}", "{", "}", r"\\", "&", r"\tag{1}", r"\tag", "*", "(1)", "[a]"),
    *(r"\begin{cases}", r"\end{cases}", r"\begin{aligned}", r"\end{aligned}", r"\begin{array}{l}", r"\end{array}"),
    *(
        r"\left\{",
        r"\right.",
        r"\Rightarrow",
        r"\phantom{",
        r"\textcircled{a}",
        "③",
        r"\quad",
        r"\mid",
        "~",
        "a",
        "=",
        " ",
    ),
)


@given(st.lists(st.sampled_from(FORMULA), max_size=25).map("".join))
def test_any_formula_has_a_normal_form_without_blanks_and_lines_that_stand_in_it(latex: str) -> None:
    normal = normalize_bare_formula(latex)
    assert normal == "".join(normal.split()).lower()
    assert "{}" not in normal and without_tags(latex).count("\\notag") == 0
    if found := lines_of(latex):
        assert len(found.lines) >= 2 and found.body in latex
    with_logic_braces(latex)
    guarded_formulas_to_unicode(latex)


def every_step(text: str) -> None:
    V1_6.normalize_text(text)
    V1_6.normalize_formula(text)
    with_formulas_normalized(text)
    with contextlib.suppress(TableTooLargeError):
        V1_6.normalize_table("<table><td>" + text)
    list(split_item(Item(category="equation_isolated", content=text, start=0, end=len(text))))
    with_logic_braces(text)


@pytest.mark.parametrize(
    "unit",
    [
        *("$", "$x_1$", r"\(", r"\(\[", "{", "}", "{a", "{a}", "{{a=b}", r"\tag{", r"\tag{1}", r"\tag ", r"\phantom{"),
        *(
            r"\phantom{x}",
            r"\begin{cases}",
            r"\begin{aligned}a\\",
            r"\end{cases}",
            r"\\",
            r"\\[",
            r"\\ \tag{a}",
            "&",
            "\\",
        ),
        *(r"\left\{", r"\right.", "(", "(a) ", r"\label{", r"\textcircled{", r"\textcircled ", "<td>", "$$", " ", "\n"),
        *(r"\begin{array}{", r"\begin{array}{l}", r"\hspace{", ".", "~", "{l", r"\pm", "\u200b"),
    ],
)
def test_hostile_texts_are_normalised_soon(unit: str) -> None:
    begin = time.process_time()
    every_step(unit * (100_000 // len(unit)))
    assert time.process_time() - begin < 5
