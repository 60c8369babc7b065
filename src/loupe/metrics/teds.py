"""TEDS and TEDS-struct: how much alike two HTML tables are, as trees.

Source: Zhong, ShafieiBavani, Jimeno Yepes, ECCV 2020; the official evaluators as docs/metrics/teds.md describes them.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from loupe.metrics.table_normalization import normalize_like_request001, wrap_like_dpbench
from loupe.metrics.table_tree import TableTree, TedsError, Vocabulary, build_tree, parse_table

Variant = Literal["ibm", "omnidocbench", "table_recognition_metric", "dpbench", "request001"]
VARIANTS: Final[tuple[str, ...]] = get_args(Variant)
_PREPARATIONS: Final = {"dpbench": wrap_like_dpbench, "request001": normalize_like_request001}


def teds(prediction: str, reference: str, *, variant: Variant = "omnidocbench") -> float:
    """Similarity of structure and cell texts: 1 - edit distance / number of elements of the larger table.

    At most 1.0 (equal trees); can be below 0 and is not clamped, as upstream. 0.0 if either string is empty or holds
    no table that is a child of `body`: a bare `<table>` must be wrapped first. Symmetric. Variants differ in what
    they do to the strings before; docs/metrics/teds.md. Raises TedsError where the official evaluator raises,
    TableTooLargeError (one of these) where the work is not bounded by what one sample may take.

    >>> page = "<html><body><table><tr><td>{}</td></tr></table></body></html>"
    >>> teds(page.format("kitten"), page.format("sitting"))
    0.7857142857142857
    """
    trees = _parse_pair(prediction, reference, variant)
    return 0.0 if trees is None else _score(*trees, structure_only=False)


def teds_struct(prediction: str, reference: str, *, variant: Variant = "omnidocbench") -> float:
    """TEDS with all cells taken as empty: tags, nesting and spans alone. As `teds` in everything else."""
    trees = _parse_pair(prediction, reference, variant)
    return 0.0 if trees is None else _score(*trees, structure_only=True)


Trees = tuple[TableTree, TableTree, Vocabulary]


def _parse_pair(prediction: str, reference: str, variant: str) -> Trees | None:
    """Both tables as trees; None where the official evaluators give 0.0 without looking at trees."""
    if variant not in VARIANTS:
        raise ValueError(f"unknown TEDS variant {variant!r}; there are {', '.join(VARIANTS)}")
    prepare = _PREPARATIONS.get(variant)
    if prepare is not None:
        prediction, reference = prepare(prediction), prepare(reference)
    if not prediction or not reference:
        return None
    tables = parse_table(prediction), parse_table(reference)
    if tables[0] is None or tables[1] is None:
        return None
    vocabulary = Vocabulary()
    return build_tree(tables[0], vocabulary), build_tree(tables[1], vocabulary), vocabulary


def _score(prediction: TableTree, reference: TableTree, vocabulary: Vocabulary, *, structure_only: bool) -> float:
    elements = max(prediction.elements, reference.elements)
    if elements == 0:
        raise TedsError("both tables are empty", upstream="ZeroDivisionError")
    from loupe.metrics.tree_distance import tree_savings  # loads numpy

    savings = tree_savings(prediction, reference, vocabulary.texts, structure_only=structure_only)
    return 1.0 - (len(prediction) + len(reference) - savings) / elements
