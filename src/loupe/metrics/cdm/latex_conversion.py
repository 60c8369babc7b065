"""Convert LaTeX as pylatexenc reads it to the tree that CDM's printer knows: the tokenizer of OmniDocBench 1.6.

Protocol: docs/protocols/omnidocbench_v16.md#cdm-tokeniser. A list of nodes becomes a list of items; then the marks `^`
and `_` among them take the items beside them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from loupe.metrics.cdm.grammar import (
    LIMIT_OPERATORS,
    Array,
    Braced,
    Command,
    Delimited,
    Dimension,
    Fraction,
    Group,
    Node,
    Operator,
    Phantom,
    Root,
    Rule,
    Scripts,
    Symbol,
    Text,
)
from loupe.metrics.latex_nodes import Chars, Comment, Environment, Macro, Math, Special
from loupe.metrics.latex_nodes import Group as Braces
from loupe.metrics.latex_nodes import Node as LatexNode


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


#: Names that become commands again where a formula spells them out.
OPERATOR_NAMES: Final = _names(
    "arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf injlim ker lg lim liminf limsup ln log "
    "max min Pr projlim sec sin sinh sup tan tanh"
)
_ACCENTS: Final = _names("hat bar vec dot ddot tilde breve check acute grave")
_WIDE: Final = _names("widetilde widehat")
_FONTS: Final = _names("mathrm mathbf mathit mathsf mathtt mathcal mathbb mathfrak mathscr mbox hbox")
_FRACTIONS: Final = _names("frac tfrac dfrac binom")
_LIMITLESS: Final = _names("arccos tanh")
_LIMITED: Final = frozenset(name.removeprefix("\\") for name in LIMIT_OPERATORS)
_UNSPACED: Final = _LIMITED | _LIMITLESS | {"limits", "nolimits"}  # behind which a text has no blank
_LAPS: Final = _names("phantom llap rlap")
_SIZE: Final = re.compile(r"\s*(-?)\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]{2})\s*")
_TWO_WORDS: Final = re.compile(r"\s*(\S+)\s+(\S+)(.*)", re.DOTALL)
_WORD: Final = re.compile(r"\s*(\S+)(.*)", re.DOTALL)


#: `script`: directly behind a mark, where a prime is not short for a superscript.
Mode = Literal["math", "text", "script"]


def converted(nodes: Sequence[LatexNode], mode: Mode = "math") -> tuple[Node, ...]:
    """The tree of a list of nodes."""
    items: list[Item] = []
    rest = list(nodes)
    at = 0
    while at < len(rest):
        node = rest[at]
        taken = _with_followers(node, rest, at, mode) if isinstance(node, Macro) and at + 1 < len(rest) else None
        if taken is not None:
            found, at = taken
            items += found
            continue
        _add(items, node, mode)
        at += 1
    return with_scripts(items)


def _with_followers(macro: Macro, rest: list[LatexNode], at: int, mode: Mode) -> tuple[list[Item], int] | None:
    """A macro that takes what comes after it in the list, and where the list goes on; None where it takes nothing."""
    first = _next(rest, at)
    if first == len(rest):
        return None
    node = rest[first]
    arguments = arguments_of(macro)
    inner = arguments[0] if len(arguments) == 1 else None
    if macro.name in _ACCENTS | _WIDE:
        if isinstance(inner, Macro) and inner.name in _FONTS and not arguments_of(inner) and _is_group(node, "{"):
            font = _font(inner.name, _group(node, mode))
            wide: list[Item] = [Symbol("\\" + macro.name), font]
            return ([Braced("\\" + macro.name, font, always=False)] if macro.name in _ACCENTS else wide), first + 1
    elif macro.name == "operatorname" and isinstance(node, Braces):
        name = _plain(node)
        bare = re.sub(r"\s", "", name)
        if name == name.strip() and bare in OPERATOR_NAMES:
            return [Symbol("\\" + bare)], first + 1
        return [Symbol("\\operatorname"), _group(node, "math")], first + 1
    elif macro.name in _FONTS and not arguments:
        return [_font(macro.name, _argument(node, mode))], first + 1
    elif macro.name in _FRACTIONS and not arguments:
        return _loose_fraction(macro.name, rest, first, mode)
    elif macro.name in _LAPS and isinstance(node, Braces):
        group = _group(node, mode)
        is_phantom = macro.name == "phantom"
        return [Phantom(group.items) if is_phantom else Command("\\" + macro.name, group, is_font=False)], first + 1
    elif macro.name == "rule":
        return _rule(rest, first)
    return None


def _loose_fraction(name: str, rest: list[LatexNode], first: int, mode: Mode) -> tuple[list[Item], int] | None:
    """A fraction whose parts are not read as its arguments; what is left of a word's node stays in the list."""
    has_bar = name != "binom"
    upper = rest[first]
    if not has_bar and isinstance(upper, Chars) and (words := _TWO_WORDS.fullmatch(upper.text)):
        rest[first] = Chars(words[3])
        parts = (one(converted([Chars(words[place])], mode)) for place in (1, 2))
        return [Fraction(False, *parts)], first
    second = _next(rest, first)
    if second == len(rest):
        return None
    lower = rest[second]
    if isinstance(upper, Braces) and isinstance(lower, Braces):
        return [Fraction(has_bar, _group(upper, mode), _group(lower, mode))], second + 1
    if has_bar or _is_tab(upper) or _is_tab(lower):
        return None
    word = _WORD.fullmatch(lower.text) if isinstance(lower, Chars) else None
    cut = word if word and word[2].strip() else None
    below: Sequence[LatexNode] = [Chars(cut[1])] if cut else _children(lower)
    numerator, denominator = converted(_children(upper), mode), converted(below, mode)
    if not (numerator and denominator):
        return None
    fraction = Fraction(False, one(numerator), one(denominator))
    if cut is None:
        return [fraction], second + 1
    rest[second] = Chars(cut[2])
    return [fraction], second


