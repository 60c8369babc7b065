r"""From a page's Markdown to items as in OmniDocBench 1.6: the line of 1.5, and what is rescued and dropped beside it.

Protocol: docs/protocols/omnidocbench_v16.md#extraction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from loupe.benchmarks.omnidocbench.extract.bar_tables import take_bar_tables
from loupe.benchmarks.omnidocbench.extract.extraction import Extraction
from loupe.benchmarks.omnidocbench.extract.formula_rescue import rescue_candidate
from loupe.benchmarks.omnidocbench.extract.formulas import take_formulas
from loupe.benchmarks.omnidocbench.extract.html_fragments import without_html_blocks
from loupe.benchmarks.omnidocbench.extract.html_tables import take_html_tables
from loupe.benchmarks.omnidocbench.extract.image_descriptions import without_formulas_in_descriptions
from loupe.benchmarks.omnidocbench.extract.latex_tables import take_latex_tables
from loupe.benchmarks.omnidocbench.extract.margin_text import with_margins_apart
from loupe.benchmarks.omnidocbench.extract.preparation import (
    images,
    shorten_runs,
    without_fence_marks,
    without_page_tags,
)
from loupe.benchmarks.omnidocbench.extract.short_inline_formulas import is_dropped
from loupe.benchmarks.omnidocbench.extract.table_cell_formulas import formulas_in_cells
from loupe.benchmarks.omnidocbench.extract.text_blocks import (
    is_split_by_lines,
    take_code_blocks,
    text_pieces,
    unwrap_headings,
)
from loupe.benchmarks.omnidocbench.lint.bar_losses import bar_losses
from loupe.benchmarks.omnidocbench.records import FormFacts, Item
from loupe.benchmarks.omnidocbench.text.delimiters import blank

_RESCUES = ("image_formula", "table_formula_rescue", "text_formula")


def read_answer_rescuing(markdown: str, convert_table: Callable[[str], str] | None = None) -> Extraction:
    """Take an answer apart; `convert_table` returns a LaTeX table as HTML, or "" to leave it as it is."""
    rescued, markdown = _take_images(markdown)
    text = without_page_tags(shorten_runs(without_fence_marks(markdown)))
    text, descriptions = without_formulas_in_descriptions(text)
    latex_tables, text = take_latex_tables(text)
    latex_tables = [_as_html(table, convert_table) for table in latex_tables]
    html_tables, text = take_html_tables(text)
    formulas, rest = take_formulas(text)
    inline = [text[item.start : item.end] for item in formulas if item.fine_category]
    bar_tables, left = take_bar_tables(rest)
    losses = bar_losses(rest, bar_tables)
    code, left = take_code_blocks(left)
    left = unwrap_headings(left)
    texts = _texts(left)
    items = [
        *(*rescued, *latex_tables, *html_tables, *formulas_in_cells(html_tables)),
        *(part for formula in formulas for part in with_margins_apart(formula)),
        *(*bar_tables, *formulas_in_cells(bar_tables), *code, *texts),
    ]
    kept = [item for item in items if not is_dropped(item)]
    form = FormFacts(
        formulas_over_paragraphs=sum("\n\n" in formula for formula in inline),
        table_cells_lost=losses.cells,
        lines_above_tables_lost=losses.lines_above,
        stray_bars=losses.stray,
        split_by_lines=is_split_by_lines(left),
        text_blocks=sum(item.category == "text_all" for item in texts),
        rescued=Counter(item.fine_category for item in items if item.fine_category in _RESCUES),
        short_inline_dropped=len(items) - len(kept),
        image_descriptions=descriptions,
    )
    return Extraction(items=sorted(kept, key=lambda item: item.start), form=form)


def _as_html(table: Item, convert: Callable[[str], str] | None) -> Item:
    html = convert(table.content) if convert else ""
    if html:
        return replace(table, category="html_table", fine_category="latex2html_table", content=html)
    return replace(table, fine_category="latex_table")


def _take_images(markdown: str) -> tuple[list[Item], str]:
    """The formulas that stand for images, and the text with blanks in the places of all images."""
    found = images(markdown)
    candidates = [
        rescue_candidate(image.alt.strip(), start=image.start, end=image.end, fine_category="image_formula")
        for image in found
    ]
    return [item for item in candidates if item], blank(markdown, [(image.start, image.end) for image in found])


def _texts(text: str) -> list[Item]:
    """The paragraphs, each with the formula that it may be behind it."""
    items: list[Item] = []
    for start, end, inside in text_pieces(text):
        piece = without_html_blocks(inside)
        if not piece:
            continue
        items.append(Item(category="text_all", content=piece, start=start, end=end, fine_category="text_block"))
        if rescued := rescue_candidate(piece, start=start, end=end, fine_category="text_formula"):
            items.append(rescued)
    return items
