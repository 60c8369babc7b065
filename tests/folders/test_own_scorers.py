"""How answers to the tasks of the folder format are scored: known values, and any answer at all."""

from __future__ import annotations

import html
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loupe.benchmarks.folders.own.facts import truth_of
from loupe.benchmarks.folders.own.normalization import (
    Comparison,
    prepare_formula,
    prepare_markdown,
    prepare_text,
)
from loupe.benchmarks.folders.own.scorers import TASKS, read_fields
from loupe.benchmarks.folders.own.tables import read_table, unify_tables
from loupe.benchmarks.olmocr_bench.records import read_test
from loupe.benchmarks.shared.answer_texts import remove_fence
from loupe.benchmarks.shared.table_answers.spellings import cells_of_row

AS_IS = Comparison()
HTML = (
    "<table><tr><th rowspan=2>Month</th><th colspan='2'>High</th></tr><tr><td>a</td><td>b</td></tr>"
    "<tr><td>May</td><td>1 &amp; 2</td><td><b>3</b></td></tr></table>"
)
REFERENCES: dict[str, Any] = {
    "text": "A page.\nSecond line.",
    "markdown": "# Head\n\n- one\n- two",
    "table": HTML,
    "formula": r"\frac{a}{b}",
    "fields": {"total": "12.50", "tax": ""},
    "question": ["12.50"],
    "class": "form",
    "facts": truth_of(
        ("a.png", 1),
        [
            read_test({"pdf": "a.png", "page": 1, "id": "1", "type": "present", "text": "Seven"}, category="present"),
            read_test({"pdf": "a.png", "page": 1, "id": "2", "type": "absent", "text": "Page 7"}, category="absent"),
        ],
    ),
}
documents = st.recursive(
    st.none() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
answers = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="<>/tabledhr |-\n\\$[](){}`~\"'=1", max_size=60),
    documents.map(json.dumps),
)


def value(task: str, answer: str, reference: object = None, comparison: Comparison = AS_IS) -> float:
    """The headline of a task for one answer, as a fraction."""
    headline = TASKS[task].measures[0].name
    scores = TASKS[task].score(answer, REFERENCES[task] if reference is None else reference, comparison)
    counts = [score.counts for score in scores if score.measure == headline]
    return sum(count[0] for count in counts) / sum(count[1] for count in counts)


@pytest.mark.parametrize("task", TASKS)
@settings(max_examples=60, deadline=None)
@given(answer=answers)
def test_any_answer_scores_between_nothing_and_everything(task: str, answer: str) -> None:
    assert 0.0 <= value(task, answer) <= 1.0


@pytest.mark.parametrize("task", TASKS)
def test_the_reference_itself_scores_everything(task: str) -> None:
    reference = REFERENCES[task]
    answer = json.dumps(reference) if task == "fields" else reference[0] if isinstance(reference, list) else reference
    answer = "Seven boats" if task == "facts" else answer
    assert value(task, str(answer)) == 1.0


@pytest.mark.parametrize("task", TASKS)
def test_every_task_ranks_by_a_measure_that_is_better_high(task: str) -> None:
    assert TASKS[task].measures[0].higher_is_better


@pytest.mark.parametrize("task", TASKS)
def test_every_score_belongs_to_a_declared_measure(task: str) -> None:
    declared = {measure.name for measure in TASKS[task].measures}
    answer = "{}" if task == "fields" else ""
    assert {score.measure for score in TASKS[task].score(answer, REFERENCES[task], AS_IS)} == declared


def test_line_breaks_count_as_spaces_and_not_at_all_in_chinese() -> None:
    assert prepare_text("one\r\n two\t", AS_IS) == "one two"
    assert prepare_text("渡口\n的钟 , 7", AS_IS) == "渡口的钟, 7"


def test_white_space_is_kept_or_ignored_when_asked_for() -> None:
    assert prepare_text("a \r\nb", Comparison(whitespace="keep")) == "a \nb"
    assert prepare_text("a \nb", Comparison(whitespace="ignore")) == "ab"


def test_case_counts_unless_the_folder_ignores_it() -> None:
    assert value("text", "ABC", "abc") == 0.0
    assert value("text", "ABC", "abc", Comparison(ignore_case=True)) == 1.0


def test_text_on_a_blank_page_is_counted_as_inserted() -> None:
    similarity, cer, wer = TASKS["text"].score("two words", "", AS_IS)
    assert (similarity.counts, cer.counts, wer.counts) == ((0.0, 1.0), (9, 0), (2, 0))


