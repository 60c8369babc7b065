"""Lines of text as the blocks of a page: paragraphs, headings by their size, formulas set apart, running heads.

Rules of ours for born-digital pages. The columns and the order of lines are those of `reading_order.layout`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from loupe.engines.shared.placed_text import Region, layout

Box: TypeAlias = tuple[int, int, int, int]

#: Lines further apart than this, in heights of a line and beyond the usual gap of the page, are no paragraph.
_GAP = 0.6
#: Sizes are the same within this factor; headings are larger than the text by this, the title by that.
_SAME, _HEADING, _TITLE = 1.18, 1.18, 1.55
_HEADING_LINES = 3
#: Pieces above one that may belong to its formula.
_NEARBY = 40
#: White between a fraction's bar and what stands over and under it, in sizes of the text.
_BAR_GAP = 0.7
#: Share of a formula's glyphs that stand off its line, and of the column that is white on both its sides.
_OFF_LINE, _WHITE = 0.35, 0.08
#: Shares of the page's height at its top and bottom where running heads stand, and of its glyphs that they have.
_MARGIN, _NUMBER_GLYPHS = 0.07, 5


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A piece of a line: its box (left, top, right, bottom) and those of its glyphs."""

    box: Box
    glyphs: NDArray[np.int64]

    @property
    def size(self) -> float:
        """The height of its tall glyphs: a line without any (`soon we are`) is no smaller than the others for that."""
        heights = self.glyphs[:, 3] - self.glyphs[:, 1]
        return float(np.quantile(heights, 0.8))


@dataclass(frozen=True, slots=True)
class Block:
    """An area of the page with the label of a detector."""

    label: str
    box: Box


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """Pieces on one line."""

    lines: list[Line]

    @property
    def box(self) -> Box:
        return _around([line.box for line in self.lines])

    @property
    def size(self) -> float:
        return float(np.median([line.size for line in self.lines]))

    @property
    def glyphs(self) -> int:
        return sum(len(line.glyphs) for line in self.lines)


def text_blocks(lines: Sequence[Line], shape: tuple[int, ...]) -> list[Block]:
    """The blocks of a page in reading order. `shape` is the page's height and width."""
    lines = _without_specks(lines)
    if not lines:
        return []
    usual = _usual_size(lines)
    lines = _with_fractions(lines, usual)
    regions = layout([_corners(line.box) for line in lines])
    columns = [_rows(region, lines) for region in regions]
    leading = _leading(columns)
    paragraphs = [rows for column in columns for rows in _paragraphs(column, usual, leading)]
    found = [block for rows in paragraphs for block in _labelled(rows, usual, shape, _column_of(rows, columns))]
    return _with_title(_with_margins(found, paragraphs, shape), paragraphs, usual)


def _without_specks(lines: Sequence[Line]) -> list[Line]:
    """Without dots that stand alone, unless the page has nothing else."""
    kept = [line for line in lines if len(line.glyphs) > 1 or line.box[3] - line.box[1] > 3]
    return kept


def _with_fractions(lines: Sequence[Line], usual: float) -> list[Line]:
    """Lines with what stands over and under them in a formula: pieces that overlap, or stand at a fraction's bar."""
    merged: list[Line] = []
    for line in sorted(lines, key=lambda each: each.box[1]):
        current = line
        # Only the nearest ones: formulas are small, and pages of thousands of pieces are none.
        for place in range(len(merged) - 1, max(-1, len(merged) - 1 - _NEARBY), -1):
            if _is_one_formula(merged[place], current, usual):
                other = merged.pop(place)
                current = Line(_around([other.box, current.box]), np.concatenate([other.glyphs, current.glyphs]))
        merged.append(current)
    return merged


def _is_one_formula(one: Line, other: Line, usual: float) -> bool:
    across = min(one.box[2], other.box[2]) - max(one.box[0], other.box[0])
    down = min(one.box[3], other.box[3]) - max(one.box[1], other.box[1])
    smaller = min(one.box[3] - one.box[1], other.box[3] - other.box[1])
    if across <= 0 or down <= -_BAR_GAP * usual:
        return False
    return down >= max(2, 0.2 * smaller) or _has_bar(one, other, usual) or _has_bar(other, one, usual)


def _has_bar(line: Line, other: Line, usual: float) -> bool:
    """True if a bar of `line` has the other one right above or below it."""
    left, top, right, bottom = line.glyphs.T
    flat = (bottom - top <= max(3, 0.2 * usual)) & (right - left >= usual) & (right - left <= 30 * usual)
    above, below = top - other.box[3], other.box[1] - bottom
    near = np.abs(np.maximum(above, below)) <= _BAR_GAP * usual
    return bool((flat & near & (left < other.box[2]) & (right > other.box[0])).any())


def _usual_size(lines: Sequence[Line]) -> float:
    """The size of most glyphs: a page has more text than headings."""
    sizes = np.repeat([line.size for line in lines], [len(line.glyphs) for line in lines])
    return float(np.median(sizes))


def _corners(box: Box) -> list[tuple[float, float]]:
    left, top, right, bottom = box
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def _rows(region: Region, lines: Sequence[Line]) -> list[_Row]:
    return [_Row([lines[box.index] for box in row]) for row in region if row]


def _leading(columns: Sequence[Sequence[_Row]]) -> float:
    """The usual gap between two lines of a column."""
    gaps = [below.box[1] - above.box[3] for column in columns for above, below in pairwise(column)]
    near = [gap for gap in gaps if gap >= 0]
    return float(np.quantile(near, 0.3)) if near else 0.0


