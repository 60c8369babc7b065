"""What in an answer's form the official extraction damages (flags of section 14); it changes no score."""

from __future__ import annotations

from itertools import pairwise

from loupe.benchmarks.omnidoc.bar_tables import stretches_of_bars
from loupe.benchmarks.omnidoc.formulas import take_formulas
from loupe.benchmarks.omnidoc.html_tables import take_html_tables
from loupe.benchmarks.omnidoc.latex_tables import take_latex_tables
from loupe.benchmarks.omnidoc.preparation import prepare


def answer_faults(markdown: str) -> dict[str, int]:
    """How often each fault occurs; what does not occur is left out."""
    text = prepare(markdown)
    for take in (take_latex_tables, take_html_tables):
        _, text = take(text)
    formulas, rest = take_formulas(text)
    inline = [text[item.start : item.end] for item in formulas if item.fine_category]
    found = {
        "dollar-prose": sum("\n\n" in formula for formula in inline),
        "single-newline": int(_has_single_newlines_only(markdown)),
        **_bar_faults(rest + "\n"),
    }
    return {name: count for name, count in found.items() if count}


def _has_single_newlines_only(markdown: str) -> bool:
    """Several lines and no empty one: every line becomes a block of its own (4, step 11)."""
    text = markdown.strip()
    return "\n" in text and "\n\n" not in text


def _bar_faults(text: str) -> dict[str, int]:
    """What the conversion of Markdown tables loses (4.1)."""
    stretches = [text[piece.start : piece.end] for piece in stretches_of_bars(text)]
    if len(stretches) < 2:
        return {}
    lines = text.split("\n")
    above = [line for line, below in pairwise(lines) if line.strip() and "|" not in line and _is_row(below)]
    cells = [cell for line in lines if _is_row(line) and not _is_rule(line) for cell in line.split("|")[1:-1]]
    return {
        "md-table-cells-lost": sum(":" in cell or "---" in cell for cell in cells),
        "line-above-table-lost": len(above),
        "stray-bar": sum(any("|" not in line for line in each.strip().split("\n")) for each in stretches),
    }


def _is_row(line: str) -> bool:
    line = line.strip()
    return len(line) > 1 and line.startswith("|") and line.endswith("|")


def _is_rule(line: str) -> bool:
    """The row of hyphens under a header."""
    return not line.strip().strip("|:- \t").replace("|", "").strip(":- \t")
