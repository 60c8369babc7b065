r"""Formulas of an answer (docs/protocols/omnidocbench.md#formulas): `$$…$$`, `\[…\]`, `$…$` and `\(…\)`, lazily and
over newlines."""

from __future__ import annotations

from loupe.benchmarks.omnidocbench.records import Item
from loupe.benchmarks.omnidocbench.text.delimiters import Delimiters, Piece, blank, pieces, with_replacements

_DOLLARS, _BRACKETS = Delimiters("$$", "$$"), Delimiters(r"\[", r"\]")
_DOLLAR, _PARENTHESES = Delimiters("$", "$"), Delimiters(r"\(", r"\)")
_ANY = (_DOLLARS, _BRACKETS, _DOLLAR, _PARENTHESES)
_WITHIN_BRACKETS = (_DOLLARS, _DOLLAR, _PARENTHESES)


def take_formulas(text: str) -> tuple[list[Item], str]:
    """All formulas, and the text with blanks where displayed ones stood; the text keeps the inline ones too.

    A dollar in prose makes an inline formula of everything up to the next one, even paragraphs away.
    """
    items = [_item(piece) for piece in pieces(text, _ANY)]
    return items, blank(text, [(item.start, item.end) for item in items if not item.fine_category])


def _item(piece: Piece) -> Item:
    content, displayed = f"\\[{piece.inside}\\]".replace("\n", " "), piece.kind == 0 and piece.inside != ""
    if _ANY[piece.kind] is _BRACKETS:
        content, displayed = formulas_within_brackets(content)
    fine_category = "" if displayed else "equation_inline"
    return Item(
        category="equation_isolated", content=content, start=piece.start, end=piece.end, fine_category=fine_category
    )


def formulas_within_brackets(formula: str) -> tuple[str, bool]:
    r"""Delimiters within a formula in `\[…\]` become brackets too, and the first of them says if it is a displayed one.

    After a first `$$…$$` only formulas of this kind keep their inside, after another one only the others: the official
    evaluator substitutes one group of its regex (#formulas).
    """
    found = list(pieces(formula, _WITHIN_BRACKETS))
    if not found:
        return formula, True
    displayed = found[0].kind == 0 and found[0].inside != ""
    kept = [each.inside if (each.kind == 0) == displayed else "" for each in found]
    return with_replacements(formula, found, [f"\\[{inside}\\]" for inside in kept]), displayed