def test_korean_keeps_its_spaces() -> None:
    found = {
        one.measure: one.counts
        for one in TASKS["text"].score("아버지가방에들어가신다", "아버지가 방에 들어가신다", AS_IS)
    }
    assert found["cer"] == (2.0, 13.0) and found["wer"] == (3.0, 3.0)


def test_each_chinese_character_is_a_word() -> None:
    assert TASKS["text"].score("渡口的鐘", "渡口的钟", AS_IS)[2].counts == (1, 4)


@pytest.mark.parametrize(
    ("answer", "inside"),
    [
        ("```json\n{}\n```", "{}"),
        ("  ~~~\na\nb\n~~~\n", "a\nb"),
        ("```\na\n```\n\n```\nb\n```", "```\na\n```\n\n```\nb\n```"),
        ("```", "```"),
        ("text", "text"),
    ],
)
def test_only_a_fence_around_the_whole_answer_is_removed(answer: str, inside: str) -> None:
    assert remove_fence(answer) == inside


@pytest.mark.parametrize(
    ("latex", "prepared"),
    [
        (r"$$ \alpha  x $$", r"\alpha x"),
        (r"\[ \alpha _ { 1 } \]", r"\alpha_{1}"),
        (r"$\frac { a }{ b }$", r"\frac{a}{b}"),
        ("```latex\n\\beta\n```", r"\beta"),
        (r"a \\ b", r"a\\b"),
        (r"\alpha\beta", r"\alpha\beta"),
        ("$", "$"),
    ],
)
def test_latex_is_compared_without_white_space_that_means_nothing(latex: str, prepared: str) -> None:
    assert prepare_formula(latex) == prepared


def test_spellings_of_the_same_markdown_are_equal() -> None:
    one = "# Head\n\n* one\n*  two\n\n| a | b |\n| :-- | --- |\n| 1 | 2 |\n\nso \\(x\\) is\n\\[ y \\]"
    other = "```markdown\n# Head\n- one\n- two\n|a|b|\n|---|---|\n|1|2|\nso $x$ is $$y$$\n```"
    assert prepare_markdown(one) == prepare_markdown(other)


def test_cells_stand_where_a_browser_would_put_them() -> None:
    assert read_table(HTML) == {
        (0, 0): "Month", (0, 1): "High", (1, 1): "a", (1, 2): "b", (2, 0): "May", (2, 1): "1 & 2", (2, 2): "3"
    }  # fmt: skip


def test_markdown_and_html_tables_are_the_same_table() -> None:
    markdown = "Here it is:\n\n| x | a\\|b |\n|---|:-:|\n| 1 | |\n\nEnd."
    html = "<table><tr><td>x<td>a|b</tr><tr><td>1<td></tr></table>"
    assert read_table(markdown) == read_table(html) == {(0, 0): "x", (0, 1): "a|b", (1, 0): "1", (1, 1): ""}


def test_a_table_inside_a_cell_is_text_of_the_cell() -> None:
    assert read_table("<table><tr><td>a<table><tr><td>b</td></tr></table>c</td></tr></table>") == {(0, 0): "a b c"}


def test_a_bracket_in_a_quoted_attribute_is_no_text_of_the_cell() -> None:
    table = """<table><tr><td title="a>b" colspan=2>x</td><td class=it's>y</td><td id="z>z</td></tr></table>"""
    assert list(read_table(table).values()) == ["x", "y"]  # the tag of z never ends


PLAIN = "<table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td>2</td></tr></table>"


