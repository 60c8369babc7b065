"""Tables that general models answer with: their conversion to HTML, quirks included."""

from __future__ import annotations

import pytest

from loupe.benchmarks.shared.table_answers.html_conversion import find_tables, table_of_answer


def rows(*cells: str) -> str:
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


@pytest.mark.parametrize(
    ("answer", "table"),
    [
        ("<fcel>a<fcel> b <nl><ecel><fcel>c<nl>", rows("<td>a</td><td>b</td>", "<td></td><td>c</td>")),
        ("<fcel>a<lcel><lcel><fcel>b<nl>", rows('<td colspan="3">a</td><td>b</td>')),
        ("<fcel>a<nl><ucel><nl><ucel><nl><fcel>b<nl>", rows('<td rowspan="3">a</td>', "<td>b</td>")),
        ("words<fcel>a<nl>no marker<nl><lcel><fcel>b", rows("<td>a</td>", "<td>b</td>")),
        ("<fcel>a<xcel>b", rows("<td>a<xcel>b</td>")),
        ("<fcel>a<lcel><nl><ucel><ucel><nl>", rows('<td colspan="2" rowspan="2">a</td>')),
    ],
    ids=["plain", "colspan", "rowspan", "dropped", "xcel", "both"],
)
def test_cell_markers_become_a_table(answer: str, table: str) -> None:
    assert table_of_answer(answer) == table


def test_below_a_repeated_row_a_rowspan_is_lost() -> None:
    row = "<fcel>a<fcel>b<nl>"
    assert table_of_answer(f"{row}{row}<ucel><fcel>c<nl>") == rows(
        "<td>a</td><td>b</td>", "<td>a</td><td>b</td>", "<td>c</td>"
    )


def test_after_a_covered_column_the_counter_runs_ahead() -> None:
    # The `c` stands under `b`, in column 1, but is taken for column 2, so the `<ucel>` below it is not seen.
    answer = "<fcel>a<fcel>b<nl><ucel><fcel>c<nl><fcel>d<ucel><nl>"
    assert table_of_answer(answer) == rows('<td rowspan="2">a</td><td>b</td>', "<td>c</td>", "<td>d</td>")


@pytest.mark.parametrize(
    ("answer", "table"),
    [
        ("| a | b |\n|:--|--:|\n| c | |", rows("<td>a</td><td>b</td>", "<td>c</td><td></td>")),
        ("Table | 1\n\nno pipe\n | x\\|y |", rows("<td>Table</td><td>1</td>", "<td>x\\</td><td>y</td>")),
        ("a | <b>", rows("<td>a</td><td><b></td>")),
        ("|---|", "|---|"),
    ],
)
def test_lines_with_pipes_become_rows(answer: str, table: str) -> None:
    assert table_of_answer(answer) == table


@pytest.mark.parametrize(
    ("answer", "table"),
    [
        ("# Title\na    b\n- list\nc\t\t\t\td   e", rows("<td>a</td><td>b</td>", "<td>c</td><td>d   e</td>")),
        ("one line    only", "one line    only"),
        ("", ""),
    ],
)
def test_wide_gaps_become_cells(answer: str, table: str) -> None:
    assert table_of_answer(answer) == table


def test_html_is_left_as_it_is_also_with_pipes() -> None:
    answer = "x | y <TABLE><tr><td>a</td></tr></TABLE>"
    assert table_of_answer(answer) == answer


def test_all_tables_of_a_page_are_found_html_first_then_markdown_then_latex_then_markers() -> None:
    html = "<table border='1'>\n<tr><td>a</td></tr></table>"
    markdown = "| a | b |\n|---|---|"
    latex = r"\begin{tabular}{ll} \hline \text{x} & \textbf{y} \\ \hline 5\% & **z** \\ \end{tabular}"
    array = r"\begin{array}{l} q \end{array}"
    page = f"{markdown}\n\n{latex}\n{array}\n{html}\nx | y | z\n| one | line |"
    assert find_tables(page) == [
        html,
        rows("<td>a</td><td>b</td>"),
        rows("<td>x</td><td>y</td><td>z</td>", "<td>one</td><td>line</td>"),
        rows("<td>q</td>"),
        rows("<td>x</td><td>y</td>", "<td>5%</td><td>z</td>"),
    ]
    assert find_tables("| a | b |\n|---\n| c | d |") == [rows("<td>a</td><td>b</td>", "<td>c</td><td>d</td>")]
    assert find_tables("<fcel>a<nl>") == [rows("<td>a</td>")]
    assert find_tables("no | table\nhere") == []


def test_two_columns_without_outer_pipes_are_a_table_where_a_rule_stands_below_the_first_line() -> None:
    table = rows("<td>a</td><td>b</td>", "<td>c</td><td>d</td>")
    assert find_tables("Text.\na | b\n---|---\nc | d\nMore | text") == [
        rows("<td>a</td><td>b</td>", "<td>c</td><td>d</td>", "<td>More</td><td>text</td>")
    ]
    assert find_tables("a | b\n:-- | --:\nc | d\n\nMore | text") == [table]
    assert find_tables("a | b\nc | d") == find_tables("a | b\n\n---|---\nc | d") == find_tables("|\n---|---") == []


def test_escaped_characters_of_latex_belong_to_their_cell() -> None:
    table = r"\begin{tabular}{ll} R\&D & 5\% \\ \$3 & a\_b\#1 \end{tabular}"
    assert find_tables(table) == [rows("<td>R&D</td><td>5%</td>", "<td>$3</td><td>a_b#1</td>")]
