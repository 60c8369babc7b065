"""Read LaTeX as a tree of nodes, as pylatexenc 2.10 does in its tolerant mode, with bounded work.

Two benchmarks and a profile of CDM pin 2.10, OmniDocBench 1.5 pins 3.0a30, and one environment holds only one of
them. Nothing is an error of syntax. Source: pylatexenc 2.10, whose answers the tests hold this against. What closes
nothing is skipped; what is never closed ends with the input; a macro whose arguments the input cuts off has none,
and they are read once more as what follows.

OmniDocBench 1.6 first checks whether LaTeX closes what it opens: docs/protocols/omnidocbench_v16.md#latex-to-text.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, TypeAlias

from loupe.metrics.latex_arguments import ENVIRONMENT_ARGUMENTS, MACRO_ARGUMENTS, MATH_ENVIRONMENTS, TEXT_MACROS

__all__ = [
    "BeyondLimitsError",
    "Chars",
    "Comment",
    "Environment",
    "Group",
    "Macro",
    "Math",
    "Node",
    "Special",
    "UnreadableLatexError",
    "is_damaged",
    "read_latex",
]


#: How deep nodes may lie within one another. pylatexenc ends by Python's limit of recursion at 110 to 320.
MAX_NESTING: Final = 100
#: How many tokens may be read for each character: input that is cut off is read again and again.
_MAX_READS: Final = 8

_SPECIAL = r"&|~|---?|``|''|[!?]`"
_MARK = re.compile(rf"[\\%{{}}$]|{_SPECIAL}")
_MARK_IN_BRACKETS = re.compile(rf"[\\%{{}}$\[\]]|{_SPECIAL}")
_SPECIALS = re.compile(_SPECIAL)
_BLANKS = re.compile(r"\s*")
_NAME = re.compile(r"[^\W\d_]+")
_ENVIRONMENT_NAME = re.compile(r"\s*\{([\w* ._-]+)\}")
_LINE_END = re.compile(r"[\n\r]\s*")
_CLOSING = {"{": "}", "[": "]", "\\(": "\\)", "\\[": "\\]"}


class BeyondLimitsError(Exception):
    """LaTeX that asks for more work than any formula of a page."""


class UnreadableLatexError(Exception):
    """LaTeX on which pylatexenc 2.10 itself ends with an exception."""


class _EndOfInputError(Exception):
    """There is no further token."""


class _Stop(NamedTuple):
    """The end of a list of nodes: a brace, the name of an environment, or a delimiter of a formula."""

    brace: str = ""
    environment: str = ""
    formula: str = ""


_NEVER: Final = _Stop()


class _Name(NamedTuple):
    """A macro in the source: its name, where it ends, with the white space behind it, and this."""

    name: str
    end: int
    post_space: str


def read_latex(latex: str) -> list[Node]:
    r"""The nodes of a piece of LaTeX.

    Raises UnreadableLatexError where pylatexenc 2.10 raises, BeyondLimitsError for what is nested deeper than
    MAX_NESTING or needs more work than any formula.

    >>> read_latex(r"\alpha x")
    [Macro(name='alpha', arguments=(), post_space=' '), Chars(text='x')]
    """
    with _deeper_recursion():
        return _Reader(latex).nodes(0, _NEVER, in_dollar=False)[0]


class _Reader:
    def __init__(self, latex: str) -> None:
        self._latex = latex
        self._length = len(latex)
        self._reads_left = _MAX_READS * (len(latex) + 10)
        self._depth = 0

    def nodes(self, position: int, stop: _Stop, *, in_dollar: bool) -> tuple[list[Node], int]:
        """The nodes up to what stops them, and where that ends."""
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise BeyondLimitsError
        latex, found, start = self._latex, list[Node](), position
        marks = _MARK_IN_BRACKETS if stop.brace == "]" else _MARK
        while mark := marks.search(latex, position):
            self._count()
            at, sign = mark.start(), mark[0]
            if sign == "\\":
                if at + 1 == self._length:  # the blanks before it are lost
                    position = end = start + _up_to_last_paragraph(latex[start:at])
                    break
                macro = self._name(at)
                if macro.name in ("begin", "end") and not _ENVIRONMENT_NAME.match(latex, at + 1 + len(macro.name)):
                    position = at + 1 + len(macro.name)
                    continue
            if at > start:
                found.append(Chars(latex[start:at]))
            if sign == "\\":
                closed, position = self._command(at, macro, found, stop, in_dollar)
            elif sign in "{[":
                closed = False
                group, position = self._group(at, in_dollar=in_dollar)
                found.append(group)
            elif sign in "}]":
                closed, position = sign == stop.brace, at + 1
            elif sign == "$":
                closed, position = self._dollar(at, found, stop, in_dollar)
            elif sign == "%":
                closed = False
                comment, position = self._comment(at)
                found.append(comment)
            else:
                closed, position = False, mark.end()
                found.append(Special(sign))
            start = end = position
            if closed:
                break
        else:
            position = end = self._length
        if end > start:
            found.append(Chars(latex[start:end]))
        self._depth -= 1
        return found, position

    def _count(self) -> None:
        self._reads_left -= 1
        if self._reads_left < 0:
            raise BeyondLimitsError

    def _name(self, at: int) -> _Name:
        """The macro at a backslash; only behind letters is white space part of it, up to an empty line."""
        latex = self._latex
        letters = _NAME.match(latex, at + 1)
        name = _leading_letters(letters[0]) if letters else ""
        if not name:
            return _Name(latex[at + 1], at + 2, "")
        end = at + 1 + len(name)
        blanks = _BLANKS.match(latex, end)
        post_space = (blanks[0] if blanks else "").partition("\n\n")[0]
        return _Name(name, end + len(post_space), post_space)

    def _command(self, at: int, macro: _Name, found: list[Node], stop: _Stop, in_dollar: bool) -> tuple[bool, int]:
        """Add to the nodes what a backslash begins, and return whether it stops them, and where it ends."""
        name = macro.name
        if name in ("(", "["):
            return False, self._formula(f"\\{name}", at + 2, found)
        if name in (")", "]"):
            return stop.formula == f"\\{name}", at + 2
        if name in ("begin", "end"):
            environment = _ENVIRONMENT_NAME.match(self._latex, at + 1 + len(name))
            assert environment
            if name == "end":
                return environment[1] == stop.environment, environment.end()
            node, position = self._environment(environment[1], environment.end(), in_dollar=in_dollar)
            found.append(node)
            return False, position
        try:
            arguments, position = self._arguments_of_macro(name, macro.end, in_dollar=in_dollar)
        except _EndOfInputError:
            found.append(Macro(name, None, macro.post_space))
            return False, macro.end
        found.append(Macro(name, arguments, macro.post_space))
        return False, position

    def _dollar(self, at: int, found: list[Node], stop: _Stop, in_dollar: bool) -> tuple[bool, int]:
        sign = "$$" if self._latex.startswith("$$", at) and not in_dollar else "$"
        if stop.formula == sign:
            return True, at + len(sign)
        return False, self._formula(sign, at + len(sign), found)

    def _formula(self, opening: str, position: int, found: list[Node]) -> int:
        closing = _CLOSING.get(opening, opening)
        nodes, position = self.nodes(position, _Stop(formula=closing), in_dollar=opening == "$")
        found.append(Math(nodes, opening, closing))
        return position

    def _group(self, at: int, *, in_dollar: bool) -> tuple[Group, int]:
        opening = self._latex[at]
        nodes, position = self.nodes(at + 1, _Stop(brace=_CLOSING[opening]), in_dollar=in_dollar)
        return Group(nodes, opening, _CLOSING[opening]), position

    def _comment(self, at: int) -> tuple[Comment, int]:
        """A comment takes its newline and the blanks behind it, unless an empty line follows."""
        line_end = _LINE_END.search(self._latex, at)
        if line_end is None:
            return Comment(self._latex[at + 1 :], ""), self._length
        text, post_space = self._latex[at + 1 : line_end.start()], line_end[0]
        if post_space[1:2] in ("\n", "\r"):
            return Comment(text, ""), line_end.start()
        return Comment(text, post_space), line_end.end()

    def _environment(self, name: str, position: int, *, in_dollar: bool) -> tuple[Environment, int]:
        arguments: tuple[Node | None, ...] | None
        try:
            if name == "verbatim":
                arguments, position = self._verbatim(position)
            else:
                form = ENVIRONMENT_ARGUMENTS.get(name, "")
                arguments, position = self._arguments(form, position, in_dollar=in_dollar)
        except _EndOfInputError:
            arguments = None
        in_dollar = in_dollar and name not in MATH_ENVIRONMENTS
        nodes, position = self.nodes(position, _Stop(environment=name), in_dollar=in_dollar)
        return Environment(name, arguments, nodes), position

    def _verbatim(self, position: int) -> tuple[tuple[Node, ...], int]:
        end = self._latex.find("\\end{verbatim}", position)
        if end < 0:
            raise _EndOfInputError
        return (Chars(self._latex[position:end]),), end

    def _arguments_of_macro(self, name: str, position: int, *, in_dollar: bool) -> tuple[tuple[Node | None, ...], int]:
        if name == "verb":
            return self._verb(position)
        if name == "\\":
            return self._line_break(position, in_dollar=in_dollar)
        form = MACRO_ARGUMENTS.get(name, "")
        return self._arguments(form, position, in_dollar=in_dollar and name not in TEXT_MACROS)

    def _verb(self, position: int) -> tuple[tuple[Node, ...], int]:
        """Up to the next sign like the first one. Raises UnreadableLatexError where there is nothing at all."""
        if position == self._length:
            raise UnreadableLatexError
        blanks = _BLANKS.match(self._latex, position)
        position = blanks.end() if blanks else position
        end = self._latex.find(self._latex[position], position + 1) if position < self._length else -1
        if end < 0:
            raise _EndOfInputError
        return (Chars(self._latex[position + 1 : end]),), end + 1

    def _line_break(self, position: int, *, in_dollar: bool) -> tuple[tuple[Node | None, ...], int]:
        """The bracket of a line break stands directly behind it."""
        (star,), position = self._arguments("*", position, in_dollar=in_dollar)
        if position < self._length and self._latex[position].isspace():
            return (star, None), position
        (bracket,), position = self._arguments("[", position, in_dollar=in_dollar)
        return (star, bracket), position

    def _arguments(self, form: str, position: int, *, in_dollar: bool) -> tuple[tuple[Node | None, ...], int]:
        """The arguments of a form made of `*`, `[` and `{`. Raises _EndOfInputError."""
        found: list[Node | None] = []
        for kind in form:
            node: Node | None = None
            if kind == "{":
                node, position = self._expression(position, in_dollar=in_dollar)
            else:
                at = self._behind_blanks(position)
                is_paragraph = "\n\n" in self._latex[position:at]
                if kind == "*" and self._ends_at(at) and not is_paragraph:
                    raise _EndOfInputError
                if self._latex.startswith(kind, at) and not is_paragraph:
                    node, position = (Chars("*"), at + 1) if kind == "*" else self._group(at, in_dollar=in_dollar)
            found.append(node)
        return tuple(found), position

    def _ends_at(self, position: int) -> bool:
        """A last backslash is no token."""
        return position >= self._length - (self._latex[position : position + 1] == "\\")

    def _behind_blanks(self, position: int) -> int:
        blanks = _BLANKS.match(self._latex, position)
        return blanks.end() if blanks else position

    def _expression(self, position: int, *, in_dollar: bool) -> tuple[Node, int]:
        """One argument: a group, a macro without arguments of its own, or a character. Raises _EndOfInputError."""
        latex = self._latex
        while True:
            self._count()
            at = self._behind_blanks(position)
            if (paragraph := latex.find("\n\n", position, at)) >= 0:
                return Chars("\n\n"), paragraph + 2
            sign = latex[at : at + 1]
            if sign != "%":
                break
            position = self._comment(at)[1]
        if self._ends_at(at):
            raise _EndOfInputError
        if sign == "{":
            return self._group(at, in_dollar=in_dollar)
        if sign == "}":
            return Chars(""), at
        if sign == "$":
            sign = "$$" if latex.startswith("$$", at) and not in_dollar else "$"
            return Chars(sign), at + len(sign)
        if sign != "\\":
            special = _SPECIALS.match(latex, at)
            return (Special(special[0]), special.end()) if special else (Chars(sign), at + 1)
        macro = self._name(at)
        if macro.name == "end":
            return Chars(""), at
        if macro.name in ("(", ")", "[", "]"):
            return Macro(f"\\{macro.name}", (), ""), at + 2
        return Macro(macro.name, None, macro.post_space), macro.end


def _leading_letters(word: str) -> str:
    """`str.isalpha` has fewer letters than a regex: no Roman numerals, no raised digits."""
    if word.isalpha():
        return word
    return word[: next(index for index, sign in enumerate(word) if not sign.isalpha())]


def _up_to_last_paragraph(chars: str) -> int:
    """Count the characters to keep before a last backslash: all but blanks at the end without an empty line."""
    kept = len(chars.rstrip())
    while (paragraph := chars.find("\n\n", kept)) >= 0:
        kept = paragraph + 2
    return kept


@contextmanager
def _deeper_recursion() -> Iterator[None]:
    """Room for MAX_NESTING, however deep the caller already is: what comes out must not depend on that."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(usual + 10 * MAX_NESTING)
    try:
        yield
    finally:
        sys.setrecursionlimit(usual)


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
    """The content of braces, or in the brackets of an optional argument."""

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
        """True if it stands on a line of its own."""
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


