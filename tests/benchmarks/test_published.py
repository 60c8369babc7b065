"""Published figures: what the package holds is what the sources print, in Loupe's measures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loupe.benchmarks import get_benchmark
from loupe.benchmarks.published import published_benchmarks, published_rows, rows_of_engine
from loupe.benchmarks.registry import check_options
from loupe.results.reproduction import SETTINGS
from loupe.types import PublishedRow
from tests.support.shared import shared

#: Names of the collection → measure here, and how its number becomes ours (percent unless it is one of ours as it is).
NAMES = {
    "omnidocbench": {
        "overall": ("overall", "percent"),
        "text_edit_distance": ("text_edit", "plain"),
        "cdm": ("formula_cdm", "percent"),
        "teds": ("table_teds", "percent"),
        "teds_struct": ("table_teds_struct", "percent"),
        "reading_order_edit_distance": ("reading_order_edit", "plain"),
        "text_similarity_page_avg": ("text_edit", "complement"),
        "reading_order_similarity": ("reading_order_edit", "complement"),
        "formula_similarity": ("formula_edit", "complement"),
    },
    "iam_lines": {"cer": ("cer_mean", "percent"), "wer": ("wer_mean", "percent")},
    "unimer_test": {"cdm_f1": ("cdm", "percent")},
    "fox": {
        "vision_tokens": ("vision_tokens", "plain"),
        "compression_ratio": ("compression_output", "plain"),
        "edit_distance": ("edits", "plain"),
    },
}
#: No measure of Loupe: kept as a note of its row.
NOTED = {"text_similarity_whole"}
#: Not in the collection: the leaderboard, as the protocol of DP-Bench has it.
LEADERBOARD = "upstage/dp-bench README"
#: Not in it: collected later, with the settings of model families.
LATER = "Tencent-Hunyuan/HunyuanOCR"
#: Not in it either: it was made before OmniDocBench 1.6, whose figures are those of their sources.
NEWER = ("omnidocbench", "1.6")


def value_of(benchmark: str, name: str, printed: float) -> tuple[str, float]:
    measure, form = NAMES.get(benchmark, {}).get(name, (name, "percent"))
    return measure, {"percent": printed / 100, "plain": printed, "complement": 1 - printed / 100}[form]


def test_every_figure_of_the_collection_is_in_the_package_and_no_other() -> None:
    collected = json.loads(shared("data/published/results.json").read_text(encoding="utf-8"))["rows"]
    for benchmark in {row["benchmark"].partition("@")[0] for row in collected}:
        theirs = [row for row in collected if row["benchmark"].partition("@")[0] == benchmark]
        ours = [
            row
            for row in published_rows(benchmark)
            if not row.source.startswith((LEADERBOARD, LATER)) and (benchmark, row.version) != NEWER
        ]
        assert sorted(row.name for row in ours) == sorted(row["engine"] for row in theirs)
        for row in theirs:
            wanted = dict(value_of(benchmark, *item) for item in row["measures"].items() if item[0] not in NOTED)
            if benchmark == "ocrbench" and "note" in row:  # 1,000 questions of one point each
                wanted["score"] = 1000 * wanted["accuracy"]
            assert any(same(each, row["engine"], wanted) for each in ours), row


def same(row: PublishedRow, name: str, wanted: dict[str, float]) -> bool:
    return row.name == name and row.values == pytest.approx(wanted, abs=1e-9)


def test_the_leaderboard_of_dp_bench_is_in_the_package() -> None:
    page = Path(__file__).parents[2] / "docs/protocols/dp_bench.md"
    lines = page.read_text(encoding="utf-8").partition("### 3.3")[2].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    theirs = {row[0]: [float(value) / 100 for value in row[1:4]] for row in cells[2:8]}
    ours = [row for row in published_rows("dp_bench") if row.source.startswith(LEADERBOARD)]
    assert len(theirs) == 6 and [row.name for row in ours] == list(theirs)
    for row in ours:
        assert list(row.values) == ["nid", "teds", "teds_struct"]
        assert list(row.values.values()) == pytest.approx(theirs[row.name], abs=1e-9)
        assert rows_of_engine(f"{row.name}_241024", "dp_bench") == rows_of_engine(row.name, "dp_bench") == [row]


def test_the_tables_of_olmocr_bench_are_in_the_package() -> None:
    document = json.loads(shared("data/olmocr_bench/published_results.json").read_text(encoding="utf-8"))
    theirs = [row for table in document["tables"] for row in table["rows"]]
    ours = published_rows("olmocr_bench")
    assert [row.name for row in ours] == [row["model"] for row in theirs]
    for mine, row in zip(ours, theirs, strict=True):
        assert mine.values == pytest.approx({name: row[name] / 100 for name in mine.values}, abs=1e-9)
        assert set(mine.values) == {*document["column_to_test_file"], "overall"}
        assert mine.half_width == (None if row["ci_half_width"] is None else pytest.approx(row["ci_half_width"] / 100))
        assert ("reported by its authors" in mine.notes) == row["reported_by_model_authors"]


@pytest.mark.parametrize("benchmark_id", published_benchmarks())
def test_rows_speak_of_measures_options_and_settings_that_exist(benchmark_id: str) -> None:
    benchmark = get_benchmark(benchmark_id)
    units = {measure.name: measure.unit for measure in benchmark.measures}
    rows = published_rows(benchmark_id, benchmark.version)
    assert rows and published_rows(benchmark_id, "another") == []
    for row in rows:
        assert row.source and row.values and row.engines
        assert all(units[name] != "fraction" or 0 <= value <= 1 for name, value in row.values.items()), row
        assert row.settings.keys() <= set(SETTINGS)
        check_options(benchmark, row.options)


def test_an_engine_is_found_by_its_id_by_that_of_its_model_and_by_the_name_at_the_source() -> None:
    names = {row.name for row in rows_of_engine("glm-ocr", "omnidocbench", "1.5")}
    assert names == {"GLM-OCR (pipeline)", "GLM-OCR (cloud API re-run)", "glm-ocr-pipeline"}
    assert [row.engines for row in rows_of_engine("Qwen3-VL-235B", "omnidocbench", "1.5")] == [["qwen3-vl-235b"]]
    assert rows_of_engine("marker-1.10.1", "olmocr_bench")[0].values["overall"] == 0.761
    assert rows_of_engine("nobody", "omnidocbench") == []
