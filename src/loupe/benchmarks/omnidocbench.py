"""OmniDocBench 1.5, end to end: 1,355 pages as Markdown; text, formulas, tables and reading order.

Data and official evaluator: opendatalab/OmniDocBench, as of 2025-12. Protocol: docs/benchmarks/omnidocbench.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from loupe.benchmarks.formula_images.cdm_options import Switch, renderer_of, with_cdm
from loupe.benchmarks.formula_images.cdm_scores import cdm_tools
from loupe.benchmarks.omnidoc import formula_cdm
from loupe.benchmarks.omnidoc.conclusion import conclude
from loupe.benchmarks.omnidoc.dataset import nothing_left, parse_selection, read_pages, reference_markdown
from loupe.benchmarks.omnidoc.latex_macros import need_pylatexenc
from loupe.benchmarks.omnidoc.lint import FAULTS
from loupe.benchmarks.omnidoc.prediction_files import answer_names, image_name
from loupe.benchmarks.omnidoc.records import MatchedSample, Mode, PageMatch, ReadingOrder
from loupe.benchmarks.omnidoc.scored_pages import ScoredPage, to_details
from loupe.data.extras import installed, need
from loupe.data.store import default_root
from loupe.explanation import Explanation
from loupe.files.names import safe_name
from loupe.metrics.cdm.pairs import Renderer
from loupe.types import (
    UNREADABLE,
    AnswerLayout,
    Benchmark,
    Measure,
    Prediction,
    Sample,
    SampleScores,
    Score,
    Scored,
    Values,
)

#: Where this differs from the official evaluator on purpose.
DEVIATIONS = (
    "no time limit: upstream matches a page otherwise once 30 s are over, so its scores depend on the machine",
    "a page on which upstream ends its run with an exception is scored all the same, and flagged",
    "a page whose match is beyond all measure is assigned plainly, as no official match is, and flagged",
    "tables are read as lxml 4.9.1 reads them, with any lxml; but `<td.x>` does not end a cell, as it does there",
)

#: The instructions of upstream's prompt for general models, in our words (section 12).
PROMPT = """\
Convert the page in this image to Markdown.

1. Text: write down all text as it stands there, without guessing or completing anything. Keep headings, paragraphs \
and lists as Markdown.
2. Formulas: write them in LaTeX, within a line as \\( ... \\), on a line of their own as \\[ ... \\].
3. Tables: write them as HTML, each from <table> to </table>.
4. Figures: leave them out; do not describe them.
5. Output: separate the elements by empty lines and keep the structure and order of the page.

