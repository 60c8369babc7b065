"""Whole runs of OmniDocBench: 88 over real and synthetic pages, 70 small ones with odd names and settings.

All oracle cases; figures within 1e-6, names of files and texts of samples exactly. The 70 are read from real folders.
Exceptions: 14 configured cases on which upstream ends with an exception (`UPSTREAM_ENDS`), and three differences that
are ours on purpose: a filter that leaves nothing is an error, a folder without any answer is one, and the default
metrics are the only ones of the command line (groups and subsets are tested through the library).
"""

from __future__ import annotations

import json
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks.omnidocbench import answer_files, benchmark, score
from loupe.benchmarks.omnidocbench.aggregation import ElementMetrics
from loupe.benchmarks.omnidocbench.conclusion import conclude
from loupe.benchmarks.omnidocbench.dataset import read_pages
from loupe.benchmarks.omnidocbench.official_files import official_files
from loupe.benchmarks.omnidocbench.scored_pages import from_details
from loupe.errors import DatasetError
from loupe.pipeline.existing_answers import find_answers
from loupe.scoring.oracles import read_oracle
from loupe.scoring.scorer import score_sample
from loupe.stats.analysis import Analysis
from loupe.stats.estimates import estimate
from loupe.types import Prediction, Sample, SampleScores
from tests.support.omnidocbench.oracle_pages import differences
from tests.support.shared import cases, shared, shared_cases, shared_parameters

ORACLES = "oracles/omnidocbench"
#: 43 runs over pages of our own, and 45 over nine real ones.
RUNS = [
    *(
        pytest.param("synthetic/", case, id=f"synthetic/{case['id']}")
        for case in cases(f"{ORACLES}/synthetic/runs.jsonl")
    ),
    *shared_parameters(f"{ORACLES}/runs.jsonl", ""),
]
CONFIGURED = cases(f"{ORACLES}/gaps_config.jsonl")
#: Upstream's exception, and what Loupe does instead.
UPSTREAM_ENDS = {
    "jpeg": "scores the page under its own attributes",
    "upper-case-ending": "the same",
    "filter-absent-attribute": "an error that names the attribute",
    "match-method": "there is one match method",
    "array-null-order": "scores the page and flags it",
}


@lru_cache
def samples_of(folder: str) -> dict[str, Sample]:
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "OmniDocBench.json"
        if folder:
            file.write_bytes(read_oracle("omnidocbench/synthetic/gt.json"))
        pages = read_pages(
            file if folder else shared("data/omnidocbench/OmniDocBench_subset.json"), selection={}, mode="parity"
        )
        return {page.truth["page_info"]["image_path"]: page for page in pages}


@lru_cache
def answers_of(folder: str) -> dict[str, str]:
    read = cases if folder else shared_cases
    return {case["id"]: case["input"]["pred"] for case in read(f"{ORACLES}/{folder}pages.jsonl")}


def rows_of(folder: str, case: dict[str, Any]) -> list[SampleScores]:
    rows = []
    for image in case["input"]["pages"]:
        named = case["input"]["predictions"][image[:-4]]
        missing = named == "MISSING"
        text = "" if missing else answers_of(folder)[named.removeprefix("pages.jsonl id ")]
        answer = Prediction(text=text, outcome="error" if missing else "ok")
        rows.append(score_sample(benchmark, samples_of(folder)[image], answer, []))
    return rows


@pytest.mark.parametrize(("folder", "case"), RUNS)
def test_a_whole_run_has_the_official_figures(folder: str, case: dict[str, Any]) -> None:
    rows = rows_of(folder, case)
    assert [row.error for row in rows if row.error and row.outcome == "ok"] == []
    expected = case["expected"]
    assert differences(conclude(rows).figures["metric_result"], expected["metric_result"]) == []
    # What a user sees is computed from the scores of the pages, and not from those figures.
    scores = [(row.sample, score) for row in rows for score in row.scores]
    measured = estimate(Analysis(benchmark.measures, summarize=benchmark.summarize, draws=0), scores) if scores else {}
    official = expected["metric_result"]
    edits = ("text_block", "display_formula", "table", "reading_order")
    for measure, element in zip(("text_edit", "formula_edit", "table_edit", "reading_order_edit"), edits, strict=True):
        value = measured[measure].value if measure in measured else None
        assert differences(value, official[element]["all"]["Edit_dist"]["ALL_page_avg"]) == []
    for measure, metric in {"table_teds": "TEDS", "table_teds_struct": "TEDS_structure_only"}.items():
        value = measured[measure].value if measure in measured else None
        assert differences(value, official["table"]["page"].get(metric, {}).get("ALL")) == []


