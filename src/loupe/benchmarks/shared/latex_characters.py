"""Convert LaTeX to plain characters as pylatexenc 3.0a30 does, which OmniDocBench pins, with bounded work.

Formulas of groups and macros alone take a hundredth of the library's time. Its own tables of macros are read once.
"""

from __future__ import annotations

import logging
import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from typing import Any, NamedTuple

from loupe.data.extras import install_hint, installed
from loupe.errors import MissingToolError

#: Characters of a formula, of any text that comes of a part of it, and how deep it may be nested; upstream, with
#: Python's usual limit of recursion, fails from 54 macros within one another on.
MAX_LENGTH = 10_000
MAX_TEXT = 20_000
MAX_NESTING = 50
#: How often a token may be looked at, for each character: pylatexenc needs 4.
_MAX_LOOKS = 50
_CACHED_LENGTH = 400
_NESTING_MARKS = re.compile(r"\\(begin|end)|\\.|([{}\[\]])", re.DOTALL)


class Conversion(NamedTuple):
    """The text of a formula, None where it stays LaTeX: beyond our limits, or for an exception of pylatexenc."""

    text: str | None
    beyond_limits: bool = False
    error: str = ""


class BeyondLimitsError(Exception):
    """A formula asks for more work than any of a page."""


def latex_to_text(latex: str) -> str | None:
    r"""The text of a formula; None where pylatexenc raises, or the formula is beyond all limits.

    >>> latex_to_text(r"\alpha_{1}")
    'α_1'
    """
    return convert(latex).text


def convert(latex: str) -> Conversion:
    """As `latex_to_text`, and says why where there is no text."""
    latex = with_space_behind_a_last_backslash(latex)
    return _convert_short(latex) if len(latex) <= _CACHED_LENGTH else _convert(latex)


def with_space_behind_a_last_backslash(latex: str) -> str:
    """Without it pylatexenc 3.0a30 never returns; upstream adds it too.

    Protocol: docs/protocols/omnidocbench.md#normalisation.
    """
    return latex + " " if latex.endswith("\\") else latex


def _convert(latex: str) -> Conversion:
    if len(latex) > MAX_LENGTH:
        return Conversion(None, beyond_limits=True)
    plain = plain_latex_to_text(latex)
    if plain is not None:
        return Conversion(plain)
    if nesting(latex) > MAX_NESTING:
        return Conversion(None, beyond_limits=True)
    contexts()  # a missing extra must not look like a formula that cannot be read
    try:
        return Conversion(pylatexenc_text(latex))
    except BeyondLimitsError:
        return Conversion(None, beyond_limits=True)
    except Exception as error:  # noqa: BLE001  upstream catches all: pylatexenc trips over much that is not LaTeX
        return Conversion(None, error=type(error).__name__)


_convert_short = lru_cache(maxsize=2048)(_convert)


def nesting(latex: str) -> int:
    r"""Return how deep braces, brackets and environments are nested at most, one added to the other."""
    deepest, depth = dict.fromkeys("{[b", 0), dict.fromkeys("{[b", 0)
    for mark in _NESTING_MARKS.finditer(latex):
        kind = {"begin": "b", "{": "{", "[": "["}.get(mark[1] or mark[2] or "")
        if kind:
            depth[kind] += 1
            deepest[kind] = max(deepest[kind], depth[kind])
        elif closed := {"end": "b", "}": "{", "]": "["}.get(mark[1] or mark[2] or ""):
            depth[closed] = max(0, depth[closed] - 1)
    return sum(deepest.values())


def pylatexenc_text(latex: str) -> str:
    """Return what pylatexenc makes of a formula. Raises whatever it raises, and if it goes on without end."""
    from pylatexenc.latex2text import LatexNodes2Text
    from pylatexenc.latexnodes.parsers import LatexGeneralNodesParser
    from pylatexenc.latexwalker import LatexWalker

    texts, arguments = contexts()
    walker = LatexWalker(latex, latex_context=arguments)
    reader = walker.make_token_reader()
    reader.peek_token = _counted(reader.peek_token, _MAX_LOOKS * (len(latex) + 10))
    converter = LatexNodes2Text(latex_context=texts)
    converter.node_to_text = _bounded(converter.node_to_text)
    converter.nodelist_to_text = _bounded(converter.nodelist_to_text)
    with _deeper_recursion():
        nodes, _ = walker.parse_content(LatexGeneralNodesParser(), token_reader=reader)
        return str(converter.nodelist_to_text(nodes))


def _counted(peek: Callable[..., Any], limit: int) -> Callable[..., Any]:
    looks = 0

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal looks
        looks += 1
        if looks > limit:
            raise BeyondLimitsError
        return peek(*arguments, **named)

    return counted


