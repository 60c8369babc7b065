"""Warnings beside the official numbers, from the flags of pages: counts and page names; no score changes.

Protocol: docs/protocols/omnidocbench.md#modes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loupe.benchmarks.omnidocbench.scores.marked_edits import HIDDEN_MARKS
from loupe.benchmarks.omnidocbench.scores.scored_pages import ScoredPage

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
    """What a figure would be without the oddity, for the flags that tell."""
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
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _formulas_as_text(pages: Sequence[ScoredPage]) -> str:
    """What becomes of them is decided over the whole run (#samples)."""
    if any(page.match.text_block for page in pages):
        return ", and scored as text"
    return " and in no figure at all, as upstream drops them from a run without any text of its own"


def _after_conversion(pages: Sequence[ScoredPage], tables: float) -> str:
    converted = sum(page.flags.get(LATEX_TEDS, 0.0) for page in pages)
    return f"; converted to HTML, their mean TEDS would be {100 * converted / tables:.1f} %"


def _named(counts: Mapping[str, float]) -> str:
    """How many pages, and the one with most of it; `scores.jsonl` and the report name them all."""
    most = min(counts, key=lambda name: (-counts[name], name))
    return f"1 page ({most})" if len(counts) == 1 else f"{len(counts):,} pages (most on {most})"
