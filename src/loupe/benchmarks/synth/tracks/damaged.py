"""A clean page, and the same page after each degradation at rising severity."""

from __future__ import annotations

from dataclasses import replace

from loupe.benchmarks.synth.page import PIXELS_PER_POINT, Page, Truth
from loupe.benchmarks.synth.tracks.layouts import MARGIN, WIDTH, Column, height_of, running, sheet
from loupe.benchmarks.synth.tracks.setting import Setting
from loupe.benchmarks.synth.typeset.fonts import face_of

CLEAN = "clean"
_SIZE = 12.0
_LINES = 16
#: By base page: two of each set, so that every severity has two pages before any has three.
_SEVERITIES = ((3, 5), (3, 5), (1, 4), (1, 4), (2,), (2,))


def pages(setting: Setting) -> list[Page]:
    """Every degradation at some of its severities; the next base pages have the others."""
    from loupe.benchmarks.synth.degrade import DEGRADATIONS

    clean = _clean(setting)
    chosen = _SEVERITIES[setting.number % len(_SEVERITIES)]
    worse = [
        replace(clean, kind=name, rung=str(severity), rank=severity, damage=(name, severity))
        for name in DEGRADATIONS
        for severity in chosen
    ]
    return [clean, *worse]


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