_BRACE = re.compile(r"\\[{}\[\]()]|[{}]")
_ENVIRONMENT = re.compile(r"\\(begin|end)\{([^{}]+)\}")
_LEFT, _RIGHT = re.compile(r"\\left\b"), re.compile(r"\\right\b")
_DOLLAR = re.compile(r"(?<!\\)\$")


def is_damaged(latex: str, *, longest: int, delimiters: bool = True) -> bool:
    r"""True if it is too long or something in it does not close: braces, environments, `\left`, delimiters, dollars.

    Without `delimiters` the last three may be as they like.
    """
    if len(latex) > longest or not _braces_balance(latex) or not _environments_balance(latex):
        return True
    return delimiters and (
        len(_LEFT.findall(latex)) != len(_RIGHT.findall(latex))
        or latex.count("\\(") != latex.count("\\)")
        or latex.count("\\[") != latex.count("\\]")
        or len(_DOLLAR.findall(latex)) % 2 == 1
    )


def _braces_balance(latex: str) -> bool:
    depth = 0
    for brace in _BRACE.finditer(latex):
        if brace[0] in "{}":
            depth += 1 if brace[0] == "{" else -1
            if depth < 0:
                return False
    return depth == 0


def _environments_balance(latex: str) -> bool:
    opened: list[str] = []
    for mark in _ENVIRONMENT.finditer(latex) if "\\begin" in latex or "\\end" in latex else ():
        if mark[1] == "begin":
            opened.append(mark[2])
        elif not opened or opened.pop() != mark[2]:
            return False
    return not opened
