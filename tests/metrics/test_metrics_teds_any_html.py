"""TEDS of any HTML with a table: what a person without an official evaluator in mind calls first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.metrics import compare_tables, teds, teds_struct
from loupe.metrics.teds.table_tree import TedsError
from tests.metrics.test_metrics_teds import CELLS, COMMON_CELLS, PAGE, pairs, sections

BARE = "<table><tr><td>Name</td><td>Total</td></tr><tr><td>Tea</td><td>3.50</td></tr></table>"


@pytest.mark.parametrize(
    "written",
    [
        BARE,
        f"<html><body>{BARE}</body></html>",
        f"  \n{BARE}\n",
        f"Here is the table:\n\n```html\n{BARE}\n```\nAnything else?",
        f"<!DOCTYPE html><html><head><title>x</title></head><body><div><p>a</p>{BARE}</div></body></html>",
        f'<?xml version="1.0" encoding="utf-8"?><html><body>{BARE}</body></html>',
        f"<!-- <table><tr><td>no</td></tr></table> -->{BARE}",
        f"{BARE}<table><tr><td>a second one</td></tr></table>",
        BARE.replace("<t", "<T").replace("table>", "TABLE>").replace("</td>", "</TD>"),
        BARE.replace("<table>", '<table border="1" class="dataframe">').replace("<tr>", '\n  <tr style="x">\n    '),
        BARE.replace("</td>", ""),
    ],
)
def test_a_table_is_found_wherever_it_is(written: str) -> None:
    assert teds(written, BARE) == teds(BARE, written) == teds_struct(written, BARE) == 1.0
    assert compare_tables(written, BARE).changes == ()


def test_texts_and_spans_of_header_cells_count() -> None:
    header = "<table><tr><th>{}</th></tr></table>"
    assert teds(header.format("kitten"), header.format("sitting")) == pytest.approx(1 - 3 / 7 / 2)
    assert teds_struct(header.format("kitten"), header.format("sitting")) == 1.0
    assert teds('<table><tr><th colspan="2">a</th></tr></table>', header.format("a")) == 0.5
    [change] = compare_tables(header.format("<b>kitten</b>"), header.format("<b>sitting</b>")).changes
    assert change.reference is not None
    assert (change.kind, change.reference.tag, change.reference.text) == ("text", "th", "<b>sitting</b>")
    assert teds(header.format("a"), header.format("a").replace("th", "td")) == 0.5


@pytest.mark.parametrize("span", ["two", "", "-1", "1.5", "9" * 5_000])
def test_a_span_that_is_no_number_is_one(span: str) -> None:
    odd = f'<table><tr><td colspan="{span}">a</td></tr></table>'
    assert teds(odd, "<table><tr><td>a</td></tr></table>") == 1.0


def test_without_a_table_nothing_is_said_in_silence() -> None:
    assert teds("no table", BARE) == teds("", BARE) == 0.0
    assert compare_tables("a < b", BARE).problem == "the prediction has no <table>"
    for reference in ("", " ", "Name Total", "<p>Name</p>", "| a |\n|---|"):
        with pytest.raises(TedsError, match="the reference has no table"):
            teds(BARE, reference)
    assert teds("<table></table>", "<table></table>") == 1.0
    assert teds("<table></table>", BARE) < 0.2


@given(pairs(tuple(cell for cell in CELLS if "<th" not in cell)))
def test_on_pages_without_header_cells_it_is_the_official_number(pair: tuple[str, str]) -> None:
    try:
        official = teds(*pair, variant="ibm")
    except TedsError:
        return
    assert teds(*pair) == pytest.approx(official, abs=1e-12)


@given(sections(COMMON_CELLS), sections(COMMON_CELLS))
def test_header_cells_are_compared_as_cells_are(one: str, two: str) -> None:
    plain = PAGE.format(one), PAGE.format(two)
    headed = [page.replace("<td", "<th").replace("</td", "</th") for page in plain]
    assert teds(headed[0], headed[1]) == pytest.approx(teds(*plain), abs=1e-12)
    assert teds_struct(headed[0], headed[1]) == pytest.approx(teds_struct(*plain), abs=1e-12)


@given(sections(CELLS), st.sampled_from(["{}", "x{}", "<div>{}</div>"]))
def test_reading_with_and_without_a_parser_is_the_same(table: str, around: str) -> None:
    bare = f"<table>{table}</table>"
    assert teds(around.format(bare), bare) == 1.0
