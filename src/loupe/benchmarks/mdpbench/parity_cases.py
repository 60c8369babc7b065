"""Small runs against what the official evaluator made of them (`loupe verify mdpbench`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from loupe.benchmarks.mdpbench.data import answers_in_folder, page_id, slim_images
from loupe.benchmarks.mdpbench.final_score import PageScore, final_score, page_scores
from loupe.benchmarks.mdpbench.official_files import RECKONING, metric_result
from loupe.benchmarks.mdpbench.page_ids import stem
from loupe.benchmarks.mdpbench.scored_images import SPLITS, samples_of_run
from loupe.benchmarks.mdpbench.scoring import match_image, scored_image
from loupe.benchmarks.omnidocbench.figures import inputs_of
from loupe.benchmarks.omnidocbench.official_files import numbers
from loupe.benchmarks.omnidocbench.records import PageMatch
from loupe.benchmarks.omnidocbench.scored_pages import ScoredPage, as_read_from_its_file
from loupe.types import Sample


def compare_run(given: Mapping[str, Any], expected: Mapping[str, Any]) -> list[tuple[float, float]]:
    """(ours, official) for every number of a run; one that only one side has is infinitely far off.

    The official values of CDM are given, as the cases were made without TeX.
    """
    pages = list(pages_of_run(given))
    images = {page["page_info"]["image_path"]: page["page_info"]["page_attribute"] for page in given["gt_pages"]}
    computed = {"metric_result": metric_result(pages, images), "summary": summary(pages)}
    ours, official = (dict(numbers({name: figures[name] for name in computed})) for figures in (computed, expected))
    names = [*official, *(name for name in ours if name not in official)]
    return [(ours.get(name, math.inf), official.get(name, -math.inf)) for name in names]


def run_from_oracle(case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A run of the oracles that has its pages with it; none where nothing on them is scored."""
    if "gt_pages" in case["input"] and case["expected"]["summary"]:
        given = {**case["input"], "cdm_values": case["cdm_values"]}
        yield {"id": case["id"], "input": given, "expected": case["expected"]}


def pages_of_run(given: Mapping[str, Any]) -> Iterator[ScoredPage]:
    """The scored pages of a run, in upstream's order, with the CDM that is given."""
    truths = [Sample(id="", truth=page) for page in given["gt_pages"]]
    samples = [replace(page, id=page_id(page)) for page in truths]
    if given.get("slim"):
        names = sorted(name for name in given["files"] if name.endswith((".md", ".mmd")))
        samples = list(slim_images(truths, [Path(f"{ident}.jpg") for ident in dict.fromkeys(map(stem, names))]))
    values = {(one["pred"], one["gt"]): one["value"] for one in given["cdm_values"]}
    files = answers_in_folder(samples, given["files"])
    for page in samples:
        if answers := [as_read_from_its_file(given["files"][name]) for name in files[page.id]]:
            matches = [_with_values(match, values) for match in match_image(page, answers)]
            yield from scored_image(page, matches, answered=True).pages


def summary(pages: Sequence[ScoredPage]) -> dict[str, Any]:
    """The final score as the oracles have it: every page of All, unrounded means of splits and languages."""
    samples = samples_of_run(pages)
    score = final_score(samples)
    found: dict[str, Any] = {
        split: {"overall": score.splits[split], "n_pages": score.pages[split]}
        for split in SPLITS
        if split in score.splits
    }
    if found:
        of_pages = {page: _page_record(one) for page, one in page_scores(samples, "All").items()}
        found["All"] |= {"lang": dict(score.languages), "pages": of_pages}
    return found


def _page_record(score: PageScore) -> dict[str, float | None]:
    tasks = {"s_text": score.text, "s_formula": score.formula, "s_table": score.table}
    return {**tasks, "overall_i_scheme2": score.overall}


def _with_values(match: PageMatch, values: Mapping[tuple[str, str], float]) -> PageMatch:
    pairs = ((sample, inputs_of(sample, RECKONING)) for sample in match.display_formula)
    formulas = (replace(sample, cdm=values.get((each.prediction, each.reference))) for sample, each in pairs)
    return replace(match, display_formula=tuple(formulas))