@pytest.mark.parametrize(
    "answer",
    [
        '<table><tr><td>a<!-- PageNumber="3" --></td><td>b</td></tr><tr><td>1</td><td>2</td></tr></table>',
        "<table><tr><!-- <td>old</td> --><td>a</td><td>b</td></tr><!-- <tr><td>x</td></tr> --><tr><td>1<td>2</table>",
        "<!-- <table><tr><td>old</td></tr></table> --><table><tr><td>a<td>b<tr><td>1<td>2</table>",
        "<table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td>2",
        "<table><style>td {}</style><tr><td>a<script>'<td>'</script><td>b<tr><td>1<td title='</td>'>2</table>",
        "<table><td>a<td colspan=0>b</tr><td>1<td><template>x</template>2</td>",
        "<table><caption>Prices</caption><tfoot><tr><td>1<td>2</tfoot><tbody><tr><td>a<td>b</table>",
        "<table><tbody><tr><td>1<td>2</tbody><thead><tr><th>a<th>b</thead></table>",
        "<table><tr><td><p>a</p><td><div><span>b</span></div><tr><td><math><mn>1</mn></math><td><b>2</b></table>",
        "<table>stray<tr><td>a<td>b<tr><td>1<td>2</table>",
        "<table></table><table><tr><td>a<td>b<tr><td>1<td>2</table>",
        "| a | b |\n|---|---|\n| 1 | <!-- image -->2 |",
        "a | b\n--|:-:\n1 | 2 | cut\n",
        "|a|b|\n|-|-|\n|<b>1</b>|&#50;|",
    ],
)
def test_html_is_read_as_a_browser_reads_it_and_pipes_as_github_does(answer: str) -> None:
    assert value("table", answer, PLAIN) == value("table", PLAIN, answer) == 1.0
    teds = next(one for one in TASKS["table"].score(answer, PLAIN, AS_IS) if one.measure == "teds")
    assert teds.counts == (1.0, 1.0)


def test_spans_end_with_their_group_of_rows() -> None:
    table = (
        "<table><thead><tr><th rowspan=0>h<th colspan=99999>i<tr><th>j</thead>"
        "<tr><td rowspan=' +9x'>a<td>b<tr><td>c<tbody><tr><td>d</table>"
    )
    assert read_table(table) == {
        (0, 0): "h", (0, 1): "i", (1, 1): "j", (2, 0): "a", (2, 1): "b", (3, 1): "c", (4, 0): "d"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("row", "cells"),
    [
        (r"| a \| b | `c \| d` |", ["a | b", "`c | d`"]),
        (r"a \\| b", ["a \\\\", "b"]),
        ("|a||", ["a", ""]),
        (r"| x |\|", ["x", "|"]),
        ("|", [""]),
        ("p<0.05|<x", ["p<0.05", "<x"]),
    ],
)
def test_a_pipe_with_a_backslash_is_a_character_for_every_reader(row: str, cells: list[str]) -> None:
    assert cells_of_row(row) == cells
    table = f"| h | i |\n|---|---|\n{row}"
    assert list(read_table(table).values())[2:] == [*cells, *[""] * (2 - len(cells))]


words = st.text(alphabet="ab1 |\\<&*`_$é漢", max_size=6).map(lambda text: " ".join(text.split()))
grids = st.integers(1, 4).flatmap(lambda width: st.lists(st.lists(words, min_size=width, max_size=width), min_size=1))


@settings(max_examples=60, deadline=None)
@given(grid=grids, tag=st.sampled_from(["td", "th"]), end=st.sampled_from(["", "</tr></table>", "</tbody></table>"]))
def test_a_table_is_the_same_in_html_and_in_pipes(grid: list[list[str]], tag: str, end: str) -> None:
    html_rows = ("".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) for row in grid)
    markup = "<table><!-- x --><tr>" + "</tr>\n<tr>".join(html_rows) + end
    lines = ["| " + " | ".join(cell.replace("\\", "\\ ").replace("|", "\\|") for cell in row) + " |" for row in grid]
    pipes = "\n".join([lines[0], "|" + "---|" * len(grid[0]), *lines[1:]])
    spaced = markup.replace("\\", "\\ ")
    assert read_table(spaced) == read_table(escaped(pipes))
    assert value("markdown", spaced, escaped(pipes)) == value("table", escaped(pipes), spaced) == 1.0


def escaped(pipes: str) -> str:
    """Characters that mean something in Markdown's HTML, as a careful writer has them."""
    return pipes.replace("&", "&amp;").replace("<", "&lt;")


@pytest.mark.parametrize(
    ("answer", "reference", "same"),
    [
        (PLAIN.replace("td>", "th>"), "| a | b |\n|---|---|\n| 1 | 2 |", 1),
        (
            "x\n<table>\n<thead><tr><th><b>a</b>\n<tbody><tr><td>1<br/>2</table>\ny",
            "x\n|**a**|\n|:-:|\n|1<br>2|\n\ny",
            1,
        ),
        ("<table><caption>T</caption><tr><td>a<sup>2</sup></table>", "T\n\n| a<sup>2</sup> |\n|-|", 1),
        (
            "<table><tr><th colspan='2'>a</th></tr>\n<tr><td>1<td>2",
            "<table id=x><td colspan=2>a<tr><td>1<td>2</table>",
            1,
        ),
        ("<table><tr><td colspan=2>a<tr><td>1<td>2</table>", "|a||\n|-|-|\n|1|2|", 0),
        ("<table><tr><td><img src=a></table>", "| |\n|-|", 0),
        ("Say `<table>` and\n| a |\n|--|", "Say `<table>` and\n| a |\n|:-:|", 1),
    ],
)
def test_tables_in_markdown_have_one_spelling_if_nothing_is_lost(answer: str, reference: str, same: int) -> None:
    assert (value("markdown", answer, reference) == 1.0) == bool(same)


