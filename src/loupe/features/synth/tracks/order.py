"""Pages whose blocks can be read in a wrong order: columns, a sidebar, footnotes, captions, a pull quote."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from loupe.features.synth.dice import Dice
from loupe.features.synth.page import (
    MARGIN,
    PIXELS_PER_POINT,
    WIDTH,
    Column,
    Page,
    Piece,
    Setting,
    Truth,
    height_of,
    lines_piece,
    running,
    shape,
    sheet,
)
from loupe.features.synth.texts import Text
from loupe.features.synth.typeset.typesetter import face_of

_SIZE = 10.0
_HEIGHT = 200.0
_GUTTER = 8.0
_INNER = WIDTH - 2 * MARGIN


class _Desk:
    """A sheet on which blocks are put in reading order."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.pieces: list[Piece] = []
        self.blocks: list[str] = []

    def block(
        self, x: float, y: float, width: float, lines: int, dice: Dice, *, size: float = _SIZE, **style: object
    ) -> float:
        """One paragraph of at most so many lines; returns where it ends, in millimetres."""
        face = face_of(self.setting.code)
        column = Column(x=x, y=y, width=width, height=height_of(lines, size) + 0.5, size=size, face=face)
        text: list[list[Text]] = [column.filled(self.setting.prose, dice)[0]]
        self.pieces += column.pieces(text, **style)
        self.blocks.append(running(text))
        return y + height_of(len(text[0]), size)

    def label(self, text: str, x: float, y: float, width: float, **style: object) -> None:
        """One line of its own."""
        self.pieces.append(lines_piece([text], x, y, width, **style))
        self.blocks.append(text)


def pages(setting: Setting) -> list[Page]:
    """One page for each kind of layout."""
    found = []
    face = face_of(setting.code)
    for rank, (rung, fill) in enumerate(_KINDS.items()):
        desk = _Desk(setting)
        fill(desk, setting.dice(rung))
        found.append(
            Page(
                track="order",
                base=setting.base,
                rung=rung,
                rank=rank,
                language=setting.code,
                task="markdown",
                layout=sheet(desk.pieces, face, _SIZE, setting.code, height=_HEIGHT),
                truth=Truth(text="\n\n".join(desk.blocks), blocks=tuple(desk.blocks)),
                x_height=_SIZE * face.x_height * PIXELS_PER_POINT,
                faces=(face.family,),
            )
        )
    return found


def _stack(desk: _Desk, x: float, y: float, width: float, count: int, dice: Dice) -> float:
    for _ in range(count):
        y = desk.block(x, y, width, 8, dice) + height_of(1, _SIZE)
    return y


def _columns(desk: _Desk, dice: Dice) -> None:
    width = (_INNER - _GUTTER) / 2
    for place in range(2):
        _stack(desk, MARGIN + place * (width + _GUTTER), MARGIN, width, 4, dice)


def _three_columns(desk: _Desk, dice: Dice) -> None:
    width = (_INNER - 2 * _GUTTER) / 3
    for place in range(3):
        _stack(desk, MARGIN + place * (width + _GUTTER), MARGIN, width, 3, dice)


def _sidebar(desk: _Desk, dice: Dice) -> None:
    """The text, then what stands in a box beside it."""
    _stack(desk, MARGIN, MARGIN, 110.0, 4, dice)
    frame = shape("box", 137.0, MARGIN - 3, 56.0, fill="#ececec")
    desk.pieces.append(frame)
    frame["height"] = round(_stack(desk, 140.0, MARGIN, 50.0, 2, dice) - MARGIN + 3, 3)


def _footnotes(desk: _Desk, dice: Dice) -> None:
    """The text, and two notes below a rule, in small print."""
    _stack(desk, MARGIN, MARGIN, _INNER, 4, dice)
    y = 165.0
    desk.pieces.append(shape("line", MARGIN, y - 2, 40.0))
    for number in (1, 2):
        place = y + (number - 1) * 9
        desk.pieces.append(lines_piece([f"{number}"], MARGIN, place, 4, size=7.0))
        before = len(desk.blocks)
        desk.block(MARGIN + 4, place, _INNER - 4, 2, dice, size=8.0)
        desk.blocks[before] = f"{number} {desk.blocks[before]}"


def _captions(desk: _Desk, dice: Dice) -> None:
    """Two pictures without words, each with a caption below it between paragraphs."""
    y = MARGIN
    for number in (1, 2):
        y = desk.block(MARGIN, y, _INNER, 4, dice) + height_of(1, _SIZE)
        desk.pieces.append(shape("box", MARGIN + 30, y, 110.0, 30.0, fill="#d8d8d8"))
        desk.pieces.append(shape("disc", MARGIN + 60, y + 5, 18.0, fill="#8f8f8f"))
        y += 32
        desk.label(f"Figure {number}: {desk.setting.prose.words(dice, 5)}", MARGIN + 30, y, 110.0, style="italic")
        y += height_of(2, _SIZE)
    desk.block(MARGIN, y, _INNER, 4, dice)


def _pull_quote(desk: _Desk, dice: Dice) -> None:
    """A sentence in large letters between two columns; it is read after both."""
    width = 62.0
    for x in (MARGIN, WIDTH - MARGIN - width):
        _stack(desk, x, MARGIN, width, 3, dice)
    desk.block(MARGIN + width + 6, 60.0, _INNER - 2 * width - 12, 5, dice, size=13.0, style="italic")


_KINDS: Mapping[str, Callable[[_Desk, Dice], None]] = {
    "two columns": _columns,
    "three columns": _three_columns,
    "sidebar": _sidebar,
    "footnotes": _footnotes,
    "captions": _captions,
    "pull quote": _pull_quote,
}
