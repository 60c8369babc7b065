"""Pages that lie askew, on their side, or are seen from the side. `value` is the severity, in the catalogue's unit."""

from __future__ import annotations

import math

from PIL import Image

from loupe.features.synth.degrade.chance import Chance
from loupe.features.synth.degrade.pixels import Floats, warped

_DESK = 96
_TURNS = {1: Image.Transpose.ROTATE_270, 2: Image.Transpose.ROTATE_180, 3: Image.Transpose.ROTATE_90}


def skew(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """Turned by `value` degrees, to either side; the picture grows so that no corner is cut off."""
    return _turned(page, value if chance.integer("side", 0, 1) else -value)


def quarter_turns(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """Turned by `value` degrees clockwise: quarter turns are exact, what is left is skew."""
    quarters, rest = divmod(value, 90)
    turn = _TURNS.get(int(quarters) % 4)
    return _turned(page if turn is None else page.transpose(turn), rest)


def _turned(page: Image.Image, degrees: float) -> Image.Image:
    """Turned clockwise about the middle, on white."""
    if not degrees:
        return page
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    width, height = page.size
    grown = (
        math.ceil(width * cosine + height * abs(sine) - 1e-6),
        math.ceil(height * cosine + width * abs(sine) - 1e-6),
    )

    def source(x: Floats, y: Floats) -> tuple[Floats, Floats]:
        right, low = x - grown[0] / 2, y - grown[1] / 2
        return cosine * right + sine * low + width / 2, cosine * low - sine * right + height / 2

    return warped(page, grown, source)


def perspective(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """Seen from the side, on a desk: each corner is up to `value` of the width further in, one of them all of it."""
    width, height = page.size
    most = chance.integer("corner", 0, 3)
    shares = [
        value * (100 if corner == most and axis == "x" else chance.integer(f"{corner}{axis}", 0, 100)) / 100
        for corner in range(4)
        for axis in "xy"
    ]
    inward = [(shares[2 * corner] * width, shares[2 * corner + 1] * width) for corner in range(4)]
    corners = [
        (x - dx if x else dx, y - dy if y else dy)
        for (x, y), (dx, dy) in zip([(0, 0), (width, 0), (width, height), (0, height)], inward, strict=True)
    ]
    across, down, common = _to_unit_square(corners)

    def source(x: Floats, y: Floats) -> tuple[Floats, Floats]:
        depth = common[0] * x + common[1] * y + common[2]
        return (
            width * (across[0] * x + across[1] * y + across[2]) / depth,
            height * (down[0] * x + down[1] * y + down[2]) / depth,
        )

    return warped(page, page.size, source, _DESK)


def _to_unit_square(
    corners: list[tuple[float, float]],
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """The projection of a quadrilateral (clockwise from the upper left) onto the unit square, row by row.

    Source: P. Heckbert, Fundamentals of Texture Mapping and Image Warping (1989), 2.2.3; inverted by cofactors.
    """
    (x0, y0), (x1, y1), (x2, y2), (x3, y3) = corners
    dx1, dx2, sx = x1 - x2, x3 - x2, x0 - x1 + x2 - x3
    dy1, dy2, sy = y1 - y2, y3 - y2, y0 - y1 + y2 - y3
    size = dx1 * dy2 - dx2 * dy1
    g, h = (sx * dy2 - dx2 * sy) / size, (dx1 * sy - sx * dy1) / size
    a, b, c = x1 - x0 + g * x1, x3 - x0 + h * x3, x0
    d, e, f = y1 - y0 + g * y1, y3 - y0 + h * y3, y0
    return (
        (e - f * h, c * h - b, b * f - c * e),
        (f * g - d, a - c * g, c * d - a * f),
        (d * h - e * g, b * g - a * h, a * e - b * d),
    )
