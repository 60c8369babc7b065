"""One page, matched and scored: from its ground truth and its Markdown to samples (docs/protocols/omnidocbench.md).

A straight line, as upstream's `quick_match` goes, without its 30 s limit (#time-limit): no clock decides anything here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from loupe.benchmarks.omnidocbench.answer_formulas import RESCUED
from loupe.benchmarks.omnidocbench.extraction import by_category
from loupe.benchmarks.omnidocbench.line_match import (
    in_match_order,
    match_lines,
    sample_of,
    unscored_items,
    unscored_lines,
)
from loupe.benchmarks.omnidocbench.lines import predicted_lines, shifted, truth_lines
from loupe.benchmarks.omnidocbench.page_elements import MixedMatch
from loupe.benchmarks.omnidocbench.records import (
    Block,
    Item,
    MatchedSample,
    Mode,
    PageFacts,
    PageMatch,
    PredictedItem,
    ReadingOrder,
    Work,
)
from loupe.benchmarks.omnidocbench.rules import V1_5, Rules
from loupe.benchmarks.omnidocbench.scored_pages import score_edits, score_reading_order, score_table

#: Tables have a match of their own, and what may be a formula stands in a text, too.
_NOT_MIXED: Final = ("html_table", "latex_table", RESCUED)


def match_page(page: Mapping[str, Any], markdown: str, *, mode: Mode = "parity", rules: Rules = V1_5) -> PageMatch:
    """All samples of one page, scored, how they came about, and what is in none of them."""
    ground_truth = rules.read_ground_truth(page, mode)
    extraction = rules.read_answer(markdown)
    items, work = extraction.items, Work()
    tables = rules.assign_tables(ground_truth.tables(), items, mode, rules)
    whole = in_match_order([*_mixed(items), *tables.cells])
    sources = rules.split_items(whole)
    blocks = ground_truth.mixed()
    truth = truth_lines(rules.split_blocks(blocks), mode, rules)
    predicted = predicted_lines(sources, mode, rules)
    match = match_lines(truth, predicted, work, rules)
    samples, ignored = (
        [sample_of(group, truth, predicted, rules) for group in groups] for groups in (match.groups, match.ignored)
    )
    mixed = MixedMatch(
        ground_truth=ground_truth,
        items=items,
        sources=whole,
        predicted=predicted,
        samples=samples,
        ignored=ignored,
        work=work,
    )
    elements = rules.elements_of(mixed, rules)
    texts, formulas = (tuple(map(score_edits, each)) for each in (elements.texts, elements.formulas))
    scored_tables = tuple(map(score_table, tables.samples))
    ordered = (*texts, *formulas, *scored_tables) if rules.orders_all else texts
    return PageMatch(
        text_block=texts,
        display_formula=formulas,
        table=scored_tables,
        reading_order=score_reading_order(ordered),
        mended_order=_mended_order(ordered),
        formulas_as_text=tuple(map(score_edits, elements.formulas_as_text)),
        unscored=(
            *unscored_items(sources, predicted),
            *unscored_lines(truth, predicted, match, elements.scored_lines),
            *tables.unscored,
        ),
        facts=PageFacts(
            shifted_blocks=shifted(truth),
            shifted_items=shifted(predicted),
            doubled_parts=ground_truth.doubled_parts,
            stolen_lines=match.stolen,
            upstream_seconds=match.upstream_seconds,
            would_time_out=match.upstream_seconds is not None and match.upstream_seconds >= rules.may_time_out,
            plain_assignment=match.plain or elements.given_up,
            upstream_error=ground_truth.upstream_error
            or tables.upstream_error
            or ("TypeError" if rules.no_order_to_split(blocks) else "")
            or elements.upstream_error,
            form=extraction.form,
            formula_choice=elements.formula_choice,
            guarded=_guarded(items, rules),
            **_conversion(ground_truth.tables(), items, rules),
        ),
    )


def _guarded(items: Sequence[Item], rules: Rules) -> Mapping[str, int] | None:
    """Count the inline formulas of an answer that each guard kept (1.6)."""
    if rules.guards is None:
        return None
    return Counter(guard for item in items if item.category == "text_all" for guard in rules.guards(item.content))


def _conversion(blocks: Sequence[Block], items: Sequence[Item], rules: Rules) -> dict[str, Any]:
    """Return what predicted tables in LaTeX would be worth that nobody converts (1.6)."""
    unconverted = sum(item.category == "latex_table" for item in items)
    if not blocks or not unconverted or not rules.orders_all:
        return {}
    converted = rules.assign_tables(blocks, items, "fixed", rules)
    return {
        "unconverted_tables": unconverted,
        "converted_teds": sum(score_table(sample).teds or 0.0 for sample in converted.samples),
    }


def _mended_order(ordered: Sequence[MatchedSample]) -> ReadingOrder | None:
    """The order as it would be if the place of the first predicted table were known; None where that is the same."""
    mended = [
        replace(sample, pred_position=sample.pieces[0].start) if _lost_its_place(sample) else sample
        for sample in ordered
    ]
    return score_reading_order(mended) if mended != list(ordered) else None


def _lost_its_place(sample: MatchedSample) -> bool:
    return bool(sample.step == "table" and sample.pieces and sample.pred_position is None)


def _mixed(items: Sequence[Item]) -> list[PredictedItem]:
    """All items that are matched together, category by category."""
    index_of = {id(item): index for index, item in enumerate(items)}
    return [
        PredictedItem(index_of[id(item)], item)
        for category, group in by_category(items).items()
        if category not in _NOT_MIXED
        for item in group
    ]
