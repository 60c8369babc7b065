"""Faults of form in answers to OmniDocBench: found with their lines, mended, and what that would change."""

from __future__ import annotations

import gc
import textwrap
import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.benchmarks.omnidocbench import benchmark, score
from loupe.benchmarks.omnidocbench.lint import FAULTS
from loupe.features.lint.mended_answers import line_numbers, mend, mend_all
from loupe.types import Prediction, Sample, Scored
from tests.hostile.strings import hostile
from tests.support.omnidocbench.small_pages import LATEX, TABLE, WORDS, block, page

BY_NAME = {fault.name: fault for fault in FAULTS}
MORE = "Fishermen mend their nets along the wall, while children count the gulls above them."
HTML = "<table><tr><td>at</td><td>10:30</td></tr><tr><td>rain</td><td>3</td></tr></table>"
TEXTS = (block(1, "text_block", text=WORDS), block(2, "text_block", text=MORE))
FORMULA = block(2, "equation_isolated", latex="$$ x_1 + y_{12} = \\frac{a}{b} $$")
PARAGRAPHS = (
    f"{WORDS} {MORE}",
    "Prices at the market rose again this week because the storm kept most of the small boats at home, and buyers from "
    "the city had to pay what was asked for the little that came in.",
    "Nobody complains. The weather will turn on Thursday, says the old keeper of the lighthouse, who has been wrong "
    "only twice in forty years.",
)
WRAPPED = "\n".join("\n".join(textwrap.wrap(paragraph, 30)) for paragraph in PARAGRAPHS)

#: Fault → an answer that has it, the ground truth, the measure that it costs, and the lines of its places.
CASES: Mapping[str, tuple[str, tuple[dict[str, Any], ...], str, list[int]]] = {
    "page-fence": (f"```md\n{WORDS}\n\n{MORE}\n```\n", TEXTS, "text_edit", [1, 5]),
    "image": (f'{WORDS} <img src="a/gull.png" alt="a gull">\n\n{MORE}\n', TEXTS, "text_edit", [1]),
    "latex-table": (
        f"{WORDS}\n\n{LATEX}\n\n{MORE}\n",
        (TEXTS[0], block(2, "table", html=TABLE, latex=LATEX), block(3, "text_block", text=MORE)),
        "table_teds",
        [3],
    ),
    "md-table": (
        f"{WORDS}\n\n| at | 10:30 |\n|---|---|\n| rain | 3 |\n",
        (TEXTS[0], block(2, "table", html=HTML)),
        "table_teds",
        [3],
    ),
    "escaped-math": (
        f"{WORDS}\n\n$$ x\\_1 + y\\_{{12}} = \\\\frac{{a}}{{b}} $$\n",
        (TEXTS[0], FORMULA),
        "formula_edit",
        [3, 3, 3],
    ),
    "unclosed-math": (
        f"$$ x_1 + y_{{12}} = \\frac{{a}}{{b}}\n\n{WORDS}\n\n$$ E = mc^2 $$\n",
        (FORMULA, TEXTS[0], block(3, "equation_isolated", latex="$$ E = mc^2 $$")),
        "text_edit",
        [1],
    ),
    "dollar-prose": (
        f"{WORDS} It costs $5.\n\n{MORE} It costs $6.\n",
        (
            block(1, "text_block", text=f"{WORDS} It costs $5."),
            block(2, "text_block", text=f"{MORE} It costs $6."),
            block(3, "text_block", text="Ebb and flow."),
        ),
        "text_edit",
        [1],
    ),
    "repeated-block": (
        f"{WORDS}\n\n{WORDS}\n\n{WORDS}\n",
        (TEXTS[0], block(2, "text_block", text="Ebb and flow.")),
        "text_edit",
        [1, 3],
    ),
    "single-newline": (
        WRAPPED,
        tuple(block(number, "text_block", text=text) for number, text in enumerate(PARAGRAPHS, 1)),
        "text_edit",
        list(range(1, WRAPPED.count("\n") + 1)),
    ),
    "joined-block": (
        f"# Harbour news of Sunday\n{WORDS}\n\n{MORE}\n",
        (block(9, "header", text="Harbour news of Sunday"), *TEXTS),
        "text_edit",
        [1],
    ),
}


def values(answer: str, *blocks: dict[str, Any]) -> dict[str, float]:
    scored = score(Sample(id="p", truth=page("p.jpg", *blocks)), Prediction(text=answer))
    assert isinstance(scored, Scored)
    return {each.measure: each.counts[0] / each.counts[1] for each in scored.scores}


def faults_of(answer: str) -> dict[str, list[int]]:
    return {fault.name: line_numbers(answer, edits) for fault in FAULTS if (edits := fault.edits(answer))}


def test_every_fault_has_a_page_here() -> None:
    assert CASES.keys() == BY_NAME.keys()


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_found_on_its_lines_and_nothing_else_is(name: str) -> None:
    answer, *_, lines = CASES[name]
    assert faults_of(answer) == {name: lines}


@pytest.mark.parametrize("name", CASES)
def test_a_mended_page_scores_better(name: str) -> None:
    answer, blocks, measure, _ = CASES[name]
    before, after = values(answer, *blocks), values(mend(answer, BY_NAME[name].edits(answer)), *blocks)
    sign = {each.name: 1 if each.higher_is_better else -1 for each in benchmark.measures}
    assert sign[measure] * after[measure] > sign[measure] * before[measure]
    # A page that repeats a block gains in reading order: what is not there is matched to the surplus.
    before.pop("reading_order_edit") if name == "repeated-block" else None
    assert all(sign[other] * after[other] >= sign[other] * before[other] for other in before)