def _rule(rest: list[LatexNode], first: int) -> tuple[list[Item], int] | None:
    second = _next(rest, first)
    if second == len(rest):
        return None
    sizes = [
        _SIZE.fullmatch(_plain(node)) if isinstance(node, Braces) else None for node in (rest[first], rest[second])
    ]
    if not (sizes[0] and sizes[1]):
        return None
    width, height = (Dimension(float(size[1] + size[2]), size[3]) for size in sizes if size)
    return [Rule(width, height)], second + 1


def _add(items: list[Item], node: LatexNode, mode: Mode) -> None:
    """Convert a node by itself."""
    if mode == "math" and items and isinstance(items[-1], Mark):
        mode = "script"
    match node:
        case Chars(text) | Special(text):
            _add_characters(items, text, mode)
        case Braces():
            items.append(_group(node, mode))
        case Math():
            items += [Symbol("$"), *converted(node.nodes), Symbol("$")]
        case Comment():
            pass
        case Environment():
            items.append(converted_environment(node, converted))
        case Macro():
            items += _macro(node, "text" if mode == "text" else "math")
            leaves_blank = mode == "text" and bool(node.post_space) and node.name not in _UNSPACED
            if leaves_blank and not (items and items[-1] is BLANK):
                items.append(BLANK)


def _add_characters(items: list[Item], text: str, mode: Mode) -> None:
    at = 0
    while at < len(text):
        sign = text[at]
        at += 1
        if sign.isspace():
            if mode == "text" and not text[at - 2 : at - 1].isspace():
                items.append(BLANK)
        elif sign in "^_":
            items.append(Mark(sign))
        elif mode == "text":
            items.append(Symbol(sign))
        elif sign == "'" and mode == "math":
            count = len(text) - at + 1 - len(text[at - 1 :].lstrip("'"))
            at += count - 1
            items += [Mark("^"), PRIME if count == 1 else Group((PRIME,) * count)]
        elif text[at - 1 : at + 1] == "--":
            at += 1
            items.append(Symbol("--", splits=True))
        else:
            items.append(Symbol(sign))


def _macro(macro: Macro, mode: Mode) -> list[Item]:
    """Convert a macro with its arguments."""
    name, arguments, places = macro.name, arguments_of(macro), macro.arguments or ()
    if name in ("limits", "nolimits"):
        return []
    if name in _LIMITED | _LIMITLESS:
        return [Operator("\\" + name, limits=name in _LIMITED, is_symbol=False)]
    if name in _FRACTIONS:
        upper, lower = arguments[:2] if len(arguments) > 1 else (None, None)
        return [Fraction(name != "binom", _argument(upper, mode), _argument(lower, mode))]
    if name == "sqrt":
        index, body = (places[0], places[-1]) if len(places) > 1 else (None, None)
        return [Root(None if index is None else _argument(index, mode), _argument(body, mode))]
    first = arguments[0] if arguments else None
    if name in _ACCENTS:
        return [Braced("\\" + name, _argument(first, mode), always=False)]
    if name in _FONTS:
        return [_font(name, _argument(first, mode))]
    if name == "text":
        return [Text(converted(_children(first), "text"))]
    if name in ("overline", "underline"):
        return [Braced("\\" + name, _argument(first, mode), always=True)]
    found: list[Item] = [Symbol("\\" + name)]
    for argument in arguments:
        if _is_group(argument, "["):
            found += [Symbol("["), *converted(_children(argument), mode), Symbol("]")]
        else:
            found += [_group(argument, mode)] if isinstance(argument, Braces) else converted([argument], mode)
    return found


