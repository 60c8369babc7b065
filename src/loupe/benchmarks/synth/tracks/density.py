"""Sheets with more and more text in the same print: where an engine loses lines, or its way."""

from __future__ import annotations

import math

from loupe.benchmarks.synth.page import PIXELS_PER_POINT, Page, Truth
from loupe.benchmarks.synth.tracks.layouts import MARGIN, MM_PER_POINT, PITCH, Column, Piece, running, sheet
from loupe.benchmarks.synth.tracks.setting import Setting
from loupe.benchmarks.synth.typeset.fonts import face_of

#: Tokens of text on a page, four characters each.
TOKENS = (300, 1_000, 3_000, 6_000, 12_000)
_CHARACTERS_PER_TOKEN = 4
_SIZE = 10.0
_COLUMN, _GUTTER = 72.0, 8.0
_SHAPE = math.sqrt(2)


def pages(setting: Setting) -> list[Page]:
    """The same text, more of it on a larger sheet each time."""
    face = face_of(setting.code)
    column = Column(x=0, y=0, width=_COLUMN, height=10_000, size=_SIZE, face=face)
    pitch = _SIZE * PITCH * MM_PER_POINT
    found = []
    for tokens in TOKENS:
        characters, lines = tokens * _CHARACTERS_PER_TOKEN, 0
        dice, paragraphs, count = setting.dice(), [], 0
        while count < characters:
            paragraph = column.filled(setting.prose, dice, 12)[0]
            paragraphs.append(paragraph)
            lines += len(paragraph) + 1
            count += sum(len(token.text) for line in paragraph for token in line)
        columns = max(1, round(math.sqrt(lines * pitch / (_SHAPE * (_COLUMN + _GUTTER)))))
        each = math.ceil(lines / columns)
        pieces: list[Piece] = []
        place, used = 0, 0
        for paragraph in paragraphs:
            if used and used + len(paragraph) > each + 6:
                place, used = place + 1, 0
            x, y = MARGIN + place * (_COLUMN + _GUTTER), MARGIN + used * pitch
            pieces += Column(x=x, y=y, width=_COLUMN, height=1, size=_SIZE, face=face).pieces([paragraph])
            used += len(paragraph) + 1
        found.append(
            Page(
                track="density",
                base=setting.base,
                rung=str(tokens),
                rank=tokens,
                language=setting.code,
                layout=sheet(
                    pieces,
                    face,
                    _SIZE,
                    setting.code,
                    width=2 * MARGIN + (place + 1) * (_COLUMN + _GUTTER) - _GUTTER,
                    height=2 * MARGIN + (each + 7) * pitch,
                ),
                truth=Truth(text=running(paragraphs)),
                x_height=_SIZE * face.x_height * PIXELS_PER_POINT,
                faces=(face.family,),
            )
        )
    return found