def _bounded(to_text: Callable[..., str]) -> Callable[..., str]:
    def bounded(*arguments: Any, **named: Any) -> str:
        text = to_text(*arguments, **named)
        if len(text) > MAX_TEXT:
            raise BeyondLimitsError
        return text

    return bounded


@contextmanager
def _deeper_recursion() -> Iterator[None]:
    """Room for MAX_NESTING, however deep the caller already is: what comes out must not depend on that."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(usual + 60 * MAX_NESTING)
    try:
        yield
    finally:
        sys.setrecursionlimit(usual)


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


Render = Callable[[Sequence[str]], str]

#: The version that OmniDocBench pins; 2.11 ends the names of macros elsewhere, and recovers from faults otherwise.
PYLATEXENC = "3.0a30"

#: These give the day of the run, and scores depend on no clock; they give nothing here.
CLOCKS = ("today", "maketitle")


class Macro(NamedTuple):
    """The way to read and write a macro: `arguments` is made of `{`, `[` and `*`."""

    arguments: str
    render: Render


def need_pylatexenc(purpose: str = "OmniDocBench") -> None:
    """Raise MissingToolError unless exactly the version is installed that gives the official texts."""
    version = installed("pylatexenc")["pylatexenc"]
    if version != PYLATEXENC:
        raise MissingToolError(
            f"{purpose} needs pylatexenc {PYLATEXENC}, whose tables serve versions that pin 2.10 or 2.11, too; "
            f"version {version or 'none'} is installed",
            hint=install_hint(""),
        )


@cache
def contexts() -> tuple[Any, Any]:
    """pylatexenc's tables of texts and of arguments; it would make them anew for every formula.

    Raises MissingToolError.
    """
    need_pylatexenc()
    from pylatexenc.latex2text import MacroTextSpec
    from pylatexenc.latex2text import get_default_latex_context_db as texts
    from pylatexenc.latexwalker import get_default_latex_context_db as arguments

    logging.getLogger("pylatexenc").setLevel(logging.CRITICAL)  # it warns of what is not LaTeX
    changed = texts()
    changed.add_context_category("clocks", macros=[MacroTextSpec(name) for name in CLOCKS], prepend=True)
    return changed, arguments()


@lru_cache(maxsize=4096)
def macro(name: str) -> Macro | None:
    """The macro of this name; None where only pylatexenc itself knows what comes of it."""
    texts, arguments = contexts()
    spec = arguments.get_macro_spec(name)
    kinds = [kind if isinstance(kind, str) else kind.parser for kind in spec.arguments_spec_list or ()]
    usual = type(spec.arguments_parser).__name__ in ("LatexArgumentsParser", "LatexNoArgumentsParser")
    if not usual or not all(isinstance(kind, str) and kind in "{[*" for kind in kinds):
        return None
    render = render_of(texts.get_macro_spec(name))
    return render and Macro("".join(kinds), render)


def render_of(spec: Any) -> Render | None:
    """Return how a macro is written, given the texts of its arguments; None where only pylatexenc itself knows it."""
    replacement = spec.simplify_repl if spec else None
    if not replacement:
        return "".join if spec and not spec.discard else lambda arguments: ""
    if isinstance(replacement, str):
        is_pattern = "%" in replacement and replacement != "%"
        return (lambda arguments: _filled(replacement, arguments)) if is_pattern else lambda arguments: replacement
    if accent := accents().get(getattr(spec, "macroname", "")):
        return lambda arguments: accented(arguments[0], accent)
    if replacement.__name__ == "formatter":
        style = replacement.__defaults__[0]
        return lambda arguments: _styled(arguments[0], style)
    return None


def _filled(pattern: str, arguments: Sequence[str]) -> str:
    """The pattern with its arguments; the pattern itself where it has another number of them, as in pylatexenc."""
    try:
        if "%s" in pattern:
            return pattern % tuple(arguments)
        return pattern % {str(number): argument for number, argument in enumerate(arguments, start=1)}
    except (TypeError, KeyError):
        return pattern


@cache
def accents() -> dict[str, str]:
    """The combining character of each accent macro."""
    from pylatexenc.latex2text._defaultspecs import unicode_accents_list

    return dict(unicode_accents_list)


def accented(text: str, accent: str) -> str:
    """Every character with the accent, composed where Unicode has it; dotless i and j get their dots back."""
    dotted = text.strip().replace("ı", "i").replace("ȷ", "j")
    return "".join(unicodedata.normalize("NFC", character + accent) for character in dotted)


def _styled(text: str, style: str) -> str:
    from pylatexenc.latex2text import fmt_math_text_style

    return str(fmt_math_text_style(text, style))