def _next(nodes: Sequence[LatexNode], at: int) -> int:
    """The place of the next node that is not only blanks; the end of the list where there is none."""
    for place in range(at + 1, len(nodes)):
        node = nodes[place]
        if not isinstance(node, Chars) or node.text.strip():
            return place
    return len(nodes)


def _is_group(node: LatexNode | None, opening: str) -> bool:
    return isinstance(node, Braces) and node.opening == opening


def _is_tab(node: LatexNode) -> bool:
    """True if this ends a cell or a row."""
    return (isinstance(node, Special) and node.chars == "&") or (isinstance(node, Macro) and node.name == "\\")


def arguments_of(node: Macro | Environment) -> list[LatexNode]:
    """The arguments that are there."""
    return [argument for argument in node.arguments or () if argument is not None]


def _children(node: LatexNode | None) -> Sequence[LatexNode]:
    return node.nodes if isinstance(node, Braces | Environment | Math) else [] if node is None else [node]


def _plain(node: Braces) -> str:
    return "".join(child.text for child in node.nodes if isinstance(child, Chars))


def _group(node: LatexNode, mode: Mode) -> Group:
    return Group(converted(_children(node), mode))


def _argument(node: LatexNode | None, mode: Mode) -> Node:
    """An argument: a group stays one, and so does nothing; a single thing needs no braces."""
    if node is None or isinstance(node, Braces):
        return Group(converted(_children(node), mode))
    return one(converted([node], mode))


def _font(name: str, body: Node) -> Command:
    return Command("\\mathrm" if name in ("mbox", "hbox") else "\\" + name, body)


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


# These two by identity: a formula can have a tie and a \prime of its own.
BLANK: Final = Symbol("~")  # a blank of a text
PRIME: Final = Symbol(r"\prime")  # what a `'` is short for
_TYPED_PRIME: Final = Symbol("'")
_JOINED: Final = Symbol("primes of several superscripts")


@dataclass(frozen=True, slots=True)
class Mark:
    """`^` or `_` before it is known what it belongs to."""

    sign: str


Item = Node | Mark


def one(nodes: tuple[Node, ...]) -> Node:
    """A single node as it is, others as a group."""
    return nodes[0] if len(nodes) == 1 else Group(nodes)


def with_scripts(items: Sequence[Item]) -> tuple[Node, ...]:
    """The items with the marks behind them as their scripts."""
    found: list[Node] = []
    at = 0
    while at < len(items):
        item = items[at]
        if isinstance(item, Mark):
            found.append(Symbol(item.sign))
            at += 1
            continue
        sub, sup, end = _scripts(items, at + 1)
        if sub is None and sup is None:
            # Then nothing in between has scripts, either: the last mark of each kind finds nothing.
            found += (Symbol(each.sign) if isinstance(each, Mark) else each for each in items[at:end])
        else:
            found.append(Scripts(item, sub, sup))
        at = end
    return tuple(found)


def _scripts(items: Sequence[Item], at: int) -> tuple[Node | None, Node | None, int]:
    """Sub- and superscript that begin at a place, and where they end."""
    found: dict[str, Node | None] = {"_": None, "^": None}
    primes: list[Node] | None = None  # of the superscript, where it is nothing else
    while at < len(items) and isinstance(mark := items[at], Mark):
        at += 1
        place = at
        while place < len(items) and items[place] is BLANK:
            place += 1
        script = items[place] if place < len(items) else None
        if script is None or isinstance(script, Mark):
            found[mark.sign] = None
            continue
        at = place + 1
        if mark.sign == "_":
            found["_"] = script
            continue
        more = _primes(_bare_primes(script))
        if more is not None and primes is not None and found["^"] is not None:
            primes += more
            found["^"] = _JOINED
        else:
            primes, found["^"] = more, _bare_primes(script)
    sup = Group(tuple(primes or ())) if found["^"] is _JOINED else found["^"]
    return found["_"], sup, at


def _bare_primes(script: Node) -> Node:
    """The primes of a group that begins with a stray `^`."""
    if not (isinstance(script, Group) and script.items and script.items[0] == Symbol("^")):
        return script
    found = [_primes(item) for item in script.items[1:]]
    primes = [prime for some in found if some for prime in some]
    return one(tuple(primes)) if found and all(found) else script


def _primes(script: Node) -> list[Node] | None:
    """A prime, or those in a group; None where it is anything else. A `\\prime` that stood there is none."""
    items = script.items if isinstance(script, Group) else (script,)
    return list(items) if items and all(item is PRIME or item == _TYPED_PRIME for item in items) else None
