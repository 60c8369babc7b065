"""olmOCR-Bench: fast ways are the slow ones, whatever an answer holds; hostile answers take seconds, not hours."""

from __future__ import annotations

import json
import random
import re
import time
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loupe.benchmarks.olmocr_bench import Missing, PageTruth, benchmark, score
from loupe.benchmarks.olmocr_bench.conclusion import conclude
from loupe.benchmarks.olmocr_bench.dataset import PdfTests
from loupe.benchmarks.olmocr_bench.evidence import why_failed
from loupe.benchmarks.olmocr_bench.page_facts import check_page, marker_places, texts_in_format, without_images
from loupe.benchmarks.olmocr_bench.page_text import ReadTable, extract_equations, parse_html_tables
from loupe.benchmarks.olmocr_bench.records import compose, read_test
from loupe.benchmarks.shared.near_matches import find_near_matches
from loupe.benchmarks.shared.table_answers.table_grid import TableReadError
from loupe.metrics import levenshtein_distance
from loupe.results.losses import official_table
from loupe.stats.analysis import Analysis
from loupe.stats.estimates import estimate
from loupe.types import Prediction, Result, Sample, SampleScores, Scored

_PIECES = [
    "*",
    "**",
    "_",
    "__",
    "# ",
    "\n",
    "<h1>",
    "<H2 a",
    "</h3>",
    "<b",
    ">",
    "</b>",
    "<em x>",
    "</EM>",
    "<i>",
    "</i>",
]
_PIECES += [
    "$",
    "$$",
    r"\(",
    r"\)",
    r"\[",
    r"\]",
    "![",
    "](",
    ")",
    "<sup",
    "</sup>",
    "1",
    "¹",
    "[^1]",
    "[^1]:",
    "a",
    " ",
]
markdown = st.lists(st.sampled_from(_PIECES), max_size=40).map("".join)


@given(markdown)
def test_searches_in_one_pass_find_what_patterns_with_lazy_stars_find(text: str) -> None:
    equations, rest = [], text
    for pattern in (r"\\\((.+?)\\\)", r"\\\[(.+?)\\\]", r"\$\$(.+?)\$\$", r"\$(.+?)\$"):
        equations += [found.strip() for found in re.findall(pattern, rest, re.DOTALL)]
        rest = re.sub(pattern, "", rest, flags=re.DOTALL)
    assert extract_equations(text) == equations
    assert without_images(text) == re.sub(r"!\[.*?\]\(.*?\)", "", text)
    bold = [found for pattern in (r"\*\*(.*?)\*\*", "__(.*?)__") for found in re.findall(pattern, text, re.DOTALL)]
    bold += re.findall("<b[^>]*>(.*?)</b>", text, re.DOTALL | re.IGNORECASE)
    assert list(texts_in_format(text, "bold")) == bold
    tags = [match.span() for match in re.finditer("<sup[^>]*>1</sup>", text, re.IGNORECASE)]
    assert [place for place in marker_places(text, "1") if text[place[0]] == "<"] == tags


