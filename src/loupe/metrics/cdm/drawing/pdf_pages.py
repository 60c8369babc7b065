"""Read the PDFs that TeX has made: how many pages, and one box for each colour of ink, without drawing a page.

Ghostscript, which the official programs draw with, puts each glyph at a whole pixel and draws it four times finer than
the page (docs/protocols/cdm.md#measurements). So the box of a glyph follows from its origin and outline,
which PDFium tells, and that of a rule from its ends and width: no page is rasterised. Of 2,600 official boxes, 93 in a
hundred are the same to the pixel, the others differ by one; what another glyph hides is not seen.

Cropping and boxes: docs/protocols/cdm.md#rendering and #boxes.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pypdfium2
import pypdfium2.raw as pdfium
from numpy.typing import NDArray

from loupe.metrics.cdm.colouring import Colour

#: Device pixels that Ghostscript draws for one pixel of the page, in each direction.
_FINER: Final = 4
#: A fine pixel is inked if the outline covers a little more than half of it.
_COVERED: Final = 0.45


DPI: Final = 200
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


_MARGIN: Final = 8  # white pixels that cropping leaves on each side
_FRAME: Final = 1  # pixels that a box is larger than its ink on each side
_BLANK_END: Final = 10  # what upstream crops a blank page to
_WHITE: Final = 255
_STEP: Final = 15  # the channels of all colours are multiples of it

Ink = tuple[int, int, int, int]  # first column, first row, last column, last row
PixelBox = tuple[int, ...]  # left, top, right, bottom; empty without ink
Page = NDArray[np.uint8]  # (rows, columns, 3)


class PageInk:
    """The place of every colour's ink on a page of so many pixels."""

    def __init__(self, width: int, height: int) -> None:
        self.width = width
        self.height = height
        self.colours: dict[int, Ink] = {}
        self.all: Ink | None = None
        self.crops_within_page = False

    def add(self, colour: int, ink: Ink) -> None:
        """Take a stroke of ink in; what lies beyond the page is cut off."""
        left, top = max(ink[0], 0), max(ink[1], 0)
        right, bottom = min(ink[2], self.width - 1), min(ink[3], self.height - 1)
        if left > right or top > bottom or _grey(colour) == _WHITE:
            return
        cut = (left, top, right, bottom)
        self.colours[colour] = _around(self.colours.get(colour), cut)
        self.all = _around(self.all, cut)

    @property
    def crop(self) -> Ink:
        """The part of the page that is looked at, in its pixels. The end is excluded.

        It may reach beyond the page, if not `crops_within_page`.
        """
        left, top, right, bottom = self.all or (0, 0, _BLANK_END, _BLANK_END)
        left, top, right, bottom = left - _MARGIN, top - _MARGIN, right + _MARGIN, bottom + _MARGIN
        if self.crops_within_page:
            left, top, right, bottom = max(left, 0), max(top, 0), min(right, self.width), min(bottom, self.height)
        return left, top, right, bottom

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of that part."""
        left, top, right, bottom = self.crop
        return right - left, bottom - top

    def boxes(self, colours: Sequence[Colour]) -> tuple[PixelBox, ...]:
        """A box for each of these colours, in pixels from the corner of `crop`."""
        left, top, _, _ = self.crop
        found: list[PixelBox] = []
        for red, green, blue in colours:
            ink = self.colours.get(red << 16 | green << 8 | blue)
            found.append(
                ()
                if ink is None
                else (
                    ink[0] - left - _FRAME,
                    ink[1] - top - _FRAME,
                    ink[2] - left + _FRAME,
                    ink[3] - top + _FRAME,
                )
            )
        return tuple(found)

    def with_rounded_colours(self) -> PageInk:
        """The same where a colour that is off by one in some channels is taken for that of the palette."""
        found = PageInk(self.width, self.height)
        found.all = self.all
        for colour, ink in self.colours.items():
            channels = [colour >> shift & 255 for shift in (16, 8, 0)]
            red, green, blue = ((channel + 1) // _STEP * _STEP for channel in channels)
            if all(abs(channel - near) <= 1 for channel, near in zip(channels, (red, green, blue), strict=True)):
                rounded = red << 16 | green << 8 | blue
                found.colours[rounded] = _around(found.colours.get(rounded), ink)
        return found


def stacked(pages: Sequence[PageInk]) -> PageInk:
    """Pages put below each other."""
    found = PageInk(max(page.width for page in pages), sum(page.height for page in pages))
    top = 0
    for page in pages:
        for colour, (left, upper, right, lower) in page.colours.items():
            found.add(colour, (left, upper + top, right, lower + top))
        top += page.height
    return found


def ink_of_pixels(page: Page) -> PageInk:
    """The ink of every colour on a drawn page, in one pass over it. A pixel has ink if its grey is not white."""
    codes = (page[..., 0].astype(np.uint32) << 16) | (page[..., 1].astype(np.uint32) << 8) | page[..., 2]
    height, width = codes.shape
    ink = PageInk(width, height)
    rows, columns = np.nonzero(codes != 0xFFFFFF)
    if not len(rows):
        return ink
    values, which = np.unique(codes[rows, columns], return_inverse=True)
    low = np.full((2, len(values)), max(height, width), dtype=np.int64)
    high = np.full((2, len(values)), -1, dtype=np.int64)
    for axis, places in enumerate((columns, rows)):
        np.minimum.at(low[axis], which, places)
        np.maximum.at(high[axis], which, places)
    for number, value in enumerate(values.tolist()):
        box = (int(low[0, number]), int(low[1, number]), int(high[0, number]), int(high[1, number]))
        ink.add(value, box)
    return ink


def _around(one: Ink | None, other: Ink) -> Ink:
    if one is None:
        return other
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])


def _grey(colour: int) -> int:
    """Pillow's grey of a colour, by which upstream tells ink from paper."""
    red, green, blue = colour >> 16, colour >> 8 & 255, colour & 255
    return (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16
