"""A clean page, and the same page after each degradation at rising severity."""

from __future__ import annotations

from dataclasses import replace

from loupe.features.synth.page import PIXELS_PER_POINT, Page, Truth
from loupe.features.synth.tracks.layouts import MARGIN, WIDTH, Column, height_of, running, sheet
from loupe.features.synth.tracks.setting import Setting
from loupe.features.synth.typeset.fonts import face_of

CLEAN = "clean"
#: Its five positions have no order: no figure is read off its curve.
UNORDERED = "quarter_turns"
_SIZE = 12.0
_LINES = 16
#: A base page has every fourth degradation, so that many base pages stand behind the track, and four make a round.
ROUND = 4
#: A base page comes back until it has all severities: four rounds have the first set before any page has the next.
_TURNS = ((3, 5), (1, 4), (2,))
_BASES = 4 * ROUND


def place(ladder: int) -> tuple[int, int]:
    """Which base page the ladder is of, and how often that page came before."""
    again, number = divmod(ladder, _BASES)
    later, visit = divmod(again, len(_TURNS))
    return later * _BASES + number, visit


def pages(setting: Setting) -> list[Page]:
    """A quarter of the degradations at some severities; the same text comes back at the others, and clean at first."""
    from loupe.features.synth.degrade import DEGRADATIONS

    clean = _clean(setting)
    worse = [
        replace(clean, kind=name, rung=str(severity), rank=severity, damage=(name, severity))
        for name in list(DEGRADATIONS)[setting.number % ROUND :: ROUND]
        for severity in _TURNS[setting.visit]
    ]
    return worse if setting.visit else [clean, *worse]


def _clean(setting: Setting) -> Page:
    face = face_of(setting.code)
    height = height_of(_LINES, _SIZE) + 1
    column = Column(x=MARGIN, y=MARGIN, width=WIDTH - 2 * MARGIN, height=height, size=_SIZE, face=face)
    text = column.filled(setting.prose, setting.dice())
    return Page(
        track="degrade",
        base=setting.base,
        kind=CLEAN,
        rung="0",
        rank=0,
        language=setting.code,
        layout=sheet(column.pieces(text), face, _SIZE, setting.code, height=2 * MARGIN + height),
        truth=Truth(text=running(text)),
        x_height=_SIZE * face.x_height * PIXELS_PER_POINT,
        faces=(face.family,),
    )
