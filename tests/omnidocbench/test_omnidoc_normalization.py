"""Texts, formulas and tables of OmniDocBench 1.5 before they are compared: every official case, and any string."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests.support.omnidocbench.plain_extraction as plain
from loupe.benchmarks.omnidocbench.formula_normalization import inside_of_brackets, normalize_formula
from loupe.benchmarks.omnidocbench.text_normalization import (
    clean,
    formulas_beyond_limits,
    formulas_to_unicode,
    normalize_table,
    normalize_text,
)
from loupe.benchmarks.shared.latex_characters import (
    MAX_LENGTH,
    MAX_NESTING,
    BeyondLimitsError,
    convert,
    latex_to_text,
    nesting,
    plain_latex_to_text,
    pylatexenc_text,
)
from loupe.metrics.table_normalization import OMNIDOCBENCH, simplify
from loupe.metrics.teds import teds, teds_struct
from loupe.metrics.teds.table_tree import TableTooLargeError, TedsError
from tests.metrics.test_html_tokens import IS_OF_THE_RULE
from tests.support.shared import cases

STAGES = "oracles/omnidocbench/stages"


@pytest.mark.parametrize("case", cases(f"{STAGES}/normalize_text.jsonl"), ids=lambda case: case["id"])
def test_a_text_is_normalised_as_officially(case: dict[str, Any]) -> None:
    text = case["input"]["text"]
    assert {"unicode": formulas_to_unicode(text), "norm": normalize_text(text)} == case["expected"]


@pytest.mark.parametrize("case", cases(f"{STAGES}/normalize_formula.jsonl"), ids=lambda case: case["id"])
def test_a_formula_is_normalised_as_officially(case: dict[str, Any]) -> None:
    assert normalize_formula(case["input"]["latex"]) == case["expected"]["norm"]


@pytest.mark.parametrize("case", cases(f"{STAGES}/table.jsonl"), ids=lambda case: case["id"])
def test_a_table_is_normalised_and_compared_as_officially(case: dict[str, Any]) -> None:
    prediction, reference = case["input"]["pred_html"], case["input"]["gt_html"]
    normal = normalize_table(prediction), normalize_table(reference)
    assert normal == (case["expected"]["norm_pred"], case["expected"]["norm_gt"])
    pair = normal[0] or prediction, normal[1] or reference
    found = zero_where_it_raises(teds, *pair), zero_where_it_raises(teds_struct, *pair)
    assert found == pytest.approx((case["expected"]["TEDS"], case["expected"]["TEDS_structure_only"]), abs=1e-9)


def zero_where_it_raises(metric: Any, prediction: str, reference: str) -> float:
    try:
        return float(metric(prediction, reference, variant="omnidocbench"))
    except TedsError:
        return 0.0


MARKUP = (
    *(
        "<table>",
        "</table>",
        "<table class='a'>",
        "<tr>",
        "</tr>",
        "<td>",
        "</td>",
        "<th>",
        "</th>",
        "<thead>",
        "</thead>",
    ),
    *(
        "<span>",
        "</span>",
        "<p>",
        "<div>",
        "<br>",
        "<br/>",
        "<td/>",
        "<math alttext='a&lt;b'>",
        "<math>",
        "</math>",
        " ",
    ),
    *(
        "<math alttext>",
        "<colgroup>",
        "</colgroup>",
        "<!-- c -->",
        "&lt;",
        "&amp;",
        "&nbsp",
        "&#65;",
        "&",
        "\n",
        "a",
        "<b",
    ),
    *("<td colspan=2 a='x\"y'>", "<TABLE>", "<sup>", "</sup>", "<tbody>", "</tbody>", "<tbody id=1>", "ﬁ", "<", "漢"),
)

LATEX = (
    *(
        "{",
        "}",
        "{",
        "}",
        "{x}",
        "_{i}",
        "^{2}",
        " {a}",
        " ",
        "  ",
        "\n",
        "x",
        "1",
        "-",
        "'",
        "(",
        "[",
        "]",
        "*",
        "中",
        "ı",
    ),
    *(r"\frac", r"\sqrt", r"\mathbf", r"\mathrm", r"\text", r"\hat", r"\bar", r"\not", r"\left", r"\alpha", r"\, "),
    *(r"\operatorname", r"\quad", r"\unknown", r"\textcolor", r"\footnote", r"\hspace", r"\#", r"\ ", r"\{"),
    *(r"\xrightarrow", r"\verb", r"\item", r"\section", r"\begin", r"\(", "&", "%", "~", "--", "``", "!`", "\u3000"),
)
latex_like = st.lists(st.sampled_from(LATEX), max_size=15).map("".join).map(lambda text: text + "}" * text.count("{"))


@given(latex_like)
def test_a_simple_formula_has_the_text_that_pylatexenc_gives_it(latex: str) -> None:
    for formula in (latex, f"$${latex}$$", f"$$\n{latex}\n$$"):
        text = plain_latex_to_text(formula)
        assert text is None or text == pylatexenc_text(formula)


def test_a_simple_displayed_formula_is_read_without_pylatexenc() -> None:
    formula = "$$\n\\left( \\alpha x \\right) = \\frac {1} {2}, \\quad y\n$$"
    text = plain_latex_to_text(formula)
    assert text is not None and text == pylatexenc_text(formula)


@given(st.text())
def test_any_text_becomes_words_once(text: str) -> None:
    words = normalize_text(text)
    assert clean(words) == words
    assert re.fullmatch(r"\w*", words)


@given(latex_like | st.text())
def test_any_formula_has_a_normal_form_in_small_letters(latex: str) -> None:
    normal = normalize_formula(latex)
    assert normal == normal.lower()
    assert " " not in normal
    assert "$$" not in normal or "$$$" in latex.replace(" ", "") or "\\" in latex


@given(st.lists(st.sampled_from(["\\[", "\\]", "\\", "a", " ", "\n"])).map("".join))
def test_the_inside_of_brackets_is_found_as_by_the_regex(latex: str) -> None:
    assert inside_of_brackets(latex) == plain.inside_of_brackets(latex)


@pytest.mark.skipif(not IS_OF_THE_RULE, reason="this Python reads malformed markup by another rule")
@pytest.mark.filterwarnings("ignore")
@given(st.lists(st.sampled_from(MARKUP), max_size=25).map("".join))
def test_any_table_is_simplified_as_by_beautifulsoup(markup: str) -> None:
    assert simplify(markup, OMNIDOCBENCH) == plain.simplified(markup)


@given(st.lists(st.sampled_from(MARKUP), max_size=25).map("".join) | st.text())
def test_any_table_becomes_one_page_or_nothing(markup: str) -> None:
    page = normalize_table(markup)
    assert bool(page) == ("<table" in markup.replace(" ", ""))
    assert page == "" or (
        page.startswith('<html><body><table border="1" >') and page.endswith("</table></body></html>")
    )


def test_a_backslash_at_the_end_returns() -> None:
    assert latex_to_text("x_1\\") == "x_1 "
    with pytest.raises(BeyondLimitsError):
        pylatexenc_text("&x_1\\")


@pytest.mark.parametrize(
    "latex",
    [
        r"\hat{" * 40 + "x" + "}" * 40,
        "_" + "{" * (MAX_NESTING + 1) + "&" + "}" * (MAX_NESTING + 1),
        "&" + "_" * MAX_LENGTH,
        r"\begin{array}{l} " * 3 + "a" * 2000 + " & b" * 500 + r" \end{array} & c" * 3,
    ],
)
def test_what_would_take_memory_and_time_without_end_stays_latex_and_is_counted(latex: str) -> None:
    started = time.process_time()
    assert convert(latex) == (None, True, "")
    assert formulas_beyond_limits(f"a ${latex}$ b $x_1$") == 1
    assert formulas_to_unicode(f"a ${latex}$ b $x_1$") == f"a ${latex}$ b x_1"
    assert time.process_time() - started < 5


def test_what_pylatexenc_cannot_read_is_not_counted_as_beyond_the_limits() -> None:
    assert convert(r"\verb!") == (None, False, "TypeError")


def test_the_deepest_formula_has_the_same_text_however_deep_the_caller_is() -> None:
    latex = "&" + r"\frac{" * MAX_NESTING + "x" + "}{1}" * MAX_NESTING
    assert nesting(latex) == MAX_NESTING
    assert (
        called_deep(pylatexenc_text, latex, 0)
        == called_deep(pylatexenc_text, latex, 400)
        == "   x" + "/1" * MAX_NESTING
    )


def called_deep(function: Callable[[str], str], argument: str, frames: int) -> str:
    return called_deep(function, argument, frames - 1) if frames else function(argument)


def test_no_formula_tells_the_day() -> None:
    assert latex_to_text(r"a\today b") == latex_to_text(r"&a\today b\maketitle").replace("   ", "") == "ab"


UNITS = (
    "$",
    "$a_1$ ",
    r"\(",
    r"\(a_b\) ",
    r"\[",
    r"\tag{",
    r"\arraycolsep",
    "<table",
    "<table>",
    "<td>x",
    "&lt;table ",
    "</table",
)


@pytest.mark.parametrize("unit", UNITS)
def test_a_hostile_string_is_normalised_within_seconds(unit: str) -> None:
    text = unit * (300_000 // len(unit))
    started = time.process_time()
    normalize_text(text)
    normalize_formula(text)
    with contextlib.suppress(TableTooLargeError):
        normalize_table("<table>" + text)
    assert time.process_time() - started < 6


def test_another_version_of_pylatexenc_is_refused_and_not_taken_for_unreadable_formulas(tmp_path: Path) -> None:
    found = tmp_path / "pylatexenc-2.11.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Metadata-Version: 2.1\nName: pylatexenc\nVersion: 2.11\n", encoding="utf-8")
    program = "from loupe.benchmarks.shared.latex_characters import latex_to_text; latex_to_text('a & b')"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert "needs pylatexenc 3.0a30" in done.stderr and "version 2.11 is installed" in done.stderr
