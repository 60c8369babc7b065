"""Pairs of formulas as pictures: what CDM matched in one colour, what it did not in another, anything else in grey.

A formula is set as for its score; then the strokes on its page, each in the colour of its token, are given the colour
of its fate. For people to look at: nothing is scored by these pictures.
"""

from __future__ import annotations

import ctypes
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pypdfium2
import pypdfium2.raw as pdfium
from PIL import Image

from loupe.metrics.cdm.colouring import Colour, ColouredFormula, colour
from loupe.metrics.cdm.drawing.pdf_pages import DPI, PixelBox, page_ink, repaint
from loupe.metrics.cdm.drawing.rendering import RenderCache, Rendering, formula_pages, profile_named, render
from loupe.metrics.cdm.drawing.tex_runs import PageSource
from loupe.metrics.cdm.matching import CdmScore, match
from loupe.metrics.cdm.pairs import why_not_drawn
from loupe.metrics.cdm.profiles import CdmProfile

#: Told apart by everybody: one is dark and bluish, the other bright and reddish.
MATCHED: Final[Colour] = (27, 79, 138)
UNMATCHED: Final[Colour] = (214, 74, 0)
UNCOUNTED: Final[Colour] = (140, 146, 152)
#: Shades between a colour and white; pictures of few colours are small.
_SHADES: Final = 5
#: Dots per inch that are tried in turn until a picture is no larger than this.
_RESOLUTIONS: Final = (150, 100, 60)
LARGEST_PICTURE: Final = 24_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSide:
    """One formula. `boxes` are (token, box, index of its counterpart in the other side's boxes, or -1, and why -1), in
    pixels of `size`; the picture (WebP on white) shows the same area and may have fewer pixels. `failure` says why it
    is empty.
    """

    picture: bytes = b""
    size: tuple[int, int] = (0, 0)
    boxes: tuple[tuple[str, PixelBox, int, str], ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPair:
    """A pair as it was drawn here, and its F1 by that."""

    prediction: DrawnSide
    reference: DrawnSide
    f1: float


def draw_pairs(pairs: Sequence[tuple[str, str]], *, profile: str, cache: RenderCache | None = None) -> list[DrawnPair]:
    """Draw pairs (prediction, reference), all together; some hundred at a time. Raises what `cdm_pairs` raises."""
    chosen = profile_named(profile)
    renderings: dict[str, Rendering] = {}
    for side in (1, 0):
        formulas = [pair[side] for pair in pairs]
        drawn = render(formulas, profile=chosen, cache=cache)
        renderings |= zip(formulas, drawn, strict=True)
    coloured = {formula: colour(formula, chosen) for formula, one in renderings.items() if one.has_boxes}
    pages = dict(zip(coloured, formula_pages(list(coloured.values()), chosen), strict=True))
    artist = _Artist(renderings, coloured, pages, chosen)
    found = []
    for prediction, reference in pairs:
        ours, theirs = renderings[prediction], renderings[reference]
        score = match(
            list(zip(ours.tokens, ours.boxes, strict=True)),
            list(zip(theirs.tokens, theirs.boxes, strict=True)),
            prediction_size=ours.size,
            reference_size=theirs.size,
            profile=chosen,
        )
        found.append(
            DrawnPair(
                prediction=artist.side(prediction, _fates(score, 0), theirs),
                reference=artist.side(reference, _fates(score, 1), ours),
                f1=score.f1,
            )
        )
    artist.close()
    return found


class _Artist:
    """Draws formulas that have been set; the documents that they stand in stay open meanwhile."""

    def __init__(
        self,
        renderings: Mapping[str, Rendering],
        coloured: Mapping[str, ColouredFormula],
        pages: Mapping[str, PageSource],
        profile: CdmProfile,
    ) -> None:
        self._profile = profile
        self._renderings = renderings
        self._coloured = coloured
        self._pages = pages
        self._open: dict[int, pypdfium2.PdfDocument] = {}

    def close(self) -> None:
        """Close the documents."""
        for document in self._open.values():
            document.close()

    def side(self, formula: str, fates: _Fates, other: Rendering) -> DrawnSide:
        """One formula beside the other, by what became of its tokens."""
        partners = fates.partners
        one = self._renderings[formula]
        page = self._pages.get(formula)
        if page is None or page.failure:
            return DrawnSide(failure=why_not_drawn(one) or (page.failure if page else ""))
        if page.pages > 1:
            return DrawnSide(failure="several pages")
        numbers = {position: number for number, position in enumerate(_with_ink(other))}
        boxes = tuple(
            (
                one.tokens[position],
                one.boxes[position],
                numbers.get(partners.get(position, -1), -1),
                fates.why(position, other.tokens),
            )
            for position in _with_ink(one)
        )
        fate = {
            _code(each): MATCHED if position in partners else UNMATCHED
            for position, each in enumerate(self._coloured[formula].colours[: len(one.tokens)])
        }
        picture = self._picture(page, fate)
        return DrawnSide(picture=picture, size=one.size, boxes=boxes, failure="" if picture else "too large")

    def _picture(self, source: PageSource, fate: Mapping[int, Colour]) -> bytes:
        """A picture of the inked part, as large as it may be; empty where none is small enough."""
        if id(source.pdf) not in self._open:
            self._open[id(source.pdf)] = pypdfium2.PdfDocument(source.pdf)
        page = self._open[id(source.pdf)][source.page]
        try:
            ink = page_ink(page)
            ink.crops_within_page = self._profile.crops_within_page
            area = ink.crop
            repaint(page, lambda code: fate.get(code, UNCOUNTED))
            for resolution in _RESOLUTIONS:
                picture = _webp(_drawn(page, area, resolution))
                if len(picture) <= LARGEST_PICTURE:
                    return picture
            return b""
        finally:
            page.close()


@dataclass(frozen=True, slots=True)
class _Fates:
    """Positions of the tokens of one side, each with that of the other side that it was assigned."""

    partners: Mapping[int, int]
    displaced: Mapping[int, int]
    replaced: Mapping[int, int]

    def why(self, position: int, others: Sequence[str]) -> str:
        """Explain why a token has no counterpart; "" if it has one, or if nothing is left for it."""
        if position in self.displaced:
            return "is on both sides, but out of place: it does not fit the shift and scale of the others"
        return f"stands where the other side has {others[self.replaced[position]]}" if position in self.replaced else ""


def _fates(score: CdmScore, side: int) -> _Fates:
    """By side: 0 is the prediction, 1 the reference."""
    kinds = (score.matched, score.displaced, score.replaced)
    return _Fates(*({pair[side]: pair[1 - side] for pair in pairs} for pairs in kinds))


def _with_ink(rendering: Rendering) -> list[int]:
    return [position for position, box in enumerate(rendering.boxes) if box]


def _code(of: Colour) -> int:
    red, green, blue = of
    return red << 16 | green << 8 | blue


def _drawn(page: pypdfium2.PdfPage, area: tuple[int, int, int, int], resolution: int) -> Image.Image:
    """An area, in pixels of a page of 200 dpi, on white."""
    part = resolution / DPI
    left, top, right, bottom = area
    width, height = max(round((right - left) * part), 1), max(round((bottom - top) * part), 1)
    bitmap = pypdfium2.PdfBitmap.new_native(width, height, pdfium.FPDFBitmap_BGR)
    try:
        bitmap.fill_rect((255, 255, 255, 255), 0, 0, width, height)
        scale, clip = resolution / 72, pdfium.FS_RECTF(0, 0, width, height)
        matrix = pdfium.FS_MATRIX(scale, 0, 0, scale, -left * part, -top * part)
        pdfium.FPDF_RenderPageBitmapWithMatrix(bitmap, page, ctypes.byref(matrix), ctypes.byref(clip), 0)
        drawing: Image.Image = bitmap.to_pil().convert("RGB")
        return drawing
    finally:
        bitmap.close()


def _webp(drawing: Image.Image) -> bytes:
    buffer = io.BytesIO()
    few = drawing.quantize(palette=_palette(), dither=Image.Dither.NONE).convert("RGB")
    few.save(buffer, "WEBP", lossless=True, method=4)
    return buffer.getvalue()


@lru_cache(maxsize=1)
def _palette() -> Image.Image:
    """White and the shades of every colour."""
    values = [255, 255, 255]
    for full in (MATCHED, UNMATCHED, UNCOUNTED):
        for shade in range(1, _SHADES + 1):
            values += [round(255 + (each - 255) * shade / _SHADES) for each in full]
    image = Image.new("P", (1, 1))
    image.putpalette(values)
    return image
