"""The kinds of nodes that LaTeX falls into, after pylatexenc 2.10."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias


class Chars(NamedTuple):
    """Characters as they stand in the source, blanks and newlines among them."""

    text: str


class Comment(NamedTuple):
    """From a `%` to the end of its line; `post_space` is the newline and the blanks that open the next line."""

    text: str
    post_space: str


class Special(NamedTuple):
    """`&`, `~`, or characters that LaTeX joins: quotes, dashes, inverted marks."""

    chars: str


class Group(NamedTuple):
    """What stands in braces, or in the brackets of an optional argument."""

    nodes: list[Node]
    opening: str
    closing: str


class Math(NamedTuple):
    """A formula between its delimiters."""

    nodes: list[Node]
    opening: str
    closing: str

    @property
    def displayed(self) -> bool:
        """Whether it stands on a line of its own."""
        return self.opening in ("$$", "\\[")


class Macro(NamedTuple):
    """A command with the arguments that it is known to take.

    `arguments` has one entry for each place, None for an optional one that is not there. It is None as a whole where
    the input ends before they do, and for a macro that is itself an argument: that one takes none. `post_space` is
    the white space behind the name.
    """

    name: str
    arguments: tuple[Node | None, ...] | None
    post_space: str


class Environment(NamedTuple):
    """From `\\begin{name}` to `\\end{name}`; `arguments` as those of a macro."""

    name: str
    arguments: tuple[Node | None, ...] | None
    nodes: list[Node]


Node: TypeAlias = Chars | Comment | Special | Group | Math | Macro | Environment
