"""TEDS and TEDS-struct: how much alike two HTML tables are, as trees.

Source: Zhong, ShafieiBavani, Jimeno Yepes, ECCV 2020; the official evaluators as docs/metrics/teds.md describes them.
"""

from __future__ import annotations

from loupe.metrics.teds.pair import VARIANTS, TableComparison, Variant, parse_pair

__all__ = ["VARIANTS", "TableComparison", "Variant", "compare_tables", "teds", "teds_struct"]


def teds(prediction: str, reference: str, *, variant: Variant = "html") -> float:
    """Return TEDS, the similarity of two HTML tables: 1 − tree edit distance / elements of the larger table.

    At most 1.0 (equal), higher is better, symmetric; can be below 0 and is not clamped. Reads the first `<table>` of
    each text, also with other markup or prose around it. A prediction without a table: 0.0. Deleting or inserting an
    element costs 1, another tag or span 1, another text of a cell the edit distance / longer length. `compare_tables`
    shows what differs.

    For an official evaluator's number, name it: `variant` "ibm", "omnidocbench", "table_recognition_metric",
    "table_recognition_metric@0.0.6", "dpbench", or "normalized" (docs/metrics/teds.md). They ignore the texts of `th`,
    and give 0.0 unless the table is a child of `body`. Raises TedsError (a ValueError) for a reference without a table,
    or as the official evaluator does; its subclass TableTooLargeError if comparing takes too much work. Source: Zhong,
    ShafieiBavani, Jimeno Yepes, ECCV 2020.

    >>> teds("<table><tr><td>kitten</td></tr></table>", "<table><tr><td>kitten</td></tr></table>")
    1.0
    >>> round(teds("<table><tr><td>kitten</td></tr></table>", "<table><tr><td>sitting</td></tr></table>"), 3)
    0.786
    """
    pair = parse_pair(prediction, reference, variant)
    return 0.0 if isinstance(pair, str) else pair.score(structure_only=False)


def teds_struct(prediction: str, reference: str, *, variant: Variant = "html") -> float:
    """Return TEDS with all cells taken as empty (TEDS-S): tags, nesting and spans alone. As `teds` in everything else.

    >>> teds_struct("<table><tr><td>kitten</td></tr></table>", "<table><tr><td>sitting</td></tr></table>")
    1.0
    """
    pair = parse_pair(prediction, reference, variant)
    return 0.0 if isinstance(pair, str) else pair.score(structure_only=True)


def compare_tables(prediction: str, reference: str, *, variant: Variant = "html") -> TableComparison:
    """Compare two HTML tables: `teds` and `teds_struct` from one parse, and `changes`, what is wrong where.

    Each change has a `kind` ("missing", "extra", "tag", "span" or "text"), a `cost`, and its place in both tables.
    `problem` says why there is nothing to compare. Raises as `teds`.

    >>> comparison = compare_tables(
    ...     "<table><tr><td>kitten</td></tr></table>", "<table><tr><td>sitting</td></tr></table>"
    ... )
    >>> round(comparison.teds, 3), comparison.teds_struct
    (0.786, 1.0)
    >>> [(change.kind, change.reference.row, change.reference.cell) for change in comparison.changes]
    [('text', 0, 0)]
    """
    pair = parse_pair(prediction, reference, variant)
    if isinstance(pair, str):
        return TableComparison(teds=0.0, teds_struct=0.0, problem=pair)
    return TableComparison(
        teds=pair.score(structure_only=False),
        teds_struct=pair.score(structure_only=True),
        elements=pair.elements,
        pair=pair,
    )
