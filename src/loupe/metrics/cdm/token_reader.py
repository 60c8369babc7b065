"""The next token of a formula, and the small things that are read token by token.

Protocol: docs/protocols/cdm.md#parser. The official parser keeps what it consumes; for tables that is its output.
"""

from __future__ import annotations

from loupe.metrics.cdm.grammar import DELIMITERS, WHOLE_SYMBOLS
from loupe.metrics.cdm.lexer import NotTokenizedError, after_spaces, colour_at, next_in_math, next_in_text, size_at
from loupe.metrics.cdm.tree import Dimension, Symbol


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
