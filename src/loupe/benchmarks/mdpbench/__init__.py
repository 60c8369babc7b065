"""MDPBench: pages in 17 languages as Markdown, each document digital and photographed.

Data and official evaluator: Yuliang-Liu/MultimodalOCR, folder MDPBench, as of 2026-04; arXiv 2603.28130.
Protocol: docs/protocols/mdpbench.md. It is OmniDocBench 1.5 with a score of its own, so the match is that benchmark's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from loupe.benchmarks.mdpbench.conclusion import FLAGS, RECKONING, conclude
from loupe.benchmarks.mdpbench.data import LAYOUT, answers_in_folder, read_images, read_slim
from loupe.benchmarks.mdpbench.final_score import MEASURES, from_details, to_details
from loupe.benchmarks.mdpbench.scoring import compare_run, image_scores, match_image, run_from_oracle, scored_image
from loupe.benchmarks.omnidocbench import figures
from loupe.benchmarks.omnidocbench.dataset import nothing_left, parse_selection, reference_markdown
from loupe.benchmarks.omnidocbench.lint import FAULTS
from loupe.benchmarks.omnidocbench.records import PageMatch
from loupe.benchmarks.omnidocbench.scored_pages import as_read_from_its_file
from loupe.benchmarks.shared.answer_texts import answers_of, join_answers
from loupe.benchmarks.shared.formula_images import Switch, cdm_tools, wants_cdm, with_cdm
from loupe.benchmarks.shared.latex_characters import need_pylatexenc
from loupe.data.extras import installed
from loupe.data.hub.store import default_root
from loupe.explanation import Explanation
from loupe.types import (
    UNREADABLE,
    AnswerLayout,
    Benchmark,
    DataSet,
    ParityCases,
    Prediction,
    Sample,
    SampleScores,
    Scored,
)

#: Where this differs from the official evaluator on purpose.
DEVIATIONS = (
    "no time limit: upstream matches a page otherwise once 30 s are over, so its scores depend on the machine",
    "a page on which upstream ends its run with an exception is scored all the same, and flagged",
    "a page whose match is beyond all measure is assigned plainly, as no official match is, and flagged",
    "CDM is seeded; upstream's is not with scikit-image 0.23 and newer, so its CDM is not reproducible there",
    "several files for one image are read in the order of their names, not in that of the folder",
    "without CDM there is no overall score, where upstream goes on with text and tables alone",
    "measures are made of each image alone: samples that the suffix rule files under another existing page count there "
    "in the official figures only",
)

#: The seven rules of upstream's prompt for general models, in our words (docs/protocols/mdpbench.md#prompt).
PROMPT = """\
Transcribe the page in this image. It may hold text in any language, and mathematics.

1. Write the text exactly as it stands there, in its own language: translate, summarise and correct nothing.
2. Write every mathematical expression in LaTeX.
3. A formula within a line stands between single dollar signs: $x$.
4. A formula on lines of its own stands between double dollar signs: $$x$$.
5. Show the structure of the page in Markdown: headings, paragraphs, lists.
6. Write tables as HTML, with <table>, <tr>, <th> and <td>.
7. Answer with the transcript only, without any word before or after it."""

#: Images that have been matched to find their formulas, until they are scored.
_matched: dict[tuple[str, tuple[str, ...]], list[PageMatch]] = {}
_LARGEST_MEMORY = 512


def load(root: Path | None, filter: str = "", slim: Switch = "off", cdm: Switch = "on") -> Iterator[Sample]:
    """Yield the images in the order of the ground truth; ids are their names without the ending.

    `filter` selects pages by their attributes, as `language=Arabic`. `slim=on`: the ground truth of a digital page
    serves all images whose names begin with its own. `cdm=off` leaves CDM out, and the overall score with it.
    """
    need_pylatexenc()
    folder = default_root("mdpbench") if root is None else root
    selection, left = parse_selection(filter), False
    for image in (read_slim if slim == "on" else read_images)(folder, selection):
        left = True
        yield with_cdm(image, cdm)
    if not left:
        raise nothing_left(folder, selection, LAYOUT)


def score(page: Sample, prediction: Prediction) -> Scored:
    """The scores of an image's pages; `details` keep their match (docs/benchmarks/mdpbench.md).

    An image without an answer has no scores, because upstream leaves it out of every average; its details are those of
    an empty answer. A file that is no text, on which upstream ends, counts as an empty answer.
    """
    answers = _answers(prediction)
    matches = _matched.pop((page.id, answers), None) or match_image(page, answers)
    if wants_cdm(page):
        matches = [figures.with_cdm(match, RECKONING) for match in matches]
    unreadable = prediction.finish_reason == UNREADABLE or None in answers_of(prediction)
    image = scored_image(page, matches, answered=not prediction.failed or unreadable, unreadable=unreadable)
    return Scored(scores=image_scores(image) if image.pages[0].answered else [], details=to_details(image))


def prepare(pairs: Sequence[tuple[Sample, Prediction]]) -> None:
    """Draw the formulas of these images at once. Matches are kept for `score`, which needs them next."""
    _matched.clear()
    found: list[PageMatch] = []
    for page, prediction in pairs[:_LARGEST_MEMORY]:
        if wants_cdm(page):
            answers = _answers(prediction)
            matches = _matched[page.id, answers] = match_image(page, answers)
            found += matches
    if found:
        figures.prepare_pages(found, RECKONING)


def _answers(prediction: Prediction) -> tuple[str, ...]:
    return tuple(as_read_from_its_file(text or "") for text in answers_of(prediction))


def explain(page: Sample, scores: SampleScores) -> Explanation | None:
    """Show which block of the page was compared with which piece of the answer, for the report; of
    several answers the first.

    None where no match is stored.
    """
    from loupe.benchmarks.omnidocbench.match_explanation import explain_match

    pages = from_details(scores)
    return explain_match(page, pages[0], RECKONING, FLAGS) if pages else None


def _reference_text(page: Sample) -> str:
    return reference_markdown(page.truth)


def tools() -> dict[str, str]:
    """Return the tools that scores depend on: the programs of CDM, the parsers of tables and of LaTeX."""
    return cdm_tools(RECKONING.cdm_profile) | installed("lxml", "beautifulsoup4", "pylatexenc")


def verify_case(case: dict[str, Any]) -> list[tuple[float, float]]:
    """(ours, official) for one shipped parity case: every figure of a small run."""
    need_pylatexenc()
    return compare_run(case["input"], case["expected"])


benchmark = Benchmark(
    title="MDPBench",
    version="public",
    task="markdown",
    paper="https://arxiv.org/abs/2603.28130",
    data=DataSet(
        repo="Delores-Lin/MDPBench",
        patterns=("MDPBench_public.json", "MDPBench_img_public/*"),
        licence="unknown: read the page of the data set",
        note="the public part; names from the evaluator",
    ),
    parity=ParityCases(compare=verify_case, deviations=DEVIATIONS, oracles={"mdpbench/runs.jsonl": run_from_oracle}),
    prompt=PROMPT,
    measures=MEASURES,
    headline="overall",
    conclude=conclude,
    explain=explain,
    faults=FAULTS,
    prepare=prepare,
    tools=tools,
    load=load,
    answers=AnswerLayout(in_folder=answers_in_folder, join=join_answers),
    score=score,
    reference=_reference_text,
    max_tokens=16384,
    suffix=".md",
)
