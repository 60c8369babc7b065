"""OmniDocBench, end to end: pages as Markdown; text, formulas, tables and reading order. Versions 1.5 and 1.6.

Data and official evaluator: opendatalab/OmniDocBench, as of 2025-12 (1.5, 1,355 pages) and 2026-06 (1.6, 1,651 pages).
Protocol: docs/benchmarks/omnidocbench.md. What the versions decide differently stands side by side in rules.py and in
figures.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from loupe.benchmarks.omnidocbench import figures
from loupe.benchmarks.omnidocbench.conclusion import conclude
from loupe.benchmarks.omnidocbench.dataset import (
    LAYOUT,
    Condition,
    DataLayout,
    annotated_elements,
    condition_folder,
    nothing_left,
    parse_selection,
    read_pages,
    reference_markdown,
    under_condition,
)
from loupe.benchmarks.omnidocbench.figures import RECKONING_1_6, RECKONINGS, Reckoning
from loupe.benchmarks.omnidocbench.lint import FAULTS
from loupe.benchmarks.omnidocbench.official_files import compare_run, page_from_oracle
from loupe.benchmarks.omnidocbench.page_flags import HIDDEN_MARKS, hidden_marks, rate_with_marks
from loupe.benchmarks.omnidocbench.records import MatchedSample, Mode, PageMatch, ReadingOrder
from loupe.benchmarks.omnidocbench.scored_pages import (
    ScoredPage,
    answer_names,
    as_read_from_its_file,
    image_name,
    to_details,
)
from loupe.benchmarks.shared.formula_images import Switch, cdm_tools, missing_tools, wants_cdm, with_cdm
from loupe.benchmarks.shared.latex_characters import need_pylatexenc
from loupe.data.extras import installed
from loupe.data.hub.store import default_root
from loupe.explanation import Explanation
from loupe.files.file_names import safe_name
from loupe.types import (
    UNREADABLE,
    AnswerLayout,
    Benchmark,
    DataSet,
    Measure,
    ParityCases,
    Prediction,
    Sample,
    SampleScores,
    Score,
    Scored,
    Values,
)

#: Where this differs from the official evaluator on purpose.
DEVIATIONS = (
    "no time limit: upstream matches a page differently after 30 s, so its scores depend on the machine",
    "a page on which upstream stops with an exception is scored and flagged",
    "a page too complex to match in full is matched by a simpler rule, unlike any official match, and flagged",
    "tables are parsed as by lxml 4.9.1, whatever lxml is installed; except that `<td.x>` does not end a cell here",
)

#: The same for version 1.6.
DEVIATIONS_V16 = (
    "no time limits: upstream matches a page otherwise once 300 or 420 s are over, so its scores depend on the machine",
    *DEVIATIONS[1:],
    "tables in LaTeX are not converted, as upstream leaves them where LaTeXML is not installed; "
    "latex_tables=latexml converts those whose commands are all known to be harmless",
)

#: The instructions of upstream's prompt for general models, in our words (docs/protocols/omnidocbench.md#prompt).
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
_matched: dict[tuple[str, str, Mode, str], PageMatch] = {}
_LARGEST_MEMORY = 512


def load(
    root: Path | None,
    mode: Mode = "parity",
    filter: str = "",
    cdm: Switch = "on",
    condition: Condition = "none",
) -> Iterator[Sample]:
    """Yield the pages in the order of the file; ids are the names of their images without the extension.

    `mode=fixed` mends the oddities of the official evaluator; its numbers have a name of their own. `filter` selects
    pages by their attributes, as `language=english;layout=double_column`. `cdm=off` leaves CDM out, and the overall
    score with it.
    `condition` takes the images of Real5-OmniDocBench that were captured under it, with the same ground truth.
    """
    folder = default_root("omnidocbench") if root is None else root
    pages = _pages(folder, mode, filter, cdm)
    if condition == "none":
        return pages
    images = condition_folder(folder, condition)
    return (under_condition(page, images, condition) for page in pages)


def load_v16(
    root: Path | None,
    filter: str = "",
    cdm: Switch = "on",
    latex_tables: Literal["kept", "latexml"] = "kept",
) -> Iterator[Sample]:
    """Yield the pages of version 1.6 as `load` does; there is no `mode=fixed` of it.

    `latex_tables=latexml` converts LaTeX tables of answers to HTML by LaTeXML, as upstream does where `latexmlc` is
    installed; the scores then depend on its version. Raises MissingToolError without it.
    """
    folder = default_root("omnidocbench@1.6") if root is None else root
    pages = _pages(folder, "parity", filter, cdm, replace(LAYOUT, benchmark="omnidocbench@1.6"))
    if latex_tables == "kept":
        return pages
    from loupe.benchmarks.omnidocbench.answer_tables import need_latexml

    need_latexml()
    return (replace(page, scoring={**page.scoring, "latex_tables": latex_tables}) for page in pages)


def _pages(folder: Path, mode: Mode, selected: str, cdm: Switch, layout: DataLayout = LAYOUT) -> Iterator[Sample]:
    need_pylatexenc()
    selection, left = parse_selection(selected), False
    for page in read_pages(folder, selection=selection, mode=mode, layout=layout):
        left = True
        yield with_cdm(page, cdm)
    if not left:
        raise nothing_left(folder, selection, layout)


def score(page: Sample, prediction: Prediction, version: str = "1.5") -> Scored:
    """Page averages of every element that the page has; `details` keep the match (docs/benchmarks/omnidocbench.md).

    In 1.5 a page without an answer has no scores, because upstream leaves it out of every average; its details are
    those of an empty answer. In 1.6 and in fixed mode it counts as one; and so does, in any, a file that is no text, on
    which upstream ends.
    """
    from loupe.benchmarks.omnidocbench.page_flags import page_flags

    mode: Mode = page.truth.get("mode", "parity")
    reckoning = RECKONINGS[version]
    markdown = as_read_from_its_file(prediction.text)
    rules = _rules_of(page, version)
    match = _matched.pop((page.id, markdown, mode, rules), None) or _match(page, markdown, mode, rules)
    if wants_cdm(page):
        match = figures.with_cdm(match, reckoning)
    info = page.truth["page_info"]
    unreadable = prediction.finish_reason == UNREADABLE
    missing = prediction.failed and not unreadable
    marks = hidden_marks(match.text_block) if reckoning.marks_beside else 0
    scored = ScoredPage(
        image=image_name(info["image_path"]),
        attributes=info["page_attribute"],
        match=match,
        answered=reckoning.missing_is_empty or mode == "fixed" or not missing,
        flags=page_flags(match)
        | ({"upstream-error": 1.0} if unreadable or _ends_at_its_name(info["image_path"], match, reckoning) else {})
        | ({HIDDEN_MARKS: float(marks)} if marks else {})
        | ({"missing-prediction": 1.0} if missing and reckoning.missing_is_empty else {}),
        annotated=annotated_elements(page.truth) if reckoning.unsampled_is_zero else None,
        cdm_computed=wants_cdm(page) and not missing_tools(reckoning.cdm_profile),
    )
    scores = _scores(scored, reckoning) if scored.answered else []
    return Scored(scores=scores + (_with_invented_text(scored) if mode == "fixed" else []), details=to_details(scored))


def _ends_at_its_name(image: str, match: PageMatch, reckoning: Reckoning) -> bool:
    """True if upstream ends because it looks for the page of a sample by a name that only these endings give (1.6)."""
    samples = match.text_block or match.display_formula or match.table or match.reading_order
    return reckoning.unsampled_is_zero and bool(samples) and not image.endswith((".jpg", ".png"))


def prepare(pairs: Sequence[tuple[Sample, Prediction]], version: str = "1.5") -> None:
    """Draw the formulas of these pages at once. Matches are kept for `score`, which needs them next."""
    _matched.clear()
    matches: list[PageMatch] = []
    for page, prediction in pairs[:_LARGEST_MEMORY]:
        mode: Mode = page.truth.get("mode", "parity")
        markdown = as_read_from_its_file(prediction.text)
        if wants_cdm(page):
            rules = _rules_of(page, version)
            match = _matched[page.id, markdown, mode, rules] = _match(page, markdown, mode, rules)
            matches.append(match)
    if matches:
        figures.prepare_pages(matches, RECKONINGS[version])


def _rules_of(page: Sample, version: str) -> str:
    """Return the name of the rules for the way from a page to its samples."""
    return f"{version}+latexml" if page.scoring.get("latex_tables") == "latexml" else version


def _match(page: Sample, markdown: str, mode: Mode, rules: str) -> PageMatch:
    from loupe.benchmarks.omnidocbench.page_match import match_page
    from loupe.benchmarks.omnidocbench.rules import VERSIONS

    return match_page(page.truth, markdown, mode=mode, rules=VERSIONS[rules])


def _scores(page: ScoredPage, reckoning: Reckoning) -> list[Score]:
    """One score per measure that the page has samples of."""
    match = page.match
    found = []
    if (text := _edits([*match.text_block, *match.formulas_as_text])) is not None:
        # Third count: a run without any text of its own has no formulas that count as text either (#samples).
        found.append(Score(measure="text_edit", counts=(text, 1.0, float(len(match.text_block)))))
    edits = {
        "formula_edit": _edits(match.display_formula),
        "table_edit": _edits(match.table),
        "reading_order_edit": _edits([match.reading_order] if match.reading_order else []),
    }
    if page.annotated is not None and (order := match.mended_order or match.reading_order):
        edits["reading_order_edit_mended"] = _edits([order])
    if reckoning.marks_beside:
        edits["text_edit_with_marks"] = _with_marks(match, reckoning)
    found += [Score(measure=name, counts=(value, 1.0)) for name, value in edits.items() if value is not None]
    if (cdm := figures.page_cdm(match)) is not None:
        found.append(Score(measure="formula_cdm", counts=(cdm, 1.0)))
    if match.table:
        teds = sum(table.teds or 0.0 for table in match.table) / len(match.table)
        structure = sum(table.teds_structure_only or 0.0 for table in match.table) / len(match.table)
        found += [Score(measure="table_teds", counts=(teds, 1.0))]
        found += [Score(measure="table_teds_struct", counts=(structure, 1.0))]
    return found + _zeros(page)


def _with_marks(match: PageMatch, reckoning: Reckoning) -> float | None:
    """The text edit distance with the marks that the official comparison drops."""
    from loupe.benchmarks.omnidocbench.rules import VERSIONS

    return rate_with_marks(match.text_block, VERSIONS[reckoning.name].latex_to_text)


def _zeros(page: ScoredPage) -> list[Score]:
    """Score 0 for annotated elements of which it has no sample (1.6)."""
    annotated = page.annotated or ()
    zero = ["table_teds", "table_teds_struct"] if "table" in annotated and not page.match.table else []
    if page.cdm_computed and "display_formula" in annotated and not page.match.display_formula:
        zero.append("formula_cdm")
    return [Score(measure=name, counts=(0.0, 1.0)) for name in zero]


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
    """Overall: the mean of what is right of the text, of CDM and of TEDS, each an average over pages (#aggregation).

    There is none where one of the three is missing; the notebook's 0 for missing tables is in `figures.headline` only.
    """
    return {"overall": ((1 - values["text_edit"]) + values["formula_cdm"] + values["table_teds"]) / 3}


def explain(page: Sample, scores: SampleScores, version: str = "1.5") -> Explanation | None:
    """Show which block of the page was compared with which piece of the answer, for the report."""
    from loupe.benchmarks.omnidocbench import match_explanation

    return match_explanation.explain(page, scores, RECKONINGS[version])


def answer_files(page: Sample) -> list[str]:
    """The files of a folder that may hold the answer to a page, as upstream tries them; last, Loupe's own name."""
    names = answer_names(image_name(page.truth["page_info"]["image_path"]))
    return list(dict.fromkeys([*names, f"{safe_name(page.id)}.md"]))


def _reference_text(page: Sample) -> str:
    return reference_markdown(page.truth)


def tools(version: str = "1.5") -> dict[str, str]:
    """Return the tools that scores depend on: the programs of CDM, the parsers of tables and of LaTeX."""
    latexml = {}
    if version == "1.6":
        from loupe.benchmarks.omnidocbench.answer_tables import latexml_version

        latexml["latexml"] = latexml_version()
    return cdm_tools(RECKONINGS[version].cdm_profile) | installed("lxml", "beautifulsoup4", "pylatexenc") | latexml


def verify_case(case: dict[str, Any], version: str = "1.5") -> list[tuple[float, float]]:
    """(ours, official) for one shipped parity case: every figure of a small run."""
    need_pylatexenc()
    return compare_run(case["input"], case["expected"], partial(score, version=version), RECKONINGS[version])


benchmark = Benchmark(
    title="OmniDocBench 1.5",
    version="1.5",
    task="markdown",
    paper="https://arxiv.org/abs/2412.07626",
    data=DataSet(
        repo="opendatalab/OmniDocBench",
        patterns=("OmniDocBench.json", "images/*"),
        licence="for research purposes only, not for commercial use",
        note="main may be a later version than 1.5 (1,355 pages): --revision chooses",
    ),
    parity=ParityCases(
        compare=verify_case, deviations=DEVIATIONS, oracles={"omnidocbench/gaps.jsonl": page_from_oracle}
    ),
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

#: Measures of 1.6 alone: its reading order is one of texts, formulas and tables, and knows no place of the first table;
#: and it is asked in more languages whose marks the text rules hide.
_MENDED_ORDER = Measure(
    name="reading_order_edit_mended",
    title="reading order with the first table (edit distance)",
    higher_is_better=False,
    unit="number",
    bounded=True,
)

_WITH_MARKS = Measure(
    name="text_edit_with_marks",
    title="text with vowel signs, tones, accents",
    higher_is_better=False,
    unit="number",
    bounded=True,
)

V1_6_BENCHMARK = replace(
    benchmark,
    title="OmniDocBench 1.6",
    version="1.6",
    data=DataSet(
        repo="opendatalab/OmniDocBench",
        patterns=("OmniDocBench.json", "images/*"),
        licence="for research purposes only, not for commercial use",
        note="1,651 pages; OmniDocBench.json of the version has 42,208,096 bytes; --revision chooses another",
    ),
    parity=ParityCases(
        compare=partial(verify_case, version="1.6"),
        deviations=DEVIATIONS_V16,
        oracles={"omnidocbench_v16/gaps.jsonl": page_from_oracle},
    ),
    published_total=1_651,
    measures=(*benchmark.measures[:-1], _MENDED_ORDER, _WITH_MARKS),
    conclude=partial(conclude, reckoning=RECKONING_1_6),
    explain=partial(explain, version="1.6"),
    prepare=partial(prepare, version="1.6"),
    tools=partial(tools, version="1.6"),
    load=load_v16,
    score=partial(score, version="1.6"),
)

#: `loupe run omnidocbench` is the first; the others are `omnidocbench@1.6` and so on.
versions = (benchmark, V1_6_BENCHMARK)
