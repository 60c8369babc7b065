"""LaTeX as plain characters: pylatexenc 3.0a30, which OmniDocBench pins, with bounded work.

Protocol: docs/protocols/omnidocbench.md#normalisation and #samples.
pylatexenc never returns on a backslash at the end, doubles a text with every accent on an accent, and needs quadratic
time. What exceeds the limits below, far above any formula of a page, is left as if pylatexenc had raised an exception.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

from loupe.benchmarks.shared.latex_text.latex_macros import contexts
from loupe.benchmarks.shared.latex_text.plain_latex import plain_latex_to_text

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
    r"""How deep braces, brackets and environments are nested at most, one added to the other."""
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
    """What pylatexenc makes of a formula. Raises whatever it raises, and where it goes on without end."""
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
