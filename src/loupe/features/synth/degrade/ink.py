"""What printers, copiers and time do to ink. `value` is the severity, in the catalogue's unit."""

from __future__ import annotations

import math

import numpy as np
from PIL import Image, ImageFilter

from loupe.features.synth.degrade.chance import Chance
from loupe.features.synth.degrade.pixels import WHITE, darkened, faded, least_level, level, smooth_field


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
