"""What a comparison says is wrong with a table, and that its costs add up to the score."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given

from loupe.metrics.teds import compare_tables as compare_any_tables
from loupe.metrics.teds.table_tree import TedsError
from tests.metrics.test_metrics_teds import CELLS, PAGE, pairs, teds, teds_struct

compare_tables = partial(compare_any_tables, variant="omnidocbench")
REFERENCE = PAGE.format(
    "<thead><tr><td>name</td><td>value</td></tr></thead>"
    "<tbody><tr><td>one</td><td>12.5</td></tr><tr><td>two</td><td>x<sup>2</sup></td></tr></tbody>"
)


def said(prediction: str) -> list[tuple[str, float, int, int]]:
    """Kind, cost, row and cell of every change; the place is that in the reference, if there is one."""
    changes = compare_tables(prediction, REFERENCE).changes
    places = [change.reference or change.prediction for change in changes]
    return [
        (change.kind, change.cost, place.row, place.cell)
        for change, place in zip(changes, places, strict=True)
        if place
    ]


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("", "", []),
        ("12.5", "12.6", [("text", 0.25, 1, 1)]),
        ("x<sup>2</sup>", "x2", [("text", 0.5, 2, 1)]),
        ("<td>one</td>", '<td rowspan="2">one</td>', [("span", 1.0, 1, 0)]),
        ("<td>name</td>", "<th>name</th>", [("tag", 1.0, 0, 0)]),
        ("<td>12.5</td>", "", [("missing", 1.0, 1, 1)]),
        ("<td>12.5</td>", "<td>12.5</td><td>new</td>", [("extra", 1.0, 1, 2)]),
        (
            "<tr><td>one</td><td>12.5</td></tr>",
            "",
            [("missing", 1.0, 1, -1), ("missing", 1.0, 1, 0), ("missing", 1.0, 1, 1)],
        ),
    ],
)
def test_each_error_is_said_with_its_place(old: str, new: str, changes: list[tuple[str, float, int, int]]) -> None:
    assert said(REFERENCE.replace(old, new, 1) if old else REFERENCE) == changes


def test_tags_in_cells_are_written_out() -> None:
    change = compare_tables(REFERENCE.replace("<sup>2</sup>", "2"), REFERENCE).changes[0]
    assert change.reference is not None
    assert change.reference.text == "x<sup>2</sup>"


@pytest.mark.parametrize(
    ("prediction", "problem"),
    [
        ("", "the prediction is empty"),
        ("<table><tr><td>a</td></tr></table>", "the prediction holds no table that is a child of body"),
    ],
)
def test_where_there_is_nothing_to_compare_it_says_why(prediction: str, problem: str) -> None:
    comparison = compare_tables(prediction, REFERENCE)
    assert (comparison.teds, comparison.teds_struct, comparison.problem) == (0.0, 0.0, problem)
    assert comparison.changes == ()


@given(pairs(CELLS))
def test_structure_and_text_add_up_to_the_score(pair: tuple[str, str]) -> None:
    try:
        comparison = compare_tables(*pair)
    except TedsError as error:
        assert error.upstream == "ZeroDivisionError"
        return
    assert comparison.teds == teds(*pair)
    assert comparison.teds_struct == teds_struct(*pair)
    assert comparison.structure_loss + comparison.text_loss == pytest.approx(1 - comparison.teds, abs=1e-9)
