r"""Formulas in a text as the characters that they show: `$c_{\text{MC}}$` is cMC.

Protocol: docs/protocols/omni_parse_bench.md#formulas-in-text. Dollars also stand before amounts, so what is long, loose
or prose stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from loupe.benchmarks.omni_parse_bench.text.spans import Held, Mark, between, replaced
from loupe.benchmarks.shared.latex_text.latex_characters_2_10 import convert

_BRACKET, _BRACKET_END = re.compile(r"\\\["), re.compile(r"\\\]")
_PARENTHESIS, _PARENTHESIS_END = re.compile(r"\\\("), re.compile(r"\\\)")
_DISPLAYED = re.compile(r"\$\$(.+?)\$\$", re.S)
_IN_LINE = re.compile(r"\$([^$\n]+?)\$")
_LETTERS = re.compile(r"[^\W\d_]{1,3}")
_SPACED_DIGITS = re.compile(r"\d[\d.,]*(?:\s+[\d.,]+)+")
_MARKUP = re.compile(r"[\\^_{}]")
_LEFT_OVER = re.compile(r"[_^{}\\]")
_TEXT_GROUP = re.compile(r"\\(?:text\w*|mbox|operatorname)\s*\{(?:[^{}]|\{[^{}]*\})*\}\s*")
_CONTROL_SPACE = re.compile(r"(?<!\\)\\\s+")
_SPACE_OF_COMMAND = re.compile(r"(\\[A-Za-z]+)\s+")
_BRACED = re.compile(r"\{[^{}]*\}")
_WORD = re.compile(r"(?<![\\\w&])[^\W\d_]{3,}")
#: pylatexenc 2.11, unlike 2.10, shows what stands in it, as in `\mathrm`.
_ENSUREMATH = re.compile(r"(?<!\\)((?:\\\\)*)\\ensuremath(?![^\W\d_])")
_LONGEST, _MOST_BLANKS, _PROSE_WORDS = 120, 4, 3


def with_formulas_as_text(text: str) -> str:
    """The text with its formulas as characters. Raises GradingError where the official program raises."""
    if "\\[" in text:
        found = between(text, _BRACKET, _BRACKET_END, least=1)
        text = replaced(text, found, _between_signs(text, "$$"))
    if "\\(" in text:
        found = between(text, _PARENTHESIS, _PARENTHESIS_END, least=1)
        text = replaced(text, found, _between_signs(text, "$"))
    if "$" not in text:
        return text
    text = _DISPLAYED.sub(lambda found: _shown(found[1], found[0], in_line=False), text)
    return _IN_LINE.sub(lambda found: _shown(found[1], found[0], in_line=True), text)


def _between_signs(text: str, sign: str) -> Callable[[Mark, Mark], str]:
    return lambda start, end: f"{sign}{text[start.end() : end.start()]}{sign}"


def _shown(body: str, written: str, *, in_line: bool) -> str:
    """What a formula shows, or it as it is written."""
    if _LETTERS.fullmatch(body.strip()):
        return body.strip()
    if len(body) > _LONGEST and "\ue000" not in body and not _SPACED_DIGITS.fullmatch(body):
        return written
    dense = _dense(body)
    if _SPACED_DIGITS.fullmatch(body):
        return dense
    if dense.count(" ") > _MOST_BLANKS or len(body) > _LONGEST or (in_line and _is_prose(body)):
        return written
    if not _MARKUP.search(body):
        return body if body == body.strip() else written
    text = _characters(dense)
    return _LEFT_OVER.sub("", (body if text is None else text).replace("∘", "°").replace("\\circ", "°"))


@lru_cache(maxsize=8_192)
def _characters(latex: str) -> str | None:
    return convert(_ENSUREMATH.sub(r"\1\\mathrm", latex)).text


def _dense(body: str) -> str:
    """Without white space that shows nothing: all but that in texts, behind commands and behind a backslash."""
    held = Held()
    body = held.hold(body, _TEXT_GROUP)
    body = _SPACE_OF_COMMAND.sub(lambda found: found[1] + "\0", _CONTROL_SPACE.sub("\0", body))
    return held.put_back("".join(body.split()).replace("\0", " "))


def _is_prose(body: str) -> bool:
    """Whether words stand between the dollars, outside of all braces."""
    while (outside := _BRACED.sub(" ", body)) != body:
        body = outside
    return len(_WORD.findall(body)) >= _PROSE_WORDS
