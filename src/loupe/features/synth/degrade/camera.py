"""What lenses, sensors, encoders, screens and lamps do to a page. `value` is the severity, in the catalogue's unit."""

from __future__ import annotations

import io
import math

import numpy as np
from PIL import Image, ImageFilter

from loupe.features.synth.degrade.chance import Chance
from loupe.features.synth.degrade.pixels import Whole, darkened, level, ramp, rows_and_columns

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
