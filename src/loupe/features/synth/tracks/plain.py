"""Plain pages in one to three columns, twelve faces and 9 to 14 points: whether an engine reads print at all."""

from __future__ import annotations

from loupe.features.synth.page import PIXELS_PER_POINT, Page, Truth
from loupe.features.synth.text.tokens import Text
from loupe.features.synth.tracks.layouts import HEIGHT, MARGIN, WIDTH, Column, Piece, lines_piece, running, sheet
from loupe.features.synth.tracks.setting import Setting
from loupe.features.synth.typeset.fonts import BOOK, FACES, face_of

_GUTTER = 8.0
_TITLE = 22.0


def pages(setting: Setting) -> list[Page]:
    """One page: a title, and text in one, two or three columns."""
    dice = setting.dice()
    face = FACES[setting.number % len(FACES)] if face_of(setting.code) is BOOK else face_of(setting.code)
    count = 1 + setting.number % 3
    size = float(dice.between(9, 14 if count == 1 else 11))
    width = (WIDTH - 2 * MARGIN - (count - 1) * _GUTTER) / count
    title = setting.prose.words(dice, 4)
    pieces: list[Piece] = [lines_piece([title], MARGIN, MARGIN, WIDTH - 2 * MARGIN, size=1.5 * size, weight=700)]
    text: list[list[Text]] = []
    for place in range(count):
        column = Column(
            x=MARGIN + place * (width + _GUTTER),
            y=MARGIN + _TITLE,
            width=width,
            height=HEIGHT - 2 * MARGIN - _TITLE,
            size=size,
            face=face,
        )
        filled = column.filled(setting.prose, dice)
        pieces += column.pieces(filled)
        text += filled
    words = f"{title}\n\n{running(text)}"
    return [
        Page(
            track="plain",
            base=setting.base,
            rung=str(count),
            rank=count,
            face=face.name,
            language=setting.code,
            layout=sheet(pieces, face, size, setting.code),
            truth=Truth(text=words, blocks=tuple(running([each]) for each in text)),
            x_height=size * face.x_height * PIXELS_PER_POINT,
            faces=(face.family,),
        )
    ]
