"""Sub- and superscripts, as the tokenizer of OmniDocBench 1.6 has them.

Protocol: docs/protocols/omnidocbench_v16.md#cdm-tokeniser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from loupe.metrics.cdm.tree import Group, Node, Scripts, Symbol

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
