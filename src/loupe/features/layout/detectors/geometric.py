"""The layout of born-digital pages by geometry alone: ruled tables, figures, text blocks, headings by their size.

Ours, without a model: it makes the whole pipeline run anywhere, and is no match for PP-DocLayoutV3 on scans or photos
(docs/engines/layout.md). Ink is where a page is darker than its paper. Its connected pieces are sorted into rules,
large things and glyphs; glyphs make lines, lines are read in the order of `placed_text.layout`, and lines of one size
and column make blocks. Bounded in time and memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from loupe.features.layout.detectors import DetectorOptions, LoadedDetector
from loupe.features.layout.filtering import LABELS, Detection
from loupe.features.layout.line_blocks import Block, Line, text_blocks

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


VERSION = "2"
#: Areas of one page; one with more is none that geometry can read, and is read whole.
MOST_AREAS = 1000
#: Glyphs of one page that are looked at.
_MOST_GLYPHS = 40_000
#: Rules are longer than this share of the page's width (height), at least so many pixels, and this thin.
_RULE_SHARE, _RULE_LEAST, _RULE_THICK = 0.025, 24, 7
#: Times the usual height of glyphs: larger pieces are no text, larger gaps part words of a line from the next column.
_LARGE = 5.0
_WORD_GAP = 1.5
#: A figure over more of the page than this is the page itself, photographed: nothing can be told apart.
_PHOTO = 0.5
#: Share of the page's sides that its edge has.
_EDGE = 0.01
#: A table has so many rules across that begin and end together.
_RULES = 3
#: Boxes are grown by this share of a glyph, to leave the text some white.
_PADDING = 0.25

Box = tuple[int, int, int, int]


def load(options: DetectorOptions) -> LoadedDetector:
    """Nothing has to be loaded."""
    del options
    facts = {"layout_model": f"geometric {VERSION}"}
    return LoadedDetector(detect=lambda images: list(map(detect, images)), facts=facts)


def detect(image: Image) -> list[Detection]:
    """The areas of a page, in reading order."""
    ink = ink_of(image)
    pieces = pieces_of(ink.mask)
    if not len(pieces):
        return _whole(image) if ink.mask.any() else []
    pieces = _without_edges(pieces, ink)
    if not len(pieces):
        return []
    found = _areas(ink, pieces)
    if not found or len(found) > MOST_AREAS:
        return _whole(image)
    return [
        Detection(class_id=LABELS.index(label), box=_on_page(box, ink.scale, image), order=number)
        for number, (label, box) in enumerate(found, 1)
    ]


def _without_edges(pieces: Pieces, ink: Ink) -> Pieces:
    """Without what lies in the outermost strip of the page: scanners leave dark edges there."""
    height, width = ink.mask.shape
    across, down = _EDGE * width, _EDGE * height
    left, top, right, bottom = pieces[:, :4].T
    inner: Pieces = pieces[(right > across) & (left < width - across) & (bottom > down) & (top < height - down)]
    return inner


def _whole(image: Image) -> list[Detection]:
    """All of the page as one text, where there is ink and nothing that geometry can tell apart."""
    box = (0.0, 0.0, float(image.width), float(image.height))
    return [Detection(class_id=LABELS.index("text"), box=box, order=1)]


def _on_page(box: Box, scale: float, image: Image) -> tuple[float, float, float, float]:
    left, top, right, bottom = (side / scale for side in box)
    return max(0.0, left), max(0.0, top), min(float(image.width), right), min(float(image.height), bottom)


def _areas(ink: Ink, pieces: Pieces) -> list[tuple[str, Box]]:
    """Labels and boxes, in pixels of the ink, in reading order."""
    glyph = _glyph_height(pieces)
    rules = _rules(ink)
    tables = _tables(ink, rules)
    inside = _inside(pieces, tables)
    large = _is_large(pieces, glyph) & ~inside
    thin = _is_rule(pieces, ink)
    figures = _figures(pieces[large & ~thin], glyph)
    if any(_share(box, ink) > _PHOTO for box in figures):
        return []
    inside |= _inside(pieces, figures)
    glyphs = pieces[~inside & ~large & ~thin]
    if len(glyphs) > _MOST_GLYPHS:
        return []
    lines = _lines(glyphs, ink, glyph)
    blocks = text_blocks(lines, ink.mask.shape)
    others = [Block("table", box) for box in tables] + [Block("image", box) for box in figures]
    return [(block.label, _grown(block.box, glyph, ink)) for block in in_order(blocks, others)]


def _glyph_height(pieces: Pieces) -> float:
    """The usual height of a glyph: the median of what is neither a speck nor a rule."""
    heights, widths = pieces[:, 3] - pieces[:, 1], pieces[:, 2] - pieces[:, 0]
    likely = heights[(heights >= 4) & (heights <= 120) & (widths <= 12 * heights) & (widths >= 2)]
    return float(np.median(likely)) if len(likely) else 10.0


@dataclass(frozen=True, slots=True)
class _Rules:
    across: Pieces
    down: Pieces


def _rules(ink: Ink) -> _Rules:
    """Thin long pieces of ink across and down."""
    height, width = ink.mask.shape
    across = pieces_of(long_runs(ink.mask, max(_RULE_LEAST, int(_RULE_SHARE * width))))
    down = pieces_of(long_runs(ink.mask.T, max(_RULE_LEAST, int(_RULE_SHARE * height))))[:, [1, 0, 3, 2, 4]]
    thin_across = across[across[:, 3] - across[:, 1] <= _RULE_THICK]
    thin_down = down[down[:, 2] - down[:, 0] <= _RULE_THICK]
    return _Rules(thin_across, thin_down)


def _is_rule(pieces: Pieces, ink: Ink) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    heights, widths = pieces[:, 3] - pieces[:, 1], pieces[:, 2] - pieces[:, 0]
    least = max(_RULE_LEAST, int(_RULE_SHARE * min(ink.mask.shape)))
    thin: np.ndarray[tuple[int], np.dtype[np.bool_]] = (np.minimum(heights, widths) <= _RULE_THICK) & (
        np.maximum(heights, widths) >= least
    )
    return thin


def _tables(ink: Ink, rules: _Rules) -> list[Box]:
    """Grids of rules that cross, and three or more rules across with the same ends."""
    drawn = np.zeros_like(ink.mask)
    for left, top, right, bottom, _ in (*rules.across.tolist(), *rules.down.tolist()):
        drawn[max(top - 1, 0) : bottom + 1, max(left - 1, 0) : right + 1] = True
    found: list[Box] = []
    for left, top, right, bottom, _ in pieces_of(drawn).tolist():
        box = (left, top, right, bottom)
        across, down = _count_inside(rules.across, box), _count_inside(rules.down, box)
        if across >= 2 and down >= 2 and across + down >= 5:
            found.append(box)
    free = [row for row in rules.across.tolist() if not any(_holds(box, row) for box in found)]
    return _merged([*found, *_open_tables(free)])


def _open_tables(rules: Sequence[Sequence[int]]) -> list[Box]:
    """Tables with rules across alone: those that begin and end at the same places, one below the other."""
    found: list[Box] = []
    left_over = sorted(rules, key=lambda rule: rule[1])
    while left_over:
        first, *rest = left_over
        near = max(6, (first[2] - first[0]) // 50)
        alike = [first]
        for rule in rest:
            gap = rule[1] - alike[-1][3]
            if abs(rule[0] - first[0]) <= near and abs(rule[2] - first[2]) <= near and gap <= (first[2] - first[0]) * 2:
                alike.append(rule)
        left_over = [rule for rule in rest if rule not in alike]
        if len(alike) >= _RULES:
            found.append((min(r[0] for r in alike), alike[0][1], max(r[2] for r in alike), alike[-1][3]))
    return found


def _count_inside(pieces: Pieces, box: Box) -> int:
    left, top, right, bottom = box
    middle_x, middle_y = (pieces[:, 0] + pieces[:, 2]) / 2, (pieces[:, 1] + pieces[:, 3]) / 2
    return int(((middle_x >= left) & (middle_x <= right) & (middle_y >= top) & (middle_y <= bottom)).sum())


def _holds(box: Box, piece: Sequence[int]) -> bool:
    middle_x, middle_y = (piece[0] + piece[2]) / 2, (piece[1] + piece[3]) / 2
    return box[0] <= middle_x <= box[2] and box[1] <= middle_y <= box[3]


def _inside(pieces: Pieces, boxes: Sequence[Box]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Mark the pieces that have their middle in one of the boxes."""
    middle_x, middle_y = (pieces[:, 0] + pieces[:, 2]) / 2, (pieces[:, 1] + pieces[:, 3]) / 2
    inside = np.zeros(len(pieces), dtype=np.bool_)
    for left, top, right, bottom in boxes:
        inside |= (middle_x >= left) & (middle_x <= right) & (middle_y >= top) & (middle_y <= bottom)
    return inside


