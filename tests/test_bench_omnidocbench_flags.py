"""What is said beside the official numbers of OmniDocBench: flags with counts and pages; none moves a score."""

from __future__ import annotations

from typing import Any

import pytest

from loupe.benchmarks.omnidoc.answer_faults import answer_faults
from loupe.benchmarks.omnidoc.conclusion import conclude
from loupe.benchmarks.omnidoc.latex_table_html import latex_table_to_html
from loupe.benchmarks.omnidocbench import benchmark
from loupe.scoring.scorer import score_sample
from loupe.types import Prediction, Sample
from tests.omnidoc_pages import LATEX, TABLE, WORDS, block, page


def warnings_of(answer: str, *blocks: dict[str, Any]) -> list[str]:
    truth = Sample(id="p", truth=page("p.jpg", *blocks))
    return conclude([score_sample(benchmark, truth, Prediction(text=answer), [])]).warnings


@pytest.mark.parametrize(
    ("answer", "faults"),
    [
        ("One paragraph.\n\nAnother.", {}),
        ("One line.\nAnother line.", {"single-newline": 1}),
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
    assert answer_faults(answer) == faults


def test_flags_name_their_pages() -> None:
    text, table = block(1, "text_block", text=WORDS), block(2, "table", html=TABLE, latex=LATEX)
    zeroed, invented = warnings_of(f"{WORDS}\n\n{LATEX}\n\nInvented words follow.", text, table)
    assert zeroed.startswith("latex-table-zeroed: ") and "1 on 1 page (p); " in zeroed
    assert zeroed.endswith("their mean TEDS would be 100.0 %")
    assert invented.startswith("unmatched-prediction: ") and invented.endswith("22 on 1 page (p)")
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
