"""Parse text to a tree with the grammar of CDM's tokenizer, and print a tree as normalised text.

Protocol: docs/protocols/cdm.md#parser and #printer.

Every method that can nest is a generator which yields the parts it waits for and puts its result into a list it is
given; `_run` keeps them on a stack of its own. So depth costs memory only and never meets Python's recursion limit.

The printer works through a stack of its own, so depth costs memory only. Blanks may differ in number from upstream's,
which the tokenizer evens out.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Final

from loupe.metrics.cdm.grammar import (
    BRACED_ARRAYS,
    ENVIRONMENTS,
    EXPRESSION_ENDS,
    FUNCTIONS,
    Argument,
    Array,
    Braced,
    Command,
    Delimited,
    Fraction,
    Function,
    Group,
    Infix,
    Kind,
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
from loupe.metrics.cdm.token_reader import (
    END,
    NotTokenizedError,
    TokenReader,
    alignments,
    finished_array,
    function_node,
    infix_fraction,
    name_part,
)

# Expressions inside each other. Upstream's recursion ends near here too (node's default stack), and TeX itself gives
# up at 255 groups.
MAX_DEPTH: Final = 1000
_SCRIPTS: Final = frozenset(["^", "_", "'", "\\limits", "\\nolimits"])
_SCRIPT_GREEDINESS: Final = 1

Parts = Generator["Parts", None, None]
Slot = list[Node | None]


def parse(text: str) -> tuple[Node, ...]:
    """The tree of a text. Raises NotTokenizedError where the official parser throws."""
    return _Parser(TokenReader(text)).parse()


def token_stream(text: str) -> str:
    """The tokens as the official parser consumes them, each after a blank. Raises NotTokenizedError as `parse`."""
    tokens = TokenReader(text, records=True)
    _Parser(tokens).parse()
    return "".join(tokens.consumed)


def _run(first: Parts) -> None:
    stack = [first]
    while stack:
        part = next(stack[-1], None)
        if part is None:
            stack.pop()
        else:
            stack.append(part)


class _Parser:
    def __init__(self, tokens: TokenReader) -> None:
        self.tokens = tokens
        self.depth = 0

    def parse(self) -> tuple[Node, ...]:
        items: list[Node] = []
        _run(self.expression(items))
        self.tokens.expect(END)
        return tuple(items)

    # Expressions

    def expression(self, items: list[Node], *, to_infix: bool = False, closer: str = "") -> Parts:
        """Atoms up to what ends an expression; an infix fraction turns all of them into one node."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotTokenizedError(f"more than {MAX_DEPTH} expressions inside each other")
        infixes: list[int] = []
        while (token := self.tokens.next) not in EXPRESSION_ENDS and token != closer and token != END:
            start = self.tokens.position, self.tokens.next, self.tokens.after
            if token in FUNCTIONS or token == "{" or token in BRACED_ARRAYS:
                slot: Slot = []
                yield self.nucleus(slot)
                atom = slot[0]
            else:
                atom = self.tokens.symbol()
            if self.tokens.next in _SCRIPTS and not self.tokens.in_text:
                slot = [atom]
                yield self.scripts(slot)
                atom = slot[0]
            if isinstance(atom, Infix):
                if to_infix:
                    self.tokens.position, self.tokens.next, self.tokens.after = start
                    break
                infixes.append(len(items))
            assert atom is not None
            items.append(atom)
        if infixes:
            items[:] = [infix_fraction(items, infixes)]
        self.depth -= 1

    def scripts(self, slot: Slot) -> Parts:
        """Sub- and superscripts of the base in the slot; of each kind, the last one counts."""
        base, sub, sup = slot[0], None, None
        while True:
            if self.tokens.next in ("\\limits", "\\nolimits"):
                if not isinstance(base, Operator):
                    raise NotTokenizedError(f"{self.tokens.next} after something that is no operator")
                base = replace(base, limits=self.tokens.consume() == "\\limits")
            elif self.tokens.next in ("^", "_"):
                is_sub = self.tokens.consume() == "_"
                argument: Slot = []
                yield self.script(argument)
                sub, sup = (argument[0], sup) if is_sub else (sub, argument[0])
            elif self.tokens.next == "'":
                primes = []
                while self.tokens.next == "'":
                    self.tokens.consume()
                    primes.append(Symbol("\\prime"))
                sup = Group(tuple(primes))
            else:
                break
        slot[0] = Scripts(base, sub, sup) if sub is not None or sup is not None else base

    def script(self, slot: Slot) -> Parts:
        function = FUNCTIONS.get(self.tokens.next)
        if function is None:
            yield self.group_or_symbol(slot)
        elif function.greediness > _SCRIPT_GREEDINESS:
            yield self.call(self.tokens.consume(), function, slot)
        else:
            raise NotTokenizedError(f"{self.tokens.next} as a script")

    def group_or_symbol(self, slot: Slot) -> Parts:
        """A braced group or a symbol; None where the text ends."""
        if self.tokens.next == "{":
            yield self.group(slot)
        else:
            slot.append(None if self.tokens.next == END else self.tokens.symbol())

    def group(self, slot: Slot, opener: str = "{", closer: str = "}") -> Parts:
        self.tokens.take(opener)
        items: list[Node] = []
        yield self.expression(items, closer=closer)
        self.tokens.take(closer)
        slot.append(Group(tuple(items)))

    def nucleus(self, slot: Slot) -> Parts:
        """A group, a function with all that belongs to it, or a braced array of plain TeX."""
        if self.tokens.next == "{":
            yield self.group(slot)
        elif self.tokens.next in BRACED_ARRAYS:
            yield self.braced_array(slot)
        else:
            name = self.tokens.consume()
            function = FUNCTIONS[name]
            if function.kind is Kind.LEFT:
                yield self.delimited(slot)
            elif function.kind is Kind.BEGIN:
                yield self.environment(slot)
            elif function.kind in (Kind.SWITCH, Kind.STYLE):
                items: list[Node] = []
                yield self.expression(items, to_infix=function.kind is Kind.STYLE)
                slot.append(Switch(name, tuple(items)))
            else:
                yield self.call(name, function, slot)

    # Functions

    def call(self, name: str, function: Function, slot: Slot) -> Parts:
        """A function whose name has been read."""
        if function.kind is Kind.BIG:
            slot.append(Command(f"{name} {self.tokens.delimiter()}", None, is_font=False))
            return
        arguments: Slot = []
        yield self.arguments(name, function, arguments)
        slot.append(function_node(name, function.kind, arguments))

    def arguments(self, name: str, function: Function, arguments: Slot) -> Parts:
        """The arguments of a function.

        A function that is no more greedy than this one is passed over: in its place stands the argument before it
        (a variable that the official parser does not reset), or nothing.
        """
        latest: Node | None = None
        for number, kind in enumerate(function.arguments):
            found: Slot = []
            if number < function.optional and self.tokens.next != "[":
                arguments.append(None)
                continue
            if kind is Argument.SIZE:
                found.append(self.tokens.size("[]" if number < function.optional else "{}"))
            elif kind is Argument.COLOUR:
                found.append(self.tokens.colour())
            elif number < function.optional:
                yield self.group(found, "[", "]")
            elif kind is Argument.TEXT:
                yield self.in_text_mode(found, name, function)
            else:
                yield self.argument(found, name, function)
            latest = found[0] if found else latest
            arguments.append(latest)

    def argument(self, slot: Slot, name: str, function: Function) -> Parts:
        """One argument, or none at all where a less greedy function stands."""
        inner = FUNCTIONS.get(self.tokens.next)
        if inner is None:
            yield self.group_or_symbol(slot)
            if slot[0] is None:
                raise NotTokenizedError(f"{name} has no argument")
        else:
            inner_name = self.tokens.consume()
            if inner.greediness > function.greediness:
                yield self.call(inner_name, inner, slot)

    def in_text_mode(self, slot: Slot, name: str, function: Function) -> Parts:
        """An argument whose first group or name is read as text."""
        outer = self.tokens.in_text
        self.tokens.set_mode(in_text=True)
        inner = FUNCTIONS.get(self.tokens.next)
        if inner is None:
            yield self.group_or_symbol(slot)
            if slot[0] is None:
                raise NotTokenizedError(f"{name} has no argument")
        inner_name = self.tokens.consume() if inner else ""
        self.tokens.in_text = outer
        self.tokens.look()
        if inner and inner.greediness > function.greediness:
            yield self.call(inner_name, inner, slot)

    def delimited(self, slot: Slot) -> Parts:
        left = self.tokens.delimiter()
        items: list[Node] = []
        yield self.expression(items)
        self.tokens.take("\\right")
        slot.append(Delimited(left, tuple(items), self.tokens.delimiter()))

    def environment(self, slot: Slot) -> Parts:
        """Parse what follows `\\begin`, to its end."""
        name: list[str] = []
        yield self.environment_name(name)
        if name[0] not in ENVIRONMENTS:
            raise NotTokenizedError(f"unknown environment {name[0]!r}")
        columns: str | None = None
        if name[0] in ("array", "tabular"):
            argument: Slot = []
            yield self.argument(argument, "\\begin", FUNCTIONS["\\begin"])
            columns = alignments(argument[0] if argument else None)
        yield self.array(name[0], columns, slot)
        self.tokens.take("\\end")
        closing: list[str] = []
        yield self.environment_name(closing)
        if closing != name:
            raise NotTokenizedError(f"environment {name[0]} ends as {closing[0]}")

    def environment_name(self, name: list[str]) -> Parts:
        """The braced name; in the stream of tokens its letters become one."""
        slot: Slot = []
        yield self.in_text_mode(slot, "\\begin", FUNCTIONS["\\begin"])
        if not slot or not isinstance(slot[0], Group):
            raise NotTokenizedError("an environment without a name in braces")
        name.append("".join(name_part(item) for item in slot[0].items))
        self.tokens.join_name(name[0])

    def braced_array(self, slot: Slot) -> Parts:
        name = BRACED_ARRAYS[self.tokens.consume()]
        self.tokens.take("{")
        yield self.array(name, None, slot)
        self.tokens.take("}")

    def array(self, name: str, columns: str | None, slot: Slot) -> Parts:
        """Rows and cells; what ends the array is left for the caller to check."""
        rows: list[list[list[Node]]] = [[]]
        while True:
            cell: list[Node] = []
            yield self.expression(cell)
            rows[-1].append(cell)
            if self.tokens.next == "&":
                self.tokens.consume()
            elif self.tokens.next in ("\\\\", "\\cr"):
                self.tokens.consume()
                if self.tokens.next == "[":
                    self.tokens.size("[]")
                rows.append([])
            elif self.tokens.next in ("\\end", "}"):
                break
            else:
                raise NotTokenizedError(f"{self.tokens.next!r} in a cell")
        slot.append(finished_array(name, columns, rows))


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
    """Return the parts that a node is printed as: pieces and nodes in their order."""
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