@given(st.text("ab", min_size=2, max_size=12), st.text("ab ", max_size=60), st.data())
def test_near_matches_begin_where_the_text_is_near(wanted: str, text: str, data: Any) -> None:
    limit = data.draw(st.integers(0, len(wanted) // 2))
    found = find_near_matches(wanted, text, limit)
    if wanted in text:
        assert found is not None
    if found is None:
        return
    assert found.first <= found.last
    for start in (found.first, found.last):
        ends = range(start, min(len(text), start + len(wanted) + limit) + 1)
        assert min(levenshtein_distance(text[start:end], wanted) for end in ends) <= limit


cells = st.tuples(st.sampled_from(["td", "td", "th"]), st.integers(0, 4), st.integers(1, 3))


@given(st.lists(st.lists(cells, max_size=4), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_headings_of_all_cells_at_once_are_those_of_each_cell(rows: list[Any], dice: random.Random) -> None:
    lines = ("".join(f"<{tag} rowspan={down} colspan={wide}>x</{tag}>" for tag, down, wide in row) for row in rows)
    try:
        tables = parse_html_tables("<table>" + "".join(f"<tr>{line}</tr>" for line in lines) + "</table>")
    except TableReadError:
        return
    for table in map(ReadTable, tables):
        similar = [dice.random() < 0.4 for _ in table.texts]
        for relation in ("top_heading", "left_heading"):
            at_once = table.satisfying(relation, similar)
            one_by_one = [
                any(similar[other] for other in table.related(cell, relation)) for cell in range(len(similar))
            ]
            assert at_once == one_by_one


@given(st.text(st.characters(min_codepoint=0x300, max_codepoint=0x1100), max_size=200), st.integers(0, 3))
def test_composing_in_linear_time_is_composing(text: str, copies: int) -> None:
    assert compose("a" + text * copies) == unicodedata.normalize("NFC", "a" + text * copies)


WORDS = "the steward was desired to post a notice at the church door"
_DICE = random.Random(5)
_NEAR = [WORDS[: _DICE.randrange(60)] + _DICE.choice("xyz") + WORDS[_DICE.randrange(60) :] for _ in range(4000)]
HOSTILE = {
    "near misses": "".join(_NEAR),
    "dots": "".join(_DICE.choice("..........x") for _ in range(200_000)),
    "combining": "a" + "\u0301\u0327" * 100_000,
    "undecomposed": "\u0f73" * 200_000,
    "sup": "<sup" * 100_000,
    "markers": "¹a" * 20_000,
    "nested": "<table><tr><td>" * 20_000 + "x",
    "spans": "<table>" + "<tr><td rowspan=999999999 colspan=999>a</td></tr>" * 5000,
    "ragged": "|" * 100_000 + "\n" + "|a\n" * 100_000,
    "open images": "![" * 200_000,
    "open math": r"\(" * 200_000,
    "open bold": "<b" * 200_000,
    "comments without end": "<table>" + "<!--" * 99_000 + "x" * 600_000,
    "tags without end": "<table>" + "<a b=' " * 99_000 + "x" * 300_000,
    "one cell": "|" + "Tot|Tot|\n" * 20_000,
}
_TESTS: list[dict[str, Any]] = [
    {"type": "order", "before": WORDS, "after": WORDS[::-1], "max_diffs": 3},
    {"type": "order", "before": "total", "after": "..x.x", "max_diffs": 2},
    {"type": "order", "before": "one ........................ 12", "after": "....... x", "max_diffs": 3},
    {"type": "present", "text": WORDS * 3, "max_diffs": 5},
    {"type": "absent", "text": "Total", "max_diffs": 1, "case_sensitive": False},
    {"type": "table", "cell": "Tot", "up": "Tox", "top_heading": "Zork", "left_heading": "Quux", "max_diffs": 1},
    {"type": "format", "format": "bold", "text": WORDS},
    {"type": "format", "format": "italic", "text": WORDS},
    {"type": "format", "format": "heading", "text": WORDS},
    {"type": "footnote", "marker": "1", "appears_before_marker": "alpha beta", "appears_after_marker": "delta"},
    {"type": "baseline"},
    {"type": "baseline", "max_length": 3, "max_length_skips_image_alt_tags": True},
]


@pytest.mark.parametrize("test", _TESTS, ids=lambda test: str(test.get("format", test["type"])))
def test_what_explains_a_failure_can_be_written_whatever_the_answer_holds(test: dict[str, Any]) -> None:
    broken = "\ud800 **b\udfff** *i\udfff* [^1]\udfff\n# \udfff\n|\ud800|Tox|\n|x|\udfff|\n"
    (outcome,) = check_page(broken, [read_test({"pdf": "a.pdf", "page": 1, "id": "1", **test})])
    json.dumps(dict(outcome.figures), ensure_ascii=False).encode("utf-8")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_scored_in_seconds(name: str) -> None:
    tests = [read_test({"pdf": "a.pdf", "page": 1, "id": str(number), **test}) for number, test in enumerate(_TESTS)]
    began = time.process_time()
    outcomes = check_page(HOSTILE[name], tests)
    assert len(outcomes) == len(tests)
    assert all(len(str(value)) < 1000 for outcome in outcomes for value in outcome.figures.values())
    assert time.process_time() - began < 20


def test_a_limit_of_ours_fails_html_tables_alone_and_voids_no_candidate() -> None:
    def page(answer: str, *cells: str) -> Scored:
        tests = [
            read_test({"pdf": "a.pdf", "page": 1, "id": cell, "type": "table", "cell": cell}, category="t")
            for cell in cells
        ]
        truth = PageTruth(PdfTests("a.pdf", 1, tuple(tests)), ("t",), "official")
        return score(Sample(id="a_pg1_repeat1", images=(), truth=truth), Prediction(text=answer))

    beyond = page("|here|b|\n|c|d|\n\n<table><tr><td>x</td></tr></table>" + "<" * 100_001, "here", "nowhere")
    assert [fact["explanation"] for fact in beyond.details["tests"]] == ["pass", "table_too_large"]
    assert "at most 100,000" in beyond.details["tests"][1]["figures"]["unread"]
    assert "candidate_errors" not in beyond.details
    found = conclude(
        [SampleScores(sample="a", group="", tags={}, outcome="ok", scores=[], details=dict(beyond.details))]
    )
    assert found.figures["not_judged"] == {"math_tests": 0, "equations": 0, "table_tests": 1}
    assert any("too large to be read" in warning for warning in found.warnings)


def test_what_the_browser_did_not_survive_is_counted_and_warned_of() -> None:
    fact = {"id": "m", "pdf": "a", "type": "math", "category": "t", "passed": False, "explanation": "math_no_match"}
    details = {"tests": [fact, fact | {"figures": {"not_compared": 3}}]}
    found = conclude([SampleScores(sample="a", group="", tags={}, outcome="ok", scores=[], details=details)])
    assert found.figures["not_judged"] == {"math_tests": 1, "equations": 3, "table_tests": 0}
    assert found.warnings[0].startswith("3 equations in 1 failed math tests were not compared")


#: The cell on the right spans further down than its table once the wide one has overwritten it.
OVERLAPPING = "<table><tr><td>a</td><td rowspan=9>b</td></tr><tr><td colspan=2>c</td></tr></table>"


def scored_pages(missing: Missing, broken: int) -> list[SampleScores]:
    """Twenty pages with one table test each; the tables of the first `broken` ones end the official evaluator."""
    pages = []
    for number in range(20):
        test = {"pdf": f"{number}.pdf", "page": 1, "id": f"t{number}", "type": "table", "cell": "c"}
        truth = PageTruth(
            PdfTests(f"{number}.pdf", 1, (read_test(test, category="table_tests"),)), ("table_tests",), missing
        )
        answer = OVERLAPPING if number < broken else "|a|b|\n|c|d|\n"
        found = score(Sample(id=f"{number}_pg1_repeat1", images=(), truth=truth), Prediction(text=answer))
        pages.append(SampleScores(sample=f"{number}", scores=list(found.scores), details=dict(found.details)))
    return pages


@pytest.mark.parametrize("broken", [1, 3])
def test_errors_of_a_candidate_are_as_many_as_there_are_and_void_all_scores_without_an_interval(broken: int) -> None:
    rows = [(page.sample, one) for page in scored_pages("official", broken) for one in page.scores]
    found = estimate(Analysis(benchmark.measures, summarize=benchmark.summarize), rows)
    errors = found["candidate_errors"]
    assert (errors.value, errors.low, errors.high) == (broken, None, None)
    for name in ("overall", "table_tests"):
        assert (found[name].value, found[name].low, found[name].high) == (0.0, None, None)


def test_official_figures_say_where_the_official_program_prints_none() -> None:
    found = conclude(scored_pages("empty", 2))
    assert found.figures["overall"] == 0.9
    assert "official program prints FAILED (errors) and 0 instead: test t0 raises IndexError" in found.official
    assert " and 1 more" in found.official
    result = Result(
        benchmark="olmocr_bench",
        version="1.0",
        engine="e",
        total=20,
        headline="overall",
        signature="",
        measures={},
        directions={},
        units={},
        figures=found.figures,
    )
    rows = {str(row[0]): str(row[1]) for row in official_table([("e", result)]).rows}
    assert rows["overall"].endswith("; the official program prints FAILED (errors)")
    sound = conclude(scored_pages("empty", 0))
    assert "FAILED" not in sound.official and "official_status" not in sound.figures


def test_a_test_that_raises_is_explained_once() -> None:
    (page, *_) = scored_pages("empty", 1)
    fact = page.details["tests"][0]
    test = read_test({"pdf": "0.pdf", "page": 1, "id": "t0", "type": "table", "cell": "c"}, category="table_tests")
    assert why_failed(test, fact) == (
        "The official evaluator ends in an error here, so the test has not passed: "
        "IndexError: a rowspan that was overwritten reaches below the table."
    )


def test_no_number_of_repeats_is_an_error_of_the_test_as_upstream() -> None:
    test = read_test({"pdf": "a.pdf", "page": 1, "id": "b", "type": "baseline", "max_repeats": None})
    assert [outcome.explanation for outcome in check_page("words", [test])] == ["run_error"]
    assert [outcome.explanation for outcome in check_page("", [test])] == ["baseline_no_alnum"]
