"""Tables and charts in OCRBench v2, compared by TEDS.

Source: Yuliang-Liu/MultimodalOCR @ 794c36d, `OCRBench_v2/eval_scripts/TEDS_metric.py`; protocol:
docs/protocols/ocrbench_v2.md.
"""

from __future__ import annotations

import re
from typing import Any

from loupe.benchmarks.ocrbench_v2.texts import UpstreamStopsError, only_text
from loupe.benchmarks.shared.literals import literal
from loupe.metrics import teds
from loupe.metrics.teds.table_tree import TedsError

_CHART_FENCE = re.compile(r"```(?:python|json)?\n", re.IGNORECASE)


def html_table(prediction: str, answer: Any) -> float:
    """TEDS of the first table or body in the answer; 0.0 where there is none."""
    text = prediction.replace("\n", "")
    start = text.find("<body") if "<body" in text else text.find("<table")
    return _teds(_page(text[start:]), _page(answer)) if start >= 0 else 0.0


def markdown_table(prediction: str, answer: str) -> float:
    """TEDS of two Markdown tables."""
    return _teds(_page(_markdown_rows(prediction)), _page(_markdown_rows(answer)))


def table(prediction: str, answers: Any, question: str) -> float:
    """English table parsing: HTML or Markdown, as the question asks."""
    answer = only_text(answers)
    if "html" in question.lower():
        return html_table(prediction, answer)
    if "markdown" in question.lower():
        return markdown_table(prediction, answer)
    raise UpstreamStopsError("the question asks for neither HTML nor Markdown")


def chart(prediction: str, answers: Any) -> float:
    """TEDS of the rows key | value of a chart, a value's characters with blanks between; kept for parity."""
    answer = answers[0] if isinstance(answers, list) and answers else None
    if not isinstance(answer, dict):
        raise UpstreamStopsError("the answer is no dictionary")
    found = _chart_dictionary(prediction) if prediction else None
    return _teds(_page(_rows(found)), _page(_rows(answer))) if found else 0.0


def _chart_dictionary(text: str) -> dict[Any, Any] | None:
    blocks, place = [], 0
    while opening := _CHART_FENCE.search(text, place):
        closing = text.find("\n```", opening.end())
        if closing < 0:
            break
        blocks.append(text[opening.end() : closing])
        place = closing + 4
    text = max(blocks, key=len) if blocks else text
    text = re.sub(r"\A\s*\w+\s*=\s*", "", text.strip())
    text = re.sub(r"#[^\n]*", "", text)
    end = text.rfind("}")
    try:
        found = literal((text[: end + 1] if end >= 0 else text).strip())
    except ValueError:
        return None
    return found if isinstance(found, dict) and found else None


def _rows(values: dict[Any, Any]) -> str:
    cells = ((str(key), " ".join(str(value))) for key, value in values.items())
    return "<table>" + "".join(f"<tr><td>{key}</td><td>{value}</td></tr>" for key, value in cells) + "</table>"


def _markdown_rows(text: str) -> str:
    lines = text.strip("```markdown").strip("`").strip().split("\n")  # noqa: B005 - eats letters, as upstream
    written = []
    for line in [lines[0], *lines[2:]]:
        # A cell of blanks is one blank; a cell of tabs and the like is empty.
        cells = (each.strip() if each.strip(" ") else each[:1] for each in line.strip().split("|")[1:-1])
        written.append("".join(f"<td>{each}</td>" for each in cells))
    return "<table>" + "".join(f"<tr>{row}</tr>" for row in written) + "</table>"


def _page(markup: str) -> str:
    markup = markup if "<table" in markup else "<table>" + markup
    markup = markup if "</table>" in markup else markup + "</table>"
    markup = markup if "<body>" in markup else f"<body>{markup}</body>"
    return markup if "<html>" in markup else f"<html>{markup}</html>"


def _teds(prediction: str, reference: str) -> float:
    try:
        return teds(prediction, reference)
    except TedsError:
        return 0.0
