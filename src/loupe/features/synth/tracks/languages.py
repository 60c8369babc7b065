"""One page in each language whose font is there: which scripts an engine reads."""

from __future__ import annotations

from loupe.features.synth.page import PIXELS_PER_POINT, Page, Truth
from loupe.features.synth.text.language import language
from loupe.features.synth.text.prose import Prose
from loupe.features.synth.tracks.layouts import MARGIN, WIDTH, Column, height_of, running, sheet
from loupe.features.synth.tracks.setting import Setting
from loupe.features.synth.typeset.fonts import face_of

_SIZE = 12.0
_LINES = 18


def pages(setting: Setting) -> list[Page]:
    """A page for each of the languages."""
    return [_page(setting, code) for code in setting.codes]


def _page(setting: Setting, code: str) -> Page:
    face = face_of(code)
    height = height_of(_LINES, _SIZE) + 1
    column = Column(x=MARGIN, y=MARGIN, width=WIDTH - 2 * MARGIN, height=height, size=_SIZE, face=face)
    text = column.filled(Prose.of(code), setting.dice(code))
    return Page(
        track="languages",
        base=setting.base,
        kind=code,
        rung="page",
        rank=0,
        language=code,
        layout=sheet(column.pieces(text), face, _SIZE, code, height=2 * MARGIN + height),
        truth=Truth(text=running(text), glue=language(code).glue),
        x_height=_SIZE * face.x_height * PIXELS_PER_POINT,
        faces=(face.family,),
    )
