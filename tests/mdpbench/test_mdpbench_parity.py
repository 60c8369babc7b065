"""MDPBench against its official evaluator: all 172 pages and 29 runs of the oracles, to 1e-6, texts and names exactly.

Runs are read from real folders, as `loupe score mdpbench FOLDER` finds them. CDM is what the oracles had in its place
(a distance of strings), as they were made without TeX; that of formulas is tested in tests/metrics.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks.mdpbench import benchmark, load
from loupe.benchmarks.mdpbench.conclusion import OFFICIAL_METRICS, official_files, official_record
from loupe.benchmarks.mdpbench.data import read_images
from loupe.benchmarks.mdpbench.final_score import from_details, image_attributes, samples_of_image
from loupe.benchmarks.mdpbench.scoring import match_image, scored_image, summary
from loupe.benchmarks.omnidocbench import figures
from loupe.benchmarks.omnidocbench.aggregation import ElementMetrics
from loupe.benchmarks.omnidocbench.figures import Reckoning
from loupe.benchmarks.omnidocbench.records import PageMatch
from loupe.benchmarks.omnidocbench.scored_pages import ScoredPage, as_read_from_its_file
from loupe.pipeline.existing_answers import find_repeated_answers
from loupe.scoring.oracles import read_oracle
from loupe.scoring.scorer import score_sample
from loupe.stats.analysis import Analysis
from loupe.stats.estimates import estimate
from loupe.types import Conclusion, Prediction, Sample, SampleScores
from tests.support.omnidocbench.oracle_pages import differences
from tests.support.shared import cases

ORACLES = "oracles/mdpbench"
PAGES = cases(f"{ORACLES}/pages.jsonl")
RUNS = {case["id"].removeprefix("mdp-4101-"): case for case in cases(f"{ORACLES}/runs.jsonl")}


@lru_cache
def ground_truth() -> dict[str, Any]:
    return {page["page_info"]["image_path"]: page for page in json.loads(read_oracle("mdpbench/gt.json"))}


@pytest.mark.parametrize("case", PAGES, ids=lambda case: case["id"])
def test_a_page_has_the_official_samples(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    page = Sample(id=given["image"].rpartition(".")[0], truth=ground_truth()[given["image"]])
    matches = match_image(page, [as_read_from_its_file(given["pred"])])
    found = samples_of_image(scored_image(page, matches, answered=True).pages)
    for element, wanted in OFFICIAL_METRICS.items():
        no_cdm = ElementMetrics(metric=tuple(name for name in wanted.metric if name != "CDM"))
        records = [official_record(sample, no_cdm) for sample in found[element]]
        assert len(records) == len(expected[element])
        for record, official in zip(records, expected[element], strict=True):
            assert differences({name: record.get(name) for name in official}, official) == []


def gt_pages(case: Mapping[str, Any]) -> list[Any]:
    given = case["input"]
    return given["gt_pages"] if "gt_pages" in given else [ground_truth()[image] for image in given["pages"]]


def write(case: Mapping[str, Any], folder: Path) -> None:
    given = case["input"]
    (folder / "MDPBench_public.json").write_text(json.dumps(gt_pages(case)), encoding="utf-8")
    (folder / "answers").mkdir()
    for name, text in given["files"].items():
        (folder / "answers" / name).write_bytes(text.encode("utf-8"))
    if given["slim"]:
        (folder / "MDPBench_img_public").mkdir()
        for stem in {name.rpartition(".")[0] for name in given["files"]}:
            (folder / "MDPBench_img_public" / f"{stem}.JPEG").touch()


def score_folder(case: Mapping[str, Any], folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[SampleScores]:
    """The images of a folder as the command finds and scores them, with the official values for CDM."""
    values = {(one["pred"], one["gt"]): one["value"] for one in case["cdm_values"]}

    def with_cdm(match: PageMatch, reckoning: Reckoning) -> PageMatch:
        assert reckoning.cdm_profile == "mdpbench"
        inputs = [(sample, figures.inputs_of(sample, reckoning)) for sample in match.display_formula]
        pairs = [(sample, (each.prediction, each.reference)) for sample, each in inputs]
        # Those of missing images are no part of the official run.
        drawn = (replace(sample, cdm=values[pair] if pair[0] else values.get(pair, 0.0)) for sample, pair in pairs)
        return replace(match, display_formula=tuple(drawn))

    monkeypatch.setattr(figures, "with_cdm", with_cdm)
    write(case, folder)
    given = case["input"]
    wanted = "metrics" in given and "CDM" not in given["metrics"]["display_formula"]["metric"]
    images = list(
        load(
            folder,
            filter=json.dumps(given["filter"]) if "filter" in given else "",
            slim="on" if given["slim"] else "off",
            cdm="off" if wanted else "on",
        )
    )
    layout = benchmark.answers
    assert layout.in_folder is not None and layout.join is not None
    in_folder = layout.in_folder
    found = find_repeated_answers(
        folder / "answers", lambda names: in_folder(images, names), [image.id for image in images], join=layout.join
    ).found
    nothing = Prediction(outcome="missing", error="no answer")
    return [score_sample(benchmark, image, found.get(image.id, nothing), []) for image in images]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_has_the_official_figures_and_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = RUNS[name]
    expected = case["expected"]
    rows = score_folder(case, tmp_path, monkeypatch)
    assert [row.error for row in rows if row.error and row.outcome == "ok"] == []
    assert benchmark.conclude is not None
    conclusion = benchmark.conclude(rows)
    images = list(map(from_details, rows))
    answered = [page for pages in images for page in pages if page.answered]
    assert differences(with_nulls(summary(answered)), expected["summary"]) == []
    assert differences(conclusion.figures["metric_result"], expected["metric_result"]) == []
    check_table(conclusion, expected["scores_text"], whole="metrics" not in case["input"])
    if "metrics" not in case["input"]:
        check_measures(rows, expected["summary"])
    check_files(case, answered, image_attributes(images))


def with_nulls(found: Any) -> Any:
    return json.loads(json.dumps(found))


def check_table(conclusion: Conclusion, printed: str, *, whole: bool) -> None:
    """The table that `calculate_scores.py` prints; with formulas that have no CDM it is not called the headline."""
    row = conclusion.figures["headline" if whole else "headline_without_formulas"]
    ours = {name: row[name] for name in ("All", "Digit.", "Photo.")}
    averages = re.findall(r"Avg: (\S+)", printed)
    assert [row["Latin"], row["Non-Latin"]] == [number(each) for each in averages]
    assert ours == {name: number(each) for name, each in re.findall(r"(All|Digit\.|Photo\.)\s*: (\S+)", printed)}
    languages = {name: number(each) for name, each in re.findall(r"^  ([A-Z-]+): (\S+)", printed, re.MULTILINE)}
    assert {name: row["languages"].get(name) for name in languages} == languages
    assert (conclusion.official != "") is (whole and row["All"] is not None)


def number(printed: str) -> float | None:
    return None if printed == "N/A" else float(printed)


def check_measures(rows: list[SampleScores], official: Mapping[str, Any]) -> None:
    """What a user sees is computed from the scores of single images, and not from those figures."""
    scores = [(row.group, score) for row in rows for score in row.scores]
    measured = estimate(Analysis.of(benchmark).without_draws(), scores) if scores else {}
    for measure, split in (("overall", "All"), ("overall_digital", "digit"), ("overall_photographed", "photo")):
        value = measured[measure].value if measure in measured else None
        assert differences(value, official.get(split, {}).get("overall")) == []


def check_files(case: Mapping[str, Any], answered: list[ScoredPage], images: Mapping[str, Mapping[str, Any]]) -> None:
    expected, given = case["expected"], case["input"]
    metrics = given.get("metrics") or OFFICIAL_METRICS
    wanted = {
        element: one if isinstance(one, ElementMetrics) else ElementMetrics(metric=tuple(one["metric"]))
        for element, one in metrics.items()
    }
    files = dict(official_files(answered, "P", images, wanted))
    names = sorted(name.removeprefix("P_").removesuffix(".json") for name in files)
    assert names == sorted(expected["result_files"])
    for name, content in expected.items():
        if name in names and name != "metric_result":
            assert differences(json.loads(files[f"P_{name}.json"]), content) == []


def test_the_oracles_have_every_language_digital_and_photographed(tmp_path: Path) -> None:
    (tmp_path / "MDPBench_public.json").write_text(json.dumps(list(ground_truth().values())), encoding="utf-8")
    tags = [image.tags for image in read_images(tmp_path, {})]
    assert len({each["language"] for each in tags}) == 17
    assert {each["capture"] for each in tags} == {"digital", "photographed"}
    assert {each["script"] for each in tags} == {"Latin", "Non-Latin"}
