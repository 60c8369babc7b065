"""Damage to a page, one function each: askew, through lenses, in ink, on the sheet.

`value` is the severity, in the unit that `degradations` gives.
"""

from __future__ import annotations

import io
import math

import numpy as np
from PIL import Image, ImageFilter

from loupe.features.synth.pixels import (
    WHITE,
    Bytes,
    Chance,
    Floats,
    Whole,
    darkened,
    faded,
    inked,
    least_level,
    level,
    ramp,
    rows_and_columns,
    shifted,
    smooth_field,
    warped,
)

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


#: Spread of a sum of four bytes, which is nearly normal.
_SPREAD_OF_FOUR = math.sqrt(4 * (256**2 - 1) / 12)
#: One wave as 256 levels from 0 to 256.
_WAVE = np.array([round(128 + 128 * math.cos(2 * math.pi * step / 256)) for step in range(256)], dtype=np.int32)


def blur(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """Out of focus: a Gaussian whose σ is `value` x-heights."""
    return page.filter(ImageFilter.GaussianBlur(value * x_height))


def motion(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """The camera moved `value` x-heights, along or across the lines."""
    half = max(0.0, value * x_height - 1) / 2
    across = chance.integer("across", 0, 1)
    return page.filter(ImageFilter.BoxBlur((0, half) if across else (half, 0)))


def noise(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """Noise of every pixel, nearly normal, σ as a share of full scale; the same in all colours."""
    pixels = np.asarray(page)
    height, width = pixels.shape[:2]
    four = chance.octets("noise", 4 * height * width).reshape(4, height, width)
    total = four[0].astype(np.int32) + four[1] + four[2] + four[3] - 510
    grain = total * round(65536 * 255 * value / _SPREAD_OF_FOUR) >> 16
    found = pixels + (grain if pixels.ndim == 2 else grain[..., None])
    return Image.fromarray(np.clip(found, 0, 255).astype(np.uint8))


def jpeg(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """Saved as JPEG of this quality (libjpeg's scale), with colours at half the resolution."""
    file = io.BytesIO()
    page.save(file, "JPEG", quality=round(value), subsampling="4:2:0", optimize=False)
    with Image.open(file) as read:
        return read.convert(page.mode)


def low_resolution(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """Scanned with `value` pixels per x-height and enlarged again; a page with fewer is left as it is."""
    return at_resolution(page, value / x_height, value / x_height)


def at_resolution(page: Image.Image, across: float, down: float) -> Image.Image:
    """The page made smaller by these factors, as a scanner's cells average, and enlarged again."""
    width, height = page.size
    size = max(1, round(width * min(1.0, across))), max(1, round(height * min(1.0, down)))
    small = page.resize(size, Image.Resampling.BOX)
    return small.resize(page.size, Image.Resampling.BICUBIC)


def moire(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """A photographed screen: its grid beats with the sensor's in waves of 1.2 to 2.4 x-heights; `value` is their depth.

    Red, green and blue lie beside each other on the screen, so that the waves are coloured.
    """
    rows, columns = rows_and_columns(page)
    beat = _phase(rows, columns, chance, "beat", round(x_height * 120), round(x_height * 240))
    grid = _phase(rows, columns, chance, "grid", 210, 260)
    fine = _WAVE[grid >> 8 & 255]
    layers = []
    for shift in (0, 85, 171):
        wave = 3 * _WAVE[(beat >> 8) + shift & 255] + fine
        layers.append((255 - (wave * round(255 * value) >> 10)).astype(np.uint8))
    return darkened(page, np.stack(layers, axis=-1))


def _phase(rows: Whole, columns: Whole, chance: Chance, what: str, shortest: int, longest: int) -> Whole:
    """The phase of a slightly bent wave, in 1/65536 turns; its length is in hundredths of a pixel."""
    along = 6_553_600 // chance.integer(f"{what} across", shortest, longest)
    tilt = chance.integer(f"{what} tilt", along // 4, along // 2)
    bend = rows * rows // 512 * (along // 64) >> 6
    return columns * along + rows * tilt + bend


def uneven_light(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """A lamp on one side and the shadow of a hand: the darkest place has `value` of the light of the brightest."""
    rows, columns = rows_and_columns(page)
    width, height = page.size
    lit_from_left = chance.integer("side", 0, 1) == 1
    along = columns * 128 // width if lit_from_left else 128 - columns * 128 // width
    each = math.sqrt(value)
    lamp = 255 - (along + rows * 128 // height) * round(256 * (1 - each)) // 256
    soft = max(2, round(3 * x_height))
    edge = width * chance.integer("edge", 35, 65) // 100 + (rows - height // 2) * chance.integer("lean", -40, 40) // 100
    inside = np.clip((columns - edge if lit_from_left else edge - columns) + soft // 2, 0, soft)
    shade = ramp([(0, 255), (soft, level(each))], soft + 1)[inside]
    return darkened(darkened(page, lamp.astype(np.uint8)), shade)


def faded_ink(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """Pale in patches: where it is palest, `value` of the contrast is left, elsewhere up to 1.4 times that."""
    patches = smooth_field(chance, "patches", page.size, max(2, round(8 * x_height)))
    table = [min(WHITE, level(value) + patch * level(0.4 * value) // WHITE) for patch in range(256)]
    return faded(page, np.array(table, dtype=np.uint8)[patches])


def broken_strokes(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """A copy of a copy: `value` of the ink is gone, in gaps about as wide as a stroke."""
    field = smooth_field(chance, "gaps", page.size, max(2, round(0.22 * x_height)))
    gone = least_level(field, value)
    edge = np.clip((np.arange(256) - gone) * 16 + 128, 0, WHITE).astype(np.uint8)
    return faded(page, edge[field])


def bold_strokes(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """A dark copy: strokes are wider by `value` x-heights on each side."""
    whole, part = divmod(round(value * x_height * 16), 16)
    for _ in range(whole):
        page = _grown(page)
    return Image.blend(page, _grown(page), part / 16) if part else page


def _grown(page: Image.Image) -> Image.Image:
    """Ink wider by a pixel to the four sides."""
    pixels = np.asarray(page)
    found = pixels.copy()
    for new, old in ((found[1:], pixels[:-1]), (found[:-1], pixels[1:])):
        np.minimum(new, old, out=new)
    for new, old in ((found[:, 1:], pixels[:, :-1]), (found[:, :-1], pixels[:, 1:])):
        np.minimum(new, old, out=new)
    return Image.fromarray(found)


def black_and_white(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """Every pixel lighter than `value` of full scale becomes white, every other black."""
    return page.convert("L").point([0] * level(value) + [WHITE] * (256 - level(value)))


def bleed_through(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """The text of the other side shines through, mirrored and blurred, with `value` of the contrast of this one's."""
    back = page.convert("L").transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    moved = chance.integer("across", 1, 4), chance.integer("down", 1, 4)
    shift = round(moved[0] * x_height), math.floor(moved[1] * x_height / 2)
    other = Image.new("L", page.size, WHITE)
    other.paste(back, shift)
    shining = faded(other.filter(ImageFilter.GaussianBlur(0.12 * x_height)), level(value))
    return darkened(page, np.asarray(shining))


_COFFEE = (150, 105, 60)
_PEN = (25, 35, 80)
_STAMP_INKS = ((35, 60, 170), (190, 30, 45), (110, 40, 140))
#: How much of a stain is where: its inside, its darker rim, nothing outside; by the square of the distance.
_STAIN = ramp([(0, 120), (190, 140), (225, 255), (250, 230), (280, 0)], 512)


def fold(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """Folded in three and once across: text is moved by `value` x-heights at a crease, shaded and worn along it."""
    width, height = page.size
    creases = [height * chance.integer(f"crease {part}", 32 * part, 35 * part) // 100 for part in (1, 2)]
    upright = width * chance.integer("upright", 45, 55) // 100
    rows, columns = rows_and_columns(page)
    down = [_pull(rows[:, 0] - crease, value, x_height) for crease in creases]
    moved = shifted(page, _pull(columns[0] - upright, value, x_height), np.maximum(*down))
    for distance in [*(rows - crease for crease in creases), columns - upright]:
        moved = _creased(moved, distance, value, x_height)
    return moved


def _pull(distance: Whole, value: float, x_height: float) -> Whole:
    """The way that text is moved at a distance from a crease, in 1/64 of a pixel; it ends after five x-heights."""
    reach = max(4, round(5 * x_height))
    near: Whole = np.maximum(0, reach - abs(distance)) * round(64 * value * x_height) // reach
    return near


def _creased(page: Image.Image, distance: Whole, value: float, x_height: float) -> Image.Image:
    """Shade on one side of a crease that fades out, and worn ink along it."""
    width, height = page.size
    reach, worn = max(1, round(9 * x_height)), max(1, round(0.15 * x_height))
    shade = ramp([(0, 255 - round(110 * value)), (reach, 255)], reach + 1)[np.clip(distance, 0, reach)]
    light = np.where(distance < 0, 255, shade).astype(np.uint8)
    page = darkened(page, np.broadcast_to(light, (height, width)))
    kept = np.where(abs(distance) <= worn, 255 - round(140 * value), 255).astype(np.uint8)
    return faded(page, np.broadcast_to(kept, (height, width)))


def stains(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """Four coffee stains with darker rims; at the rim coffee takes `value` of the light that it can take."""
    cover = np.zeros(page.size[::-1], dtype=np.uint8)
    ragged = smooth_field(chance, "ragged", page.size, max(2, round(4 * x_height)))
    for number in range(4):
        radius = max(2, round(x_height * chance.integer(f"radius {number}", 10, 18)))
        window, right, low = _window(page, chance, str(number), radius * 5 // 4)
        far = (right * right + low * low) * 256 // (radius * radius) + (ragged[window].astype(np.int32) - 128) // 3
        np.maximum(cover[window], _STAIN[np.clip(far, 0, 511)], out=cover[window])
    return inked(page, cover, _COFFEE, value)


def stamps(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """Five stamps without words over the text, patchily inked; `value` is the density of their ink."""
    dry = smooth_field(chance, "dry", page.size, max(2, round(0.5 * x_height)))
    page = page.convert("RGB")
    for number in range(5):
        radius = max(4, round(x_height * chance.integer(f"radius {number}", 9, 13)))
        window, right, low = _window(page, chance, str(number), radius * 3 // 2)
        lean = chance.integer(f"lean {number}", -300, 300)
        u, v = (1000 * right + lean * low) // 1044, (1000 * low - lean * right) // 1044
        shape = _seal(u, v, radius) if chance.integer(f"shape {number}", 0, 1) else _frame(u, v, radius)
        cover = np.where(shape, 255 - (dry[window] >> 2), 0).astype(np.uint8)
        rows, columns = window
        under = page.crop((columns.start, rows.start, columns.stop, rows.stop))
        stamp = inked(under, cover, _STAMP_INKS[chance.integer(f"ink {number}", 0, 2)], value)
        page.paste(stamp, (columns.start, rows.start))
    return page


def _window(page: Image.Image, chance: Chance, what: str, reach: int) -> tuple[tuple[slice, slice], Whole, Whole]:
    """A random place on the page: the part of it within `reach`, and the distances to the right and downwards."""
    width, height = page.size
    x = width * chance.integer(f"x {what}", 20, 80) // 100
    y = height * chance.integer(f"y {what}", 15, 85) // 100
    rows = np.arange(max(0, y - reach), min(height, y + reach + 1), dtype=np.int32)
    columns = np.arange(max(0, x - reach), min(width, x + reach + 1), dtype=np.int32)
    part = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
    return part, columns[None, :] - x, rows[:, None] - y


def _seal(u: Whole, v: Whole, radius: int) -> Bytes:
    """Two rings, and a cross of bars within."""
    far = (u * u + v * v) * 100 // (radius * radius)
    rings = ((far > 82) & (far < 100)) | ((far > 60) & (far < 67))
    bar = radius // 12 + 1
    cross = (far <= 60) & ((abs(u) < bar) | (abs(v) < bar) | (abs(u + v) < bar) | (abs(u - v) < bar))
    return np.asarray(rings | cross)


def _frame(u: Whole, v: Whole, radius: int) -> Bytes:
    """A double frame with bars across."""
    across, down = abs(u) * 100 // radius, abs(v) * 200 // radius
    edge = np.maximum(across, down)
    frames = ((edge > 88) & (edge <= 100)) | ((edge > 76) & (edge <= 81))
    return np.asarray(frames | ((edge <= 76) & ((u + v) % max(8, radius // 3) < radius // 14 + 1)))


def line_through_text(page: Image.Image, value: float, x_height: float, chance: Chance) -> Image.Image:
    """Pen lines across the page that cross lines of text at a small angle, `value` x-heights thick."""
    width, height = page.size
    cover = np.zeros((height, width), dtype=np.uint8)
    columns = np.arange(width, dtype=np.int32)
    half, number, top = round(8 * value * x_height), 0, 0
    while (top := top + round(x_height * chance.integer(f"gap {number}", 50, 90) / 10)) < height:
        slope = chance.integer(f"slope {number}", -24, 24)
        middle = 16 * top + columns * slope // 64 * 16 // 16
        first, last = max(0, int(middle.min()) // 16 - half), min(height, int(middle.max()) // 16 + half + 2)
        away = abs(np.arange(first, last, dtype=np.int32)[:, None] * 16 - middle)
        line = np.clip((half + 8 - away) * 16, 0, 255).astype(np.uint8)
        np.maximum(cover[first:last], line, out=cover[first:last])
        number += 1
    return inked(page, cover, _PEN, 0.85)
