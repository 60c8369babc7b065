r"""Read the tokens of a formula one at a time, and make nodes of the tree from them (docs/protocols/cdm.md#parser).

What a character means depends on what is being read. Positions are code points; the official lexer counts UTF-16 units,
which shows nowhere but in `\mathrm` (parser.py). The official parser keeps what it consumes; for tables that is its
output.
"""

from __future__ import annotations

import re
from typing import Final

from loupe.metrics.cdm.grammar import (
    DELIMITERS,
    ENVIRONMENTS,
    FONT_ALIASES,
    LIMIT_OPERATORS,
    SYMBOL_OPERATORS,
    WHOLE_SYMBOLS,
    Array,
    Braced,
    Command,
    Delimited,
    Dimension,
    Fraction,
    Group,
    Infix,
    Kind,
    Node,
    Operator,
    Phantom,
    Root,
    Rule,
    Symbol,
    Text,
    Unprintable,
)


class TokenReader:
    """A place in a text, the token that comes next there, and whether it is read as text or as math."""

    def __init__(self, text: str, *, records: bool = False) -> None:
        self.text = text
        self.records = records
        self.consumed: list[str] = []
        self.in_text = False
        self.position = 0
        self.next, self.after = next_in_math(text, 0)

    def look(self) -> None:
        """Read the next token again, as the mode or the position has changed."""
        self.next, self.after = (next_in_text if self.in_text else next_in_math)(self.text, self.position)

    def set_mode(self, *, in_text: bool) -> None:
        """Read on as text or as math; before text, white space is passed over."""
        self.in_text = in_text
        if in_text:
            self.position = after_spaces(self.text, self.position)
        self.look()

    def consume(self) -> str:
        """Go past the next token and return it."""
        token = self.next
        if self.records:
            self.consumed.append(" " + token)
        self.position = self.after
        self.look()
        return token

    def expect(self, token: str) -> None:
        """Fail unless this is the next token."""
        if self.next != token:
            raise NotTokenizedError(f"expected {token!r}, found {self.next!r} at character {self.position}")

    def take(self, token: str) -> None:
        """Go past this token, or fail."""
        self.expect(token)
        self.consume()

    def symbol(self) -> Symbol:
        """Whatever comes: what no table knows is an ordinary letter."""
        in_text, token = self.in_text, self.consume()
        if token == " ":
            return Symbol("~")
        if len(token) == 1 and token <= "\uffff":
            return Symbol(token)
        return Symbol(token, splits=token != "\\ " if in_text else token not in WHOLE_SYMBOLS)

    def delimiter(self) -> str:
        """One of the delimiters."""
        if self.next not in DELIMITERS:
            raise NotTokenizedError(f"{self.next!r} is no delimiter")
        return self.consume()

    def size(self, brackets: str) -> Dimension:
        """A length in brackets of that kind."""
        self.expect(brackets[0])
        written, number, unit, self.position = size_at(self.text, self.after)
        if self.records:
            self.consumed.append(f" {brackets[0]} {written}")
        self.look()
        self.take(brackets[1])
        return Dimension(number, unit)

    def colour(self) -> Symbol:
        """A colour in braces."""
        self.expect("{")
        written, self.position = colour_at(self.text, self.after)
        if self.records:
            self.consumed.append(" { " + written)
        self.look()
        self.take("}")
        if self.in_text:
            self.position = after_spaces(self.text, self.position)
            self.look()
        return Symbol(written)

    def join_name(self, name: str) -> None:
        """Record the letters of an environment's name as one token."""
        if self.records:
            _drop_characters(self.consumed, 2 * len(name) + 2)
            self.consumed.append(name + "}")


def _drop_characters(pieces: list[str], count: int) -> None:
    while count and pieces:
        last = pieces.pop()
        if len(last) > count:
            pieces.append(last[:-count])
        count = max(0, count - len(last))


END: Final = "EOF"  # no token of a text reads like this: they are one character or start with a backslash
_SPACE: Final = r"[\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"  # JavaScript's \s
_BEYOND: Final = r"\U00010000-\U0010ffff"
_COMMAND: Final = rf"\\(?:[a-zA-Z]+|[^\ud800-\udfff{_BEYOND}])"
_SYMBOL: Final = rf"(---?|[!-\[\]-\u2027\u202a-\ud7ff\uf900-\uffff{_BEYOND}]|{_COMMAND})"
_MATH = re.compile(rf"[ \r\n\t]*+(?:{_SYMBOL}|\Z)")
_TEXT = re.compile(rf"([ \r\n\t]++)|{_SYMBOL}|\Z")
_COLOUR = re.compile(rf"{_SPACE}*+(#[a-zA-Z0-9]+|[a-zA-Z]+)")
_SIZE = re.compile(rf"{_SPACE}*+((-?){_SPACE}*+([0-9]+(?:\.[0-9]*)?|\.[0-9]+){_SPACE}*+([a-z][a-z]))")
_SPACES = re.compile(rf"{_SPACE}*+")


class NotTokenizedError(Exception):
    """The official tokenizer throws on this text and prints nothing."""


def next_in_math(text: str, position: int) -> tuple[str, int]:
    """The next token in math mode and where it ends."""
    found = _MATH.match(text, position)
    if found is None:
        raise NotTokenizedError(f"no token starts at character {position}")
    return found[1] or END, found.end()


def next_in_text(text: str, position: int) -> tuple[str, int]:
    """The next token in text mode, where a run of blanks is a token of its own, and where it ends."""
    found = _TEXT.match(text, position)
    if found is None:
        raise NotTokenizedError(f"no token starts at character {position}")
    return " " if found[1] else found[2] or END, found.end()


def colour_at(text: str, position: int) -> tuple[str, int]:
    """A colour and where it ends."""
    found = _COLOUR.match(text, position)
    if found is None:
        raise NotTokenizedError(f"no colour at character {position}")
    return found[1], found.end()


def size_at(text: str, position: int) -> tuple[str, float, str, int]:
    """A length as written, its number and unit, and where it ends."""
    found = _SIZE.match(text, position)
    if found is None:
        raise NotTokenizedError(f"no length at character {position}")
    return found[1], float(found[2] + found[3]), found[4], found.end()


def after_spaces(text: str, position: int) -> int:
    """The first position that is not white space in JavaScript's sense."""
    found = _SPACES.match(text, position)
    return found.end() if found else position


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