Answer with the Markdown only, without explanations or comments."""

#: Pages that have been matched to find their formulas, until they are scored.
_matched: dict[tuple[str, str, Mode], PageMatch] = {}
_LARGEST_MEMORY = 512


def load(
    root: Path | None, mode: Mode = "parity", filter: str = "", cdm: Switch = "on", renderer: Renderer = "layout"
) -> Iterator[Sample]:
    """Yield the pages in the order of the file; ids are the names of their images without the extension.

    `mode=fixed` mends the oddities of the official evaluator; its numbers have a name of their own. `filter` selects
    pages by their attributes, as `language=english;layout=double_column`. `cdm=off` leaves CDM out, and the overall
    score with it; `renderer=ghostscript` draws its formulas as the official programs do, exact and slower.
    """
    _need_tools()
    folder = default_root("omnidocbench") if root is None else root
    selection, left = parse_selection(filter), False
    for page in read_pages(folder, selection=selection, mode=mode):
        left = True
        yield with_cdm(page, cdm, renderer)
    if not left:
        raise nothing_left(folder, selection)


def _need_tools() -> None:
    """Raise MissingToolError unless all is installed, pylatexenc in the official version: others give other scores."""
    need("bs4", "lxml", "scipy", extra="omnidocbench", purpose="OmniDocBench")
    need_pylatexenc()


def score(page: Sample, prediction: Prediction) -> Scored:
    """Page averages of every element that the page has; `details` keep the match (docs/benchmarks/omnidocbench.md).

    A page without an answer has no scores, because upstream leaves it out of every average; its details are those of
    an empty answer. In fixed mode it counts as one; and so does, in either, a file that is no text, on which upstream
    ends.
    """
    from loupe.benchmarks.omnidoc.flags import page_flags

    mode: Mode = page.truth.get("mode", "parity")
    markdown = as_read_from_its_file(prediction.text)
    match = _matched.pop((page.id, markdown, mode), None) or _match(page, markdown, mode)
    if renderer := renderer_of(page):
        match = formula_cdm.with_cdm(match, renderer)
    info = page.truth["page_info"]
    unreadable = prediction.finish_reason == UNREADABLE
    scored = ScoredPage(
        image=image_name(info["image_path"]),
        attributes=info["page_attribute"],
        match=match,
        answered=mode == "fixed" or not prediction.failed or unreadable,
        flags=page_flags(match) | ({"upstream-error": 1.0} if unreadable else {}),
    )
    scores = _scores(scored) if scored.answered else []
    return Scored(scores=scores + (_with_invented_text(scored) if mode == "fixed" else []), details=to_details(scored))


def prepare(pairs: Sequence[tuple[Sample, Prediction]]) -> None:
    """Draw the formulas of these pages at once. Matches are kept for `score`, which needs them next."""
    _matched.clear()
    by_renderer: dict[Renderer, list[PageMatch]] = {}
    for page, prediction in pairs[:_LARGEST_MEMORY]:
        mode: Mode = page.truth.get("mode", "parity")
        markdown = as_read_from_its_file(prediction.text)
        if renderer := renderer_of(page):
            match = _matched[page.id, markdown, mode] = _match(page, markdown, mode)
            by_renderer.setdefault(renderer, []).append(match)
    for name, matches in by_renderer.items():
        formula_cdm.prepare_pages(matches, name)


def _match(page: Sample, markdown: str, mode: Mode) -> PageMatch:
    from loupe.benchmarks.omnidoc.page_match import match_page

    return match_page(page.truth, markdown, mode=mode)


def as_read_from_its_file(answer: str) -> str:
    """The answer as upstream gets it: written as UTF-8, which has no lone surrogates, and read in text mode (2)."""
    if not answer.isascii():
        answer = answer.encode("utf-8", "replace").decode("utf-8")
    return answer.replace("\r\n", "\n").replace("\r", "\n")


def _scores(page: ScoredPage) -> list[Score]:
    """One score per measure that the page has samples of."""
    match = page.match
    found = []
    if (text := _edits([*match.text_block, *match.formulas_as_text])) is not None:
        # Third count: a run without any text of its own has no formulas that count as text either (9).
        found.append(Score(measure="text_edit", counts=(text, 1.0, float(len(match.text_block)))))
    edits = {
        "formula_edit": _edits(match.display_formula),
        "table_edit": _edits(match.table),
        "reading_order_edit": _edits([match.reading_order] if match.reading_order else []),
    }
    found += [Score(measure=name, counts=(value, 1.0)) for name, value in edits.items() if value is not None]
    if (cdm := formula_cdm.page_cdm(match)) is not None:
        found.append(Score(measure="formula_cdm", counts=(cdm, 1.0)))
    if match.table:
        teds = sum(table.teds or 0.0 for table in match.table) / len(match.table)
        structure = sum(table.teds_structure_only or 0.0 for table in match.table) / len(match.table)
        found += [Score(measure="table_teds", counts=(teds, 1.0))]
        found += [Score(measure="table_teds_struct", counts=(structure, 1.0))]
    return found


def _edits(samples: Sequence[MatchedSample | ReadingOrder]) -> float | None:
    """Edits over lengths, both summed within the page; None where there is nothing to compare."""
    length = sum(sample.upper_len for sample in samples)
    return sum(sample.edit_num for sample in samples) / length if length else None


def _with_invented_text(page: ScoredPage) -> list[Score]:
    """Fixed mode only: the text edit distance with everything that matches nothing counted as inserted."""
    texts = [*page.match.text_block, *page.match.formulas_as_text]
    invented = page.flags.get("unmatched-prediction", 0.0)
    length = sum(sample.upper_len for sample in texts) + invented
    if not length:
        return []
    edits = sum(sample.edit_num for sample in texts) + invented
    return [Score(measure="text_edit_with_invented", counts=(edits / length, 1.0))]


def _mean_if_any_text(sums: Any) -> Any:
    return np.where(sums[..., 2] > 0, sums[..., 0] / sums[..., 1], np.nan)


def summarize(values: Values) -> Values:
    """Overall: the mean of what is right of the text, of CDM and of TEDS, each an average over pages (11).

    There is none where one of the three is missing; the notebook's 0 for missing tables is in `figures.headline` only.
    """
    return {"overall": ((1 - values["text_edit"]) + values["formula_cdm"] + values["table_teds"]) / 3}


def explain(page: Sample, scores: SampleScores) -> Explanation | None:
    """Which block of the page was held against which piece of the answer, for the report."""
    from loupe.benchmarks.omnidoc import explanation

    return explanation.explain(page, scores)


def answer_files(page: Sample) -> list[str]:
    """The files of a folder that may hold the answer to a page, as upstream tries them; last, Loupe's own name."""
    names = answer_names(image_name(page.truth["page_info"]["image_path"]))
    return list(dict.fromkeys([*names, f"{safe_name(page.id)}.md"]))


