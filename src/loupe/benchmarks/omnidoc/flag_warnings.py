"""What a reader of an official number must know of how it came about (section 14): counts and page names, no scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loupe.benchmarks.omnidoc.scored_pages import ScoredPage

#: No flag of the protocol: what the zeroed LaTeX tables are worth after a conversion.
LATEX_TEDS = "latex-table-converted"


@dataclass(frozen=True, slots=True)
class Flag:
    """A name, and what is counted under it."""

    name: str
    counted: str


FLAGS = (
    Flag("latex-table-zeroed", "LaTeX tables that score 0, as upstream never converts them"),
    Flag("latex-table-unread", "LaTeX tables that fixed mode cannot convert and scores as they stand"),
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
    Flag("would-time-out", "pages that may reach upstream's limit of 30 s, and then score otherwise there"),
    Flag(
        "match-given-up",
        "pages whose official match Loupe did not compute, as it is beyond all measure: their scores are not official",
    ),
    Flag("formula-as-text", "formulas matched to text"),
    Flag(
        "formula-beyond-limits",
        "inline formulas too long or too deep to convert, left as LaTeX; upstream converts them",
    ),
    Flag("upstream-error", "pages that end upstream's whole run with an exception, or keep it from ending"),
)


def flag_warnings(pages: Sequence[ScoredPage]) -> list[str]:
    """One line for each flag that is raised anywhere, the pages with most of it first."""
    found = []
    for flag in FLAGS:
        counts = {page.stem: page.flags[flag.name] for page in pages if flag.name in page.flags}
        if counts:
            total = sum(counts.values())
            counted = flag.counted + (_formulas_as_text(pages) if flag.name == "formula-as-text" else "")
            line = f"{flag.name}: {counted}: {total:,.0f} on {_named(counts)}"
            found.append(line + (_after_conversion(pages, total) if flag.name == "latex-table-zeroed" else ""))
    return found


def _formulas_as_text(pages: Sequence[ScoredPage]) -> str:
    """What becomes of them is decided over the whole run (9)."""
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
