"""Reading the PDFs that TeX has made: how many pages, and where the ink of every colour lies, without drawing a pixel.

Ghostscript, which the official programs draw with, puts each glyph at a whole pixel and draws it four times finer than
the page (docs/protocols/cdm.md#measurements). So the box of a glyph follows from its origin and outline,
which PDFium tells, and that of a rule from its ends and width: no page is rasterised. Of 2,600 official boxes, 93 in a
hundred are the same to the pixel, the others differ by one; what another glyph hides is not seen.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator
from typing import Any, Final

import pypdfium2
import pypdfium2.raw as pdfium

from loupe.metrics.cdm.drawing.boxes import DPI, Ink, PageInk

#: Device pixels that Ghostscript draws for one pixel of the page, in each direction.
_FINER: Final = 4
#: A fine pixel is inked if the outline covers a little more than half of it.
_COVERED: Final = 0.45
_SCALE: Final = DPI / 72


def page_count(pdf: bytes) -> int:
    """The number of pages, 0 where this is no PDF."""
    if not pdf.startswith(b"%PDF"):
        return 0
    try:
        document = pypdfium2.PdfDocument(pdf)
    except pypdfium2.PdfiumError:
        return 0
    try:
        return len(document)
    finally:
        document.close()


class PageReader:
    """The pages of one PDF; a context manager."""

    def __init__(self, pdf: bytes) -> None:
        self._document = pypdfium2.PdfDocument(pdf)

    def __enter__(self) -> PageReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._document.close()

    def __len__(self) -> int:
        return len(self._document)

    def size(self, number: int) -> tuple[float, float]:
        """Width and height of a page, in points."""
        width, height = self._document.get_page_size(number)
        return width, height

    def ink(self, number: int) -> PageInk:
        """The smallest box, in pixels of the page, around the ink of every colour; and around all ink."""
        page = self._document[number]
        try:
            return page_ink(page)
        finally:
            page.close()


def page_ink(page: pypdfium2.PdfPage) -> PageInk:
    """The ink on a page that is open."""
    width, height = page.get_size()
    ink = PageInk(math.floor(width * _SCALE + 0.5), math.floor(height * _SCALE + 0.5))
    for colour, box in _drawn(page.raw, ink.height):
        ink.add(colour, box)
    return ink


def repaint(page: pypdfium2.PdfPage, paint: Callable[[int], tuple[int, int, int]]) -> None:
    """Give everything on an open page another colour, told by the one that it has."""
    for index in range(pdfium.FPDFPage_CountObjects(page.raw)):
        thing = pdfium.FPDFPage_GetObject(page.raw, index)
        for get, put in (
            (pdfium.FPDFPageObj_GetFillColor, pdfium.FPDFPageObj_SetFillColor),
            (pdfium.FPDFPageObj_GetStrokeColor, pdfium.FPDFPageObj_SetStrokeColor),
        ):
            put(thing, *paint(_colour(thing, get)), 255)


def _drawn(page: Any, rows: int) -> Iterator[tuple[int, Ink]]:
    """Colour and inked pixels (first and last column and row) of everything on the page."""
    for index in range(pdfium.FPDFPage_CountObjects(page)):
        thing = pdfium.FPDFPage_GetObject(page, index)
        kind = pdfium.FPDFPageObj_GetType(thing)
        if kind == pdfium.FPDF_PAGEOBJ_TEXT:
            box = _glyph(thing, rows)
            if box is not None:
                yield _colour(thing, pdfium.FPDFPageObj_GetFillColor), box
        elif kind == pdfium.FPDF_PAGEOBJ_PATH:
            yield from _path(thing, rows)


def _glyph(thing: Any, rows: int) -> Ink | None:
    left, top, right, bottom = _bounds(thing, rows)
    if right <= left or bottom <= top:
        return None
    matrix = pdfium.FS_MATRIX()
    pdfium.FPDFPageObj_GetMatrix(thing, matrix)
    first, last = _snapped(matrix.e * _SCALE, left, right)
    upper, lower = _snapped(rows - matrix.f * _SCALE, top, bottom)
    return first, upper, last, lower


def _snapped(origin: float, start: float, end: float) -> tuple[int, int]:
    """First and last pixel of a glyph along one axis: its origin on a whole pixel, its edges on fine ones.

    >>> _snapped(10.4, 11.3, 12.4)
    (11, 11)
    """
    at = math.floor(origin + 0.5)
    low = math.floor((start - origin) * _FINER + _COVERED)
    high = max(math.floor((end - origin) * _FINER + 1 - _COVERED), low + 1)
    return at + math.floor(low / _FINER), at + math.ceil(high / _FINER) - 1


def _path(thing: Any, rows: int) -> Iterator[tuple[int, Ink]]:
    """A rule: filled, or a line drawn with a pen, whose ends are cut off straight."""
    fill, stroke = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDFPath_GetDrawMode(thing, fill, stroke)
    if not stroke.value:
        if fill.value:
            yield _colour(thing, pdfium.FPDFPageObj_GetFillColor), _touched(*_bounds(thing, rows))
        return
    points = list(_points(thing, rows))
    width = ctypes.c_float()
    pdfium.FPDFPageObj_GetStrokeWidth(thing, width)
    half = width.value * _SCALE / 2
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    top, bottom = min(y for _, y in points), max(y for _, y in points)
    if right - left >= bottom - top:
        top, bottom = top - half, bottom + half
    else:
        left, right = left - half, right + half
    yield _colour(thing, pdfium.FPDFPageObj_GetStrokeColor), _touched(left, top, right, bottom)


def _touched(left: float, top: float, right: float, bottom: float) -> Ink:
    """Every pixel that the rectangle touches."""
    first, upper = math.floor(left), math.floor(top)
    return first, upper, max(first, math.ceil(right) - 1), max(upper, math.ceil(bottom) - 1)


def _points(thing: Any, rows: int) -> Iterator[tuple[float, float]]:
    matrix = pdfium.FS_MATRIX()
    pdfium.FPDFPageObj_GetMatrix(thing, matrix)
    x, y = ctypes.c_float(), ctypes.c_float()
    for number in range(pdfium.FPDFPath_CountSegments(thing)):
        pdfium.FPDFPathSegment_GetPoint(pdfium.FPDFPath_GetPathSegment(thing, number), x, y)
        across = matrix.a * x.value + matrix.c * y.value + matrix.e
        up = matrix.b * x.value + matrix.d * y.value + matrix.f
        yield across * _SCALE, rows - up * _SCALE


def _bounds(thing: Any, rows: int) -> tuple[float, float, float, float]:
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    pdfium.FPDFPageObj_GetBounds(thing, left, bottom, right, top)
    return left.value * _SCALE, rows - top.value * _SCALE, right.value * _SCALE, rows - bottom.value * _SCALE


def _colour(thing: Any, get: Any) -> int:
    """Red, green and blue as one number."""
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    get(thing, red, green, blue, alpha)
    return int(red.value << 16 | green.value << 8 | blue.value)
