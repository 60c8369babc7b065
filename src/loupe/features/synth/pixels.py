"""Pictures and arrays for the degradations: chance, smooth random fields, layers of light and ink, and warping.

Random numbers are the same on every machine and in every version of NumPy: SHA-256 of a seed and a purpose gives single
numbers, and the key of Philox for many. The raw words of a bit generator never change (NEP 19), while the distributions
of NumPy's generators may. No number depends on which was drawn before.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops

Bytes: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Chance:
    """The chance of one seed, for one purpose."""

    seed: int
    purpose: str

    def integer(self, what: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included; the same for the same words."""
        return low + int.from_bytes(self._key(what)[:8], "little") % (high - low + 1)

    def octets(self, what: str, count: int) -> Bytes:
        """So many bytes, each value as likely as any other."""
        words = np.random.Philox(key=int.from_bytes(self._key(what)[:16], "little")).random_raw(-(-count // 8))
        return np.asarray(words).astype("<u8").view(np.uint8)[:count]

    def _key(self, what: str) -> bytes:
        return hashlib.sha256(f"{self.seed}/{self.purpose}/{what}".encode()).digest()


Floats: TypeAlias = NDArray[np.float64]
#: Whole numbers, one for each pixel or for each row or column.
Whole: TypeAlias = NDArray[np.int32]
#: Where the pixels of a new picture come from: (x, y) of the new one → (x, y) of the old one.
Source: TypeAlias = Callable[[Floats, Floats], tuple[Floats, Floats]]

WHITE = 255
#: Pixels along a side of the tiles that warping is made of; a power of two keeps its arithmetic exact.
_TILE = 32
#: Places are rounded to this part of a pixel, for the same reason.
_STEPS = 64


def to_picture(pixels: Bytes) -> Image.Image:
    """The picture of (H, W, 3) pixels: grey where they are, which is three times as fast."""
    red, green, blue = pixels[..., 0], pixels[..., 1], pixels[..., 2]
    grey = np.array_equal(red, green) and np.array_equal(green, blue)
    return Image.fromarray(np.ascontiguousarray(red if grey else pixels))


def to_pixels(picture: Image.Image) -> Bytes:
    """The (H, W, 3) pixels of a grey or coloured picture."""
    found = np.asarray(picture)
    return np.ascontiguousarray(np.broadcast_to(found[..., None], (*found.shape, 3)) if found.ndim == 2 else found)


def rows_and_columns(picture: Image.Image) -> tuple[Whole, Whole]:
    """The numbers of the rows, shape (H, 1), and of the columns, shape (1, W)."""
    width, height = picture.size
    return np.arange(height, dtype=np.int32)[:, None], np.arange(width, dtype=np.int32)[None, :]


def smooth_field(chance: Chance, what: str, size: tuple[int, int], pitch: int) -> Bytes:
    """Smooth random values of shape (height, width), 0 to 255, that change over about `pitch` pixels."""
    width, height = size
    down, across = height // pitch + 2, width // pitch + 2
    lattice = chance.octets(what, down * across).reshape(down, across).astype(np.int32)
    rows = _between(lattice, height, pitch)
    return (_between(np.ascontiguousarray(rows.T), width, pitch).T >> 16).astype(np.uint8)


def _between(lattice: Whole, length: int, pitch: int) -> Whole:
    """Values between the rows of a lattice, `pitch` apart, in units of 1/256."""
    place = np.arange(length, dtype=np.int32)
    row, share = place // pitch, (place % pitch) * 256 // pitch
    eased = (share * share * (768 - 2 * share) >> 16)[:, None]
    found: Whole = lattice[row] * (256 - eased) + lattice[row + 1] * eased
    return found


def level(share: float) -> int:
    """A share as a grey level from 0 to 255."""
    return min(WHITE, max(0, round(WHITE * share)))


def darkened(picture: Image.Image, light: Bytes) -> Image.Image:
    """The picture under light of shape (H, W) or, in colours, (H, W, 3); 255 is full light."""
    layer = Image.fromarray(light)
    if layer.mode != picture.mode:
        picture, layer = picture.convert("RGB"), layer.convert("RGB")
    return ImageChops.multiply(picture, layer)


def inked(picture: Image.Image, cover: Bytes, ink: tuple[int, int, int], opacity: float) -> Image.Image:
    """The picture under ink of this colour: `cover` of shape (H, W) says how much, `opacity` how dense it is."""
    absorbed = [round(256 * opacity * (WHITE - colour) / WHITE) for colour in ink]
    table = np.stack([WHITE - (np.arange(256) * share >> 8) for share in absorbed], axis=-1).astype(np.uint8)
    return darkened(picture, table[cover])


def faded(picture: Image.Image, kept: Bytes | int) -> Image.Image:
    """The picture with a part of its ink: `kept` of 255, everywhere alike or of shape (H, W)."""
    if isinstance(kept, int):
        return picture.point([WHITE - (WHITE - grey) * kept // WHITE for grey in range(256)] * len(picture.getbands()))
    return ImageChops.invert(darkened(ImageChops.invert(picture), kept))


def warped(picture: Image.Image, size: tuple[int, int], source: Source, background: int = WHITE) -> Image.Image:
    """A picture of this size whose pixels come from where `source` says, between the corners of tiles in proportion.

    What comes from outside of the old picture is `background`.
    """
    across, down = (np.arange(0, length + _TILE, _TILE, dtype=float) for length in size)
    xs, ys = source(*np.meshgrid(across, down))
    corners = np.rint(np.stack([xs, ys], axis=-1) * _STEPS) / _STEPS
    quads = np.concatenate([corners[:-1, :-1], corners[1:, :-1], corners[1:, 1:], corners[:-1, 1:]], axis=-1)
    tiles = [
        ((column * _TILE, row * _TILE, (column + 1) * _TILE, (row + 1) * _TILE), tuple(quad))
        for row, line in enumerate(quads.tolist())
        for column, quad in enumerate(line)
    ]
    fill = background if picture.mode == "L" else (background,) * 3
    return picture.transform(size, Image.Transform.MESH, tiles, Image.Resampling.BILINEAR, fillcolor=fill)


def shifted(picture: Image.Image, across: Whole, down: Whole) -> Image.Image:
    """The picture moved towards the upper left by these parts (1/64) of a pixel, for each column and each row."""
    rows = _moved(np.asarray(picture), down, 0)
    return Image.fromarray(_moved(rows, across, 1))


def _moved(pixels: Bytes, shift: Whole, axis: int) -> Bytes:
    last = len(shift) - 1
    place = np.clip(np.arange(len(shift)) * _STEPS + shift, 0, last * _STEPS)
    first, share = place // _STEPS, (place % _STEPS).astype(np.uint16)
    share = share.reshape([-1 if dimension == axis else 1 for dimension in range(pixels.ndim)])
    near, far = pixels.take(first, axis), pixels.take(np.minimum(first + 1, last), axis)
    mixed: Bytes = ((near * (_STEPS - share) + far * share + _STEPS // 2) >> 6).astype(np.uint8)
    return mixed


def least_level(field: Bytes, share: float) -> int:
    """The level below which about this share of a field lies."""
    below = np.cumsum(np.bincount(field.ravel(), minlength=256))
    return int(np.searchsorted(below, round(share * field.size)))


def ramp(points: Sequence[tuple[int, int]], length: int) -> NDArray[np.uint8]:
    """A table of levels through points (place, level), straight between them."""
    table = np.zeros(length, dtype=np.int64)
    for (start, first), (end, last) in itertools.pairwise(points):
        steps = np.arange(end - start)
        table[start:end] = first + steps * (last - first) // (end - start)
    table[points[-1][0] :] = points[-1][1]
    return table.astype(np.uint8)
