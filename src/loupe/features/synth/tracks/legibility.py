"""The same page smaller and smaller, then fainter and fainter: where print becomes too small or too pale to be read."""

from __future__ import annotations

from loupe.features.synth.page import PIXELS_PER_POINT, Page, Truth
from loupe.features.synth.text.tokens import Text
from loupe.features.synth.tracks.layouts import MARGIN, WIDTH, Column, height_of, running, sheet
from loupe.features.synth.tracks.setting import Setting
from loupe.features.synth.typeset.fonts import Face, face_of

#: x-height in pixels at 150 dpi, and contrast of ink to paper as a share of black on white.
SIZES = (24, 16, 12, 10, 8, 7, 6, 5)
CONTRASTS = (1.0, 0.7, 0.5, 0.3, 0.2, 0.1)
_AT_CONTRAST = 16
_LINES = 17


def pages(setting: Setting) -> list[Page]:
    """The ladder of sizes, then that of contrasts at 16 px."""
    face = face_of(setting.code)
    text = _column(max(SIZES), face).filled(setting.prose, setting.dice(), _LINES)
    sizes = [_page(setting, text, "size", str(pixels), pixels, 1.0) for pixels in SIZES]
    faint = [_page(setting, text, "contrast", f"{contrast:g}", _AT_CONTRAST, contrast) for contrast in CONTRASTS]
    return [*sizes, *faint]


def _points(pixels: float, face: Face) -> float:
    return pixels / PIXELS_PER_POINT / face.x_height


def _column(pixels: float, face: Face) -> Column:
    size = _points(pixels, face)
    most = (WIDTH - 2 * MARGIN) * pixels / max(SIZES)
    return Column(x=MARGIN, y=MARGIN, width=most, height=height_of(_LINES + 1, size), size=size, face=face)


def _page(setting: Setting, text: list[list[Text]], kind: str, rung: str, pixels: int, contrast: float) -> Page:
    face = face_of(setting.code)
    level = round(255 * (1 - contrast))
    return Page(
        track="legibility",
        base=setting.base,
        kind=kind,
        rung=rung,
        rank=float(rung),
        language=setting.code,
        layout=sheet(
            _column(pixels, face).pieces(text),
            face,
            _points(pixels, face),
            setting.code,
            ink=f"#{level:02x}{level:02x}{level:02x}",
        ),
        truth=Truth(text=running(text)),
        x_height=float(pixels),
        faces=(face.family,),
    )
