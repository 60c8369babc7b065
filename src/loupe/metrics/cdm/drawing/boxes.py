"""From ink on a page to the boxes that are compared: cropping, and one box a colour.

Protocol: docs/protocols/cdm.md#rendering and #boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loupe.metrics.cdm.colouring import Colour

DPI: Final = 200
_MARGIN: Final = 8  # white pixels that cropping leaves on each side
_FRAME: Final = 1  # pixels that a box is larger than its ink on each side
_BLANK_END: Final = 10  # what upstream crops a blank page to
_WHITE: Final = 255
_STEP: Final = 15  # the channels of all colours are multiples of it

Ink = tuple[int, int, int, int]  # first column, first row, last column, last row
PixelBox = tuple[int, ...]  # left, top, right, bottom; empty without ink
Page = NDArray[np.uint8]  # (rows, columns, 3)


class PageInk:
    """Where the ink of every colour lies on a page of so many pixels."""

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
