"""Compare two HTML strings as table trees: the score of TEDS, and the changes that a best mapping makes.

Source: the official evaluators as docs/metrics/teds.md describes them. The costs of the changes add up to the distance
in TEDS, and are split into structure and text.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from loupe.metrics.arguments import check_texts
from loupe.metrics.table_normalization import normalize_to_plain_cells, wrap_like_dpbench
from loupe.metrics.teds.table_tree import (
    TableTree,
    TedsError,
    Vocabulary,
    build_plain_tree,
    build_tree,
    first_table,
    is_plain,
    parse_table,
)

if TYPE_CHECKING:
    from lxml.etree import _Element


Variant = Literal[
    "html",
    "ibm",
    "omnidocbench",
    "table_recognition_metric",
    "table_recognition_metric@0.0.6",
    "dpbench",
    "normalized",
]
VARIANTS: Final[tuple[str, ...]] = get_args(Variant)
#: No official evaluator's: it reads any HTML, takes its first table, and compares the texts of header cells too.
_ANY_HTML: Final = "html"
#: It divides by the nodes of its trees: the table itself counts, tags inside cells do not.
_BY_NODES: Final = "table_recognition_metric@0.0.6"
_PREPARATIONS: Final = {"dpbench": wrap_like_dpbench, "normalized": normalize_to_plain_cells}


class TablePair(NamedTuple):
    """Both trees, made with one vocabulary."""

    prediction: TableTree
    reference: TableTree

    @property
    def elements(self) -> int:
        """The number by which distances are divided. Raises TedsError if both tables are empty."""
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
    """Return both tables as trees; or the reason, if the score is 0.0 without looking at trees.

    Raises TedsError where the official evaluators raise, and for `html` if the reference has no table.
    """
    check_texts(prediction=prediction, reference=reference)
    if variant not in VARIANTS:
        raise ValueError(f"unknown TEDS variant {variant!r}; there are {', '.join(VARIANTS)}")
    if variant == _ANY_HTML:
        return _parse_any_html(prediction, reference)
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


def _parse_any_html(prediction: str, reference: str) -> TablePair | str:
    vocabulary = Vocabulary()
    wanted = first_table(reference, vocabulary)
    if wanted is None:
        raise TedsError("the reference has no table: it must be HTML with a <table>", upstream="")
    found = first_table(prediction, vocabulary)
    return "the prediction has no <table>" if found is None else TablePair(found, wanted)


def _read(html: str) -> str | _Element | None:
    """The page as it is, if it is plain; else its table, parsed."""
    return html if is_plain(html) else parse_table(html)


def _tree(table: str | _Element, vocabulary: Vocabulary) -> TableTree:
    return build_plain_tree(table, vocabulary) if isinstance(table, str) else build_tree(table, vocabulary)


Kind = Literal["missing", "extra", "tag", "span", "text"]


class Place(NamedTuple):
    """One element of a table. `row` counts `tr` from 0, `cell` the children of that row; -1 outside of rows.

    Spans and text are those of cells (officially only `td`); other elements have 0 and "".
    """

    tag: str
    row: int
    cell: int
    colspan: int
    rowspan: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One edit of a best mapping.

    `missing`: only the reference has it. `extra`: only the prediction has it. `tag`, `span`, `text`: both have it, with
    another tag, other spans, another text. The cost is 1, of texts the edit distance divided by the longer length.
    """

    kind: Kind
    cost: float
    prediction: Place | None
    reference: Place | None


@dataclass(frozen=True, kw_only=True)
class TableComparison:
    """Two tables, compared. If there is nothing to compare, both scores are 0.0 and `problem` says why."""

    teds: float
    teds_struct: float
    elements: int = 0  # what the distance is divided by
    problem: str = ""
    pair: TablePair | None = field(default=None, repr=False, compare=False)

    @functools.cached_property
    def changes(self) -> tuple[Change, ...]:
        """The changes that separate the two, row by row; found when first asked for. Raises TableTooLargeError."""
        return () if self.pair is None else tuple(sorted(_changes(self.pair), key=_position))

    @functools.cached_property
    def places(self) -> tuple[tuple[Place, ...], tuple[Place, ...]]:
        """All elements of the predicted and of the reference table, in document order; none without a pair."""
        if self.pair is None:
            return (), ()
        return tuple(_places(self.pair.prediction).values()), tuple(_places(self.pair.reference).values())

    @property
    def structure_loss(self) -> float:
        """The loss that missing, extra and other elements and spans take from a TEDS of 1."""
        return sum(change.cost for change in self.changes if change.kind != "text") / max(self.elements, 1)

    @property
    def text_loss(self) -> float:
        """The loss that other texts in cells take from a TEDS of 1: 1 - structure_loss - text_loss = TEDS."""
        return sum(change.cost for change in self.changes if change.kind == "text") / max(self.elements, 1)


def _changes(pair: TablePair) -> Iterator[Change]:
    from rapidfuzz.distance import Levenshtein

    from loupe.metrics.teds.tree_distance import best_mapping  # loads numpy

    prediction, reference = pair
    texts = prediction.vocabulary.texts
    places_1, places_2 = _places(prediction), _places(reference)
    for node_1, node_2 in best_mapping(prediction, reference, texts):
        place_1, place_2 = places_1.pop(node_1), places_2.pop(node_2)
        one, two = prediction.contents[node_1], reference.contents[node_2]
        if place_1.tag != place_2.tag:
            yield Change(kind="tag", cost=1.0, prediction=place_1, reference=place_2)
        elif prediction.labels[node_1] != reference.labels[node_2]:
            yield Change(kind="span", cost=1.0, prediction=place_1, reference=place_2)
        elif one != two:
            cost = Levenshtein.normalized_distance(texts[one], texts[two])
            yield Change(kind="text", cost=cost, prediction=place_1, reference=place_2)
    for place in places_1.values():
        yield Change(kind="extra", cost=1.0, prediction=place, reference=None)
    for place in places_2.values():
        yield Change(kind="missing", cost=1.0, prediction=None, reference=place)


def _position(change: Change) -> tuple[int, int, bool]:
    """Return the position of a change: by the reference, an extra element by its own place."""
    place = change.reference or change.prediction
    assert place is not None
    return place.row, place.cell, change.reference is None


def _places(tree: TableTree) -> dict[int, Place]:
    """The place of each node, by its number."""
    tags = tree.vocabulary.written_tags
    texts, labels = tree.vocabulary.texts, list(tree.vocabulary.labels)
    places: dict[int, Place] = {}
    rows = 0
    cells: dict[int, int] = {}  # of each row, so far
    above: list[int] = []
    for node in range(len(tree) - 1, -1, -1):  # in document order
        while above and tree.first[above[-1]] > node:
            above.pop()
        row = cell = -1
        tag, colspan, rowspan = labels[tree.labels[node]]
        if tag == "tr":
            row, rows = rows, rows + 1
        elif above and places[above[-1]].tag == "tr":
            row = places[above[-1]].row
            cell = cells[row] = cells.get(row, -1) + 1
        elif above:
            row, cell = places[above[-1]].row, places[above[-1]].cell
        text = texts[tree.contents[node]].translate(tags)
        places[node] = Place(tag, row, cell, colspan, rowspan, text)
        above.append(node)
    return places
