r"""Formulas of groups and macros as plain characters, as pylatexenc 3.0a30 has them, in a hundredth of its time.

Whatever is more than that (environments, comments, optional arguments, `&`, `~`, quotes, faults) is left to pylatexenc.
"""

from __future__ import annotations

import re

from loupe.benchmarks.shared.latex_text.latex_macros import macro

#: Bounds of what is read here; pylatexenc has its own.
_MAX_DEPTH = 20
_MAX_TEXT = 20_000
_NOT_PLAIN = re.compile(r"[$%&~]|--|''|``|[!?]`|\n.*\n|\\(?:begin|end|[()\[\]])", re.DOTALL)
_TOKEN = re.compile(r"(?P<chars>[^\\{}]+)|\\(?P<name>[A-Za-z]+)(?P<blanks>\s*)|(?P<brace>[{}])|\\(?P<sign>[^A-Za-z])")
_BLANKS = re.compile(r"\s*")
#: How pylatexenc begins the lines of a displayed formula.
_INDENTED = "\n    "


class _NotPlainError(Exception):
    """pylatexenc has to read this."""


def plain_latex_to_text(latex: str) -> str | None:
    r"""The text of a simple formula; None where pylatexenc has to be asked.

    >>> plain_latex_to_text(r"\alpha_{1}+\frac{a}{b}")
    'α_1+a/b'
    """
    if latex.startswith("$$") and latex.endswith("$$") and len(latex) > 4:
        text = _plain(latex[2:-2].strip(), displayed=True)
        return None if text is None else _INDENTED + text.strip().replace("\n", _INDENTED) + "\n"
    return _plain(latex, displayed=False)


def _plain(latex: str, *, displayed: bool) -> str | None:
    if _NOT_PLAIN.search(latex):
        return None
    try:
        return _Reader(latex, displayed=displayed).read(0)
    except _NotPlainError:
        return None


class _Reader:
    """`displayed`: blanks after the name of a macro stay before characters, and blanks alone are nothing."""

    def __init__(self, latex: str, *, displayed: bool) -> None:
        self._latex = latex
        self._displayed = displayed
        self._position = 0

    def read(self, depth: int) -> str:
        """The text up to the end of the group, or of the formula."""
        parts: list[str] = []
        blanks = ""
        while token := self._token():
            if token["chars"]:
                parts.append(self._characters(token["chars"], blanks))
            elif token["brace"] == "}":
                if depth == 0:
                    raise _NotPlainError
                return "".join(parts)
            else:
                parts.append(self._group(depth) if token["brace"] else self._macro(token, depth))
            blanks = self._blanks_after(token)
        if depth or self._position < len(self._latex):
            raise _NotPlainError
        return "".join(parts)

    def _token(self) -> re.Match[str] | None:
        token = _TOKEN.match(self._latex, self._position)
        if token:
            self._position = token.end()
        return token

    def _blanks_after(self, token: re.Match[str]) -> str:
        """The blanks behind the name of a macro that stay before characters; only a displayed formula has any."""
        if not self._displayed or not token["blanks"]:
            return ""
        found = macro(token["name"])
        if found and found.arguments and "{" not in found.arguments:
            raise _NotPlainError
        return "" if found and found.arguments else token["blanks"]

    def _characters(self, characters: str, blanks: str) -> str:
        """Characters as they stand; in a displayed formula blanks alone are nothing."""
        if self._displayed:
            return blanks + characters if characters.strip() else ""
        return characters

    def _group(self, depth: int) -> str:
        if depth == _MAX_DEPTH:
            raise _NotPlainError
        return self.read(depth + 1)

    def _macro(self, token: re.Match[str], depth: int) -> str:
        found = macro(token["name"] or token["sign"])
        if found is None:
            raise _NotPlainError
        text = found.render([self._argument(kind, depth) for kind in found.arguments])
        if len(text) > _MAX_TEXT:
            raise _NotPlainError
        return text

    def _argument(self, kind: str, depth: int) -> str:
        blanks = _BLANKS.match(self._latex, self._position)
        start = blanks.end() if blanks else self._position
        if kind != "{":
            if self._latex.startswith(kind, start):
                raise _NotPlainError
            return ""
        self._position = start
        token = self._token()
        if token is None or token["brace"] == "}":
            raise _NotPlainError
        if token["chars"]:
            self._position = start + 1
            return token["chars"][0]
        if token["brace"]:
            return self._group(depth)
        found = macro(token["name"] or token["sign"])
        if found is None or found.arguments:
            raise _NotPlainError
        return found.render(())
