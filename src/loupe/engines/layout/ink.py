"""Ink on a page: where it is darker than its paper, and the connected pieces of it. Bounded in time and memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL.Image import Image

Mask: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]
#: One row for each piece: left, top, right, bottom (outside), pixels.
Pieces: TypeAlias = Ints

#: Pages are searched at no more pixels than this.
MOST_PIXELS = 2_500_000
#: Runs of ink above which a page is noise (a halftone, a texture) and gets no further attention.
MOST_RUNS = 400_000
#: Levels by which ink differs from paper at least.
_CONTRAST = 60
_ROUNDS = 64


@dataclass(frozen=True, slots=True)
class Ink:
    """The ink of a page, and how many pixels of the page one of its own stands for."""

    mask: Mask
    scale: float


def ink_of(image: Image) -> Ink:
    """The ink of an upright RGB page. What is paper is the page's most frequent level."""
    from PIL import Image as Pillow

    width, height = image.size
    scale = min(1.0, math.sqrt(MOST_PIXELS / (width * height)))
    gray = image.convert("L")
    if scale < 1.0:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        gray = gray.resize(size, Pillow.Resampling.BOX)
    levels = np.asarray(gray)
    paper = int(np.argmax(np.bincount(levels.ravel(), minlength=256)))
    return Ink(np.abs(levels.astype(np.int16) - paper) > _CONTRAST, scale)


def runs_of(mask: Mask) -> tuple[Ints, Ints, Ints]:
    """Row, start and end (outside) of every horizontal run of ink, from top left to bottom right."""
    height, width = mask.shape
    framed = np.zeros((height, width + 2), dtype=np.int8)
    framed[:, 1:-1] = mask
    change = np.diff(framed, axis=1)
    rows, starts = np.nonzero(change == 1)
    _, ends = np.nonzero(change == -1)
    return rows.astype(np.int64), starts.astype(np.int64), ends.astype(np.int64)


def pieces_of(mask: Mask) -> Pieces:
    """The connected pieces of a mask (corners touch, too); none where it is noise."""
    rows, starts, ends = runs_of(mask)
    if not 0 < len(rows) <= MOST_RUNS:
        return np.zeros((0, 5), dtype=np.int64)
    names = _joined(len(rows), *_neighbours(rows, starts, ends, mask.shape[1]))
    _, piece = np.unique(names, return_inverse=True)
    count = int(piece.max()) + 1
    found = np.empty((count, 5), dtype=np.int64)
    for column, values, least in ((0, starts, True), (1, rows, True), (2, ends, False), (3, rows + 1, False)):
        edge = np.full(count, np.iinfo(np.int64).max if least else -1, dtype=np.int64)
        (np.minimum if least else np.maximum).at(edge, piece, values)
        found[:, column] = edge
    found[:, 4] = np.bincount(piece, weights=ends - starts, minlength=count).astype(np.int64)
    return found


def _neighbours(rows: Ints, starts: Ints, ends: Ints, width: int) -> tuple[Ints, Ints]:
    """Pairs of runs in neighbouring rows that touch."""
    # Runs are sorted by row, then column: one number for both, with room for a row's end.
    stride = width + 2
    first = np.searchsorted(rows * stride + ends, (rows - 1) * stride + starts)
    last = np.searchsorted(rows * stride + starts, (rows - 1) * stride + ends, side="right")
    counts = np.maximum(last - first, 0)
    below = np.repeat(np.arange(len(rows)), counts)
    offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return below, np.repeat(first, counts) + offsets


def _joined(count: int, one: Ints, other: Ints) -> Ints:
    """One name for everything that pairs hold together: the smallest number hooks the larger, then paths are cut."""
    names = np.arange(count, dtype=np.int64)
    for _ in range(_ROUNDS):
        low = np.minimum(names[one], names[other])
        before = names.copy()
        np.minimum.at(names, names[one], low)
        np.minimum.at(names, names[other], low)
        while True:
            further = names[names]
            if np.array_equal(further, names):
                break
            names = further
        if np.array_equal(before, names):
            break
    return names


def smeared(mask: Mask, across: int, down: int = 0) -> Mask:
    """The mask with gaps of up to `across` pixels in rows, and `down` in columns, filled."""
    filled = _closed(mask, across)
    return _closed(filled.T, down).T if down else filled


def _closed(mask: Mask, gap: int) -> Mask:
    rows, starts, ends = runs_of(mask)
    if gap <= 0 or len(rows) < 2:
        return mask
    between = (rows[1:] == rows[:-1]) & (starts[1:] - ends[:-1] <= gap)
    steps = np.zeros((mask.shape[0], mask.shape[1] + 1), dtype=np.int32)
    np.add.at(steps, (rows, starts), 1)
    np.add.at(steps, (rows, ends), -1)
    np.add.at(steps, (rows[:-1][between], ends[:-1][between]), 1)
    np.add.at(steps, (rows[1:][between], starts[1:][between]), -1)
    return np.cumsum(steps, axis=1)[:, :-1] > 0


def long_runs(mask: Mask, least: int) -> Mask:
    """Only the horizontal runs that are at least so long."""
    rows, starts, ends = runs_of(mask)
    long = ends - starts >= least
    steps = np.zeros((mask.shape[0], mask.shape[1] + 1), dtype=np.int32)
    np.add.at(steps, (rows[long], starts[long]), 1)
    np.add.at(steps, (rows[long], ends[long]), -1)
    return np.cumsum(steps, axis=1)[:, :-1] > 0
