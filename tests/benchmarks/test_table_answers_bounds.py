"""Answers of a megabyte with tables in them end in bounded time: with scores, or with an error that says why."""

from __future__ import annotations

import time

import pytest

from loupe.benchmarks.dp_bench.evaluators import Content, Element, best_tables, tolerant_page_tables
from loupe.benchmarks.shared.table_answers.html_conversion import score_normalized, score_pair, table_of_answer
from loupe.metrics.teds.table_tree import TableTooLargeError

TABLE = f"<table>{''.join(f'<tr><td>{row}</td><td>x{row}</td></tr>' for row in range(12))}</table>"
PAGE = [Element(category="Table", content=Content(html=TABLE))] * 3
ANSWERS = {
    "equal bar rows": "| a | b |\n" * 100_000,
    "different bar rows": "".join(f"| {row} | {row * 3} |\n" for row in range(60_000)),
    "one bar row": "|a" * 500_000,
    "bars": "|" * 1_000_000,
    "many tables": "".join(f"<table><tr><td>{row}</td></tr></table>" for row in range(25_000)),
    "a table of many cells": f"<table><tr>{'<td>1</td>' * 100_000}</tr></table>",
    "10,000 levels": "<table><tr><td>" * 10_000,
    "20,000 cells": "".join(f"| {row} | {row * 3} |\n" for row in range(10_000)),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_hostile_table_ends_soon(name: str) -> None:
    answer = ANSWERS[name]
    started = time.process_time()
    for score in (
        lambda: score_normalized(table_of_answer(answer), TABLE),
        lambda: score_pair(f"<html><body>{answer}</body></html>", TABLE, variant="omnidocbench"),
        lambda: best_tables(answer, PAGE),
        lambda: tolerant_page_tables(answer, PAGE, first_only=False),
    ):
        try:
            score()
        except TableTooLargeError as error:
            assert "at most" in str(error) or "too many" in str(error)
    assert time.process_time() - started < 20


def test_a_table_of_20_000_cells_is_scored() -> None:
    answer = ANSWERS["20,000 cells"]
    assert score_normalized(table_of_answer(answer), table_of_answer(answer)).teds == 1.0


def test_more_tags_than_are_read_is_an_error_of_the_sample() -> None:
    with pytest.raises(TableTooLargeError, match="600,002 tags in one answer, at most 200,000 are read"):
        score_normalized(table_of_answer(ANSWERS["equal bar rows"]), TABLE)


def test_a_page_of_25_000_tables_is_an_error_of_the_sample() -> None:
    with pytest.raises(TableTooLargeError, match="25,000 tables in one answer against 3"):
        best_tables(ANSWERS["many tables"], PAGE)
