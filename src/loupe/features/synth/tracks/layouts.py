"""Sheets and columns: how much text fits where, and the pieces that `typeset/page.typ` draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from loupe.features.synth.dice import Dice
from loupe.features.synth.text.language import language
from loupe.features.synth.text.prose import Prose
from loupe.features.synth.text.tokens import Text, strings
from loupe.features.synth.typeset.fonts import Face

Piece: TypeAlias = dict[str, Any]
#: A line of text; or its parts in order, each a text and its style ("" for none).
Line: TypeAlias = str | Sequence[Sequence[str]]

#: A4 and its margin, in millimetres.
WIDTH, HEIGHT, MARGIN = 210.0, 297.0, 20.0
MM_PER_POINT = 25.4 / 72
#: From one line to the next, in em: as `page.typ` sets it.
PITCH = 1.35


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Where text goes: upper left corner, width and height in millimetres, size in points."""

    x: float
    y: float
    width: float
    height: float
    size: float
    face: Face

    @property
    def lines(self) -> int:
        """How many lines fit."""
        return int(self.height / (self.size * PITCH * MM_PER_POINT))

    @property
    def most(self) -> float:
        """How many em of text a line takes."""
        return self.width / (self.size * MM_PER_POINT * self.face.wide)

    def filled(self, prose: Prose, dice: Dice, lines: int = 0) -> list[list[Text]]:
        """Paragraphs that fill it, or so many lines of it."""
        return prose.paragraphs(dice, min(lines or self.lines, self.lines), self.most)

    def pieces(self, paragraphs: Sequence[Sequence[Text]], **style: Any) -> list[Piece]:
        """These paragraphs one below another, an empty line between them."""
        found, line = [], 0
        for paragraph in paragraphs:
            y = self.y + line * self.size * PITCH * MM_PER_POINT
            found.append(lines_piece(strings(paragraph), self.x, y, self.width, size=self.size, **style))
            line += len(paragraph) + 1
        return found


def lines_piece(lines: Sequence[Line], x: float, y: float, width: float, **style: Any) -> Piece:
    """Lines of text at a place, in millimetres; `style` as in `page.typ`."""
    return {"lines": list(lines), "x": round(x, 3), "y": round(y, 3), "width": round(width, 3), **_rounded(style)}


def shape(kind: str, x: float, y: float, width: float, height: float = 0.0, **style: Any) -> Piece:
    """A box, disc or line at a place, in millimetres."""
    place = {"x": round(x, 3), "y": round(y, 3), "width": round(width, 3), "height": round(height, 3)}
    return {"shape": kind, **place, **_rounded(style)}


def sheet(
    pieces: Sequence[Piece],
    face: Face,
    size: float,
    code: str,
    *,
    width: float = WIDTH,
    height: float = HEIGHT,
    **more: Any,
) -> dict[str, Any]:
    """The layout of a page."""
    about = {"width": round(width, 3), "height": round(height, 3), "size": round(size, 3), "lang": code}
    return {**about, "rtl": language(code).rtl, **face.layout(), "pieces": list(pieces), **more}


def height_of(lines: int, size: float) -> float:
    """So many lines, in millimetres."""
    return lines * size * PITCH * MM_PER_POINT


def running(paragraphs: Sequence[Sequence[Text]]) -> str:
    """Paragraphs as the truth has them: lines end as they are typeset, and an empty line between paragraphs."""
    return "\n\n".join("\n".join(strings(lines)) for lines in paragraphs)


def _rounded(style: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in style.items()}
