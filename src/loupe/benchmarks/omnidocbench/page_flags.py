"""Flag pages where an official score needs an explanation, and turn the flags into warnings. No score changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from loupe.benchmarks.omnidocbench.answer_tables import latex_table_to_html
from loupe.benchmarks.omnidocbench.formula_candidates import CURRENT
from loupe.benchmarks.omnidocbench.formula_normalization import normalize_formula
from loupe.benchmarks.omnidocbench.records import FormFacts, MatchedSample, PageMatch, Piece
from loupe.benchmarks.omnidocbench.scored_pages import ScoredPage, score_table, scored_texts
from loupe.benchmarks.omnidocbench.text_normalization import (
    Convert,
    clean,
    formulas_beyond_limits,
    has_marks,
    is_mark,
    normalize_table,
    normalize_text,
    with_marks,
)
from loupe.metrics import levenshtein_distance
from loupe.metrics.teds.table_tree import TableTooLargeError
from loupe.quantities import percent
from loupe.types import SampleScores

#: Reasons for which a piece of the prediction is never scored though it may be an invention.
_INVENTIONS = ("unmatched", "cell with more than text", "no table in the ground truth", "other table format")
#: The first piece that an ignored block has is what was asked for, any other is a repetition.
_IGNORED = ("taken by an ignored category", "matched to an ignored category")
_TAG = re.compile("<[^<>]*>")


def page_flags(match: PageMatch) -> dict[str, float]:
    """Count how often each flag is raised on a page; those that are not are left out."""
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
    """Return the length of a piece in normal form, in which the samples are measured; of a table, the text of its
    cells.
    """
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


#: Guards of version 1.6 that keep inline formulas from being converted: each has a flag `guard-…`.
GUARDS = ("noise", "weak", "bad")
#: No flag of the protocol: what the zeroed LaTeX tables are worth after a conversion.
LATEX_TEDS = "latex-table-converted"
CONVERTED_TEDS = "latex-tables-converted"


@dataclass(frozen=True, slots=True)
class Flag:
    """A name, and what is counted under it."""

    name: str
    counted: str


#: The flag of pages whose texts have such marks.
HIDDEN_MARKS: Final = "hidden-marks"


FLAGS = (
    Flag(HIDDEN_MARKS, "vowel signs, tones and combining accents that the official text rules do not compare"),
    Flag("latex-table-zeroed", "LaTeX tables that score 0, as upstream never converts them"),
    Flag("latex-table-unread", "LaTeX tables that fixed mode cannot convert and scores as they stand"),
    Flag("missing-prediction", "pages without a prediction, scored as empty answers"),
    Flag("latex-table-unconverted", "LaTeX tables left out, as upstream does without LaTeXML"),
    Flag("table-index-0", "tables without a place in the reading order, being matched with the first predicted one"),
    Flag("table-on-tableless-page", "predicted tables on pages without ground-truth tables, which cost nothing"),
    Flag("unmatched-prediction", "predicted characters (as compared) that cost nothing, being invented or repeated"),
    Flag(
        "index-shift", "blocks with the place and attributes of a neighbour, as one before them normalises to nothing"
    ),
    Flag("doubled-truncation", "ground-truth blocks that stand twice in a joined text, so no transcript is faultless"),
    Flag("md-table-cells-lost", "cells of Markdown tables lost in upstream's conversion (a colon, hyphens)"),
    Flag("line-above-table-lost", "lines directly above a Markdown table, lost in the conversion"),
    Flag("stray-bar", "stretches of prose between bars, taken for table rows"),
    Flag("dollar-prose", "formulas made of the prose between the dollar signs of two paragraphs"),
    Flag("header-steals-line", "counted blocks whose best line went to a header, caption or the like"),
    Flag("single-newline", "answers without an empty line, of which every line is a block"),
    Flag("would-time-out", "pages that may reach upstream's time limit, and then score otherwise there"),
    Flag(
        "match-given-up",
        "pages whose official match Loupe did not compute, as it is beyond all measure: their scores are not official",
    ),
    Flag("formula-as-text", "formulas matched to text"),
    Flag("formula-choice", "formulas on pages where another way to pair them did better than the match of everything"),
    Flag("rescued-formula", "formulas found in images, table cells and texts that do not mark them as such"),
    Flag("short-inline-dropped", "short inline formulas that are no formulas of their own"),
    Flag("image-description", "descriptions of pictures whose formulas count as text"),
    Flag("guard-noise", "inline formulas taken for prose, which lose their dollars and stay LaTeX"),
    Flag("guard-weak", "inline formulas with too little LaTeX in them, which stay as they are"),
    Flag("guard-bad", "inline formulas whose braces or environments do not fit, which stay LaTeX"),
    Flag("local-text-span", "texts scored with neighbouring pieces, as what they were matched with fits badly"),
    Flag(
        "formula-beyond-limits",
        "inline formulas too long or too deep to convert, left as LaTeX; upstream converts them",
    ),
    Flag("upstream-error", "pages that end upstream's whole run with an exception, or keep it from ending"),
)


def flag_warnings(pages: Sequence[ScoredPage], flags: Sequence[Flag] = FLAGS) -> list[str]:
    """One line for each flag that is raised anywhere, the pages with most of it first."""
    found = []
    for flag in flags:
        counts = {page.stem: page.flags[flag.name] for page in pages if flag.name in page.flags}
        if counts:
            total = sum(counts.values())
            counted = flag.counted + (_formulas_as_text(pages) if flag.name == "formula-as-text" else "")
            line = f"{flag.name}: {counted}: {total:,.0f} on {_named(counts)}"
            found.append(line + _beside(flag.name, pages, total))
    return found


def _beside(flag: str, pages: Sequence[ScoredPage], total: float) -> str:
    """Return what a figure would be without the oddity, for the flags that tell."""
    flagged = [page for page in pages if flag in page.flags]
    if flag == "latex-table-zeroed":
        return _after_conversion(pages, total)
    if flag == "latex-table-unconverted":
        return _with_converted_tables(flagged)
    return _with_the_first_table(flagged) if flag == "table-index-0" else ""


def _with_converted_tables(flagged: Sequence[ScoredPage]) -> str:
    tables = [table for page in flagged for table in page.match.table]
    official = _percent(sum(table.teds or 0.0 for table in tables), len(tables))
    converted = _percent(sum(page.flags.get(CONVERTED_TEDS, 0.0) for page in flagged), len(tables))
    return f"; converted, the mean TEDS of their pages would be {converted} (official {official})"


def _with_the_first_table(flagged: Sequence[ScoredPage]) -> str:
    pairs = [(page.match.reading_order, page.match.mended_order) for page in flagged]
    official = sum(order.edit for order, _ in pairs if order) / len(pairs)
    mended = sum(order.edit for _, order in pairs if order) / len(pairs)
    return f"; with them, the edit distance of the order on these pages would be {mended:.3f} (official {official:.3f})"


def _percent(part: float, whole: float) -> str:
    return percent(part / whole) if whole else "–"


def _formulas_as_text(pages: Sequence[ScoredPage]) -> str:
    """Describe formulas matched with text; the whole run decides what becomes of them (#samples)."""
    if any(page.match.text_block for page in pages):
        return ", and scored as text"
    return " and in no figure at all, as upstream drops them from a run without any text of its own"


def _after_conversion(pages: Sequence[ScoredPage], tables: float) -> str:
    converted = sum(page.flags.get(LATEX_TEDS, 0.0) for page in pages)
    return f"; converted to HTML, their mean TEDS would be {percent(converted / tables)}"


def _named(counts: Mapping[str, float]) -> str:
    """Say how many pages, and the one with most of it; `scores.jsonl` and the report name them all."""
    most = min(counts, key=lambda name: (-counts[name], name))
    return f"1 page ({most})" if len(counts) == 1 else f"{len(counts):,} pages (most on {most})"


def answer_faults(form: FormFacts) -> dict[str, int]:
    """Count how often each fault occurs; what does not occur is left out."""
    found = {
        "dollar-prose": form.formulas_over_paragraphs,
        "single-newline": int(form.split_by_lines and form.text_blocks > 1),
        "md-table-cells-lost": form.table_cells_lost,
        "line-above-table-lost": form.lines_above_tables_lost,
        "stray-bar": form.stray_bars,
    }
    return {name: count for name, count in found.items() if count}


def rate_with_marks(samples: Iterable[MatchedSample], convert: Convert) -> float | None:
    """Edits over lengths of matched texts, the official ones but for the marks; None where all are empty.

    `convert` makes inline formulas characters, as the version of the evaluator does (`Rules.latex_to_text`).
    """
    edits = length = 0
    for sample in samples:
        if not (has_marks(sample.pred) or has_marks(sample.gt)):
            edits, length = edits + sample.edit_num, length + sample.upper_len
            continue
        prediction, reference = scored_texts(sample)
        prediction = with_marks(sample.pred, prediction, convert)
        reference = with_marks(sample.gt, reference, convert)
        edits += levenshtein_distance(prediction, reference)
        length += max(len(prediction), len(reference))
    return edits / length if length else None


def hidden_marks(samples: Iterable[MatchedSample]) -> int:
    """Count the marks of the reference texts that the official rules do not compare."""
    return sum(sum(map(is_mark, sample.gt)) for sample in samples if has_marks(sample.gt))


def beside_the_score(rows: Sequence[SampleScores]) -> str:
    """The end of the flag's warning: the text edit distance with the marks, and the official one."""
    values: dict[str, list[float]] = {"text_edit_with_marks": [], "text_edit": []}
    for row in rows:
        for score in row.scores:
            if score.measure in values:
                values[score.measure].append(score.counts[0])
    marked, official = (sum(found) / len(found) if found else 0.0 for found in values.values())
    return f"; with them, the text edit distance is {marked:.4f} (official {official:.4f})"
