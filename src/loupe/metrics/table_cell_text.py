r"""The text of a table's cell as OmniDocBench 1.6 compares it: symbols for commands, formulas without delimiters.

Protocol: docs/protocols/omnidocbench_v16.md#html-tables.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

#: In the official order, and as substrings: of `\pmatrix` there remains `±atrix`.
_COMMANDS: Final = (
    *((r"\checkmark", "√"), (r"\checked", "√"), (r"\surd", "√"), (r"\times", "×"), (r"\xmark", "×")),
    *((r"\crossmark", "×"), (r"\pm", "±"), (r"\mp", "∓"), (r"\alpha", "α"), (r"\beta", "β"), (r"\gamma", "γ")),
    *((r"\gama", "γ"), (r"\mu", "μ"), (r"\lambda", "λ"), (r"\theta", "θ"), (r"\eta", "η"), (r"\pi", "π")),
    *((r"\rho", "ρ"), (r"\sigma", "σ"), (r"\omega", "ω"), (r"\delta", "δ"), (r"\Delta", "Δ"), (r"\epsilon", "ε")),
    *((r"\varepsilon", "ε"), (r"\phi", "φ"), (r"\varphi", "φ"), (r"\tau", "τ"), (r"\partial", "∂")),
    *((r"\varnothing", "∅"), (r"\emptyset", "∅"), (r"\sim", "～")),
)
_ESCAPES: Final = ((r"\%", "%"), (r"\#", "#"), (r"\&", "&"), (r"\_", "_"))
_SYMBOLS: Final = str.maketrans(
    dict.fromkeys("✓✔☑✅🗸", "√") | dict.fromkeys("✗✘✕✖☒❌╳⨯", "×") | {"Ø": "∅", "∼": "～", "〜": "～"}
)
_DASHES: Final = frozenset("-–−－—")
_DELIMITERS: Final = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))
_LONGEST_FORMULA: Final = 128
_NOT_IN_A_FORMULA = re.compile("[<>$]")


def plain_cell(text: str) -> str:
    r"""The text of a cell in its normal form.

    >>> plain_cell(r" $\alpha$  ✓ "), plain_cell("–")
    ('$α$ √', '—')
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).replace("\xa0", " ").replace("\u200b", "")
    if "\\" in text or "$" in text or not text.isascii():
        text = _with_symbols(_without_delimiters(_with_symbols(text)))
    return "—" if text.strip() in _DASHES else " ".join(text.split())


def _with_symbols(text: str) -> str:
    has_commands = "\\" in text
    for command, symbol in _COMMANDS if has_commands else ():
        text = text.replace(command, symbol)
    text = text.translate(_SYMBOLS)
    for escape, character in _ESCAPES if has_commands else ():
        text = text.replace(escape, character)
    return text


def _without_delimiters(text: str) -> str:
    """A short formula that is the whole cell loses its delimiters, however many pairs there are."""
    text = text.strip()
    while (inside := _inside(text)) is not None:
        text = inside
    return text


def _inside(text: str) -> str | None:
    for begin, end in _DELIMITERS:
        if len(text) >= len(begin) + len(end) and text.startswith(begin) and text.endswith(end):
            inside = text[len(begin) : -len(end)].strip()
            if inside and len(inside) <= _LONGEST_FORMULA and not _NOT_IN_A_FORMULA.search(inside):
                return inside
    return None
