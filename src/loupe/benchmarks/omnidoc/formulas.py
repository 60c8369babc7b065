r"""Formulas of an answer (section 4, step 7): `$$…$$`, `\[…\]`, `$…$` and `\(…\)`, lazily and over newlines."""

from __future__ import annotations

from loupe.benchmarks.omnidoc.delimiters import Delimiters, Piece, between, blank, pieces
from loupe.benchmarks.omnidoc.records import Item

_DOLLARS, _BRACKETS = Delimiters("$$", "$$"), Delimiters(r"\[", r"\]")
_DOLLAR, _PARENTHESES = Delimiters("$", "$"), Delimiters(r"\(", r"\)")
_ANY = (_DOLLARS, _BRACKETS, _DOLLAR, _PARENTHESES)
_WITHIN = (_DOLLARS, _DOLLAR, _PARENTHESES)


def take_formulas(text: str) -> tuple[list[Item], str]:
    """All formulas, and the text with blanks where displayed ones stood; the text keeps the inline ones too."""
    items = [_item(piece, text[piece.start : piece.end]) for piece in pieces(text, _ANY)]
    return items, blank(text, [(item.start, item.end) for item in items if not item.fine_category])


def _item(piece: Piece, formula: str) -> Item:
    line = " ".join(formula.strip().split("\n"))
    found = list(pieces(line, _WITHIN))
    if not found:
        return Item(category="equation_isolated", content=line, start=piece.start, end=piece.end)
    displayed = found[0].kind == 0 and found[0].inside != ""
    content = between(line, found, [f"\\[{_kept(each, displayed)}\\]" for each in found])
    fine_category = "" if displayed else "equation_inline"
    return Item(
        category="equation_isolated", content=content, start=piece.start, end=piece.end, fine_category=fine_category
    )


def _kept(piece: Piece, displayed: bool) -> str:
    """What the first formula within decides: of a displayed one only `$$…$$` keep their inside, else only the others.

    The official evaluator substitutes the one or the other group of its regex (4, step 7).
    """
    return piece.inside if (piece.kind == 0) == displayed else ""
