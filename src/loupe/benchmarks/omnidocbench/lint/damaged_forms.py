"""Parts of an answer that the official extraction damages because of their form; no score changes.

Flags: docs/protocols/omnidocbench.md#modes.
"""

from __future__ import annotations

from loupe.benchmarks.omnidocbench.records import FormFacts


def answer_faults(form: FormFacts) -> dict[str, int]:
    """How often each fault occurs; what does not occur is left out."""
    found = {
        "dollar-prose": form.formulas_over_paragraphs,
        "single-newline": int(form.split_by_lines and form.text_blocks > 1),
        "md-table-cells-lost": form.table_cells_lost,
        "line-above-table-lost": form.lines_above_tables_lost,
        "stray-bar": form.stray_bars,
    }
    return {name: count for name, count in found.items() if count}
