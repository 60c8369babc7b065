"""Convert LaTeX to plain characters as pylatexenc 2.10 does, with bounded work.

OmniDocBench 1.6 and MDPBench pin that version.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Final, TypeAlias

from loupe.benchmarks.shared.latex_characters import (
    CLOCKS,
    MAX_LENGTH,
    MAX_TEXT,
    Conversion,
    accented,
    accents,
    contexts,
    render_of,
)
from loupe.metrics.latex_arguments import MACRO_ARGUMENTS
from loupe.metrics.latex_nodes import (
    BeyondLimitsError,
    Chars,
    Comment,
    Environment,
    Group,
    Macro,
    Math,
    Node,
    Special,
    UnreadableLatexError,
    read_latex,
)

_CACHED_LENGTH = 400
#: 3.0a30 has added these: upright Greek letters, and `\ensuremath`.
_LATER = re.compile(
    "ensuremath|[uU]p(alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|omicron|pi|rho|sigma|tau|"
    "upsilon|phi|chi|psi|omega)|upvar(epsilon|theta|pi|rho|sigma|phi)"
)


def convert(latex: str) -> Conversion:
    r"""The text of a formula, None where pylatexenc 2.10 raises or the formula is beyond all limits.

    >>> convert(r"\alpha_{1} \frac12")
    Conversion(text='α_1 1/2', beyond_limits=False, error='')
    """
    return _convert_short(latex) if len(latex) <= _CACHED_LENGTH else _convert(latex)


def _convert(latex: str) -> Conversion:
    if len(latex) > MAX_LENGTH:
        return Conversion(None, beyond_limits=True)
    contexts()  # a missing extra must not look like a formula that cannot be read
    try:
        return Conversion(_text_of(read_latex(latex), in_formula=False))
    except BeyondLimitsError:
        return Conversion(None, beyond_limits=True)
    except UnreadableLatexError:
        return Conversion(None, error="ValueError")


_convert_short = lru_cache(maxsize=8192)(_convert)


def _text_of(nodes: Sequence[Node | None], *, in_formula: bool) -> str:
    """The text of nodes in a row. In a formula the white space behind a macro counts, and blanks alone do not."""
    parts: list[str] = []
    blanks, length = "", 0
    for node in nodes:
        text = _text(node, in_formula)
        if blanks and isinstance(node, Chars):
            text = blanks + text
        blanks = node.post_space if in_formula and isinstance(node, Macro) and _is_bare(node) else ""
        parts.append(text)
        length += len(text)
        if length > MAX_TEXT:
            raise BeyondLimitsError
    return "".join(parts)


def _text(node: Node | None, in_formula: bool) -> str:
    if node is None:
        return ""
    if isinstance(node, Chars):
        return "" if in_formula and not node.text.strip() else node.text
    return _TEXTS[type(node)](node, in_formula)


def _is_bare(macro: Macro) -> bool:
    """True if it has none of its arguments; `\\item` and line breaks may have one in brackets."""
    if not macro.arguments:
        return True
    return macro.arguments[-1] is None and "{" not in MACRO_ARGUMENTS[macro.name]


def _math(node: Math, _: bool) -> str:
    text = _text_of(node.nodes, in_formula=True).strip()
    return _indented(text) if node.displayed else text


def _indented(text: str) -> str:
    """A block of its own."""
    block = text.replace("\n", "\n    ")
    return f"\n    {block}\n"


def _special(node: Special, _: bool) -> str:
    return str(contexts()[0].get_specials_spec(node.chars).simplify_repl)


def _environment(node: Environment, in_formula: bool) -> str:
    replacement = _environment_text(node.name)
    if replacement == "equation":
        return _indented(_text_of(node.nodes, in_formula=True).strip())
    if replacement == "matrix":
        return _matrix(node.nodes, in_formula)
    text = _text_of(node.nodes, in_formula=in_formula)
    return f"\n{text}\n" if replacement else text


@cache
def _environment_text(name: str) -> str:
    """Return the text of an environment: `matrix`, `equation`, a pattern that puts it on lines of its own, or ""."""
    spec = contexts()[0].get_environment_spec(name)
    replacement = spec.simplify_repl if spec else None
    if callable(replacement):
        return "matrix" if "matrix" in replacement.__name__ else "equation"
    return str(replacement or "")


def _matrix(nodes: Sequence[Node], in_formula: bool) -> str:
    """Rows between brackets, cells as wide as the widest; cells without anything are left out."""
    rows, cell = [list[str]()], list[Node]()
    for node in [*nodes, Macro("\\", None, "")]:
        ends_row = isinstance(node, Macro) and node.name == "\\"
        if not ends_row and node != Special("&"):
            cell.append(node)
            continue
        if cell:
            rows[-1].append(_text_of(cell, in_formula=in_formula).strip())
            cell = []
        if ends_row:
            rows.append([])
    cells = [each for row in rows for each in row]
    if not cells:
        raise UnreadableLatexError
    width = max(map(len, cells))
    if width * len(cells) > MAX_TEXT:
        raise BeyondLimitsError
    return "[ " + "; ".join(" ".join(each.rjust(width) for each in row) for row in rows[:-1]) + " ]"


_Writer: TypeAlias = Callable[[Macro, bool], str]


def _macro(node: Macro, in_formula: bool) -> str:
    text = _writer(node.name)(node, in_formula)
    if len(text) > MAX_TEXT:
        raise BeyondLimitsError
    return text


def _argument(node: Node | None, in_formula: bool) -> str:
    if isinstance(node, Group):
        return _text_of(node.nodes, in_formula=in_formula)
    if isinstance(node, Macro) and node.name == "texorpdfstring":
        raise UnreadableLatexError
    return _text(node, in_formula)


def _arguments(node: Macro, in_formula: bool) -> list[str]:
    return [_argument(each, in_formula) for each in node.arguments or ()]


@lru_cache(maxsize=4096)
def _writer(name: str) -> _Writer:
    """Return how a macro is written; an unknown one is nothing. Arguments that it does not show are not looked at."""
    if name in _WRITERS:
        return _WRITERS[name]
    spec = contexts()[0].get_macro_spec(name)
    replacement = spec.simplify_repl if spec else None
    if spec is None or name in CLOCKS or _LATER.fullmatch(name) or (not replacement and spec.discard):
        return lambda node, in_formula: ""
    if isinstance(replacement, str) and ("%" not in replacement or replacement == "%") and replacement:
        return lambda node, in_formula: replacement
    if isinstance(replacement, str) and "%(" in replacement:
        return lambda node, in_formula: _numbered(replacement, _arguments(node, in_formula))
    if callable(replacement) and (accent := accents().get(name)):
        return lambda node, in_formula: _accented(_arguments(node, in_formula), accent)
    render = render_of(spec)
    assert render, name
    return lambda node, in_formula: render(_arguments(node, in_formula) or ([""] if callable(replacement) else []))


def _numbered(pattern: str, arguments: Sequence[str]) -> str:
    """`\\sqrt` and the like. Raises UnreadableLatexError without arguments, as 3.0a30 does not."""
    if not arguments:
        raise UnreadableLatexError
    return pattern % {str(number): argument for number, argument in enumerate(arguments, start=1)}


def _accented(arguments: Sequence[str], accent: str) -> str:
    """An accent on nothing stands on a blank."""
    return accented(arguments[0], accent) if arguments else unicodedata.normalize("NFC", f" {accent}")


def _unshown(node: Macro, in_formula: bool) -> str:
    """Read, because it may be unreadable."""
    if node.arguments is None:
        raise UnreadableLatexError
    _arguments(node, in_formula)
    return ""


def _unreadable(node: Macro, in_formula: bool) -> str:
    raise UnreadableLatexError


def _item(node: Macro, in_formula: bool) -> str:
    label = node.arguments[0] if node.arguments else None
    return "\n  " + (_argument(label, in_formula) if label else "* ")


def _second(node: Macro, in_formula: bool) -> str:
    return _argument(node.arguments[1], in_formula) if node.arguments else ""


def _exercise(node: Macro, in_formula: bool) -> str:
    if not node.arguments:
        raise UnreadableLatexError
    text, optional = node.arguments
    heading = f"\n{_argument(text, in_formula)}\n"
    return heading + (f"[{_argument(optional, in_formula)}]\n" if optional else "")


def _heading(before: str, *, upper: bool = False) -> _Writer:
    """A heading on a line of its own; its title is the third argument, behind the star and the short title."""

    def write(node: Macro, in_formula: bool) -> str:
        title = _argument(node.arguments[2], in_formula) if node.arguments else ""
        return f"\n\n{before}{title.upper() if upper else title}\n"

    return write


_TEXTS: Final[dict[type, Callable[..., str]]] = {
    Comment: lambda node, in_formula: node.post_space,
    Group: _argument,
    Macro: _macro,
    Environment: _environment,
    Special: _special,
    Math: _math,
}


_WRITERS: Final[dict[str, _Writer]] = {
    "%": lambda node, in_formula: "%",
    "texorpdfstring": _second,
    **dict.fromkeys(("input", "include", "title", "author", "date"), _unshown),
    "item": _item,
    "href": _unreadable,
    "part": _heading("PART: "),
    "chapter": _heading("CHAPTER: ", upper=True),
    "section": _heading("§ ", upper=True),
    "subsection": _heading(" §.§ "),
    "subsubsection": _heading("  §.§.§ "),
    "paragraph": _heading("  "),
    "subparagraph": _heading("    "),
    "includegraphics": lambda node, in_formula: _indented("< g r a p h i c s >"),
    **dict.fromkeys(("exercise", "uebung"), _exercise),
}
