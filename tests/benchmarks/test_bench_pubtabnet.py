"""PubTabNet and TEDS_TEST: what is loaded from each layout, and how answers of general models are scored."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.shared.table_images import Annotation, html_of_tokens
from loupe.errors import DatasetError, UsageError
from loupe.metrics.teds.table_tree import TableTooLargeError
from loupe.pipeline.existing_answers import find_all
from loupe.types import PackedImage, Prediction, Sample

BENCHMARK = get_benchmark("pubtabnet")
TEDS_TEST = get_benchmark("teds_test")
TABLE = "<table><thead><tr><td>tide</td><td>m</td></tr></thead><tbody><tr><td>ebb</td><td>0.7</td></tr></tbody></table>"
STRUCTURE = [
    "<thead>",
    "<tr>",
    "<td>",
    "</td>",
    "<td>",
    "</td>",
    "</tr>",
    "</thead>",
    "<tbody>",
    "<tr>",
    "<td>",
    "</td>",
    "<td>",
    "</td>",
    "</tr>",
    "</tbody>",
]


def annotation(*texts: str) -> dict[str, Any]:
    return {"structure": {"tokens": STRUCTURE}, "cells": [{"tokens": list(text)} for text in texts]}


TOKENS = annotation("tide", "m", "ebb", "0.7")


def write_lines(file: Path, lines: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def write_parquet(file: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    file.parent.mkdir(parents=True, exist_ok=True)
    images = [{"image": {"bytes": b"png", "path": "a.png"}} for _ in rows]
    parquet.write_table(pa.Table.from_pylist([image | row for image, row in zip(images, rows, strict=True)]), file)


def earned(answer: str, truth: str = TABLE) -> dict[str, float]:
    scores = BENCHMARK.score(Sample(id="t", truth=truth), Prediction(text=answer))
    return {score.measure: score.counts[0] for score in scores}


def test_tables_of_one_split_are_read_from_the_original_lines(tmp_path: Path) -> None:
    rows = [("a.png", "train"), ("b.png", "val"), ("c.png", "test"), ("d.png", "val")]
    lines = [{"filename": name, "split": split, "imgid": 1, "html": TOKENS} for name, split in rows]
    write_lines(tmp_path / "PubTabNet_2.0.0.jsonl", lines)
    samples = list(BENCHMARK.load(tmp_path))
    assert [sample.id for sample in samples] == ["b.png", "d.png"]
    assert samples[0].images == (tmp_path / "val" / "b.png",)
    assert samples[0].truth == TABLE
    assert samples[0].tags == {"type": "simple"}


def test_a_split_without_tables_names_those_that_are_there(tmp_path: Path) -> None:
    write_lines(tmp_path / "PubTabNet_Examples.jsonl", [{"filename": "a.png", "split": "train", "html": TOKENS}])
    with pytest.raises(DatasetError, match="no tables of the split 'val'; it has train"):
        list(BENCHMARK.load(tmp_path))


@pytest.mark.parametrize("line", ["{", "[]", '{"split": "val"}', '{"filename": "a", "split": "val", "html": 3}'])
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "PubTabNet_2.0.0.jsonl").write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"PubTabNet_2\.0\.0\.jsonl, line 2"):
        list(BENCHMARK.load(tmp_path))


def test_a_name_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    write_lines(tmp_path / "PubTabNet_2.0.0.jsonl", [{"filename": "../a.png", "split": "val", "html": TOKENS}])
    with pytest.raises(DatasetError, match="leaves the folder"):
        list(BENCHMARK.load(tmp_path))


def test_missing_data_says_what_was_expected_and_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"expected PubTabNet_2\.0\.0\.jsonl") as caught:
        list(BENCHMARK.load(tmp_path))
    assert caught.value.hint == "download it: loupe data get pubtabnet"


def test_the_html_of_the_parquet_form_is_taken_as_it_is(tmp_path: Path) -> None:
    spanning = TABLE.replace("<td>tide</td><td>m</td>", '<td colspan="2">tide</td>')
    write_parquet(
        tmp_path / "data/validation-00000-of-00001.parquet", [{"html_table": TABLE}, {"html_table": spanning}]
    )
    first, second = BENCHMARK.load(tmp_path)
    assert (first.id, first.truth, first.tags["type"]) == ("pubtabnet_0", TABLE, "simple")
    assert (second.id, second.truth, second.tags["type"]) == ("pubtabnet_1", spanning, "complex")
    assert second.images == (PackedImage(tmp_path / "data/validation-00000-of-00001.parquet", "1/image"),)


@pytest.mark.parametrize("written", [repr, json.dumps, lambda value: value], ids=["Python", "JSON", "struct"])
def test_tokens_of_the_parquet_form_become_html(tmp_path: Path, written: Any) -> None:
    write_parquet(tmp_path / "validation.parquet", [{"html": written(TOKENS)}])
    (sample,) = BENCHMARK.load(tmp_path)
    assert sample.truth == TABLE


@pytest.mark.parametrize("table", [TABLE, f"\n <html><body>{TABLE}</body></html>", f"<TABLE border=1>{TABLE[7:]}"])
def test_html_where_tokens_are_expected_is_taken_as_it_is(tmp_path: Path, table: str) -> None:
    write_parquet(tmp_path / "validation.parquet", [{"html": table}])
    write_lines(tmp_path / "lines.jsonl", [{"filename": "a.png", "split": "val", "html": table}])
    for data in (tmp_path, tmp_path / "lines.jsonl"):
        (sample,) = BENCHMARK.load(data)
        assert sample.truth == table


@pytest.mark.parametrize("named_by", ["filename", "image"])
def test_official_predictions_by_file_name_are_found_in_the_parquet_form(tmp_path: Path, named_by: str) -> None:
    rows: list[dict[str, Any]] = []
    for number in range(2):
        name = f"PMC{number}.png"
        pictured = {"image": {"bytes": b"png", "path": name if named_by == "image" else f"{number}"}}
        rows.append({"html_table": TABLE, **pictured, **({"filename": name} if named_by == "filename" else {})})
    write_parquet(tmp_path / "data/validation.parquet", rows)
    (tmp_path / "answers.json").write_text(json.dumps({"PMC1.png": TABLE, "PMC0.png": "none", "PMC7.png": ""}))
    samples = list(BENCHMARK.load(tmp_path / "data"))
    idents = [sample.id for sample in samples]
    found = find_all("pubtabnet", tmp_path / "answers.json", lambda: samples, idents, idents)
    assert {ident: answer.text for ident, answer in found.found.items()} == {
        "pubtabnet_0": "none",
        "pubtabnet_1": TABLE,
    }
    assert found.extra == ["PMC7.png"]


def test_other_columns_are_named(tmp_path: Path) -> None:
    write_parquet(tmp_path / "validation.parquet", [{"text": "x"}])
    with pytest.raises(DatasetError, match="expected the columns image and html_table") as caught:
        list(BENCHMARK.load(tmp_path))
    assert caught.value.hint == "its columns: image, text"


def test_the_prepared_form_is_read(tmp_path: Path) -> None:
    write_lines(tmp_path / "metadata.jsonl", [{"idx": 7, "sample_id": "teds_test_4007", "ground_truth": TABLE}])
    for benchmark in (BENCHMARK, TEDS_TEST):
        (sample,) = benchmark.load(tmp_path)
        assert (sample.id, sample.truth) == ("teds_test_4007", TABLE)
        assert sample.images == (tmp_path / "images" / "00007.jpg",)


def test_options_that_the_prepared_form_cannot_follow_are_refused(tmp_path: Path) -> None:
    write_lines(tmp_path / "metadata.jsonl", [{"idx": 7, "sample_id": "a", "ground_truth": TABLE}])
    for option in ({"split": "train"}, {"escape": "escaped"}):
        with pytest.raises(UsageError, match="in the prepared form, in which the option"):
            list(BENCHMARK.load(tmp_path, **option))
    for rows in ({"first": 0}, {"rows": 3}, {"escape": "escaped"}):
        with pytest.raises(UsageError, match="in the prepared form, in which the option"):
            list(TEDS_TEST.load(tmp_path, **rows))


def test_teds_test_takes_200_rows_from_row_4000_on_over_all_shards(tmp_path: Path) -> None:
    for shard in (0, 1, 2):
        rows = [{"html_table": f"<table><tr><td>{shard * 1500 + row}</td></tr></table>"} for row in range(1500)]
        write_parquet(tmp_path / f"data/validation-0000{shard}-of-00003.parquet", rows)
    samples = list(TEDS_TEST.load(tmp_path))
    assert [sample.id for sample in samples] == [f"teds_test_{row}" for row in range(4000, 4200)]
    assert samples[0].truth == "<table><tr><td>4000</td></tr></table>"
    assert samples[0].images == (PackedImage(tmp_path / "data/validation-00002-of-00003.parquet", "1000/image"),)
    assert [sample.id for sample in TEDS_TEST.load(tmp_path, first=3, rows=2)] == ["teds_test_3", "teds_test_4"]


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (["00000-of-00003", "00002-of-00003"], "1 of 3 parquet files missing, first validation-00001-of-00003.parquet"),
        (["00001-of-00002"], "1 of 2 parquet files missing, first validation-00000-of-00002.parquet"),
        (["00000-of-00001", "00000-of-00002", "00001-of-00002"], "parquet files of several sets"),
        (["00000-of-00001", "old"], "parquet files of several sets"),
    ],
)
def test_a_missing_shard_is_named_because_rows_would_move(tmp_path: Path, numbers: list[str], said: str) -> None:
    for number in numbers:
        write_parquet(tmp_path / f"data/validation-{number}.parquet", [{"html_table": TABLE}])
    with pytest.raises(DatasetError, match=said):
        list(BENCHMARK.load(tmp_path))


def test_teds_test_says_which_rows_are_missing(tmp_path: Path) -> None:
    write_parquet(tmp_path / "validation.parquet", [{"html_table": TABLE}])
    with pytest.raises(DatasetError, match="has no row 4000; TEDS_TEST is rows 4000 to 4199"):
        list(TEDS_TEST.load(tmp_path))
    with pytest.raises(UsageError, match="no such rows"):
        list(TEDS_TEST.load(tmp_path, rows=0))


def test_teds_test_counts_rows_of_the_parquet_form_only(tmp_path: Path) -> None:
    write_lines(tmp_path / "PubTabNet_2.0.0.jsonl", [])
    with pytest.raises(DatasetError, match=r"validation-\*\.parquet") as caught:
        list(TEDS_TEST.load(tmp_path))
    assert caught.value.hint == "download it: loupe data get teds_test"


def tokens(structure: list[str], *cells: list[str]) -> Annotation:
    import msgspec

    value = {"structure": {"tokens": structure}, "cell": [{"tokens": cell} for cell in cells]}
    return msgspec.convert(value, Annotation)


def test_spans_stand_in_several_tokens_and_inline_tags_in_one() -> None:
    spanning = ["<tr>", "<td", ' colspan="2"', ">", "</td>", "</tr>"]
    assert html_of_tokens(tokens(spanning, ["<b>", "a", "</b>"])) == (
        '<table><tr><td colspan="2"><b>a</b></td></tr></table>'
    )


def test_text_joins_raw_unless_it_shall_be_escaped() -> None:
    cell = ["<i>", "<", "&", "</i>"]
    assert html_of_tokens(tokens(["<td>", "</td>"], cell)) == "<table><td><i><&</i></td></table>"
    assert html_of_tokens(tokens(["<td>", "</td>"], cell), "escaped") == "<table><td><i>&lt;&amp;</i></td></table>"


def test_missing_cells_stay_empty_and_further_ones_are_ignored() -> None:
    assert html_of_tokens(tokens(["<td>", "</td>", "<td>", "</td>"], ["a"])) == ("<table><td>a</td><td></td></table>")
    assert html_of_tokens(tokens(["<td>", "</td>"], ["a"], ["b"])) == "<table><td>a</td></table>"
    assert html_of_tokens(tokens([], ["a"])) == ""


@pytest.mark.parametrize(
    "answer",
    [
        TABLE,
        f"```html\n{TABLE}\n```",
        f"<html><body>{TABLE}</body></html>",
        TABLE.replace("<td>tide</td><td>m</td>", "<th>tide</th><th>m</th>"),
        "| tide | m |\n|---|---|\n| ebb | 0.7 |",
        "tide      m\nebb      0.7",
        "<fcel>tide<fcel>m<nl><fcel>ebb<fcel>0.7<nl>",
    ],
    ids=["HTML", "fence", "page", "th", "Markdown", "gaps", "cell markers"],
)
def test_every_way_of_writing_the_table_earns_all_when_normalised(answer: str) -> None:
    found = earned(answer)
    assert (found["teds"], found["teds_struct"]) == (1.0, 1.0)


def test_the_official_core_stands_beside_and_knows_no_markdown_and_no_header_cells() -> None:
    assert earned(TABLE)["teds_official"] == earned(f"```html\n{TABLE}\n```")["teds_official"] == 1.0
    assert earned("| tide | m |\n|---|---|\n| ebb | 0.7 |")["teds_official"] == 0.0
    header = earned(TABLE.replace("<td>tide</td>", "<th>tide</th>"))
    assert (header["teds_official"], header["teds"]) == (1 - 1 / 8, 1.0)


@pytest.mark.parametrize("answer", ["", " \n"])
def test_no_answer_earns_nothing(answer: str) -> None:
    assert set(earned(answer).values()) == {0.0}
    assert set(earned(answer, truth="<table><tr><td><b>bold</b></td></tr></table>").values()) == {0.0}


def test_text_without_a_table_earns_about_nothing() -> None:
    found = earned("I cannot see a table.")
    assert found["teds_official"] == 0.0
    assert found["teds"] < 0.3


def test_a_span_that_is_no_number_scores_zero_and_says_why() -> None:
    answer = '<table><tr><td colspan="two">x</td></tr></table>'
    scores = BENCHMARK.score(Sample(id="t", truth=TABLE), Prediction(text=answer))
    assert [(score.counts[0], score.tags) for score in scores] == [(0.0, {"teds_error": "ValueError"})] * 4


@pytest.mark.parametrize("answer", ["<p>" * 50_000, "<br><p>x</p>" * 50_000], ids=["nested", "many"])
def test_hostile_tags_are_read_in_linear_time(answer: str) -> None:
    began = time.process_time()
    assert earned(f"<table>{answer}</table>")["teds"] < 0.3
    assert time.process_time() - began < 8


def test_a_table_beyond_all_bounds_has_no_score() -> None:
    rows = "".join(f"<tr><td>{number}a</td></tr>" for number in range(6000))
    with pytest.raises(TableTooLargeError):
        earned(f"<table>{rows}</table>", truth=f"<table>{rows.replace('a', 'b')}</table>")
