"""DP-Bench: what is loaded from each layout, and what each kind of answer earns under each variant."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.dp_bench.evaluators import table_contents
from loupe.errors import DatasetError, UsageError
from loupe.metrics.teds.table_tree import TableTooLargeError
from loupe.types import PdfPage, Prediction, Sample

BENCHMARK = get_benchmark("dp_bench")
ROWS = "<tr><td>tide</td><td>4.2</td></tr><tr><td>ebb</td><td>0.7</td></tr>"
OTHER_ROWS = "<tr><td>buoy</td></tr>"


def element(category: str, text: str = "", html: str = "") -> dict[str, Any]:
    return {"coordinates": [], "category": category, "id": 0, "page": 1, "content": {"text": text, "html": html}}


PAGE = [
    element("Heading1", "The harbour"),
    element("Paragraph", "Ships come\nwith the tide."),
    element("Table", "tide 4.2", ROWS),
    element("Table", "buoy", OTHER_ROWS),
    element("Figure", "a picture"),
]


def write_reference(file: Path, pages: dict[str, list[dict[str, Any]]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({name: {"elements": elements} for name, elements in pages.items()}), encoding="utf-8")


def page(tmp_path: Path, variant: str = "official", **options: str) -> Sample:
    write_reference(tmp_path / "reference.json", {"0001.pdf": PAGE})
    (sample,) = BENCHMARK.load(tmp_path, variant=variant, **options)
    return sample


def earned(sample: Sample, answer: str) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for score in BENCHMARK.score(sample, Prediction(sample=sample.id, text=answer)):
        found.setdefault(score.measure, []).append(score.counts[0] / score.counts[1])
    return found


@pytest.mark.parametrize("folder", [".", "dataset", "ground-truth"])
def test_pages_are_found_in_each_published_layout(tmp_path: Path, folder: str) -> None:
    write_reference(tmp_path / folder / "reference.json", {"b.pdf": PAGE, "a.pdf": PAGE[:2]})
    samples = list(BENCHMARK.load(tmp_path))
    assert [sample.id for sample in samples] == ["b.pdf", "a.pdf"]
    assert [sample.tags for sample in samples] == [{"table": "yes"}, {"table": "no"}]
    assert samples[0].images == (PdfPage(tmp_path / folder / "pdfs" / "b.pdf"),)


def test_a_page_that_was_made_a_picture_is_read_as_one(tmp_path: Path) -> None:
    write_reference(tmp_path / "reference.json", {"a.pdf": PAGE})
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(b"picture")
    (sample,) = BENCHMARK.load(tmp_path)
    assert sample.images == (tmp_path / "images" / "a.png",)


def test_the_prepared_form_is_read_with_elements_as_json_or_as_text(tmp_path: Path) -> None:
    truths = [{"elements": PAGE}, json.dumps({"elements": PAGE})]
    lines = [{"idx": idx, "sample_id": f"s{idx}", "ground_truth": truth} for idx, truth in enumerate(truths)]
    (tmp_path / "metadata.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    first, second = BENCHMARK.load(tmp_path)
    assert first.truth == second.truth
    assert second.images == (tmp_path / "images" / "00001.jpg",)
    assert earned(first, "")["nid"] == [0.0]


def test_missing_data_says_what_was_expected_and_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"expected dataset/reference\.json") as caught:
        list(BENCHMARK.load(tmp_path))
    assert caught.value.hint == "download it: loupe data get dp_bench"


@pytest.mark.parametrize("content", ["[]", '{"a.pdf": {"elements": [{"category": 3}]}}', '{"a.pdf": {}}', "{"])
def test_a_broken_reference_is_refused_with_its_name(tmp_path: Path, content: str) -> None:
    (tmp_path / "reference.json").write_text(content, encoding="utf-8")
    with pytest.raises(DatasetError, match=r"reference\.json"):
        list(BENCHMARK.load(tmp_path))


def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    write_reference(tmp_path / "reference.json", {"../a.pdf": PAGE})
    with pytest.raises(DatasetError, match="leaves the folder"):
        list(BENCHMARK.load(tmp_path))


def test_the_ground_truth_as_an_answer_in_json_earns_everything(tmp_path: Path) -> None:
    answer = json.dumps({"elements": PAGE})
    assert earned(page(tmp_path), answer) == {"nid": [1.0], "teds": [1.0], "teds_struct": [1.0]}


@pytest.mark.parametrize(
    "odd",
    [
        {"category": "Figure", "content": None},
        {"category": "Figure"},
        {"category": "Table", "content": {"text": 7, "html": ROWS}},
        {"category": "chart", "content": [1]},
        3,
    ],
)
def test_one_odd_element_does_not_cost_the_page(tmp_path: Path, odd: Any) -> None:
    for answer in (json.dumps({"elements": [*PAGE, odd]}), "\ufeff" + json.dumps({"elements": [*PAGE, odd]})):
        assert earned(page(tmp_path), answer) == {"nid": [1.0], "teds": [1.0], "teds_struct": [1.0]}


def test_what_is_no_text_in_an_element_is_none_and_a_number_its_digits(tmp_path: Path) -> None:
    write_reference(tmp_path / "reference.json", {"a.pdf": [element("Paragraph", "7"), element("Paragraph", "")]})
    (sample,) = BENCHMARK.load(tmp_path)
    answer = [{"category": None, "content": {"text": 7}}, {"category": "Paragraph", "content": {"text": None}}]
    assert earned(sample, json.dumps(answer)) == {"nid": [1.0]}


@pytest.mark.parametrize("answer", ['{"elements": "none"}', '{"elements": [{"category": "Head'])
def test_an_official_answer_that_cannot_be_read_is_told_apart(tmp_path: Path, answer: str) -> None:
    scores = BENCHMARK.score(page(tmp_path), Prediction(text=answer))
    assert scores and all(score.tags["elements"] == "unread" for score in scores)
    scores = BENCHMARK.score(page(tmp_path), Prediction(text="The harbour"))
    assert scores and not any("elements" in score.tags for score in scores)


def test_only_the_first_table_counts_officially(tmp_path: Path) -> None:
    answer = json.dumps({"elements": PAGE[:3]})
    assert earned(page(tmp_path), answer)["teds"] == [1.0]


def test_official_rules_delete_line_feeds_of_the_ground_truth(tmp_path: Path) -> None:
    sample = page(tmp_path)
    read_as_lines = [*PAGE[:1], element("Paragraph", "Ships comewith the tide."), *PAGE[2:]]
    assert earned(sample, json.dumps(read_as_lines))["nid"] == [1.0]


def test_a_header_cell_is_another_tag_officially(tmp_path: Path) -> None:
    header = ROWS.replace("<td>tide</td>", "<th>tide</th>")
    answer = json.dumps([element("Table", html=header)])
    assert earned(page(tmp_path), answer)["teds"] == [pytest.approx(1 - 1 / 6)]


CELLS = "<tr><td>a</td><td>b</td></tr>"


@pytest.mark.parametrize(
    ("answer", "official", "v1"),
    [
        (f"<table>{CELLS}</table>", 1.0, 1.0),
        (f'<table border="1">{CELLS}</table>', 1.0, 0.75),
        (f"Table 1 <table\n>{CELLS}</table> of 3", 1.0, 0.75),
        (f"<TABLE>{CELLS}</TABLE>", 0.75, 0.75),
        (f"<table>{CELLS}", 0.75, 1.0),
        (f"</table>{CELLS}", 0.0, 0.0),
    ],
)
def test_a_predicted_table_is_unwrapped_by_either_revision_as_upstream(
    tmp_path: Path, answer: str, official: float, v1: float
) -> None:
    write_reference(tmp_path / "reference.json", {"a.pdf": [element("Table", html=CELLS)]})
    for variant, expected in (("official", official), ("v1", v1)):
        (sample,) = BENCHMARK.load(tmp_path, variant=variant)
        assert earned(sample, json.dumps([element("Table", html=answer)]))["teds"] == [expected]


@pytest.mark.parametrize(
    ("html", "variant", "error"),
    [
        ({}, "official", "KeyError"),
        ({}, "v1", "KeyError"),
        ({"html": None}, "official", "TypeError"),
        ({"html": 7}, "v1", "TypeError"),
        ({"html": f"<x<table>{CELLS}"}, "v1", "AttributeError"),
        ({"html": f"<!-- <table> -->{CELLS}"}, "v1", "AttributeError"),
        ({"html": f"<p title='<table>'>{CELLS}"}, "v1", "AttributeError"),
    ],
)
def test_a_page_that_ends_the_official_run_scores_zero_and_names_the_exception(
    tmp_path: Path, html: dict[str, Any], variant: str, error: str
) -> None:
    write_reference(tmp_path / "reference.json", {"a.pdf": [element("Table", html="<tr><td><b>a</b></td></tr>")]})
    (sample,) = BENCHMARK.load(tmp_path, variant=variant)
    answer = json.dumps([{"category": "Table", "content": {"text": "", **html}}])
    tables = [each for each in BENCHMARK.score(sample, Prediction(text=answer)) if each.measure != "nid"]
    assert [(each.counts, dict(each.tags)) for each in tables] == [((0.0, 1.0), {"teds_error": error})] * 2


@pytest.mark.parametrize("opening", ["<table", "<table>", "<table></table"])
def test_an_answer_of_openings_alone_is_cut_at_once(opening: str) -> None:
    text = opening * 300_000
    started = time.process_time()
    assert table_contents(text) == [text]
    assert time.process_time() - started < 1


def test_no_answer_earns_nothing(tmp_path: Path) -> None:
    for variant in ("official", "v1", "tolerant", "best_table"):
        assert all(set(value) == {0.0} for value in earned(page(tmp_path, variant), "").values())


MARKDOWN = """\
# The harbour

