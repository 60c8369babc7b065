"""Find equations of a page as MathML symbols: which symbols one shows, and whether it appears in the page.

KaTeX reads many at once, each only once on a machine.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, TypeAlias
from xml.etree import ElementTree

from loupe.benchmarks.omni_parse_bench.folding import squeeze
from loupe.benchmarks.omni_parse_bench.outcomes import GradingError
from loupe.benchmarks.shared.equations.rendering.drawing import Drawing
from loupe.benchmarks.shared.equations.rendering.renderer import the_mathml_renderer

#: What may be missing at the border between two equations of a page.
_PUNCTUATION = frozenset(",;.")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
#: Commands for signs that a text can hold.
_SIGNS = """
    alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi pi varpi rho varrho
    sigma varsigma tau upsilon phi varphi chi psi omega
    Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega
    pm mp times cdot div ast star circ bullet le leq ge geq neq ne approx sim simeq equiv propto ll gg
    in notin subset subseteq supset supseteq cup cap infty partial nabla prime degree
    ldots cdots dots to rightarrow leftarrow leftrightarrow Rightarrow Leftarrow
    mid left right big Big bigl bigr Bigl Bigr quad qquad mathrm text textrm operatorname
"""
_PLAIN_COMMANDS = frozenset(_SIGNS.split())
_NESTED_SCRIPT = re.compile(r"[\^_]\{[^{}]*[\\{^_]")
_MATH_SIGN = re.compile(r"[\\^_=<>+±×·−]")


def contains_in_row(wanted: Symbols, equations: Sequence[Symbols]) -> bool:
    """True if the symbols follow one another in the page's, of which equations may end anywhere between them.

    A comma, semicolon or full stop may stand for such a border. One step for each symbol: bit n says that the first n
    symbols wanted end here.
    """
    places: dict[str, int] = {}
    for number, symbol in enumerate(wanted):
        places[symbol] = places.get(symbol, 0) | 1 << number
    punctuation = sum(places.get(sign, 0) for sign in _PUNCTUATION)
    everything, state = 1 << len(wanted), 1
    for number, symbols in enumerate(equations):
        if number:  # a border
            state |= (state & punctuation) << 1
        for symbol in symbols:
            if state & everything:
                return True
            state = (state & places.get(symbol, 0)) << 1 | 1
    return bool(state & everything)


def is_plain(latex: str) -> bool:
    """True if a text shows the equation without loss: symbols and plain scripts, and more than a word or a number."""
    if any(command not in _PLAIN_COMMANDS for command in _COMMAND.findall(latex)) or _NESTED_SCRIPT.search(latex):
        return False
    return bool(_MATH_SIGN.search(latex)) and len(squeeze(f"${latex}$")) >= 2


#: Equations that are read of one page. Upstream reads all; pages have up to 300.
MOST_EQUATIONS = 3_000
_OPENING = re.compile(r"\$\$|\\\[|\\\(|(?<![\\$])\$(?!\s)|<math\b([^<>]*)>", re.I)
_CLOSING = {
    "$$": re.compile(r"\$\$"),
    "\\[": re.compile(r"\\\]"),
    "\\(": re.compile(r"\\\)"),
    "<": re.compile("</math>", re.I),
}
#: From behind a dollar to the next one, within a line, with no blank before it.
_UP_TO_DOLLAR = re.compile(r"[^$\n]+(?<!\s)\$")
_TAG = re.compile("<[^<>]+>")


@dataclass(frozen=True, slots=True)
class MathSpan:
    """LaTeX, or with `markup` MathML without the element around it."""

    source: str
    display: bool
    markup: bool = False


def math_spans(source: str) -> list[MathSpan]:
    """The equations. Raises GradingError where the official program raises."""
    try:
        return list(islice(_spans(source), MOST_EQUATIONS))
    except ValueError as error:
        raise GradingError(f"ValueError: {error}") from None


def _spans(source: str) -> Iterator[MathSpan]:
    missing: set[str] = set()
    position = 0
    while opening := _OPENING.search(source, position):
        found = _span(source, opening, missing)
        if found is None:
            position = opening.start() + 1
            continue
        span, position = found
        yield span


def _span(source: str, opening: re.Match[str], missing: set[str]) -> tuple[MathSpan, int] | None:
    """Return the span that begins there and its end, or None. `missing` are marks that close nothing more."""
    start = opening.end()
    if opening[0] == "$":
        found = _UP_TO_DOLLAR.match(source, start)
        return (_written(source[start : found.end() - 1], display=False), found.end()) if found else None
    kind = "<" if opening[1] is not None else opening[0]
    closing = None if kind in missing else _CLOSING[kind].search(source, start + (kind != "<"))
    if closing is None:
        missing.add(kind)
        return None
    body = source[start : closing.start()]
    if kind != "<":
        return _written(body, display=kind != "\\("), closing.end()
    body, display = body.strip(), "block" in opening[1]
    span = MathSpan(body, display, markup=True) if "<" in body else _latex(html.unescape(body), display=display)
    return span, closing.end()


def _written(body: str, *, display: bool) -> MathSpan:
    return _latex(html.unescape(_TAG.sub(" ", body)), display=display)


def _latex(source: str, *, display: bool) -> MathSpan:
    """Return the span of an equation; LaTeX that looks like MathML when its entities are read is taken for that."""
    if source.startswith("<math>"):
        return MathSpan(source[len("<math>") : -len("</math>")], display, markup=True)
    return MathSpan(source, display)


Symbols: TypeAlias = tuple[str, ...]

#: Elements within one another. The official program ends by Python's limit of recursion, at about 480.
MAX_NESTING: Final = 400
_NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
_SPAN_AROUND = re.compile(r"^<span[^>]*>|</span>$")
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
        root = ElementTree.fromstring(_SPAN_AROUND.sub("", mathml.strip()))
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
    """True if it is an operator that shows nothing; an empty one holds a place."""
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
    """Return the rows; their division into cells is alignment."""
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


_MATH_AROUND = '<math xmlns="http://www.w3.org/1998/Math/MathML">{}</math>'


def read_equations(equations: Sequence[tuple[str, bool]]) -> list[Symbols | None]:
    """The symbols of each (LaTeX, whether it is a display); None for what KaTeX refuses.

    Raises MissingToolError where KaTeX cannot run, LoupeError where the browser cannot be started, GradingError where
    the official program raises.
    """
    drawn = the_mathml_renderer().draw([_asked(latex, display) for latex, display in equations])
    return [_symbols_of(drawing) for drawing in drawn]


def read_spans(spans: Sequence[MathSpan]) -> tuple[list[Symbols], int]:
    """The symbols of the equations of a page, none for what does not render; and how many cost the browser."""
    latex = [span for span in spans if not span.markup]
    drawn = the_mathml_renderer().draw([_asked(span.source, span.display) for span in latex]) if latex else []
    by_span = dict(zip(latex, drawn, strict=True))
    found = [
        symbols_of_mathml(_MATH_AROUND.format(span.source)) if span.markup else _symbols_of(by_span[span])
        for span in spans
    ]
    return [symbols or () for symbols in found], sum(bool(drawing.lost) for drawing in drawn)


def prepare_equations(equations: Iterable[tuple[str, bool]]) -> None:
    """Read them all together, so that each is there when it is asked for."""
    asked = [_asked(latex, display) for latex, display in equations]
    if asked:
        renderer = the_mathml_renderer()
        renderer.forget_lost()
        renderer.prepare(asked)


@contextmanager
def one_sample() -> Iterator[None]:
    """Equations that the browser did not survive are not tried twice for one sample, and again for the next."""
    with the_mathml_renderer().one_sample():
        yield


def _asked(latex: str, display: bool) -> str:
    """As the page that reads expects it: how it is set, then the LaTeX."""
    return ("D" if display else "I") + latex


def _symbols_of(drawing: Drawing) -> Symbols | None:
    return None if drawing.error or drawing.lost else _of_mathml(drawing.mathml)


_of_mathml = lru_cache(maxsize=8_192)(symbols_of_mathml)
