"""Edit distance of ordered trees whose nodes have prices of their own.

Source: Zhang and Shasha, SIAM Journal on Computing 18 (1989).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

#: So many steps one distance may take; a tree of 700 nodes against another takes some 2 million.
MOST_STEPS = 10_000_000
Label = TypeVar("Label")


class TreeTooLargeError(ValueError):
    """Comparing two trees would take more than MOST_STEPS."""


class Node(NamedTuple, Generic[Label]):
    """A node with its children in order."""

    label: Label
    children: list[Node[Label]]


class _Numbered(NamedTuple, Generic[Label]):
    """The nodes of a tree from the leaves up: label, price and leftmost leaf of each, and the roots of distances."""

    labels: list[Label]
    prices: list[int]
    leftmost: list[int]
    roots: list[int]


def tree_distance(
    first: Node[Label], second: Node[Label], price: Callable[[Label], int], relabel: Callable[[Label, Label], int]
) -> int:
    """The lowest price of turning one tree into the other; `price` is that of a node put in or taken out.

    Raises TreeTooLargeError.
    """
    one, other = _numbered(first, price), _numbered(second, price)
    steps = _steps(one) * _steps(other)
    if steps > MOST_STEPS:
        raise TreeTooLargeError(f"the trees are too large to compare: {steps:,} steps, {MOST_STEPS:,} at most")
    known = [[0] * len(other.labels) for _ in one.labels]
    for a in one.roots:
        for b in other.roots:
            _compare(a, b, one, other, known, relabel)
    return known[-1][-1]


def _steps(tree: _Numbered[Label]) -> int:
    return sum(root - tree.leftmost[root] + 1 for root in tree.roots)


def _numbered(root: Node[Label], price: Callable[[Label], int]) -> _Numbered[Label]:
    labels: list[Label] = []
    leftmost: list[int] = []
    waiting: list[tuple[Node[Label], int]] = [(root, -1)]
    while waiting:
        node, start = waiting.pop()
        if start >= 0:
            labels.append(node.label)
            leftmost.append(start)
        else:
            waiting.append((node, len(labels)))
            waiting += [(child, -1) for child in reversed(node.children)]
    last = {leaf: node for node, leaf in enumerate(leftmost)}
    return _Numbered(labels, [price(label) for label in labels], leftmost, sorted(last.values()))


def _compare(
    a: int,
    b: int,
    one: _Numbered[Label],
    other: _Numbered[Label],
    known: list[list[int]],
    relabel: Callable[[Label, Label], int],
) -> None:
    """Fill in the distances of all pairs of subtrees that end at the roots `a` and `b`."""
    (labels_a, prices_a, left_a, _), (labels_b, prices_b, left_b, _) = one, other
    start_a, start_b = left_a[a], left_b[b]
    first = [0]
    for j in range(start_b, b + 1):
        first.append(first[-1] + prices_b[j])
    rows = [first]
    for i in range(start_a, a + 1):
        above, row = rows[-1], [rows[-1][0] + prices_a[i]]
        whole, known_row, before = left_a[i] == start_a, known[i], rows[left_a[i] - start_a]
        for j in range(start_b, b + 1):
            best = min(above[j - start_b + 1] + prices_a[i], row[-1] + prices_b[j])
            if whole and left_b[j] == start_b:
                best = min(best, above[j - start_b] + relabel(labels_a[i], labels_b[j]))
                known_row[j] = best
            else:
                best = min(best, before[left_b[j] - start_b] + known_row[j])
            row.append(best)
        rows.append(row)