def write_run(case: dict[str, Any], folder: Path) -> Path:
    (folder / "OmniDocBench.json").write_text(json.dumps(case["input"]["gt_pages"]), encoding="utf-8")
    answers = folder / case["input"].get("pred_dir", "preds")
    answers.mkdir()
    for name, text in case["input"]["files"].items():
        (answers / name).parent.mkdir(exist_ok=True, parents=True)
        (answers / name).write_bytes(text.encode("utf-8"))
    return answers


def score_folder(case: dict[str, Any], root: Path) -> list[SampleScores]:
    """The pages of a folder, as `loupe score omnidocbench FOLDER` finds and scores them."""
    answers = write_run(case, root)
    pages = {page.id: page for page in read_pages(root, selection=case["input"].get("filter", {}), mode="parity")}
    found = find_answers(answers, {ident: answer_files(page) for ident, page in pages.items()}, pages).found
    nothing = Prediction(outcome="error", error="no answer")
    return [score_sample(benchmark, page, found.get(ident, nothing), []) for ident, page in pages.items()]


@pytest.mark.parametrize("case", CONFIGURED, ids=[case["id"] for case in CONFIGURED])
def test_a_configured_run_has_the_official_files(case: dict[str, Any], tmp_path: Path) -> None:
    given, expected = case["input"], case["expected"]
    if "error" in expected:
        assert any(f"gap-config-{name}" in case["id"] for name in UPSTREAM_ENDS)
        if "filter-absent" in case["id"]:
            with pytest.raises(DatasetError, match="no attribute 'colour'"):
                score_folder(case, tmp_path)
        else:
            rows = score_folder(case, tmp_path)
            value = conclude(rows).figures["metric_result"]["text_block"]["all"]["Edit_dist"]["ALL_page_avg"]
            # The one page with an array: its text went with the rows, so formulas are all it has, and no figure (9).
            array = "array-null-order" in case["id"]
            texts = [score.counts[0] for row in rows for score in row.scores if score.measure == "text_edit"]
            assert len(texts) == len(rows) and max(texts) < 0.5
            assert differences(value, "NaN" if array else sum(texts) / len(texts)) == []
            assert value == 0.0 or not any(name in case["id"] for name in ("two-dots", "upper-case"))
            pages = [page for row in rows if (page := from_details(row)) is not None]
            assert [page for page in pages if "upstream-error" in page.flags] == (pages if array else [])
        return
    rows = score_folder(case, tmp_path)
    pages = [page for row in rows if (page := from_details(row)) is not None and page.answered]
    wanted = {
        element: ElementMetrics(metric=tuple(one["metric"]), group=tuple(one.get("group", ())))
        for element, one in given.get("metrics", {}).items()
    }
    folder = given.get("pred_dir", "preds").rpartition("/")[2]
    prefix = f"{folder}_{given.get('match_method', 'quick_match')}"
    files = dict(official_files(pages, prefix, metrics=wanted))
    assert sorted(files) == expected["result_files"]
    written = {name.removeprefix(f"{prefix}_"): json.loads(text) for name, text in files.items()}
    assert differences(written["metric_result.json"], expected["metric_result"]) == []
    for element, samples in expected["samples"].items():
        # The oracle leaves out the page key, and the raw texts of tables (they are inputs).
        unchecked = {"image_name", *(("gt", "pred") if element == "table" else ())}
        found = [{key: one[key] for key in one.keys() - unchecked} for one in written[f"{element}_result.json"]]
        assert differences(found, samples) == []
        assert differences(written.get(f"{element}_per_page_edit.json"), expected["per_page_edit"].get(element)) == []


def test_details_survive_the_file() -> None:
    page = next(iter(samples_of("synthetic/").values()))
    details = score(page, Prediction(text="Some text.\n\n$$ x $$")).details
    stored = json.loads(json.dumps(details))
    assert from_details(SampleScores(sample="x", details=stored)) == from_details(
        SampleScores(sample="x", details=dict(details))
    )
