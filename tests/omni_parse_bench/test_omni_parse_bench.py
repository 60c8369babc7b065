"""Omni Parse Bench beyond the official cases: data, answers, headline, bounds, what is refused, what is explained."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.omni_parse_bench.equations import contains_in_row
from loupe.benchmarks.omni_parse_bench.evidence import words_of
from loupe.benchmarks.omni_parse_bench.folding import fold
from loupe.benchmarks.omni_parse_bench.page import Answer, read_answer
from loupe.benchmarks.omni_parse_bench.page_tests import check_page
from loupe.benchmarks.omni_parse_bench.records import GoldError, read_test, read_tests
from loupe.benchmarks.omni_parse_bench.view import view_text
from loupe.data.parquet import rows
from loupe.errors import DatasetError, MissingToolError
from loupe.scoring.scorer import score_sample
from loupe.scoring.summary import Origin, summarise
from loupe.types import Prediction, Result, Sample
from tests.data.test_data_layouts import published
from tests.support.command_line import loupe

BENCHMARK = get_benchmark("omni_parse_bench")
PLACE = [[0.1, 0.1, 0.9, 0.2]]
PAGE = (
    "<h1>Title</h1><p>A page of words, 1,240.5 in all, and the appendix.</p><p>End of it.</p>"
    "<table><tr><th>Year</th><th>Total</th></tr><tr><td>2024</td><td>12 %</td></tr></table>"
)
BLOCKS = [{"label": "text", "bbox": [0, 0, 1, 0.5]}]


def record(kind: str, ident: str = "t", settings: Any = None, **args: Any) -> dict[str, Any]:
    """A test as gold files have it; texts without more allow no difference."""
    named = {role: {"text": arg, "max_diffs": 0} if isinstance(arg, str) else arg for role, arg in args.items()}
    reads = "blocks" if kind == "layout_kind" else "html"
    common = {"id": ident, "test_type": kind, "output_type": reads, "derivation": "authored", "tags": ["table", "eng"]}
    return {**common, "args": named, "settings": settings or {}}


TESTS = [
    record("present", "present", content="A page of words"),
    record("present", "number", content={"number": "1,240.5"}),
    record("order", "order", before="A page", after="End"),
    record("repeat", "repeat", {"expected_count": 1}, content="appendix"),
    record("table_cell", "cell", cell="12 %", top_heading="Total", left="2024"),
    record("layout_kind", "layout", {"kind": "text"}, content={"text": "A", "max_diffs": 0, "place": PLACE}),
]


def sample(tests: list[dict[str, Any]], ident: str = "p", **scoring: str) -> Sample:
    return Sample(id=ident, truth={"tests": tests}, group="d", tags={"suite": "own"}, scoring=scoring)


def verdicts(text: str, tests: list[dict[str, Any]], **scoring: str) -> dict[str, str]:
    found = score_sample(BENCHMARK, sample(tests, **scoring), Prediction(sample="p", text=text), ())
    assert not found.error
    return {fact["id"]: fact["verdict"] for fact in found.details["tests"]}


def result(answers: list[Prediction], **scoring: str) -> Result:
    given = [(sample(TESTS, f"p{number}", **scoring), answer) for number, answer in enumerate(answers)]
    scored = [score_sample(BENCHMARK, each, answer, ()) for each, answer in given]
    return summarise(BENCHMARK, scored, Origin(benchmark="b", engine="e", signature="s", total=len(scored)), draws=50)


def both(html: Any = PAGE, blocks: Any = BLOCKS) -> str:
    return json.dumps({"html": html, "blocks": blocks})


def test_an_answer_with_both_outputs_passes_everything_and_has_a_headline() -> None:
    assert set(verdicts(both(), TESTS).values()) == {"pass"}
    found = result([Prediction(text=both()), Prediction(text=both(blocks=[]))])
    assert found.measures["overall"].value == pytest.approx((1 + 1 + 0.5) / 3)
    assert found.figures["headline"]["families"]["layout"] == {"score": 0.5, "tests": 2, "documents": 1}
    assert found.slices["tag"]["table"]["layout"].value == 0.5 and found.slices["tag"]["eng"]["html"].n == 10
    assert found.slices["type"]["layout_kind"]["layout"].value == 0.5


def test_an_engine_without_boxes_has_no_headline_and_it_is_said_why() -> None:
    found = result([Prediction(text="# Title\n\nA page of words"), Prediction(outcome="timeout")])
    assert found.measures["overall"].value is None and found.measures["layout"].value is None
    assert "no blocks" in found.not_computed["overall"] and found.figures["headline"]["score"] is None
    assert found.figures["headline"]["families"]["layout"] == {"score": None, "tests": 0, "documents": 0}
    assert found.measures["text"].value == pytest.approx(1 / 8)
    # One answer with blocks, or a word of the user's, shows that the engine makes them: then the failed page counts.
    assert result([Prediction(text=both()), Prediction(outcome="timeout")]).measures["layout"].value == 0.5
    assert result([Prediction(text="a")], outputs="both").measures["layout"].value == 0.0
    assert verdicts(both(), TESTS, outputs="html")["layout"] == "unsupported"


def test_a_page_without_an_answer_is_pending_as_officially_if_asked_for() -> None:
    answers = [Prediction(text=both()), Prediction(outcome="missing")]
    assert result(answers).measures["text"].value == 0.5
    official = result(answers, missing="official")
    assert {name: official.measures[name].value for name in ("overall", "text", "layout")} == {
        "overall": 1.0,
        "text": 1.0,
        "layout": 1.0,
    }
    assert "1 of 2 pages have no answer and are left out as pending" in official.warnings
    # Officially, too, a page whose engine failed has an answer without outputs.
    assert result([answers[0], Prediction(outcome="timeout")], missing="official").measures["text"].value == 0.5


@pytest.mark.parametrize(
    ("text", "html", "blocks"),
    [
        (both(html=7), "malformed", "pass"),
        (both(html=None), "no_output", "pass"),
        (both(blocks=[{"label": "texts", "bbox": [0, 0, 1, 1]}]), "pass", "malformed"),
        (both(blocks=[{"label": "text", "bbox": [0, 0, 1, True]}]), "pass", "malformed"),
        (both(blocks=[{"label": "text", "bbox": [0, 0, 1, 1], "id": 3}]), "pass", "malformed"),
        (both(blocks=None), "pass", "no_output"),
        (json.dumps({"html": PAGE, "more": 1}), "text_missing", "no_output"),
    ],
)
def test_malformed_and_missing_outputs_fail(text: str, html: str, blocks: str) -> None:
    found = score_sample(BENCHMARK, sample(TESTS), Prediction(text=text), ())
    why = {fact["id"]: fact.get("why", "pass") for fact in found.details["tests"]}
    shown = why["present"] if html != "text_missing" else html
    assert (shown, why["layout"]) == (html, blocks)


def test_html_stays_and_markdown_is_converted() -> None:
    assert read_answer("<p>a\n\n    b</p>").html == "<p>a\n\n    b</p>"
    assert read_answer("```html\n<p>a</p>\n```").html == "<p>a</p>"
    assert read_answer("# A\n\n1. b").html == "<h1>A</h1>\n<p>1. b</p>\n"
    assert read_answer("<p>a</p>\n\n# B").html == "<p>a</p>\n<h1>B</h1>\n"
    assert read_answer("# A", form="html").html == "# A"
    assert read_answer("no JSON", form="json") == Answer()


def test_what_the_official_program_cannot_grade_is_in_no_score() -> None:
    broken = both(html="<p>A page of words</p><![a]x")
    assert verdicts(broken, TESTS) | {} == {**verdicts(broken, TESTS), "cell": "error", "present": "pass"}
    found = result([Prediction(text=broken)])
    assert found.measures["tables"].value is None and found.figures["html"]["errors"] == 1
    assert any("end in an error" in warning for warning in found.warnings)


def write_set(root: Path) -> Path:
    for name, data in published("omni_parse_bench").items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return root


def change_manifest(root: Path, column: str, value: Any) -> None:
    table = pq.read_table(root / "manifest.parquet").to_pylist()
    for row in table:
        row[column] = value
    pq.write_table(pa.Table.from_pylist(table), root / "manifest.parquet")


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("outputs", ["html"], "says html, and its tests read blocks, html"),
        ("outputs", ["html", "html"], "lists html, blocks or both"),
        ("doc_path", "pages/../p1.pdf", "the files of page"),
        ("suite", " ", "must be texts"),
        ("more", 1, "has the columns"),
    ],
)
def test_a_manifest_that_is_not_as_published_is_refused(tmp_path: Path, column: str, value: Any, said: str) -> None:
    change_manifest(write_set(tmp_path), column, value)
    with pytest.raises(GoldError, match=said):
        list(BENCHMARK.load(tmp_path))


def test_old_data_stray_files_and_doubled_ids_are_refused(tmp_path: Path) -> None:
    root = write_set(tmp_path / "data")
    assert len(list(rows(root / "manifest.parquet", ["page_id"]))) == len(list(BENCHMARK.load(root))) == 2
    (root / "gold/stray.json").write_text("{}")
    with pytest.raises(GoldError, match="1 gold files have no row"):
        list(BENCHMARK.load(root))
    (root / "gold/stray.json").unlink()
    shutil.copy(root / "gold/p1.json", root / "gold/p2.json")
    with pytest.raises(GoldError, match="'p1_a' is there more than once"):
        list(BENCHMARK.load(root))
    (root / "gold/p2.json").write_text("{")
    with pytest.raises(GoldError, match="cannot be read"):
        list(BENCHMARK.load(root))
    pq.write_table(pq.read_table(root / "manifest.parquet").drop_columns(["outputs"]), root / "manifest.parquet")
    with pytest.raises(GoldError, match="41131f2"):
        list(BENCHMARK.load(root))
    with pytest.raises(DatasetError, match=r"no manifest\.parquet"):
        list(BENCHMARK.load(tmp_path))


@pytest.mark.parametrize("broken", [None, [], {"tests": [], "more": 1}, {"tests": [None]}, {"tests": [{"id": 3}]}])
def test_gold_files_of_another_form_are_refused(broken: Any) -> None:
    with pytest.raises(GoldError, match="gold"):
        read_tests(broken, "gold/p.json")


def test_latex_tests_need_katex_unless_they_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_set(tmp_path / "data")
    tests = [record("present", f"p1_{name}", content=content) for name, content in (("a", "b"), ("x", {"latex": "x"}))]
    (root / "gold/p1.json").write_text(json.dumps({"tests": [*tests, {**TESTS[-1], "id": "p1_b"}]}))
    monkeypatch.setenv("LOUPE_KATEX_DIR", str(tmp_path))
    with pytest.raises(MissingToolError, match=r"KaTeX 0\.16\.22"):
        list(BENCHMARK.load(root))
    first, _ = BENCHMARK.load(root, math="skip")
    assert [test["id"] for test in first.truth["tests"]] == ["p1_a", "p1_b"]
    scored = score_sample(BENCHMARK, first, Prediction(text=both()), ())
    origin = Origin(benchmark="b", engine="e", signature="s", total=1)
    assert any("left out" in warning for warning in summarise(BENCHMARK, [scored], origin, draws=0).warnings)


def test_files_of_answers_are_scored_from_the_command_line(tmp_path: Path) -> None:
    root, answers = write_set(tmp_path / "data"), tmp_path / "answers"
    answers.mkdir()
    (answers / "p1.json").write_text(both(html="<p>A page of wards</p>"))
    (answers / "p2.html").write_text("<p>Another page</p>")
    done = loupe("score", "omni_parse_bench", str(answers), "--data", str(root), "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [found] = [json.loads(done.stdout)]
    values = {name: one["value"] for name, one in found["measures"].items()}
    assert (values["text"], values["layout"], values["overall"]) == (0.5, 0.5, 0.5)


def test_failures_are_explained() -> None:
    assert BENCHMARK.facts is not None
    tests = [
        record("present", "present", content={"text": "A page of wards", "max_diffs": 0}),
        record("order", "order", before="End", after="A page"),
        record("table_cell", "cell", cell="12 %", top_heading="Year"),
        record("table_cell", "none", cell="13 %"),
        *TESTS[3:4],
        record("layout_kind", "layout", {"kind": "table"}, content={"text": "A", "max_diffs": 0, "place": PLACE}),
    ]
    page, answer = sample(tests), Prediction(text=both())
    facts = BENCHMARK.facts(page, answer, score_sample(BENCHMARK, page, answer, ()))
    assert [fact.passed for fact in facts] == [False, False, False, False, True, False]
    present, order, cell, none, repeat, layout = facts
    assert present.comparisons[0].found == "a page of words" and "% alike" in present.why
    assert [one.label.split(" (")[0] for one in order.comparisons] == ["Begins first", "Should begin before that"]
    assert cell.table is not None and {one.mark for one in cell.table.cells} == {"", "cell", "related"}
    assert cell.comparisons[0].found == "Total" and "as a heading of its column" in cell.comparisons[0].label
    assert none.comparisons[0].found == "12 %" and repeat.why == "" and layout.why == "It is of the kind text."
    for test in tests:
        quoted = [text for role, text in words_of(read_test(test, "p")) if role]
        assert quoted and all(text in json.dumps(test["args"]) for text in quoted)


def test_borders_between_equations_may_fall_anywhere_and_stand_for_punctuation() -> None:
    assert contains_in_row(("a", ",", "b"), [("x", "a"), ("b",)])
    assert contains_in_row(("a", "b"), [("a",), (), ("b",)])
    assert contains_in_row(("a", ","), [("a",), ()]) and not contains_in_row(("a", ","), [("a",)])
    assert not contains_in_row(("a", "b"), [("a", "c", "b")])


HOSTILE = [
    "<math>", "<input value='", '<img alt="x" ', "![a](", "<!--", "<script", "<ol><li>", "$$", "\\[", "\\(",
    "$$\\text{", "\u0301\u0327", "<table><tr><td>", "```\n", "[[", "*_", "{", "<input type=checkbox ", "''", "[^1", "`",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_answers_end_and_fail(piece: str) -> None:
    """Quadratic passes over these would take minutes."""
    tests = read_tests({"tests": TESTS}, "p")
    html, markdown = read_answer((piece * 30_000)[:30_000], form="html"), read_answer(piece * 2_000, form="markdown")
    for answer in (html, markdown):
        assert {one.verdict for one in check_page(answer, tests)} == {"fail"}


def test_text_of_private_use_and_long_numbers_is_an_error_as_officially() -> None:
    tests = read_tests({"tests": TESTS[:1]}, "p")
    long = f'<ol start="{"1" * 5000}"><li>a</li></ol>'
    assert [one.verdict for one in check_page(Answer(html=long), tests)] == ["error"]
    held = "$\\text{a} \ue0007\ue001 b_1$"
    assert [one.verdict for one in check_page(Answer(html=held), tests)] == ["error"]
    assert fold(view_text("1,240<sup>1</sup> &amp; x")) == "1,240 1 & x"
