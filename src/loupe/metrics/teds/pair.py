"""Two HTML strings as the pair of table trees that TEDS compares, and their score.

Source: the official evaluators as docs/metrics/teds.md describes them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from loupe.metrics.table_normalization import normalize_to_plain_cells, wrap_like_dpbench
from loupe.metrics.teds.plain_tables import build_plain_tree, is_plain
from loupe.metrics.teds.table_tree import TableTree, TedsError, Vocabulary, build_tree, parse_table

if TYPE_CHECKING:
    from lxml.etree import _Element

Variant = Literal[
    "ibm",
    "omnidocbench",
    "table_recognition_metric",
    "table_recognition_metric@0.0.6",
    "dpbench",
    "normalized",
]
VARIANTS: Final[tuple[str, ...]] = get_args(Variant)
#: It divides by the nodes of its trees: the table itself counts, tags inside cells do not.
_BY_NODES: Final = "table_recognition_metric@0.0.6"
_PREPARATIONS: Final = {"dpbench": wrap_like_dpbench, "normalized": normalize_to_plain_cells}


class TablePair(NamedTuple):
    """Both trees, made with one vocabulary."""

    prediction: TableTree
    reference: TableTree

    @property
    def elements(self) -> int:
        """What distances are divided by. Raises TedsError where both tables are empty."""
        elements = max(self.prediction.elements, self.reference.elements)
        if elements == 0:
            raise TedsError("both tables are empty", upstream="ZeroDivisionError")
        return elements

    def score(self, *, structure_only: bool) -> float:
        """TEDS, or TEDS-struct. Raises TedsError."""
        elements = self.elements
        from loupe.metrics.teds.tree_distance import tree_savings  # loads numpy

        texts = self.prediction.vocabulary.texts
        savings = tree_savings(self.prediction, self.reference, texts, structure_only=structure_only)
        return 1.0 - (len(self.prediction) + len(self.reference) - savings) / elements


def parse_pair(prediction: str, reference: str, variant: str) -> TablePair | str:
    """Both tables as trees; or, where the official evaluators give 0.0 without looking at trees, the reason.

    Raises TedsError where they raise.
    """
    if variant not in VARIANTS:
        raise ValueError(f"unknown TEDS variant {variant!r}; there are {', '.join(VARIANTS)}")
    prepare = _PREPARATIONS.get(variant)
    if prepare is not None:
        prediction, reference = prepare(prediction), prepare(reference)
    if not prediction or not reference:
        return f"the {'reference' if prediction else 'prediction'} is empty"
    tables = _read(prediction), _read(reference)
    if tables[0] is None or tables[1] is None:
        return f"the {'prediction' if tables[0] is None else 'reference'} holds no table that is a child of body"
    vocabulary = Vocabulary()
    trees = [_tree(table, vocabulary) for table in tables if table is not None]
    if variant == _BY_NODES:
        trees = [replace(tree, elements=len(tree)) for tree in trees]
    return TablePair(*trees)


def _read(html: str) -> str | _Element | None:
    """The page as it is, if it is plain; else its table, parsed."""
    return html if is_plain(html) else parse_table(html)


def _tree(table: str | _Element, vocabulary: Vocabulary) -> TableTree:
    return build_plain_tree(table, vocabulary) if isinstance(table, str) else build_tree(table, vocabulary)
