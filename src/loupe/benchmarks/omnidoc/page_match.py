"""One page, matched and scored: from its ground truth and its Markdown to samples (sections 4 to 10).

A straight line, as upstream's `quick_match` goes, without its 30 s limit (8.7): no clock decides anything here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from loupe.benchmarks.omnidoc.array_split import no_order_to_split, split_block_arrays, split_item_arrays
from loupe.benchmarks.omnidoc.extraction import by_category, read_answer
from loupe.benchmarks.omnidoc.ground_truth import FORMULA, IGNORED, TEXTS, read_ground_truth
from loupe.benchmarks.omnidoc.line_match import match_lines
from loupe.benchmarks.omnidoc.lines import predicted_lines, shifted, truth_lines
from loupe.benchmarks.omnidoc.page_scores import score_edits, score_reading_order, score_table
from loupe.benchmarks.omnidoc.records import Item, Mode, PageFacts, PageMatch, PredictedItem
from loupe.benchmarks.omnidoc.samples import as_text, end_of_upstream, is_formula_as_text, sample_of
from loupe.benchmarks.omnidoc.table_assignment import assign_tables
from loupe.benchmarks.omnidoc.unscored import unscored_items, unscored_lines
from loupe.benchmarks.omnidoc.upstream_time import MAY_TIME_OUT
from loupe.benchmarks.omnidoc.work import Work

_TABLES: Final = ("html_table", "latex_table")
_SCORED_TEXTS: Final = tuple(category for category in TEXTS if category not in IGNORED)


def match_page(page: Mapping[str, Any], markdown: str, *, mode: Mode = "parity") -> PageMatch:
    """All samples of one page, scored, how they came about, and what is in none of them."""
    ground_truth = read_ground_truth(page, mode)
    extraction = read_answer(markdown)
    items = extraction.items
    tables = assign_tables(ground_truth.tables(), items, mode)
    sources = split_item_arrays(_in_match_order([*_mixed(items), *tables.cells]))
    blocks = ground_truth.mixed()
    truth = truth_lines(split_block_arrays(blocks), mode)
    predicted = predicted_lines(sources, mode)
    match = match_lines(truth, predicted, Work())
    samples = [score_edits(sample_of(group, truth, predicted)) for group in match.groups]
    texts = tuple(sample for sample in samples if sample.gt_category_type in _SCORED_TEXTS)
    formulas = [sample for sample in samples if sample.gt_category_type == FORMULA]
    formulas_as_text = [sample for sample in formulas if is_formula_as_text(sample)]
    return PageMatch(
        text_block=texts,
        display_formula=tuple(sample for sample in formulas if not is_formula_as_text(sample)),
        table=tuple(map(score_table, tables.samples)),
        reading_order=score_reading_order(texts),
        formulas_as_text=tuple(score_edits(as_text(sample)) for sample in formulas_as_text),
        unscored=(*unscored_items(sources, predicted), *unscored_lines(truth, predicted, match), *tables.unscored),
        facts=PageFacts(
            shifted_blocks=shifted(truth),
            shifted_items=shifted(predicted),
            doubled_parts=ground_truth.doubled_parts,
            stolen_lines=match.stolen,
            upstream_seconds=match.upstream_seconds,
            would_time_out=match.upstream_seconds is not None and match.upstream_seconds >= MAY_TIME_OUT,
            plain_assignment=match.plain,
            upstream_error=ground_truth.upstream_error
            or tables.upstream_error
            or ("TypeError" if no_order_to_split(blocks) else "")
            or next(filter(None, map(end_of_upstream, formulas_as_text)), ""),
            form=extraction.form,
        ),
    )


def _mixed(items: Sequence[Item]) -> list[PredictedItem]:
    """All items but tables, category by category."""
    index_of = {id(item): index for index, item in enumerate(items)}
    return [
        PredictedItem(index_of[id(item)], item)
        for category, group in by_category(items).items()
        if category not in _TABLES
        for item in group
    ]


def _in_match_order(sources: Sequence[PredictedItem]) -> list[PredictedItem]:
    """By place, and inline formulas last: all of these are in a text, too (8.1)."""
    return sorted(sources, key=lambda source: (source.item.fine_category == "equation_inline", source.item.start))
