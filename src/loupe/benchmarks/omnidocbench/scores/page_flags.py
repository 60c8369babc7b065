"""The flags that a page raises; what they mean stands in flag_warnings.py. They change no score.

Protocol: docs/protocols/omnidocbench.md#modes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from loupe.benchmarks.omnidocbench.lint.damaged_forms import answer_faults
from loupe.benchmarks.omnidocbench.match.formulas.candidates import CURRENT
from loupe.benchmarks.omnidocbench.records import MatchedSample, PageMatch, Piece
from loupe.benchmarks.omnidocbench.scores.flag_warnings import CONVERTED_TEDS, GUARDS, LATEX_TEDS
from loupe.benchmarks.omnidocbench.scores.latex_table_html import latex_table_to_html
from loupe.benchmarks.omnidocbench.scores.page_scores import score_table
from loupe.benchmarks.omnidocbench.text.formula_normalization import normalize_formula
from loupe.benchmarks.omnidocbench.text.table_normalization import normalize_table
from loupe.benchmarks.omnidocbench.text.text_normalization import clean, formulas_beyond_limits, normalize_text
from loupe.metrics.teds.table_tree import TableTooLargeError

#: Reasons for which a piece of the prediction is never scored though it may be an invention.
_INVENTIONS = ("unmatched", "cell with more than text", "no table in the ground truth", "other table format")
#: The first piece that an ignored block has is what was asked for, any other is a repetition.
_IGNORED = ("taken by an ignored category", "matched to an ignored category")
_TAG = re.compile("<[^<>]*>")


def page_flags(match: PageMatch) -> dict[str, float]:
    """How often each flag is raised on a page; those that are not are left out."""
    facts = match.facts
    zeroed = [table for table in match.table if table.latex_zeroed and table.pieces]
    found = {
        "latex-table-zeroed": len(zeroed),
        LATEX_TEDS: sum(map(_teds_after_conversion, zeroed)),
        "latex-table-unread": _unread_tables(match),
        "table-on-tableless-page": sum(each.reason == "no table in the ground truth" for each in match.unscored),
        "unmatched-prediction": sum(_characters(piece) for piece in _inventions(match)),
        "index-shift": facts.shifted_blocks + facts.shifted_items,
        "doubled-truncation": len(facts.doubled_parts),
        "header-steals-line": len(facts.stolen_lines),
        "table-index-0": _places_lost(match),
        "latex-table-unconverted": facts.unconverted_tables,
        CONVERTED_TEDS: facts.converted_teds,
        "local-text-span": sum(text.step == "local span" for text in match.text_block),
        "formula-choice": len(match.display_formula) if facts.formula_choice not in ("", CURRENT) else 0,
        "would-time-out": int(facts.would_time_out),
        "match-given-up": int(facts.plain_assignment),
        "formula-as-text": len(match.formulas_as_text),
        "formula-beyond-limits": _beyond_limits(match),
        **{f"guard-{guard}": count for guard, count in (facts.guarded or {}).items() if guard in GUARDS},
        "rescued-formula": sum(facts.form.rescued.values()),
        "short-inline-dropped": facts.form.short_inline_dropped,
        "image-description": facts.form.image_descriptions,
        "upstream-error": int(bool(facts.upstream_error)),
        **answer_faults(facts.form),
    }
    return {name: float(count) for name, count in found.items() if count}


def _places_lost(match: PageMatch) -> int:
    """Tables matched with the first predicted one, where the reading order counts tables (1.6)."""
    if match.mended_order is None:
        return 0
    return sum(bool(table.pieces) and table.pred_position is None for table in match.table)


def _inventions(match: PageMatch) -> Iterator[Piece]:
    """Pieces that no score knows, and nobody asked for."""
    blocks = set()
    for each in match.unscored:
        if each.reason in _INVENTIONS or (each.reason in _IGNORED and each.anno_ids in blocks):
            yield each.piece
        elif each.reason in _IGNORED:
            blocks.add(each.anno_ids)


def _characters(piece: Piece) -> int:
    """How long a piece is in normal form, in which the samples are measured; of a table, the text of its cells."""
    content = piece.content
    if piece.category == "equation_isolated":
        return len(normalize_formula(content))
    if piece.category == "text_all":
        return len(normalize_text(content))
    table = latex_table_to_html(content) or content if piece.category == "latex_table" else content
    return len(clean(_TAG.sub(" ", table)))


def _unread_tables(match: PageMatch) -> int:
    """LaTeX tables that fixed mode took for HTML though it could not make any of them (`table_assignment`)."""
    pieces = [piece for table in match.table for piece in table.pieces] + [each.piece for each in match.unscored]
    return sum(piece.category == "html_table" and "<table" not in piece.content for piece in pieces)


def _beyond_limits(match: PageMatch) -> int:
    """Inline formulas of the answer that upstream turns into characters, and Loupe leaves as LaTeX."""
    if match.facts.guarded is not None:
        return match.facts.guarded.get("beyond limits", 0)
    samples = (*match.text_block, *match.display_formula, *match.formulas_as_text)
    pieces = [piece for sample in samples for piece in sample.pieces] + [each.piece for each in match.unscored]
    texts = {(piece.item, piece.content) for piece in pieces if piece.category == "text_all"}
    return sum(formulas_beyond_limits(text) for _, text in texts)


def _teds_after_conversion(zeroed: MatchedSample) -> float:
    """TEDS of a LaTeX table that upstream scores 0, had it been converted; 0 where that, too, is beyond all measure."""
    html = "".join(latex_table_to_html(piece.content) for piece in zeroed.pieces)
    try:
        return score_table(replace(zeroed, pred=html, norm_pred=normalize_table(html))).teds or 0.0
    except TableTooLargeError:
        return 0.0
