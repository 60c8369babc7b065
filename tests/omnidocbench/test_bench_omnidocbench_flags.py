"""What is said beside the official numbers of OmniDocBench: flags with counts and pages; none moves a score."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from loupe.benchmarks.omnidocbench import benchmark, score
from loupe.benchmarks.omnidocbench.answer_tables import latex_table_to_html
from loupe.benchmarks.omnidocbench.conclusion import conclude
from loupe.benchmarks.omnidocbench.extraction import read_answer
from loupe.benchmarks.omnidocbench.page_flags import answer_faults, page_flags
from loupe.benchmarks.omnidocbench.page_match import match_page
from loupe.benchmarks.omnidocbench.records import PageFacts
from loupe.scoring.scorer import score_sample
from loupe.types import Prediction, Sample
from tests.support.omnidocbench.small_pages import LATEX, TABLE, WORDS, block, page


def warnings_of(answer: str, *blocks: dict[str, Any]) -> list[str]:
    truth = Sample(id="p", truth=page("p.jpg", *blocks))
    return conclude([score_sample(benchmark, truth, Prediction(text=answer), [])]).warnings


@pytest.mark.parametrize(
    ("answer", "faults"),
    [
        ("One paragraph.\n\nAnother.", {}),
        ("One line.\nAnother line.", {"single-newline": 1}),
        ("One line.\nAnother line.\n\n", {}),
        ("One line.\nAnother line.\n$$ x\n\ny $$\nA third.", {"single-newline": 1}),
        ("One line.\n$$ x $$\n", {}),
        ("x\n\n| a | b | \n| c | d | \n| e | f |\n| g | h |\n\nend", {"md-table-cells-lost": 2}),
        ("x\n\na | b |\n|---|---|\n| c | d |\n\nend", {"md-table-cells-lost": 1}),
        ("| a |\n|---|\n| c |\n\n|P(A|B)| = |x|\n\nend", {"stray-bar": 1}),
        ("It costs $5.\n\nAnd then $6 more.", {"dollar-prose": 1}),
        ("| a | b |\n|---|---|\n| 10:30 | x |\n\nend", {"md-table-cells-lost": 1}),
        ("Title\n| a | b |\n|---|---|\n| c | x |\n\nend", {"line-above-table-lost": 1}),
        (
            "A | stray bar\nand prose\n| a | b |\n|---|---|\n| c | x |\n\nend",
            {"line-above-table-lost": 1, "stray-bar": 1},
        ),
    ],
)
def test_faults_of_form_are_counted(answer: str, faults: dict[str, int]) -> None:
    assert answer_faults(read_answer(answer).form) == faults


FORMULA = r"\begin{array}{l} a=b+c \\ d=e+f \end{array}"
ALIKE = (
    block(1, "text_block", text="Introduction to the harbour"),
    block(2, "header", text="Introduction to a harbour"),
)
DEEP = "Methods of measurement"
LINES = "\n\n".join(f"{number} of many words and boats" for number in range(120))

#: One flag, a page that raises it, and how often it is counted there; each page raises no other than those named.
RAISED: dict[str, tuple[str, tuple[dict[str, Any], ...], dict[str, float]]] = {
    "three tables, one of them predicted": (
        LATEX,
        tuple(block(number, "table", html=TABLE, latex=LATEX.replace("rain", "r" * number)) for number in (1, 2, 3)),
        {"latex-table-zeroed": 1, "latex-table-converted": 0.95},
    ),
    "two LaTeX tables": (
        f"{LATEX}\n\n{LATEX}",
        tuple(block(number, "table", html=TABLE, latex=LATEX) for number in (1, 2)),
        {"latex-table-zeroed": 2, "latex-table-converted": 2.0},
    ),
    "a table where there is none": (
        f"{WORDS}\n\n{TABLE}",
        (block(1, "text_block", text=WORDS),),
        {"table-on-tableless-page": 1, "unmatched-prediction": len("rain12snow3")},
    ),
    "a running title, predicted five times": (
        f"{WORDS}\n\n" + "Annual report\n\n" * 5,
        (block(1, "text_block", text=WORDS), block(2, "header", text="Annual report")),
        {"unmatched-prediction": 4 * len("Annualreport")},
    ),
    "a block of marks before others": (
        f"***\n\n{WORDS}",
        (block(1, "text_block", text="---"), block(2, "text_block", text=WORDS)),
        {"index-shift": 2},
    ),
    "a header that fits a block": (
        "Introduction to the harbour\n\nThe last words.",
        (*ALIKE, block(3, "text_block", text="The last words.")),
        {"header-steals-line": 1},
    ),
    "a header nearer than half of a block": (
        "The quick brown dox jump\n\nOther things.",
        (
            block(1, "text_block", text="The quick brown fox"),
            block(2, "header", text="The quick brown dox jumps"),
            block(3, "text_block", text="Other things."),
        ),
        {"header-steals-line": 1},
    ),
    "a formula without its delimiters": (
        f"{WORDS}\n\nx + y = z",
        (block(1, "text_block", text=WORDS), block(2, "equation_isolated", latex="$$ x + y = z $$")),
        {"formula-as-text": 1},
    ),
    "an array without order": (
        WORDS,
        (block(1, "text_block", text=WORDS), {**block(2, "equation_isolated", latex=FORMULA), "order": None}),
        {"upstream-error": 1},
    ),
}


@pytest.mark.parametrize("name", RAISED)
def test_a_page_raises_its_flag_and_no_other(name: str) -> None:
    answer, blocks, flags = RAISED[name]
    found = page_flags(match_page(page("p.jpg", *blocks), answer))
    assert found == pytest.approx(flags, abs=0.06 if "three" in name else 1e-9)


def test_the_middle_of_a_chain_is_flagged() -> None:
    chain = page("p.jpg", *(block(number, "text_block", text=f"{number} {WORDS}") for number in (1, 2, 3)))
    chain["extra"]["relation"] = [
        {"source_anno_id": first, "target_anno_id": first + 1, "relation_type": "truncated"} for first in (1, 2)
    ]
    assert page_flags(match_page(chain, WORDS)) == {"doubled-truncation": 1}


def test_a_page_that_is_slow_upstream_and_one_that_loupe_gives_up_have_two_flags() -> None:
    words = " ".join(f"{7919 * number % 99991}" for number in range(700))
    pieces = words.split(" ")
    answer = "\n\n".join(" ".join(pieces[start : start + 5]) for start in range(0, 700, 5))
    match = match_page(page("p.jpg", block(1, "text_block", text=words), block(2, "title", text="The end")), answer)
    assert page_flags(match)["would-time-out"] == 1 and "match-given-up" not in page_flags(match)
    given_up = replace(match, facts=PageFacts(plain_assignment=True, upstream_seconds=None))
    assert "would-time-out" not in page_flags(given_up) and page_flags(given_up)["match-given-up"] == 1


def test_formulas_as_text_are_dropped_from_a_run_without_text() -> None:
    (warning,) = warnings_of("x + y", block(1, "equation_isolated", latex="$$ x + y $$"))
    assert warning.startswith("formula-as-text: formulas matched to text and in no figure at all")


def test_fixed_mode_counts_what_was_invented_as_the_samples_are_measured() -> None:
    truth = Sample(id="p", truth={**page("p.jpg", block(1, "text_block", text="hello world")), "mode": "fixed"})
    for invented in ("<table><tr><td>a</td></tr></table>", "- - - - - a - - - - -"):
        scores = score(truth, Prediction(text=f"hello world\n\n{invented}")).scores
        assert [each.counts for each in scores if each.measure == "text_edit_with_invented"] == [(1 / 11, 1.0)]


def test_flags_name_their_pages() -> None:
    text, table = block(1, "text_block", text=WORDS), block(2, "table", html=TABLE, latex=LATEX)
    zeroed, invented = warnings_of(f"{WORDS}\n\n{LATEX}\n\nInvented words follow.", text, table)
    assert zeroed.startswith("latex-table-zeroed: ") and "1 on 1 page (p); " in zeroed
    assert zeroed.endswith("their mean TEDS would be 100.0 %")
    assert invented.startswith("unmatched-prediction: ") and invented.endswith("19 on 1 page (p)")
    (tableless, *_) = warnings_of(f"{WORDS}\n\n{TABLE}", text)
    assert tableless.startswith("table-on-tableless-page: ")


def test_an_answer_without_oddities_raises_no_flag() -> None:
    assert warnings_of(f"{WORDS}\n", block(1, "text_block", text=WORDS)) == []


def test_a_latex_table_becomes_html() -> None:
    assert latex_table_to_html(LATEX) == TABLE
    assert latex_table_to_html(r"\begin{tabularx}{l} a \end{tabularx}") == ""


def test_formulas_that_are_left_as_latex_are_told() -> None:
    deep = r"\hat{" * 60 + "x" + "}" * 60
    text = block(1, "text_block", text=WORDS)
    (line,) = [line for line in warnings_of(f"{WORDS} ${deep}$\n\nMore $x^2$.", text) if "beyond" in line]
    assert line.startswith("formula-beyond-limits: ") and line.endswith("1 on 1 page (p)")
