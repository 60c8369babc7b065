"""Sheets with more and more text in the same print: where an engine loses lines, or its way."""

from __future__ import annotations

import math

from loupe.features.synth.page import PIXELS_PER_POINT, Page, Truth
from loupe.features.synth.text.tokens import Text
from loupe.features.synth.tracks.layouts import MARGIN, MM_PER_POINT, PITCH, Column, Piece, running, sheet
from loupe.features.synth.tracks.setting import Setting
from loupe.features.synth.typeset.fonts import face_of

#: Tokens of text on a page, four characters each.
TOKENS = (300, 1_000, 3_000, 6_000, 12_000)
_CHARACTERS_PER_TOKEN = 4
_SIZE = 10.0
_COLUMN, _GUTTER = 72.0, 8.0
_SHAPE = math.sqrt(2)
#: Lines by which a column may be longer than the mean, so that no paragraph is split.
_SLACK = 6


def pages(setting: Setting) -> list[Page]:
    """The same text, more of it on a larger sheet each time."""
    paragraphs = _paragraphs(setting)
    found = []
    for tokens in TOKENS:
        taken, characters = [], 0
        for paragraph in paragraphs:
            if characters >= tokens * _CHARACTERS_PER_TOKEN:
                break
            taken.append(paragraph)
            characters += _length(paragraph)
        found.append(_page(setting, tokens, taken))
    return found


def _paragraphs(setting: Setting) -> list[list[Text]]:
    """Text enough for the last rung."""
    column = Column(x=0, y=0, width=_COLUMN, height=1_000, size=_SIZE, face=face_of(setting.code))
    dice, found, characters = setting.dice(), [], 0
    while characters < max(TOKENS) * _CHARACTERS_PER_TOKEN:
        found.append(column.filled(setting.prose, dice, 12)[0])
        characters += _length(found[-1])
    return found


def _length(paragraph: list[Text]) -> int:
    return sum(len(token.text) for line in paragraph for token in line)


def _page(setting: Setting, tokens: int, paragraphs: list[list[Text]]) -> Page:
    """These paragraphs in as many columns as make a sheet of the usual shape."""
    face, pitch = face_of(setting.code), _SIZE * PITCH * MM_PER_POINT
    lines = sum(len(paragraph) + 1 for paragraph in paragraphs)
    columns = max(1, round(math.sqrt(lines * pitch / (_SHAPE * (_COLUMN + _GUTTER)))))
    each = math.ceil(lines / columns)
    pieces: list[Piece] = []
    place, used = 0, 0
    for paragraph in paragraphs:
        if used and used + len(paragraph) > each + _SLACK:
            place, used = place + 1, 0
        x, y = MARGIN + place * (_COLUMN + _GUTTER), MARGIN + used * pitch
        pieces += Column(x=x, y=y, width=_COLUMN, height=1, size=_SIZE, face=face).pieces([paragraph])
        used += len(paragraph) + 1
    width = 2 * MARGIN + (place + 1) * (_COLUMN + _GUTTER) - _GUTTER
    height = 2 * MARGIN + (each + _SLACK + 1) * pitch
    return Page(
        track="density",
        base=setting.base,
        rung=str(tokens),
        rank=tokens,
        language=setting.code,
        layout=sheet(pieces, face, _SIZE, setting.code, width=width, height=height),
        truth=Truth(text=running(paragraphs)),
        x_height=_SIZE * face.x_height * PIXELS_PER_POINT,
        faces=(face.family,),
    )