def _reference_text(page: Sample) -> str:
    return reference_markdown(page.truth)


def tools() -> dict[str, str]:
    """What scores depend on: the programs of CDM, the parsers of tables and of LaTeX."""
    return cdm_tools(formula_cdm.PROFILE) | installed("lxml", "beautifulsoup4", "scipy", "pylatexenc")


def verify_case(case: dict[str, Any]) -> list[tuple[float, float]]:
    """(ours, official) for one shipped parity case: every figure of a small run."""
    from loupe.benchmarks.omnidoc.parity_cases import compare_run

    _need_tools()
    return compare_run(case["input"], case["expected"], score)


benchmark = Benchmark(
    title="OmniDocBench 1.5",
    version="1.5",
    task="markdown",
    paper="https://arxiv.org/abs/2412.07626",
    hub="opendatalab/OmniDocBench",
    published_total=1_355,
    prompt=PROMPT,
    measures=(
        Measure(name="overall", title="overall (text, CDM, TEDS)"),
        Measure(
            name="text_edit",
            title="text (edit distance)",
            higher_is_better=False,
            unit="number",
            bounded=True,
            value=_mean_if_any_text,
        ),
        Measure(
            name="formula_edit", title="formulas (edit distance)", higher_is_better=False, unit="number", bounded=True
        ),
        Measure(name="formula_cdm", title="formulas (CDM)"),
        Measure(name="table_teds", title="tables (TEDS)"),
        Measure(name="table_teds_struct", title="table structure (TEDS-S)"),
        Measure(name="table_edit", title="tables (edit distance)", higher_is_better=False, unit="number", bounded=True),
        Measure(
            name="reading_order_edit",
            title="reading order (edit distance)",
            higher_is_better=False,
            unit="number",
            bounded=True,
        ),
        Measure(
            name="text_edit_with_invented",
            title="text with invented text as insertions (fixed mode)",
            higher_is_better=False,
            unit="number",
        ),
    ),
    headline="overall",
    summarize=summarize,
    conclude=conclude,
    explain=explain,
    faults=FAULTS,
    prepare=prepare,
    tools=tools,
    load=load,
    answers=AnswerLayout(file_names=answer_files),
    score=score,
    reference=_reference_text,
    max_tokens=16384,
    suffix=".md",
)