def _paragraphs(rows: Sequence[_Row], usual: float, leading: float) -> list[list[_Row]]:
    """Rows that follow each other closely and are of one size."""
    found: list[list[_Row]] = []
    for row in rows:
        above = found[-1][-1] if found else None
        if above is None or not _goes_on(above, row, usual, leading):
            found.append([row])
        else:
            found[-1].append(row)
    return found


def _goes_on(above: _Row, row: _Row, usual: float, leading: float) -> bool:
    small, large = sorted((above.size, row.size))
    gap = row.box[1] - above.box[3]
    same = large <= max(small * _SAME, small + 2) or max(above.size, row.size) < _HEADING * usual
    return same and -large < gap <= leading + _GAP * max(large, usual) and not (_is_formula(above) or _is_formula(row))


def _column_of(rows: Sequence[_Row], columns: Sequence[Sequence[_Row]]) -> Box:
    """Return the box that the column of these rows covers."""
    column = next(column for column in columns if any(row is rows[0] for row in column))
    return _around([row.box for row in column])


def _labelled(rows: Sequence[_Row], usual: float, shape: tuple[int, ...], column: Box) -> list[Block]:
    """The block of a paragraph; a formula and its number are two."""
    box = _around([row.box for row in rows])
    if len(rows) == 1 and _is_formula(rows[0]):
        return _formula(rows[0], column)
    size = float(np.median([row.size for row in rows]))
    if size >= _HEADING * usual and len(rows) <= _HEADING_LINES:
        return [Block("paragraph_title", box)]
    if box[3] - box[1] > 3 * (box[2] - box[0]) and len(rows) == 1:
        return [Block("vertical_text", box)]
    return [Block("text", box)]


def _is_formula(row: _Row) -> bool:
    """True if much of a row stands off its line: fractions, limits, indices."""
    glyphs = np.concatenate([line.glyphs for line in row.lines])
    if not 4 <= len(glyphs) <= 400:
        return False
    bottoms = glyphs[:, 3]
    size = float(np.quantile(glyphs[:, 3] - glyphs[:, 1], 0.8))
    # The line is where most glyphs end.
    counts = np.bincount(bottoms - bottoms.min())
    window = np.convolve(counts, np.ones(max(1, round(0.3 * size))), mode="same")
    line = int(np.argmax(window)) + int(bottoms.min())
    off = np.abs(bottoms - line) > 0.3 * size
    return float(off.mean()) >= _OFF_LINE


def _formula(row: _Row, column: Box) -> list[Block]:
    """A formula, and at the right end of the column its number. One at the left edge is text with much in it."""
    lines = sorted(row.lines, key=lambda line: line.box[0])
    width = max(column[2] - column[0], 1)
    number = lines[-1] if len(lines) > 1 and len(lines[-1].glyphs) <= 6 else None
    if number is not None and number.box[2] < column[2] - _WHITE * width:
        number = None
    body = lines[:-1] if number is not None else lines
    box = _around([line.box for line in body])
    set_apart = box[0] - column[0] > _WHITE * width or number is not None
    label = "display_formula" if set_apart else "text"
    return [Block(label, box), *([Block("formula_number", number.box)] if number is not None else [])]


def _with_margins(blocks: list[Block], paragraphs: Sequence[Sequence[_Row]], shape: tuple[int, ...]) -> list[Block]:
    """Single rows at the top and bottom edges of a page with much between them: its number, its running head."""
    height = shape[0]
    rows = {_around([row.box for row in rows]): rows for rows in paragraphs if len(rows) == 1}
    if len(blocks) < 3:
        return blocks
    found = []
    for block in blocks:
        row = rows.get(block.box)
        top, bottom = block.box[3] <= _MARGIN * height, block.box[1] >= (1 - _MARGIN) * height
        if block.label == "text" and row is not None and (top or bottom) and _is_apart(block, blocks, row[0].size):
            number = row[0].glyphs <= _NUMBER_GLYPHS
            block = Block("number" if number else "header" if top else "footer", block.box)
        found.append(block)
    return found


def _is_apart(block: Block, blocks: Sequence[Block], size: float) -> bool:
    """True if there is white between a block and everything above and below."""
    gaps = [
        max(other.box[1] - block.box[3], block.box[1] - other.box[3])
        for other in blocks
        if other is not block and (other.box[1] >= block.box[3] or other.box[3] <= block.box[1])
    ]
    return bool(gaps) and min(gaps) > 1.5 * size


def _with_title(blocks: list[Block], paragraphs: Sequence[Sequence[_Row]], usual: float) -> list[Block]:
    """The largest heading is the title, if it is large and stands before all text."""
    sizes = {_around([row.box for row in rows]): float(np.median([row.size for row in rows])) for rows in paragraphs}
    for place, block in enumerate(blocks):
        if block.label == "text":
            break
        largest = max((sizes.get(other.box, 0.0) for other in blocks if other.label == "paragraph_title"), default=0.0)
        if block.label == "paragraph_title" and sizes.get(block.box, 0.0) >= max(_TITLE * usual, largest):
            return [*blocks[:place], Block("doc_title", block.box), *blocks[place + 1 :]]
    return blocks


def _around(boxes: Sequence[Box]) -> Box:
    return (
        min(box[0] for box in boxes),
        min(box[1] for box in boxes),
        max(box[2] for box in boxes),
        max(box[3] for box in boxes),
    )
