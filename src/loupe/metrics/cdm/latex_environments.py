"""Environments as arrays, as the tokenizer of OmniDocBench 1.6 has them.

Protocol: docs/protocols/omnidocbench_v16.md#cdm-tokeniser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from loupe.metrics.cdm.tree import Array, Delimited, Group, Node
from loupe.metrics.latex_nodes import Chars, Environment, Macro, Special
from loupe.metrics.latex_nodes import Group as Braces
from loupe.metrics.latex_nodes import Node as LatexNode

_DELIMITERS: Final = {
    "cases": ("\\{", "."),
    "dcases": ("\\{", "."),
    "rcases": (".", "\\}"),
    "pmatrix": ("(", ")"),
    "bmatrix": ("[", "]"),
    "Bmatrix": ("\\{", "\\}"),
    "vmatrix": ("|", "|"),
    "Vmatrix": ("\\Vert", "\\Vert"),
}
_CASES: Final = frozenset(["cases", "dcases", "rcases"])


def converted_environment(
    environment: Environment, converted: Callable[[Sequence[LatexNode]], tuple[Node, ...]]
) -> Node:
    """The environment as an array, in its delimiters; `converted` makes the nodes of a cell."""
    name = environment.name
    is_aligned = name.startswith("aligned")
    rows = tuple(
        tuple(
            Group((Group(()), *converted(cell)) if is_aligned and place % 2 else converted(cell))
            for place, cell in enumerate(row)
        )
        for row in _rows(environment.nodes)
    )
    columns = _columns(environment)
    if columns is None:
        widest = max(map(len, rows))
        columns = ("rl" * widest)[:widest] if is_aligned else "l" * len(rows[0])
    array = Array(columns, rows)
    delimiters = _DELIMITERS.get(name.rstrip("*"))
    return Delimited(delimiters[0], (array,), delimiters[1]) if delimiters else array


def _rows(nodes: Sequence[LatexNode]) -> list[list[list[LatexNode]]]:
    """Rows of cells; the last row is there even if it is empty."""
    rows: list[list[list[LatexNode]]] = [[[]]]
    for node in nodes:
        if isinstance(node, Special) and node.chars == "&":
            rows[-1].append([])
        elif isinstance(node, Macro) and node.name == "\\":
            rows.append([[star for star in (node.arguments or ())[:1] if star is not None]])
        else:
            rows[-1][-1].append(node)
    return rows


def _columns(environment: Environment) -> str | None:
    """The alignments of the columns, None where nothing is said of them."""
    name = environment.name
    if name.rstrip("*") in _CASES:
        return "ll"
    if not environment.arguments:
        return None
    place = {"array": 1, "tabular": 0, "tabularx": 0}.get(name, -1)
    slot = environment.arguments[place]
    if slot is None:
        return None
    children = slot.nodes if isinstance(slot, Braces) else []
    text = "".join(child.text for child in children if isinstance(child, Chars))
    return "".join(letter for letter in text if letter in "lcr")
