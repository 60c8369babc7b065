"""TEDS and TEDS-struct: how much alike two HTML tables are, as trees.

Source: Zhong, ShafieiBavani, Jimeno Yepes, ECCV 2020; the official evaluators as docs/metrics/teds.md describes them.
"""

from __future__ import annotations

from loupe.metrics.teds.pair import VARIANTS, TableComparison, Variant, parse_pair

__all__ = ["VARIANTS", "TableComparison", "Variant", "compare_tables", "teds", "teds_struct"]


def teds(prediction: str, reference: str, *, variant: Variant = "omnidocbench") -> float:
    """Similarity of structure and cell texts: 1 - edit distance / number of elements of the larger table.

    At most 1.0 (equal trees); can be below 0 and is not clamped, as upstream. 0.0 if either string is empty or holds
    no table that is a child of `body`, as officially: wrap a bare one first, f"<html><body>{table}</body></html>"
    (`variant="dpbench"` does so itself). Symmetric. Variants differ in what they do to the strings before, and in
    the divisor; docs/metrics/teds.md. Raises TedsError where the official evaluator raises, its subclass
    TableTooLargeError where comparing would take more work than one sample may.

    >>> page = "<html><body><table><tr><td>{}</td></tr></table></body></html>"
    >>> round(teds(page.format("kitten"), page.format("sitting")), 12)
    0.785714285714
    """
    pair = parse_pair(prediction, reference, variant)
    return 0.0 if isinstance(pair, str) else pair.score(structure_only=False)


def teds_struct(prediction: str, reference: str, *, variant: Variant = "omnidocbench") -> float:
    """TEDS with all cells taken as empty: tags, nesting and spans alone. As `teds` in everything else."""
    pair = parse_pair(prediction, reference, variant)
    return 0.0 if isinstance(pair, str) else pair.score(structure_only=True)


def compare_tables(prediction: str, reference: str, *, variant: Variant = "omnidocbench") -> TableComparison:
    """Both scores from one parse, and what is wrong with the prediction. Raises as `teds`.

    >>> page = "<html><body><table><tr><td>{}</td></tr></table></body></html>"
    >>> comparison = compare_tables(page.format("kitten"), page.format("sitting"))
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
