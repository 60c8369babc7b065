"""From tree to normalised text, as CDM's tokenizer prints it (docs/protocols/cdm.md#printer).

The printer works through a stack of its own, so depth costs memory only. Blanks may differ in number from upstream's,
which the tokenizer evens out.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Final

from loupe.metrics.cdm.lexer import NotTokenizedError
from loupe.metrics.cdm.tree import (
    Array,
    Braced,
    Command,
    Delimited,
    Fraction,
    Group,
    Infix,
    Node,
    Operator,
    Phantom,
    Root,
    Rule,
    Scripts,
    Switch,
    Symbol,
    Text,
    Unprintable,
)

_CELL_END: Final = object()
_ROW_END: Final = object()


def printed(items: Iterable[Node], *, whole_tokens: bool = False) -> str:
    """The text of a tree. Raises NotTokenizedError on what the official printer fails on.

    `whole_tokens`: a cell is empty if its last two tokens are braces; else if its last four characters are, as in the
    official printer, where that of `\\{ }` goes too.
    """
    out: list[str] = []
    # What is still to be printed, last first: pieces of text, nodes, ends of cells and rows; each with the font.
    stack: list[tuple[object, str]] = [(item, "") for item in reversed(tuple(items))]
    while stack:
        item, font = stack.pop()
        if isinstance(item, str):
            out.append(item)
        elif isinstance(item, Symbol):
            out.append(_spelled(item.text) if item.splits and font == "\\mathrm" else item.text + " ")
        elif item is _CELL_END:
            if out[-1] == "} " and (out[-2] == "{ " if whole_tokens else out[-2].endswith("{ ")):
                out.pop()
                out[-1] = out[-1][:-2]
            out.append("& ")
        elif item is _ROW_END:
            out[-1] = "\\\\ "
        else:
            inner = _inner_font(item, font)
            stack.extend((part, inner) for part in reversed(_parts(item)))
    return "".join(out)


def _spelled(text: str) -> str:
    """A symbol character by character; one beyond U+FFFF counts as two halves, each of which becomes U+FFFD."""
    return "".join("\ufffd \ufffd " if character > "\uffff" else character + " " for character in text)


def _inner_font(item: object, font: str) -> str:
    if isinstance(item, Command) and item.is_font:
        return item.name
    return "\\mathrm" if isinstance(item, Switch) and item.name == "\\rm" else font


def _parts(item: object) -> list[object]:
    """What a node is printed as: pieces and nodes in their order."""
    match item:
        case Group(items):
            return ["{ ", *items, "} "]
        case Scripts(base, sub, sup):
            return [base, *_script("_ ", sub), *_script("^ ", sup)]
        case Fraction(bar, upper, lower):
            return ["\\frac " if bar else "\\binom ", upper, lower]
        case Command(name, None, False) if " " in name:
            return [name + " "]
        case Command(name, body, _):
            return [name + " ", body]
        case Text(items):
            return ["\\mathrm { ", *items, "} "]
        case Operator():
            return [_operator(item)]
        case Delimited(left, items, right):
            return [f"\\left{left} ", *items, f"\\right{right} "]
        case Array():
            return _array(item)
        case Root(index, body):
            return ["\\sqrt ", body] if index is None else ["\\sqrt [ ", *_items(index), "] ", body]
        case Braced(name, body, always):
            return [name + " ", body] if isinstance(body, Group) and not always else [name + " ", "{ ", body, "} "]
        case Phantom(items):
            return ["\\phantom ", "{ ", *items, "} "]
        case Switch(name, items):
            return ["\\mathrm { ", *items, "} "] if name == "\\rm" else [name + " ", *items]
        case Rule(width, height):
            return [
                f"\\rule {{ {_number(width.number)} {width.unit} }} {{ {_number(height.number)} {height.unit} }} ",
            ]
        case Infix() | Unprintable() | None:
            raise NotTokenizedError("the official printer fails on this")
    raise NotTokenizedError("a part that cannot be printed")


def _items(index: Node) -> tuple[Node, ...]:
    return index.items if isinstance(index, Group) else (index,)


def _script(sign: str, script: Node | None) -> list[object]:
    if script is None:
        return []
    return [sign, script] if isinstance(script, Group) else [sign, "{ ", script, "} "]


def _operator(operator: Operator) -> str:
    if operator.is_symbol:
        return operator.name + " "
    star = "*" if operator.limits else ""
    return f"\\operatorname{star} {{ {' '.join(operator.name[1:])} }} "


def _array(array: Array) -> list[object]:
    parts: list[object] = ["\\begin{array} { " + "".join(column + " " for column in array.columns) + "} "]
    for row in array.rows:
        if any(cell.items for cell in row):
            for cell in row:
                parts += [cell, _CELL_END]
            parts.append(_ROW_END)
    parts.append("\\end{array} ")
    return parts


def _number(value: float) -> str:
    """A number as JavaScript writes it."""
    if value == 0 or value in (float("inf"), float("-inf")):
        return "0" if value == 0 else "Infinity" if value > 0 else "-Infinity"
    if 1e-6 <= abs(value) < 1e21:
        plain = format(Decimal(repr(value)), "f")
        return plain.removesuffix(".0")
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent):+d}"