def _is_large(pieces: Pieces, glyph: float) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    heights, widths = pieces[:, 3] - pieces[:, 1], pieces[:, 2] - pieces[:, 0]
    large: np.ndarray[tuple[int], np.dtype[np.bool_]] = (heights > _LARGE * glyph) | (widths > 4 * _LARGE * glyph)
    return large


def _figures(large: Pieces, glyph: float) -> list[Box]:
    """Large pieces that are no rules, those near each other as one; thin ones (a brace, an arrow) are none."""
    near = int(1.5 * glyph)
    boxes = [
        (left, top, right, bottom)
        for left, top, right, bottom, _ in large.tolist()
        if right - left > _LARGE * glyph and bottom - top > 2 * glyph
    ]
    return _merged(boxes, near)


def _share(box: Box, ink: Ink) -> float:
    return (box[2] - box[0]) * (box[3] - box[1]) / ink.mask.size


def _merged(boxes: Sequence[Box], near: int = 0) -> list[Box]:
    """Boxes that overlap or are nearer than `near`, as one; largest first, so that this ends soon."""
    merged: list[Box] = []
    for box in sorted(boxes, key=lambda each: -(each[2] - each[0]) * (each[3] - each[1]))[:MOST_AREAS]:
        current = box
        while True:
            touching = [other for other in merged if _touch(current, other, near)]
            if not touching:
                break
            merged = [other for other in merged if other not in touching]
            edges = [current, *touching]
            current = (
                min(e[0] for e in edges),
                min(e[1] for e in edges),
                max(e[2] for e in edges),
                max(e[3] for e in edges),
            )
        merged.append(current)
    return merged


