"""What a reader of an official number must know of how it came about (section 14): counts and page names, no scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from loupe.benchmarks.omnidoc.answer_faults import answer_faults
from loupe.benchmarks.omnidoc.records import PageMatch
from loupe.benchmarks.omnidoc.scored_pages import ScoredPage

#: Pages named in one warning; `scores.jsonl` names them all.
NAMED = 5
#: Reasons for which a piece of the prediction is never scored though it may be an invention.
_INVENTIONS = ("unmatched", "no table in the ground truth", "other table format")


@dataclass(frozen=True, slots=True)
class Flag:
    """What is counted under a name, and what it means; `{n}` is the count."""

    name: str
    text: str


FLAGS = (
    Flag("latex-table-zeroed", "{n} LaTeX tables score 0, as upstream never converts them"),
    Flag("table-on-tableless-page", "{n} predicted tables stand on pages without ground-truth tables and cost nothing"),
    Flag("unmatched-prediction", "{n} predicted characters match nothing and cost nothing (invented, repeated)"),
    Flag("index-shift", "{n} blocks normalise to nothing, so upstream looks up attributes and positions shifted"),
    Flag("doubled-truncation", "{n} ground-truth blocks stand twice in a joined text, so no transcript reaches 0"),
    Flag("md-table-cells-lost", "{n} cells of Markdown tables are lost in upstream's conversion (a colon, hyphens)"),
    Flag("line-above-table-lost", "{n} lines directly above a Markdown table are lost"),
    Flag("stray-bar", "{n} times prose between bars is taken for a table row"),
    Flag("dollar-prose", "{n} dollar signs make a formula out of the prose between two paragraphs"),
    Flag("header-steals-line", "{n} counted blocks lost their best line to a header, caption or the like"),
    Flag("single-newline", "{n} answers have no empty line, so each of their lines is a block"),
    Flag("would-time-out", "{n} pages may reach upstream's limit of 30 s, and then score otherwise there"),
    Flag("formula-as-text", "{n} formulas were matched to text and are scored as text"),
    Flag("upstream-error", "{n} pages end upstream's whole run with an exception"),
)


def page_flags(match: PageMatch, markdown: str) -> dict[str, float]:
    """How often each flag is raised on a page; those that are not are left out."""
    facts = match.facts
    found = {
        "latex-table-zeroed": sum(table.latex_zeroed for table in match.table),
        "table-on-tableless-page": sum(each.reason == "no table in the ground truth" for each in match.unscored),
        "unmatched-prediction": sum(len(each.piece.content) for each in match.unscored if each.reason in _INVENTIONS),
        "index-shift": facts.shifted_blocks + facts.shifted_items,
        "doubled-truncation": len(facts.doubled_parts),
        "header-steals-line": len(facts.stolen_lines),
        "would-time-out": int(facts.would_time_out),
        "formula-as-text": len(match.formulas_as_text),
        "upstream-error": int(bool(facts.upstream_error)),
        **answer_faults(markdown),
    }
    return {name: float(count) for name, count in found.items() if count}


def flag_warnings(pages: Sequence[ScoredPage]) -> list[str]:
    """One line for each flag that is raised anywhere, the pages with most of it first."""
    found = []
    for flag in FLAGS:
        counts = {page.stem: page.flags[flag.name] for page in pages if flag.name in page.flags}
        if counts:
            text = flag.text.replace("{n}", f"{sum(counts.values()):,.0f}")
            found.append(f"{flag.name}: {text}; {_named(counts)}")
    return found


def _named(counts: Mapping[str, float]) -> str:
    names = sorted(counts, key=lambda name: (-counts[name], name))
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return f"{len(names):,} page{'s' if len(names) > 1 else ''}: {', '.join(names[:NAMED])}{more}"