def test_a_cell_at_the_wrong_place_earns_only_what_it_resembles() -> None:
    assert value("table", "<table><tr><td>x</td><td>y</td></tr></table>", "|x|z|\n|---|---|") == 0.5


@pytest.mark.parametrize(
    "hostile",
    [
        "<" * 300_000,
        "<" + "a" * 300_000,
        "<table>" + "<td rowspan=99999 colspan=99999>" * 30_000,
        "<table>" + "<tr><td rowspan=1000 colspan=1000>" * 30_000,
        "<table>" * 50_000 + "<td>x",
        "<table><td rowspan=" + " " * 300_000,
        "<table>" + "<td a=\"'" * 60_000 + "='" * 60_000,
        "|" + "-" * 300_000 + "x\n" * 3 + "|-" * 100_000,
        "```" + " " * 300_000,
        "$$" * 50_000,
        "[" * 300_000,
        " " * 300_000,
        "a|b\n-" + " " * 300_000 + "x",
        "a|b\n|-|" + " " * 300_000 + "x",
    ],
    ids=range(14),
)
def test_hostile_answers_are_scored_in_no_time(hostile: str) -> None:
    start = time.process_time()
    for task in TASKS:
        value(task, hostile)
    assert time.process_time() - start < 5.0


def test_of_names_that_are_one_the_spelling_that_was_asked_for_counts_else_the_first() -> None:
    answer = '{"TOTAL": "1", "total": "2", "Total": "3", "Tax": "4", "tax": "5", "tax": "6"}'
    assert read_fields(answer, ["total", "tax"]) == {"total": "2", "tax": "5"}
    assert read_fields(answer) == {"total": "1", "tax": "4"}


def test_numbers_keep_their_digits_and_keys_their_meaning() -> None:
    assert read_fields('```json\n{"Total Amount": 12.50, "tax": null, "ok": true, "x": ["a"]}\n```') == {
        "total_amount": "12.50",
        "tax": "",
        "ok": "true",
        "x": '["a"]',
    }


@pytest.mark.parametrize("answer", ["", "no json", "[1]", '{"a": ', "[" * 100_000])
def test_an_answer_that_is_no_object_has_no_field_and_says_so(answer: str) -> None:
    validity, *fields = TASKS["fields"].score(answer, {"total": "12.50", "tax": ""}, AS_IS)
    assert (validity.measure, validity.counts) == ("json_validity", (0.0, 1.0))
    assert [(score.unit, score.counts[0]) for score in fields if score.measure == "field_similarity"] == [
        ("total", 0.0),
        ("tax", 1.0),
    ]


@pytest.mark.parametrize(
    ("answer", "right"), [("Form", 1.0), ("**form**.", 1.0), ("`form`", 1.0), ("A form", 0.0), ("", 0.0)]
)
def test_a_class_is_right_if_the_label_stands_alone(answer: str, right: float) -> None:
    assert value("class", answer) == right


def test_a_question_takes_the_best_of_the_accepted_answers() -> None:
    assert value("question", "eur 12,50", ["12.50", "EUR 12,50"]) == 1.0
    assert value("question", "no idea", ["12.50"]) == 0.0


@pytest.mark.parametrize(("width", "rows"), [(10_000, 10_000), (5_000, 5_000), (999, 5_000)])
def test_short_rows_below_a_wide_header_ask_for_no_more_cells_than_the_limits(width: int, rows: int) -> None:
    table = "|a" * width + "|\n" + "|-" * width + "|\n" + "|x|\n" * rows
    start = time.process_time()
    assert unify_tables(table) == table
    assert len(read_table(table)) == 20_000
    assert time.process_time() - start < 5


def test_a_table_in_a_cell_of_another_stays_as_it_is_written() -> None:
    nested = "<table><tr><td><table><tr><td>x</td></tr></table></td></tr></table>"
    assert unify_tables(nested) == nested
