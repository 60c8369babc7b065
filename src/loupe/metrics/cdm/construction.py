"""Nodes of the tree from what the parser has read (docs/protocols/cdm.md#parser)."""

from __future__ import annotations

from loupe.metrics.cdm.grammar import (
    ENVIRONMENTS,
    FONT_ALIASES,
    LIMIT_OPERATORS,
    SYMBOL_OPERATORS,
    Kind,
)
from loupe.metrics.cdm.lexer import NotTokenizedError
from loupe.metrics.cdm.tree import (
    Array,
    Braced,
    Command,
    Delimited,
    Dimension,
    Fraction,
    Group,
    Infix,
    Node,
    Operator,
    Phantom,
    Root,
    Rule,
    Symbol,
    Text,
    Unprintable,
)


def finished_array(name: str, columns: str | None, rows: list[list[list[Node]]]) -> Node:
    """The array of an environment, with its columns and delimiters; rows as lists of cells."""
    if name == "aligned":
        for row in rows:
            for cell in row[1::2]:
                cell.insert(0, Group(()))
        widest = max(map(len, rows))
        columns = ("rl" * widest)[:widest]
    elif name in ("cases", "picture"):
        columns = "ll"
    elif columns is None:
        columns = "l" * len(rows[0])
    array = Array(columns, tuple(tuple(Group(tuple(cell)) for cell in row) for row in rows))
    delimiters = ENVIRONMENTS[name]
    return Delimited(delimiters[0], (array,), delimiters[1]) if delimiters else array


def alignments(specification: Node | None) -> str:
    """The letters of a column specification that align: l, c and r."""
    if specification is None:
        raise NotTokenizedError("an array without columns")
    items = specification.items if isinstance(specification, Group) else (specification,)
    return "".join(item.text for item in items if isinstance(item, Symbol) and item.text in ("l", "c", "r"))


def name_part(node: Node) -> str:
    """A node in the name of an environment as JavaScript makes a string of it."""
    if isinstance(node, Symbol):
        return node.text
    return "" if isinstance(node, Group) and not node.items else "[object Object]"


def infix_fraction(items: list[Node], infixes: list[int]) -> Node:
    """A whole expression as one fraction, of what stands left and right of the infix."""
    if len(infixes) > 1:
        raise NotTokenizedError("two infix fractions in one group")
    infix = items[infixes[0]]
    assert isinstance(infix, Infix)
    return Fraction(infix.bar, _side(items[: infixes[0]]), _side(items[infixes[0] + 1 :]))


def _side(items: list[Node]) -> Group:
    only = items[0] if len(items) == 1 else None
    return only if isinstance(only, Group) else Group(tuple(items))


def _contents(body: Node | None) -> tuple[Node, ...]:
    if body is None:
        raise NotTokenizedError("a function in the place of an argument")
    return body.items if isinstance(body, Group) else (body,)


def function_node(name: str, kind: Kind, arguments: list[Node | None]) -> Node:
    """The node of a function with its arguments."""
    match kind:
        case Kind.FONT:
            return Command(FONT_ALIASES.get(name, name), arguments[0])
        case Kind.FRACTION:
            return Fraction(name.endswith("frac"), arguments[0], arguments[1])
        case Kind.OPERATOR:
            is_symbol = name in SYMBOL_OPERATORS
            return Operator(name, limits=name in LIMIT_OPERATORS, is_symbol=is_symbol)
        case Kind.ROOT:
            return Root(arguments[0], arguments[1])
        case Kind.TEXT:
            return Text(_contents(arguments[0]))
        case Kind.ACCENT:
            return Braced(name, arguments[0], always=False)
        case Kind.LINE:
            return Braced(name, arguments[0], always=True)
        case Kind.PHANTOM:
            return Phantom(_contents(arguments[0]))
        case Kind.LAP:
            return Command(name, arguments[0], is_font=False)
        case Kind.INFIX:
            return Infix(bar=name == "\\over")
        case Kind.RULE:
            width, height = arguments[1], arguments[2]
            assert isinstance(width, Dimension) and isinstance(height, Dimension)
            return Rule(width, height)
        case Kind.UNPRINTABLE:
            if arguments:
                _contents(arguments[-1])
            return Unprintable()
        case _:
            raise NotTokenizedError(f"{name} without its construction")
