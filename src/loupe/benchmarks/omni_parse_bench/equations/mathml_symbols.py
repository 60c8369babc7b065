"""MathML as a flat row of symbols: what an equation shows, whatever its LaTeX was.

Protocol: docs/protocols/omni_parse_bench.md#symbols. Structure is kept as marks (`frac(`, `_(`, `)`), fonts and spacing
are not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias
from xml.etree import ElementTree

from loupe.benchmarks.omni_parse_bench.outcomes import GradingError

Symbols: TypeAlias = tuple[str, ...]

#: Elements within one another. The official program ends by Python's limit of recursion, at about 480.
MAX_NESTING: Final = 400
_NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
_AROUND = re.compile(r"^<span[^>]*>|</span>$")
_INVISIBLE = frozenset("\u2061\u2062\u2063\u2064\u200b")
_LEFT_OUT = frozenset(("mspace", "mphantom", "annotation", "annotation-xml", "none", "mprescripts"))
_TOKENS = frozenset(("mi", "mn", "mo", "mtext", "ms"))
_FONTS = {
    "double-struck": "double-struck:",
    "script": "script:",
    "bold-script": "script:",
    "fraktur": "fraktur:",
    "bold-fraktur": "fraktur:",
}
_ALIKE = str.maketrans(dict(zip("⩽⩾∥−′∣⋅·∗⋆ϵϕϑ∶…\\♯", "≤≥‖-'|..**εφθ:⋯∖#", strict=True)) | {"≔": ":=", "≕": "=:"})
_SLASH = "\u0338"

_Element: TypeAlias = ElementTree.Element


def symbols_of_mathml(mathml: str) -> Symbols | None:
    """The symbols; None for what is no XML. Raises GradingError where the official program raises."""
    try:
        root = ElementTree.fromstring(_AROUND.sub("", mathml.strip()))
    except ElementTree.ParseError:
        return None
    except (ValueError, UnicodeError) as error:
        raise GradingError(f"{type(error).__name__}: {error}") from None
    try:
        return tuple(_joined(_symbols(root, 0)))
    except IndexError:
        raise GradingError("IndexError: MathML without the parts that it needs") from None


def _symbols(element: _Element, depth: int) -> list[str]:
    if depth > MAX_NESTING:
        raise GradingError("RecursionError: MathML nested too deep")
    name = _name(element)
    if name in _LEFT_OUT:
        return []
    parts = [part for part in element if not _is_invisible(part)]
    if name in _TOKENS and not parts:
        return _characters(element)
    if name == "mtable":
        return _rows(parts, depth + 1)
    if name == "semantics":
        return _symbols(parts[0], depth + 1) if parts else []
    write = _accent if name == "mover" and element.get("accent") == "true" else _STRUCTURES.get(name)
    if name == "mfrac" and element.get("linethickness") in ("0", "0px", "0em"):
        write = _binomial
    if write is None or name in _TOKENS:
        return [symbol for part in parts for symbol in _symbols(part, depth + 1)]
    shown = [_symbols(part, depth + 1) for part in (parts if name == "msqrt" else parts[: _PARTS[name]])]
    return write(shown)


def _name(element: _Element) -> str:
    return str(element.tag).removeprefix(_NAMESPACE)


def _is_invisible(element: _Element) -> bool:
    """Whether it is an operator that shows nothing; an empty one holds a place."""
    text = element.text or ""
    if _name(element) != "mo" or len(element) or _INVISIBLE.isdisjoint(text):
        return False
    return all(sign in _INVISIBLE or sign.isspace() for sign in text)


def _characters(element: _Element) -> list[str]:
    text = "".join(sign for sign in element.text or "" if sign not in _INVISIBLE and not sign.isspace())
    font = _FONTS.get(element.get("mathvariant") or "", "")
    # One symbol may be written as several characters here, and then is several.
    return [font + sign for sign in text.translate(_ALIKE)]


def _rows(rows: Sequence[_Element], depth: int) -> list[str]:
    """How rows are divided into cells is alignment."""
    found: list[str] = []
    for number, row in enumerate(rows):
        found += ["\\\\"] if number else []
        found += (symbol for cell in row for symbol in _symbols(cell, depth + 1))
    return found


def _fraction(parts: Sequence[list[str]]) -> list[str]:
    return ["frac(", *parts[0], ",", *parts[1], ")"]


def _binomial(parts: Sequence[list[str]]) -> list[str]:
    return ["binom(", *parts[0], ",", *parts[1], ")"]


def _below(parts: Sequence[list[str]]) -> list[str]:
    return [*parts[0], "_(", *parts[1], ")"]


def _above(parts: Sequence[list[str]]) -> list[str]:
    return [*parts[0], "^(", *parts[1], ")"]


def _accent(parts: Sequence[list[str]]) -> list[str]:
    return ["accent(", *parts[1], ")(", *parts[0], ")"]


def _both(parts: Sequence[list[str]]) -> list[str]:
    return [*parts[0], "_(", *parts[1], ")", "^(", *parts[2], ")"]


def _square_root(parts: Sequence[list[str]]) -> list[str]:
    return ["sqrt(", *(symbol for part in parts for symbol in part), ")"]


def _root(parts: Sequence[list[str]]) -> list[str]:
    return ["root(", *parts[1], ")(", *parts[0], ")"]


_STRUCTURES: Final[dict[str, Callable[[Sequence[list[str]]], list[str]]]] = {
    "mfrac": _fraction,
    "msub": _below,
    "munder": _below,
    "msup": _above,
    "mover": _above,
    "msubsup": _both,
    "munderover": _both,
    "msqrt": _square_root,
    "mroot": _root,
}
#: How many parts a structure looks at.
_PARTS = {"mfrac": 2, "msub": 2, "munder": 2, "msup": 2, "mover": 2, "msubsup": 3, "munderover": 3, "mroot": 2}


def _joined(symbols: Iterable[str]) -> list[str]:
    """A relation with a slash through it as its negation; a bar that opens a subscript before it."""
    found: list[str] = []
    for symbol in symbols:
        last = found[-1] if found else ""
        if found and _SLASH in (last, symbol):
            negated = unicodedata.normalize("NFC", (symbol if last == _SLASH else last) + _SLASH)
            if len(negated) == 1:
                found[-1] = negated
                continue
        if last == "_(" and symbol == "|":
            found[-1:] = ["|", "_("]
        else:
            found.append(symbol)
    return found
