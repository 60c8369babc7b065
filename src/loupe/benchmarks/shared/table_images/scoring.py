"""How the answer to a table image is scored: normalised, and as it is by the official evaluator.

Protocol: docs/benchmarks/pubtabnet.md; TEDS: docs/metrics/teds.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from loupe.benchmarks.shared.table_answers.html_conversion import table_of_answer
from loupe.benchmarks.shared.table_answers.scored import TableScores, score_normalized, score_pair
from loupe.benchmarks.shared.table_images.layouts import TableImage
from loupe.types import Measure, Prediction, Sample, Score

PROMPT = (
    "Convert this table image to HTML. Rules:\n"
    "- Use <table>, <thead>, <tbody>, <tr>, <th>, <td> tags\n"
    "- Include colspan and rowspan attributes where needed\n"
    "- Output ONLY the HTML table, no explanations"
)

MEASURES = (
    Measure(name="teds", title="TEDS, normalised"),
    Measure(name="teds_struct", title="TEDS-S, normalised"),
    Measure(name="teds_official", title="TEDS, official core"),
    Measure(name="teds_struct_official", title="TEDS-S, official core"),
)

#: Where the numbers differ from the official evaluator on purpose.
DEVIATIONS = (
    "bare tables are wrapped in a page, on both sides: officially they score 0.0",
    "a pair on which the official TEDS raises scores 0.0, with the name of the exception as a tag",
)

_FULL_PAGE = re.compile(r"\s*<(?:html|!doctype)", re.IGNORECASE)


def sample_of(table: TableImage) -> Sample:
    """The sample of a table; the ground truth is HTML."""
    return Sample(id=table.ident, images=(table.image,), truth=table.html, tags={"type": table.kind})


def score(sample: Sample, prediction: Prediction) -> list[Score]:
    """Four numbers per table, 0.0 each without an answer. Raises TableTooLargeError for work beyond all bounds."""
    if not prediction.text.strip():
        return _scores(TableScores(0.0, 0.0), "") + _scores(TableScores(0.0, 0.0), "_official")
    normalized = score_normalized(table_of_answer(prediction.text), sample.truth)
    official = score_pair(wrap_page(prediction.text), wrap_page(sample.truth), variant="omnidocbench")
    return _scores(normalized, "") + _scores(official, "_official")


def _scores(table: TableScores, suffix: str) -> list[Score]:
    tags = {"teds_error": table.error} if table.error else {}
    return [
        Score(measure=f"teds{suffix}", counts=(table.teds, 1.0), tags=tags),
        Score(measure=f"teds_struct{suffix}", counts=(table.teds_struct, 1.0), tags=tags),
    ]


def wrap_page(html: str) -> str:
    """The string as a page: TEDS finds a table only as a child of `body`, and a bare one scores 0.0.

    >>> wrap_page("<table></table>")
    '<html><body><table></table></body></html>'
    """
    return html if _FULL_PAGE.match(html) else f"<html><body>{html}</body></html>"


def verify_case(case: dict[str, Any]) -> list[tuple[float, float]]:
    """(ours, official) for one shipped parity case: TEDS and TEDS-S of IBM's evaluator on the strings as they are."""
    found = score_pair(case["input"]["pred_html"], case["input"]["gt_html"], variant="ibm")
    expected = case["expected"]["ibm"]
    return [(found.teds, expected["teds"]), (found.teds_struct, expected["teds_struct"])]


def oracle_case(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The official case, unless IBM's evaluator stopped on it."""
    if not any(isinstance(value, dict) for value in case["expected"]["ibm"].values()):
        yield case
