"""What pylatexenc 3.0a30, which OmniDocBench pins, knows of LaTeX macros: its own tables, read once.

Protocol: docs/protocols/omnidocbench.md#normalisation and #samples.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

from loupe.data.extras import install_command, installed
from loupe.errors import MissingToolError

Render = Callable[[Sequence[str]], str]

#: The version that OmniDocBench pins; 2.11 ends the names of macros elsewhere, and recovers from faults otherwise.
PYLATEXENC = "3.0a30"

#: These give the day of the run, and scores depend on no clock; they give nothing here.
CLOCKS = ("today", "maketitle")


class Macro(NamedTuple):
    """How a macro is read and written: `arguments` is made of `{`, `[` and `*`."""

    arguments: str
    render: Render


def need_pylatexenc(purpose: str = "OmniDocBench") -> None:
    """Raise MissingToolError unless exactly the version is installed that gives the official texts."""
    version = installed("pylatexenc")["pylatexenc"]
    if version != PYLATEXENC:
        raise MissingToolError(
            f"{purpose} needs pylatexenc {PYLATEXENC}, whose tables serve versions that pin 2.10 or 2.11, too; "
            f"version {version or 'none'} is installed",
            hint=install_command(""),
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
    """How a macro is written, given the texts of its arguments; None where only pylatexenc itself knows it."""
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
