"""Matching braces in a list of tokens, and what a formula that upstream cannot colour is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

# Upstream's lists have no such limits; these keep the time of hostile input bounded. Formulas of more than 5,800
# visible tokens cannot be coloured, and TeX allows 255 groups inside each other.
MAX_CHARACTERS: Final = 200_000
MAX_TOKENS: Final = 50_000
MAX_TOTAL_DEPTH: Final = 5_000_000


class NotColouredError(Exception):
    """Upstream fails on this formula before it is rendered, so it counts as not rendered."""


def matching_brace(tokens: Sequence[str], start: int, left: str = "{", right: str = "}") -> int:
    """The position of the brace that closes what opens at the start.

    -1 if nothing opened, which upstream uses as a position, as it uses positions past a brace that was never open.
    """
    depth = 0
    for position in range(start, len(tokens)):
        token = tokens[position]
        if token == left:
            depth += 1
        elif token == right:
            depth -= 1
            if depth == 0:
                return position
    if depth > 0:
        raise NotColouredError(f"no {right} for the {left} at token {start}")
    return -1


def token_at(tokens: Sequence[str], position: int) -> str:
    """The token at a position; upstream fails where the list has ended."""
    if position >= len(tokens):
        raise NotColouredError("an argument is missing at the end")
    return tokens[position]


def check_size(tokens: Sequence[str]) -> None:
    """Refuse lists whose braces would take too long to match: too many tokens, or too many inside each other."""
    if len(tokens) > MAX_TOKENS:
        raise NotColouredError(f"more than {MAX_TOKENS} tokens")
    if len(tokens) ** 2 <= MAX_TOTAL_DEPTH:
        return
    for left, right in (("{", "}"), ("[", "]"), ("(", ")")):
        depth = total = 0
        for token in tokens:
            if token == left:
                depth += 1
            elif token == right and depth:
                depth -= 1
            total += depth
        if total > MAX_TOTAL_DEPTH:
            raise NotColouredError(f"too many {left} inside each other")
