"""What happens to a sheet: folds, stains, stamps and pen lines. `value` is the severity, in the catalogue's unit."""

from __future__ import annotations

import numpy as np
from PIL import Image

from loupe.features.synth.degrade.chance import Bytes, Chance
from loupe.features.synth.degrade.pixels import (
    Whole,
    darkened,
    faded,
    inked,
    ramp,
    rows_and_columns,
    shifted,
    smooth_field,
)

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
    """How far text is moved at a distance from a crease, in 1/64 of a pixel; it ends after five x-heights."""
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
