r"""The equations of an answer: what stands between `\( \)`, `\[ \]`, `$$ $$` and `$ $`.

Protocol: docs/protocols/olmocr_bench.md#equations.
Every pass is linear: a closing mark that is missing for one opening mark is missing for all later ones.
"""

from __future__ import annotations

_BRACKETS = ((r"\(", r"\)"), (r"\[", r"\]"))
_DOLLARS = (("$$", "$$"), ("$", "$"))


def extract_equations(markdown: str, *, ignore_dollars: bool = False) -> list[str]:
    r"""The equations by kind of delimiter, stripped; each kind is taken out of the text before the next is looked for.

    >>> extract_equations(r"$a$, \(b\) and $$ c $$")
    ['b', 'c', 'a']
    """
    found: list[str] = []
    for opening, closing in _BRACKETS if ignore_dollars else (*_BRACKETS, *_DOLLARS):
        equations, markdown = _take_out(markdown, opening, closing)
        found += (equation.strip() for equation in equations)
    return found


def _take_out(text: str, opening: str, closing: str) -> tuple[list[str], str]:
    """What stands between the marks, at least one character each, and the text without marks and contents."""
    found, kept, position = [], [], 0
    while (start := text.find(opening, position)) >= 0:
        inside = start + len(opening)
        end = text.find(closing, inside + 1)
        if end < 0:
            break
        kept.append(text[position:start])
        found.append(text[inside:end])
        position = end + len(closing)
    return found, "".join(kept) + text[position:]
