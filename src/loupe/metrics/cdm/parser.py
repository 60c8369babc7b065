"""From text to tree, with the grammar of CDM's tokenizer (protocol page cdm.md, section A1).

Every method that can nest is a generator which yields the parts it waits for and puts its result into a list it is
given; `_run` keeps them on a stack of its own. So depth costs memory only and never meets Python's recursion limit.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Final

from loupe.metrics.cdm.grammar import (
    BRACED_ARRAYS,
    DELIMITERS,
    ENVIRONMENTS,
    EXPRESSION_ENDS,
    FONT_ALIASES,
    FUNCTIONS,
    LIMIT_OPERATORS,
    SYMBOL_OPERATORS,
    WHOLE_SYMBOLS,
    Argument,
    Function,
    Kind,
)
from loupe.metrics.cdm.lexer import END, NotTokenizedError, after_spaces, colour_at, next_in_math, next_in_text, size_at
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
    Scripts,
    Switch,
    Symbol,
    Text,
    Unprintable,
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
    return _Parser(text).parse()


def token_stream(text: str) -> str:
    """The tokens as the official parser consumes them, each after a blank. Raises NotTokenizedError as `parse`."""
    parser = _Parser(text)
    parser.parse()
    return "".join(parser.consumed)


def _run(first: Parts) -> None:
    stack = [first]
    while stack:
        part = next(stack[-1], None)
        if part is None:
            stack.pop()
        else:
            stack.append(part)


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.in_text = False
        self.position = 0
        self.depth = 0
        self.consumed: list[str] = []
        self.next, self.after = next_in_math(text, 0)

    def parse(self) -> tuple[Node, ...]:
        items: list[Node] = []
        _run(self.expression(items))
        self.expect(END)
        return tuple(items)

    # Tokens

    def look(self) -> None:
        self.next, self.after = (next_in_text if self.in_text else next_in_math)(self.text, self.position)

    def consume(self) -> str:
        token = self.next
        self.consumed.append(" " + token)
        self.position = self.after
        self.look()
        return token

    def expect(self, token: str) -> None:
        if self.next != token:
            raise NotTokenizedError(f"expected {token!r}, found {self.next!r} at character {self.position}")

    def take(self, token: str) -> None:
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

    # Expressions

    def expression(self, items: list[Node], *, to_infix: bool = False, closer: str = "") -> Parts:
        """Atoms up to what ends an expression; an infix fraction turns all of them into one node."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise NotTokenizedError(f"more than {MAX_DEPTH} expressions inside each other")
        infixes: list[int] = []
        while (token := self.next) not in EXPRESSION_ENDS and token != closer and token != END:
            start = self.position, self.next, self.after
            if token in FUNCTIONS or token == "{" or token in BRACED_ARRAYS:
                slot: Slot = []
                yield self.nucleus(slot)
                atom = slot[0]
            else:
                atom = self.symbol()
            if self.next in _SCRIPTS and not self.in_text:
                slot = [atom]
                yield self.scripts(slot)
                atom = slot[0]
            if isinstance(atom, Infix):
                if to_infix:
                    self.position, self.next, self.after = start
                    break
                infixes.append(len(items))
            assert atom is not None
            items.append(atom)
        if infixes:
            items[:] = [_infix_fraction(items, infixes)]
        self.depth -= 1

    def scripts(self, slot: Slot) -> Parts:
        """Sub- and superscripts of the base in the slot; of each kind, the last one counts."""
        base, sub, sup = slot[0], None, None
        while True:
            if self.next in ("\\limits", "\\nolimits"):
                if not isinstance(base, Operator):
                    raise NotTokenizedError(f"{self.next} after something that is no operator")
                base = replace(base, limits=self.consume() == "\\limits")
            elif self.next in ("^", "_"):
                is_sub = self.consume() == "_"
                argument: Slot = []
                yield self.script(argument)
                sub, sup = (argument[0], sup) if is_sub else (sub, argument[0])
            elif self.next == "'":
                primes = []
                while self.next == "'":
                    self.consume()
                    primes.append(Symbol("\\prime"))
                sup = Group(tuple(primes))
            else:
                break
        slot[0] = Scripts(base, sub, sup) if sub is not None or sup is not None else base

    def script(self, slot: Slot) -> Parts:
        function = FUNCTIONS.get(self.next)
        if function is None:
            yield self.group_or_symbol(slot)
        elif function.greediness > _SCRIPT_GREEDINESS:
            yield self.call(self.consume(), function, slot)
        else:
            raise NotTokenizedError(f"{self.next} as a script")

    def group_or_symbol(self, slot: Slot) -> Parts:
        """A braced group or a symbol; None where the text ends."""
        if self.next == "{":
            yield self.group(slot)
        else:
            slot.append(None if self.next == END else self.symbol())

    def group(self, slot: Slot, opener: str = "{", closer: str = "}") -> Parts:
        self.take(opener)
        items: list[Node] = []
        yield self.expression(items, closer=closer)
        self.take(closer)
        slot.append(Group(tuple(items)))

    def nucleus(self, slot: Slot) -> Parts:
        """A group, a function with all that belongs to it, or a braced array of plain TeX."""
        if self.next == "{":
            yield self.group(slot)
        elif self.next in BRACED_ARRAYS:
            yield self.braced_array(slot)
        else:
            name = self.consume()
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
            slot.append(Command(f"{name} {self.delimiter()}", None, is_font=False))
            return
        arguments: Slot = []
        yield self.arguments(name, function, arguments)
        slot.append(_node(name, function.kind, arguments))

    def delimiter(self) -> str:
        if self.next not in DELIMITERS:
            raise NotTokenizedError(f"{self.next!r} is no delimiter")
        return self.consume()

    def arguments(self, name: str, function: Function, arguments: Slot) -> Parts:
        """The arguments of a function.

        A function that is no more greedy than this one is passed over: in its place stands the argument before it
        (a variable that the official parser does not reset), or nothing.
        """
        latest: Node | None = None
        for number, kind in enumerate(function.arguments):
            found: Slot = []
            if number < function.optional and self.next != "[":
                arguments.append(None)
                continue
            if kind is Argument.SIZE:
                found.append(self.size("[]" if number < function.optional else "{}"))
            elif kind is Argument.COLOUR:
                found.append(self.colour())
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
        inner = FUNCTIONS.get(self.next)
        if inner is None:
            yield self.group_or_symbol(slot)
            if slot[0] is None:
                raise NotTokenizedError(f"{name} has no argument")
        else:
            inner_name = self.consume()
            if inner.greediness > function.greediness:
                yield self.call(inner_name, inner, slot)

    def in_text_mode(self, slot: Slot, name: str, function: Function) -> Parts:
        outer, self.in_text = self.in_text, True
        self.position = after_spaces(self.text, self.position)
        self.look()
        inner = FUNCTIONS.get(self.next)
        if inner is None:
            yield self.group_or_symbol(slot)
            if slot[0] is None:
                raise NotTokenizedError(f"{name} has no argument")
            self.in_text = outer
            self.look()
        else:
            # The name is read as text, its own arguments in the outer mode.
            inner_name = self.consume()
            self.in_text = outer
            self.look()
            if inner.greediness > function.greediness:
                yield self.call(inner_name, inner, slot)

    def size(self, brackets: str) -> Dimension:
        self.expect(brackets[0])
        self.consumed.append(" " + brackets[0])
        written, number, unit, self.position = size_at(self.text, self.after)
        self.consumed.append(" " + written)
        self.look()
        self.take(brackets[1])
        return Dimension(number, unit)

    def colour(self) -> Symbol:
        self.expect("{")
        self.consumed.append(" {")
        written, self.position = colour_at(self.text, self.after)
        self.consumed.append(" " + written)
        self.look()
        self.take("}")
        if self.in_text:
            self.position = after_spaces(self.text, self.position)
            self.look()
        return Symbol(written)

    # Delimiters and arrays

    def delimited(self, slot: Slot) -> Parts:
        left = self.delimiter()
        items: list[Node] = []
        yield self.expression(items)
        self.take("\\right")
        slot.append(Delimited(left, tuple(items), self.delimiter()))

    def environment(self, slot: Slot) -> Parts:
        """What follows `\\begin`, to its end."""
        name: list[str] = []
        yield self.environment_name(name)
        if name[0] not in ENVIRONMENTS:
            raise NotTokenizedError(f"unknown environment {name[0]!r}")
        columns: str | None = None
        if name[0] in ("array", "tabular"):
            argument: Slot = []
            yield self.argument(argument, "\\begin", FUNCTIONS["\\begin"])
            columns = _alignments(argument[0] if argument else None)
        yield self.array(name[0], columns, slot)
        self.take("\\end")
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
        name.append("".join(_name_part(item) for item in slot[0].items))
        _drop_characters(self.consumed, 2 * len(name[0]) + 2)
        self.consumed.append(name[0] + "}")

    def braced_array(self, slot: Slot) -> Parts:
        name = BRACED_ARRAYS[self.consume()]
        self.take("{")
        yield self.array(name, None, slot)
        self.take("}")

    def array(self, name: str, columns: str | None, slot: Slot) -> Parts:
        """Rows and cells; what ends the array is left for the caller to check."""
        rows: list[list[list[Node]]] = [[]]
        while True:
            cell: list[Node] = []
            yield self.expression(cell)
            rows[-1].append(cell)
            if self.next == "&":
                self.consume()
            elif self.next in ("\\\\", "\\cr"):
                self.consume()
                if self.next == "[":
                    self.size("[]")
                rows.append([])
            elif self.next in ("\\end", "}"):
                break
            else:
                raise NotTokenizedError(f"{self.next!r} in a cell")
        slot.append(_finished_array(name, columns, rows))


def _finished_array(name: str, columns: str | None, rows: list[list[list[Node]]]) -> Node:
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


def _alignments(specification: Node | None) -> str:
    if specification is None:
        raise NotTokenizedError("an array without columns")
    items = specification.items if isinstance(specification, Group) else (specification,)
    return "".join(item.text for item in items if isinstance(item, Symbol) and item.text in ("l", "c", "r"))


def _name_part(node: Node) -> str:
    if isinstance(node, Symbol):
        return node.text
    return "" if isinstance(node, Group) and not node.items else "[object Object]"


def _drop_characters(pieces: list[str], count: int) -> None:
    while count and pieces:
        last = pieces.pop()
        if len(last) > count:
            pieces.append(last[:-count])
        count = max(0, count - len(last))


def _infix_fraction(items: list[Node], infixes: list[int]) -> Node:
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


def _node(name: str, kind: Kind, arguments: Slot) -> Node:
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