Ships *come* with the **tide**.

| tide | 4.2 |
|------|-----|
| ebb  | 0.7 |

<!-- -->
"""


def test_a_markdown_answer_earns_its_words_and_its_table_officially(tmp_path: Path) -> None:
    found = earned(page(tmp_path), MARKDOWN)
    assert found["teds"] == [1.0]
    assert 0.85 < found["nid"][0] < 1.0


def test_tolerant_rules_read_the_marks_away_and_pair_tables_by_order(tmp_path: Path) -> None:
    answer = MARKDOWN.replace("<!-- -->", "\nbuoys | none\n--- | ---\n")
    found = earned(page(tmp_path, "tolerant"), answer)
    assert found["nid"] == [1.0]
    assert found["teds"][0] == 1.0
    assert 0.0 < found["teds"][1] < 1.0
    assert found["nid_official"][0] < 1.0


def test_tolerant_rules_give_a_missing_table_zero_unless_only_the_first_counts(tmp_path: Path) -> None:
    assert earned(page(tmp_path, "tolerant"), MARKDOWN)["teds"] == [1.0, 0.0]
    assert earned(page(tmp_path, "tolerant", pairing="first"), MARKDOWN)["teds"] == [1.0]


def test_pairing_is_refused_where_it_would_do_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="tolerant"):
        page(tmp_path, "official", pairing="first")


def test_variants_show_as_tags_but_the_official_one(tmp_path: Path) -> None:
    assert page(tmp_path).tags == {"table": "yes"}
    assert page(tmp_path, "v1").tags == {"table": "yes", "variant": "v1"}
    assert page(tmp_path, "tolerant", pairing="first").tags == {
        "table": "yes",
        "variant": "tolerant",
        "pairing": "first",
    }


def test_opendataloader_rules_need_ground_truth_in_markdown(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"gt_markdown.0001\.md not found"):
        page(tmp_path, "opendataloader")
    (tmp_path / "gt_markdown").mkdir()
    (tmp_path / "gt_markdown" / "0001.md").write_text(MARKDOWN, encoding="utf-8")
    assert all(value == [1.0] for value in earned(page(tmp_path, "opendataloader"), MARKDOWN).values())


def test_the_best_predicted_table_for_each_counts_and_their_mean(tmp_path: Path) -> None:
    sample = page(tmp_path, "best_table")
    answer = f"The harbour\n<table>{OTHER_ROWS}</table>\n<table>{ROWS}</table>"
    found = earned(sample, answer)
    assert found["teds"] == [1.0]
    assert found["teds_struct"] == [1.0]
    assert earned(sample, f"<table>{OTHER_ROWS}</table>")["teds"][0] > 0.5


def test_a_span_that_is_no_number_scores_zero_and_says_why(tmp_path: Path) -> None:
    answer = json.dumps([element("Table", html='<tr><td colspan="two">x</td></tr>')])
    scores = BENCHMARK.score(page(tmp_path), Prediction(text=answer))
    assert [(each.counts, dict(each.tags)) for each in scores if each.measure == "teds"] == [
        ((0.0, 1.0), {"teds_error": "ValueError"})
    ]


@pytest.mark.parametrize("answer", ['{"elements": 3}', "[1, 2", "[" * 5000, '{"elements": [{"category": null}]}'])
def test_text_that_only_looks_like_elements_is_read_as_markdown(tmp_path: Path, answer: str) -> None:
    assert 0.0 <= earned(page(tmp_path), answer)["nid"][0] < 0.7


def test_tables_that_opendataloader_cannot_compare_score_zero_and_say_why(tmp_path: Path) -> None:
    (tmp_path / "gt_markdown").mkdir()
    (tmp_path / "gt_markdown" / "0001.md").write_text(MARKDOWN, encoding="utf-8")
    sample = page(tmp_path, "opendataloader")
    answer = MARKDOWN + '<table><tr><td rowspan="x">y</td></tr></table>'
    scores = {each.measure: each for each in BENCHMARK.score(sample, Prediction(text=answer))}
    assert (scores["teds"].counts, scores["teds"].tags) == ((0.0, 1.0), {"teds_error": "ValueError"})


def test_tables_nested_thousands_deep_are_refused_soon(tmp_path: Path) -> None:
    (tmp_path / "gt_markdown").mkdir()
    (tmp_path / "gt_markdown" / "0001.md").write_text(MARKDOWN, encoding="utf-8")
    sample = page(tmp_path, "opendataloader")
    with pytest.raises(TableTooLargeError, match="tables inside tables"):
        BENCHMARK.score(sample, Prediction(text="<table>" * 3000))