def _touch(one: Box, other: Box, near: int) -> bool:
    return (
        one[0] - near < other[2] and other[0] - near < one[2] and one[1] - near < other[3] and other[1] - near < one[3]
    )


def _lines(glyphs: Pieces, ink: Ink, glyph: float) -> list[Line]:
    """Pieces of lines: glyphs joined across gaps as wide as those between words."""
    mask = np.zeros_like(ink.mask)
    for left, top, right, bottom, _ in glyphs.tolist():
        mask[top:bottom, left:right] = True
    joined = smeared(mask, round(_WORD_GAP * glyph))
    rows = pieces_of(joined)
    if not len(rows):
        return []
    # Which line a glyph is in: the smallest one that holds its middle would be exact; lines seldom overlap.
    names = np.full(ink.mask.shape, -1, dtype=np.int32)
    order = np.argsort(-(rows[:, 2] - rows[:, 0]) * (rows[:, 3] - rows[:, 1]))
    for number in order.tolist():
        left, top, right, bottom = rows[number, :4].tolist()
        names[top:bottom, left:right] = number
    middles = names[(glyphs[:, 1] + glyphs[:, 3]) // 2, (glyphs[:, 0] + glyphs[:, 2]) // 2]
    by_line = np.argsort(middles, kind="stable")
    starts = np.searchsorted(middles[by_line], np.arange(len(rows) + 1))
    return [
        Line(box=tuple(rows[number, :4].tolist()), glyphs=glyphs[by_line[starts[number] : starts[number + 1]], :4])
        for number in range(len(rows))
        if starts[number + 1] > starts[number]
    ]


def _grown(box: Box, glyph: float, ink: Ink) -> Box:
    """With a little white around it: models read text at the very edge badly."""
    padding = max(2, round(_PADDING * glyph))
    height, width = ink.mask.shape
    left, top, right, bottom = box
    return max(0, left - padding), max(0, top - padding), min(width, right + padding), min(height, bottom + padding)


def in_order(blocks: Sequence[Block], others: Sequence[Block]) -> list[Block]:
    """Blocks of text in their order, tables and figures before the first one that stands below in their column."""
    found = list(blocks)
    for other in sorted(others, key=lambda one: (one.box[1], one.box[0])):
        left, top, right, _ = other.box
        below = [
            place
            for place, block in enumerate(found)
            if block.box[1] >= top and block.box[0] < right and block.box[2] > left
        ]
        above = [
            place
            for place, block in enumerate(found)
            if block.box[1] < top and block.box[0] < right and block.box[2] > left
        ]
        # Behind what stands above it, where nothing stands below.
        place = min(below) if below else max(above) + 1 if above else len(found)
        found.insert(place, other)
    return found
