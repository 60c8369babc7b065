"""Tables in version 1.6: all formats in one list, held against each other in normal form.

Protocol: docs/protocols/omnidocbench_v16.md#tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from loupe.benchmarks.omnidocbench.match.distances import distance_matrix
from loupe.benchmarks.omnidocbench.match.table_assignment import (
    TableAssignment,
    in_html,
    left_over,
    matched_table,
    refusals,
    unmatched_table,
)
from loupe.benchmarks.omnidocbench.records import Block, Item, Mode, PredictedItem
from loupe.metrics.assignment import assign

if TYPE_CHECKING:
    from loupe.benchmarks.omnidocbench.rules import Rules


def assign_table_lines(blocks: Sequence[Block], items: Sequence[Item], mode: Mode, rules: Rules) -> TableAssignment:
    """Assign predicted tables, those in LaTeX behind the others; nothing of what is left goes into another match.

    As upstream without its converter: a table in LaTeX is never assigned. `mode="fixed"` converts it.
    """
    html = [PredictedItem(index, item) for index, item in enumerate(items) if item.category == "html_table"]
    latex = [PredictedItem(index, item) for index, item in enumerate(items) if item.category == "latex_table"]
    if mode == "fixed":
        html, latex = [*html, *(PredictedItem(source.index, in_html(source.item)) for source in latex)], []
    sources = [*html, *latex]
    if not blocks:
        return TableAssignment(unscored=left_over(sources, "no table in the ground truth"))
    truth = [(block, norm) for block in blocks if (norm := _line(block.html, rules))]
    predicted = [(source, norm) for source in html if (norm := _line(source.item.content, rules))]
    if not truth:
        # Upstream then looks up the first predicted table, converted ones included.
        error = "" if predicted else "IndexError"
        return TableAssignment(unscored=left_over(sources, "unmatched"), upstream_error=error)
    distances = distance_matrix([norm for _, norm in truth], [norm for _, norm in predicted])
    column_of = dict(zip(*(side.tolist() for side in assign(distances)), strict=True))
    samples = []
    for row, (block, _) in enumerate(truth):
        sample = unmatched_table(row, block, looked_up=blocks[row], rules=rules)
        if row in column_of:
            column = column_of[row]
            sample = matched_table(
                sample,
                column,
                predicted[column][0],
                looked_up=sources[column] if column else None,
                distance=float(distances[row, column]),
                rules=rules,
            )
        samples.append(sample)
    matched = {id(predicted[column][0]) for column in column_of.values()}
    return TableAssignment(
        samples=samples,
        unscored=left_over([source for source in sources if id(source) not in matched], "unmatched"),
        upstream_error=next(refusals(samples), ""),
    )


def _line(table: str, rules: Rules) -> str:
    """What is compared of a table: its normal form; of what is none, the string itself."""
    return rules.normalize_table(table) if "<table" in table.lower() else table
