"""The words of Markdown answers, with the marks taken away; and that hostile megabytes take no time."""

from __future__ import annotations

import time

import pytest

from loupe.benchmarks.dp_bench.evaluators import strip_marks, strip_tables_and_headings
from loupe.benchmarks.shared.table_answers.html_conversion import find_tables, table_of_answer
from loupe.benchmarks.shared.table_answers.spellings import convert_pipe_tables, tables_of_answer


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("```markdown\n# Title\n\ntext\n```", "Title text"),
        ("<think>hm\n\nwell</think>Yes", "Yes"),
        ("a\n<TABLE border=1><tr><td>x</td></tr></TABLE>\nb", "a b"),
        ("a \\begin{table}[h]\\begin{tabular}{l}x\\end{tabular}\\end{table} b", "a b"),
        ("a\n\nx | y\n--- | ---\n1 | 2\n\nb", "a b"),
        ("see ![chart](a.png) and [the page](http://x.example)", "see and the page"),
        ("a<br>b <img src='x'> c<sup>2</sup> &amp; d < e", "a b c2 & d < e"),
        ("$$x$$ and $y_1$ and \\(z\\) and \\[w\\]", "x and y_1 and z and w"),
        ("from $5 to $6", "from $5 to $6"),
        ("> - # quoted\n* one\n1. two\n- - -\n___", "- # quoted one 1. two"),
        ("***a*** **b** __c__ *d* _e_ `f` snake_case_name 2 * 3", "a b c d e f snake_case_name 2 * 3"),
        ("<|ref|>text<|/ref|><|det|>[[1, 2]]<|/det|>\nwords", "words"),
        ("  many \n\n\t blanks ", "many blanks"),
        ("", ""),
    ],
)
def test_marks_are_stripped(answer: str, words: str) -> None:
    assert strip_marks(answer) == words


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("# Title\n![x](y.png)text", "Title text"),
        ("a\n<table><tr><td>x</td></tr></table>\nb", "a b"),
        ("<table><tr><td>x</td><td>y</td></tr></table>", "x y"),
        ("| a | b |\n|---|---|\ntext | one\nx | y | z", "text | one"),
        ("$$\nx | y | z\n$$\nend", "$$ x | y | z $$ end"),
        ("norm $|a|$ and $|b|$", "norm $|a|$ and $|b|$"),
        ("**kept** *marks*", "**kept** *marks*"),
        ("|a|", "|a|"),
    ],
)
def test_only_tables_headings_and_images_are_stripped(answer: str, words: str) -> None:
    assert strip_tables_and_headings(answer) == words


def test_tables_of_the_first_spelling_that_occurs_are_taken() -> None:
    pipes = "a | b\n--- | ---\nc | d"
    html = "<table><thead><tr><th> a </th></tr></thead></table>"
    latex = r"\begin{tabular}{l}x \\ \hline y\end{tabular}"
    assert tables_of_answer(pipes) == ["<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>"]
    assert tables_of_answer(f"{pipes}\n\n{latex}") == ["<table><tr><td>x</td></tr><tr><td>y</td></tr></table>"]
    assert tables_of_answer(f"{latex}{html}{html}") == ["<table><tr><td>a</td></tr></table>"] * 2
    assert tables_of_answer("no table | here") == []


def test_a_latex_tabular_keeps_its_spans_and_loses_its_commands() -> None:
    latex = r"""\begin{tabular}[t]{@{}l{c}r@{}}
    \toprule
    \multicolumn{2}{c}{\multirow{3}{*}{\textbf{Head}}} & 5\% \\[2pt] \cline{1-2}
    a \& b & $<$ & **c** \\ \bottomrule
    \end{tabular}"""
    assert tables_of_answer(latex) == [
        '<table><tr><td colspan="2" rowspan="3">Head</td><td>5%</td></tr>'
        "<tr><td>a & b</td><td>$&lt;$</td><td>c</td></tr></table>".replace("a & b", "a &amp; b")
    ]


SIZE = 200_000
TAGS = ("<table", "<table>", "<fcel>", "<fcel><nl>", "<ucel><fcel>\n<nl>", "<|ref|>", "<think>", "<", "<a ")
WORDS = ("![", "[", "[a](", "$", "$a ", "*a ", "_", "`", "- ", "> ", "#", "&amp", "\\text{", "\\begin{tabular}")
LINES = ("|", "|\n", "|-|\n", "a|b\n", " ", "\n", "\ud800\x00")
HOSTILE = [
    *(mark * (SIZE // len(mark)) + "x" for mark in TAGS + WORDS + LINES),
    "\\begin{tabular}" + "{" * SIZE + "\\end{tabular}",
    "\\begin{tabular}{l}" + "\\multicolumn{2}{" * (SIZE // 16) + "\\end{tabular}",
    "|-" * SIZE + "\n" + "|-" * SIZE + "\n" + "|\n" * 1000,
    "<table>" + " " * SIZE + "</table>",
]
READERS = (strip_marks, strip_tables_and_headings, tables_of_answer, find_tables, table_of_answer, convert_pipe_tables)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:12]))
def test_hostile_text_is_read_in_linear_time(text: str) -> None:
    began = time.process_time()
    for read in READERS:
        read(text)
    assert time.process_time() - began < 8
