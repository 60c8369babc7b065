"""Tests drafted from transcripts: each holds on its own transcript, and fails where its fact is broken."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loupe.benchmarks.olmocr_bench.drafting import (
    MOST,
    Record,
    Transcript,
    draft_tests,
    is_drafted,
    read_transcript,
    without_recurring,
)
from loupe.benchmarks.olmocr_bench.page_facts import check_page
from loupe.benchmarks.olmocr_bench.records import read_test
from tests.support.math_renderer import need_renderer
from tests.support.report_runs import WORDS

PAGE = """# Tides of the northern quay

<header>Harbour gazette, volume seven</header>
Seven boats lie at the southern quay this morning, and nobody counts them.

The **engineer** wrote to the harbour master about the clock.

The gauge was repaired in spring by two assistants.

| station | high | low |
|---|---|---|
| Quarry Pier | 4.21 | 0.37 |
| Mole Head | 3.98 | 0.52 |

<table><tr><th>boat</th><th>weight</th></tr><tr><td>Marigold</td><td>12 t</td></tr></table>

In autumn the whole village rowed out to the island with a lamp.
"""


def drafted(page: Transcript, *, math: bool = False) -> list[Record]:
    return draft_tests(page, pdf="scan.pdf", number=2, ident="scan-p2", math=math)


def holds(body: str, record: Record) -> bool:
    [outcome] = check_page(body, [read_test(record)])
    return outcome.passed


def of_kind(records: list[Record], kind: str) -> list[Record]:
    return [record for record in records if record["type"] == kind]


def test_every_kind_is_drafted_from_a_page_that_has_it() -> None:
    tests = drafted(read_transcript(PAGE))
    assert [each["text"] for each in of_kind(tests, "absent")] == ["Harbour gazette, volume seven"]
    assert {each["cell"] for each in of_kind(tests, "table")} == {"4.21", "3.98", "0.52", "Marigold", "12 t"}
    [cell] = [each for each in of_kind(tests, "table") if each["cell"] == "4.21"]
    assert (cell["top_heading"], cell["left_heading"]) == ("high", "Quarry Pier")
    texts = [each["text"] for each in of_kind(tests, "present")]
    assert "The gauge was repaired in spring by two assistants." in texts
    assert not any("engineer" in text for text in texts), "a text with marks in it is compared otherwise"
    assert [each["after"] for each in of_kind(tests, "order")][:-1] == [
        each["before"] for each in of_kind(tests, "order")
    ][1:]
    assert all(record["pdf"] == "scan.pdf" and record["page"] == 2 for record in tests)
    assert all(is_drafted(record, "scan-p2") and not is_drafted(record, "scan") for record in tests)
    assert len({record["id"] for record in tests}) == len(tests)
    assert not any("checked" in record for record in tests)
    assert tests == drafted(read_transcript(PAGE)), "the same page gives the same tests"


def words(least: int, most: int) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(WORDS), min_size=least, max_size=most).map(" ".join)


@st.composite
def tables(draw: st.DrawFn) -> str:
    rows = draw(st.lists(st.lists(st.sampled_from(WORDS[:60]), min_size=3, max_size=3), min_size=2, max_size=4))
    if draw(st.booleans()):
        lines = [f"| {' | '.join(row)} |" for row in rows]
        return "\n".join([lines[0], "|---|---|---|", *lines[1:]])
    return f"<table>{''.join('<tr>' + ''.join(f'<td>{cell}</td>' for cell in row) + '</tr>' for row in rows)}</table>"


BLOCKS = st.one_of(words(4, 25), words(1, 4).map(lambda text: f"## {text}"), tables(), words(3, 6).map("- {}".format))
PAGES = st.lists(BLOCKS, min_size=1, max_size=9).map("\n\n".join)


@given(PAGES, st.lists(words(2, 5), max_size=2))
@settings(max_examples=60, deadline=None)
def test_every_drafted_test_passes_on_its_transcript_and_fails_where_the_fact_is_broken(
    body: str, margins: list[str]
) -> None:
    page = Transcript(body, tuple(margins))
    for record in drafted(page):
        assert holds(body, record), record
        for other in broken_by_hand(body, record):
            assert not holds(other, record), (record, other)


def broken_by_hand(body: str, record: Record) -> list[str]:
    """The page with the fact broken, by nothing of what the drafting has."""
    kind = record["type"]
    if kind == "absent":
        return [record["text"] + "\n" + body, body + "\n" + record["text"].upper()]
    if kind == "present":
        return ["".join(body.split(record["text"]))]
    if kind == "order":
        before, after = body.index(record["before"]), body.index(record["after"])
        return [body[after:] + "\n\n" + body[:after]] if before < after else []
    return [re.sub(rf"(?<=[|>]) ?{re.escape(record['cell'])} ?(?=[|<])", " ", body)]


@given(st.text(alphabet="ab |\n<table>trd$\\[]`#*-", max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_text_is_a_transcript(text: str) -> None:
    for record in drafted(read_transcript(text)):
        assert holds(read_transcript(text).body, record)


def test_equations_are_drafted_where_they_can_be_drawn_and_amounts_are_none() -> None:
    need_renderer()
    body = "It cost $5,000 and then $6,200 more.\n\n$$\\frac{a+b}{c} = d$$\n\nwith \\(x_{1} \\le y^2\\)."
    tests = of_kind(drafted(Transcript(body), math=True), "math")
    assert [each["math"] for each in tests] == ["x_{1} \\le y^2", "\\frac{a+b}{c} = d"]
    for record in tests:
        assert holds(body, record) and not holds(body.replace(record["math"], "q"), record)
    assert of_kind(drafted(Transcript(body)), "math") == []


def test_lines_that_run_through_a_document_are_headers_and_footers() -> None:
    pages = [
        Transcript(f"The Harbour Book\n\n{text}\n\nPage {number} of 3")
        for number, text in enumerate(["Seven boats lie here.", "Nobody counts.", "The Harbour Book\nis long."], 1)
    ]
    found = without_recurring(list(enumerate(pages, 1)))
    assert [page.margins for page in found] == [("The Harbour Book", f"Page {n} of 3") for n in (1, 2, 3)]
    assert found[0].body.strip() == "Seven boats lie here."
    assert found[2].body.strip() == "The Harbour Book\nis long."
    absent = [each["text"] for each in of_kind(drafted(found[2]), "absent")]
    assert absent == ["Page 3 of 3"], "what stands in the text, too, is not absent"
    assert without_recurring(list(enumerate(pages[:2], 1))) == pages[:2], "two pages have nothing that runs through"


@pytest.mark.parametrize(
    "line",
    [
        "# Chapter {page}",
        "Chapter {page}\n=========",
        "| total | {page} |",
        "<tr><td>total {page}</td></tr>",
        "<table>\n<tr>total {page}\n</table>",
        "- item number {page}",
        "{page}. item of a list",
        "$$ x = {page} $$",
        "$$\nabc = {page}\n$$",
        "**Chapter {page}**",
        "Total: {sum} EUR",
        "Invoice {sum} of {page} May",
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_lines_that_differ_in_numbers_or_are_no_plain_text_are_no_headers(line: str, first: bool) -> None:
    pages = []
    for number in range(1, 6):
        lines = [line.format(page=number, sum=[312, 55, 7, 1200, 48][number - 1]), "x" * number, "y" * number]
        pages.append((number, Transcript("\n\n".join(lines if first else [f"a{'b' * number}", *lines[1::-1]]))))
    assert [page.margins for page in without_recurring(pages)] == [()] * 5


@pytest.mark.parametrize(
    ("text", "margins"),
    [
        ("<header>A\n b</header>x<footer>c</footer>", ("A b", "c")),
        ("<page_number>7</page_number>x", ("7",)),
        ("<header>never closed", ()),
        ("<header></header>", ()),
    ],
)
def test_margins_are_marked_by_tags(text: str, margins: tuple[str, ...]) -> None:
    assert read_transcript(text).margins == margins


@pytest.mark.parametrize(
    "text",
    [
        "<table><tr><td>a</td><td>b</td></tr></table>" * 4_000,
        "<header>one two three four</header>" * 5_000,
        "".join(f"<header>one two three {number}</header>" for number in range(5_000)),
        "\n".join(f"| a{number} | b |" for number in range(12_000)),
        "Seven boats lie here now.\n" * 8_000,
        "$a^2 + b$ " * 15_000,
    ],
    ids=range(6),
)
def test_a_hostile_transcript_costs_no_time(text: str) -> None:
    began = time.process_time()
    drafted(read_transcript(text))
    assert time.process_time() - began < 20


def test_a_page_without_anything_gives_no_test_and_a_large_one_not_more_than_the_most() -> None:
    assert drafted(Transcript("")) == []
    large = Transcript("\n\n".join(f"{number} {' '.join(WORDS[number : number + 9])}" for number in range(900)))
    counts: dict[str, Any] = {kind: len(of_kind(drafted(large), kind)) for kind in MOST}
    assert counts == {"present": 4, "order": 3, "absent": 0, "table": 0, "math": 0}, json.dumps(counts)