@pytest.mark.parametrize("name", CASES)
def test_a_mended_page_has_no_fault_left(name: str) -> None:
    assert faults_of(mend_all(CASES[name][0], FAULTS)) == {}


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "\n\n",
        WORDS,
        f"# Harbour\n\n{WORDS}\n\n{TABLE}\n\n$$\nx^2\n$$\n\nIt holds that $a < b$ and \\(c_1\\).\n\n- one\n- two\n",
        "A price of $5 alone.",
        "Between $AB$ and $CD$ lies $x$.",
        f"```python\nprint(1)\n```\n\n{WORDS}",
        "Either a | b or c.\n\nSo it is.",
        "$$\n\\begin{aligned} a &= b \\\\\n\nc &= d \\end{aligned}\n$$\n\nDone.",
        "\\[ a \\\\[2pt] b \\]\n\nDone.",
        "where $\\text{file\\_name} = 1$.",
        "One line.\nAnother line.\n\n",
    ],
)
def test_a_clean_page_has_no_fault(answer: str) -> None:
    assert faults_of(answer) == {}
    assert mend_all(answer, FAULTS) == answer


@pytest.mark.parametrize(
    ("answer", "mended"),
    [
        ("So $x_1 + 2 is small.\n\nAnd $y$ is not.", "So $x_1 + 2$ is small.\n\nAnd $y$ is not."),
        ("From $5 to $10, $x^2$.", "From \uff045 to \uff0410, $x^2$."),
        ("Costs \\$5 here.\n\nCosts \\$6 there.", "Costs \uff045 here.\n\nCosts \\$6 there."),
        ("It is \\(x^2 and more.", "It is \\(x^2\\) and more."),
        ("\\[ a = b\n\nNext.\n\n\\[ c \\]", "\\[ a = b\\]\n\nNext.\n\n\\[ c \\]"),
        ("With \\\\(x_1\\\\) in it.", "With \\(x_1\\) in it."),
        ("$a &lt; b &amp;amp; c$", "$a < b & c$"),
        ("a | b\n--|--\n1 | 2 < 3", "<table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td>2 &lt; 3</td></tr></table>"),
        (
            "Title\n| a \\| b | c |\n|:-:|--|\n| 1 |\n\nend",
            "Title\n\n<table><tr><td>a | b</td><td>c</td></tr><tr><td>1</td></tr></table>\n\nend",
        ),
        ("one\n \ntwo", "one\n\ntwo"),
        ("text\n$$ x $$\ntext\n\nmore", "text\n\n$$ x $$\n\ntext\n\nmore"),
        ("no\n\nno\n\nno\n\nyes", "no\n\nyes"),
        ('<div align="center">\n<img src="x.png"/>\n</div>\n\ntext ![a](b(1).png)', "\n\ntext "),
    ],
)
def test_how_a_page_is_mended(answer: str, mended: str) -> None:
    assert mend_all(answer, FAULTS) == mended


def test_the_lines_of_a_markdown_table_stay_together() -> None:
    answer = "first text\n| at | 10:30 |\n|---|---|\n| rain | 3 |\nmore of it\nlast"
    assert faults_of(answer) == {"md-table": [2]}
    mended = (
        "first text\n\n<table><tr><td>at</td><td>10:30</td></tr><tr><td>rain</td><td>3</td></tr></table>\n\nmore of it"
    )
    assert mend_all(answer, FAULTS).startswith(mended)
    bare = "one\nat | rain\n-- | --\n3 | 4\ntwo"
    assert mend(bare, BY_NAME["single-newline"].edits(bare)) == "one\n\nat | rain\n-- | --\n3 | 4\n\ntwo"


PIECES = [
    *(
        "$",
        "$$",
        "|",
        "\\",
        "\n",
        "\n\n",
        "\\[",
        "\\]",
        "\\(",
        "\\)",
        "```",
        "```markdown\n",
        "| a | b |\n",
        "|---|---|\n",
    ),
    *(" ", "5", "x_1", "# ", "\\begin{tabular}", "\\end{tabular}", " & ", "\\\\", "<table>", "</table>", "![a](b)"),
    *("<img src=a>", "&lt;", "word ", "plain words here ", WORDS, "暖风熏得"),
]
PARTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
#: Repeated to a long answer, each is the worst for some search.
UNITS = [
    *("\\[", "\\(", "$x_1 ", "$$ a b c\n\n", "\\[ \n\n", "![](", "<div> ", "<img ", "| ", "|a\n", "a\n", "#\n", "\n "),
    *("\\begin{tabular}", "<table", "&amp;", "\\\\\\\\", "$\\_", "```\n", "no\n\n"),
]


@given(PARTS)
def test_mending_never_raises_and_edits_stand_in_order_within_the_text(text: str) -> None:
    for fault in FAULTS:
        edits = fault.edits(text)
        assert all(0 <= edit.start <= edit.end <= len(text) for edit in edits)
        assert all(before.end <= after.start for before, after in pairwise(edits))
        assert line_numbers(text, edits) == [text.count("\n", 0, edit.start) + 1 for edit in edits]
    mend_all(text, FAULTS)


@pytest.mark.parametrize("unit", UNITS)
def test_a_hostile_answer_takes_time_in_proportion_to_its_length(unit: str) -> None:
    def seconds(length: int) -> float:
        text = unit * (length // len(unit))
        # What thousands of tests before have left is not searched for garbage meanwhile.
        gc.disable()
        try:
            start = time.process_time()
            for fault in FAULTS:
                fault.edits(text)
            return time.process_time() - start
        finally:
            gc.enable()

    # Eight times the length; a busy machine may spoil one measurement.
    assert any(seconds(200_000) < 20 * max(seconds(25_000), 0.0125) for _ in range(3))


def test_strange_answers_are_mended_too() -> None:
    for number in range(150):
        mend_all(hostile(number, largest=20_000), FAULTS)
