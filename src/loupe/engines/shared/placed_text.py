"""Text with its place on the page: lines as engines return them, their reading order, and the page's text.

Method of the order: recursive XY-cut (Nagy & Seth, ICPR 1984) on boxes that are straightened first, with one rule
added: a white gap counts as a gutter between columns only if what stands beside it looks like columns of prose (wide
lines that fill their column). Anything else side by side, such as table cells or a label and its value, is read row by
row.
"""

from __future__ import annotations

import math
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import NamedTuple, TypeAlias

#: Four corners, clockwise from the top left as the text runs.
Quad: TypeAlias = Sequence[Sequence[float]]
Interval: TypeAlias = tuple[float, float]

#: Widths below are in units of the page's median line height.
_GUTTER = 1.4
_ALIGNED_GUTTER = 0.5
_ALIGNED_ROWS = 4
#: Detectors draw boxes wider than the text, by about this on either side.
_PADDING = 0.25
_PROSE_WIDTH = 5.0
_PROSE_FILL = 0.6
_PROSE_SHARE = 0.6
_INDEPENDENT_ROWS = 6
_MARGIN_GAP = 1.0
_TABLE_GAP = 1.5
#: For paragraphs, in units of the height of lines.
_PARAGRAPH_GAP = 0.5
_INDENT = 0.8


class PlacedLine(NamedTuple):
    """A line of text, its box as fractions of the page, and how sure the engine was (0 to 1; None: it does not say)."""

    text: str
    left: float
    top: float
    right: float
    bottom: float
    confidence: float | None = None


def placed_line(text: str, box: tuple[float, float, float, float], confidence: float | None = None) -> PlacedLine:
    """The line as it is stored: a ten-thousandth of the page is less than a pixel."""
    left, top, right, bottom = (round(end, 4) for end in box)
    return PlacedLine(text, left, top, right, bottom, None if confidence is None else round(confidence, 3))


@dataclass(frozen=True, slots=True)
class Box:
    """An upright rectangle around one piece of text; `index` is its place in the input."""

    left: float
    top: float
    right: float
    bottom: float
    index: int

    @property
    def height(self) -> float:
        """Of the text's line."""
        return self.bottom - self.top

    @property
    def width(self) -> float:
        """Along the line."""
        return self.right - self.left

    @property
    def core(self) -> tuple[float, float]:
        """From left to right without the padding of detectors."""
        padding = min(_PADDING * self.height, self.width / 4)
        return self.left + padding, self.right - padding

    @property
    def middle(self) -> float:
        """Of its height."""
        return (self.top + self.bottom) / 2


Row: TypeAlias = list[Box]
#: Rows that belong together, in reading order.
Region: TypeAlias = list[Row]


def reading_order(quads: Sequence[Quad]) -> list[int]:
    """The order in which the boxes are read, as indices into `quads`; each occurs once."""
    return [box.index for region in layout(quads) for row in region for box in row]


def layout(quads: Sequence[Quad]) -> list[Region]:
    """The regions of the page in reading order: columns, and what stands above, between and below them."""
    boxes = _straightened(quads)
    if not boxes:
        return []
    upright = [box for box in boxes if not _is_standing(box)]
    # Text that runs up or down the margin of an upright page belongs to no row of it: it is read last.
    aside = [box for box in boxes if _is_standing(box)] if len(upright) > len(boxes) / 2 else []
    body = upright if aside else boxes
    unit = max(median(box.height for box in body), 1e-6)
    regions = [region for part in _margins(body, unit) for region in _cut(part, unit)]
    return [*(_rows(region) for region in regions), *([[box]] for box in sorted(aside, key=lambda box: box.top))]


def _is_standing(box: Box) -> bool:
    return box.height > 3 * box.width


def _straightened(quads: Sequence[Quad]) -> list[Box]:
    """Upright boxes after the page's skew is taken out."""
    angle = _skew(quads)
    cos, sin = math.cos(-angle), math.sin(-angle)
    boxes = []
    for index, quad in enumerate(quads):
        points = [(x * cos - y * sin, x * sin + y * cos) for x, y in quad]
        # The mean of the two corners on each side: a tilted box would otherwise grow into its neighbours.
        xs, ys = sorted(x for x, _ in points), sorted(y for _, y in points)
        boxes.append(Box((xs[0] + xs[1]) / 2, (ys[0] + ys[1]) / 2, (xs[2] + xs[3]) / 2, (ys[2] + ys[3]) / 2, index))
    return boxes


def _skew(quads: Sequence[Quad]) -> float:
    """The median slope of wide boxes' upper edges, in radians; 0 for a page that has none."""
    slopes = []
    for (x0, y0), (x1, y1), (_, _), (x3, y3) in quads:
        width, height = math.hypot(x1 - x0, y1 - y0), math.hypot(x3 - x0, y3 - y0)
        if width > 4 * height and x1 > x0:
            slopes.append(math.atan2(y1 - y0, x1 - x0))
    slope = median(slopes) if len(slopes) >= 3 else 0.0
    # More is no skew of a page but text that runs another way.
    return slope if abs(slope) < math.radians(20) else 0.0


def _margins(boxes: list[Box], unit: float) -> tuple[list[Box], list[Box], list[Box]]:
    """Running head, body, and foot: a single row set apart from the rest spans all columns, whatever is in it."""
    strips = _strips(boxes)
    gaps = [extent(below)[0] - extent(above)[1] for above, below in pairwise(strips)]
    # Wide, and wider than between other lines: every line of a loosely set page is far from the next.
    enough = max(_MARGIN_GAP * unit, 2 * median(gaps[1:-1] or [0.0]))
    head: list[Box] = []
    foot: list[Box] = []
    if len(strips) > 2 and gaps[0] > enough and len(_rows(strips[0])) == 1:
        head = strips.pop(0)
    if len(strips) > 2 and gaps[-1] > enough and len(_rows(strips[-1])) == 1:
        foot = strips.pop()
    return head, [box for strip in strips for box in strip], foot


def _cut(boxes: list[Box], unit: float) -> list[list[Box]]:
    """Cut a part of the page into regions: columns where there are any, else bands, else it is one region."""
    if len(boxes) < 2:
        return [boxes] if boxes else []
    strips = _strips(boxes)
    whole = min(box.core[0] for box in boxes), max(box.core[1] for box in boxes)
    regions: list[list[Box]] = []
    loose: list[Box] = []
    start = 0
    while start < len(strips):
        end, columns = _columns_from(strips, start, whole, unit)
        if columns:
            regions += [loose] if loose else []
            loose = []
            regions += [region for column in columns for region in _cut(column, unit)]
        else:
            loose += strips[start]
        start = end
    return [*regions, loose] if loose else regions


def _columns_from(strips: list[list[Box]], start: int, whole: Interval, unit: float) -> tuple[int, list[list[Box]]]:
    """The longest band of strips from `start` on that falls into columns, and these; else the one strip, and none."""
    covered: list[Interval] = []
    bands: list[tuple[int, list[Interval]]] = []
    for end in range(start, len(strips)):
        covered = _union([*covered, *(box.core for box in strips[end])])
        gutters = [gap for gap in _between(covered) if gap[1] - gap[0] >= _ALIGNED_GUTTER * unit]
        if not gutters and covered[0][0] <= whole[0] + unit and covered[-1][1] >= whole[1] - unit:
            break
        # Only where a gutter is lost next can a band end: more rows with the same gutters are better evidence.
        if bands and len(bands[-1][1]) == len(gutters):
            bands.pop()
        bands.append((end + 1, gutters))
    for end, gutters in reversed(bands):
        columns = _columns([box for strip in strips[start:end] for box in strip], gutters, unit)
        if columns:
            return end, columns
    return start + 1, []


@dataclass(frozen=True, slots=True)
class _Column:
    """A part of the page that may be a column, with what tells whether it is one."""

    boxes: list[Box]
    middles: list[float]
    is_prose: bool


def _columns(boxes: list[Box], gutters: list[Interval], unit: float) -> list[list[Box]]:
    """The columns between those gutters that are some; none if there are fewer than two."""
    cuts = list(gutters)
    columns = [_as_column(part, unit) for part in _split(boxes, cuts)]
    while cuts:
        wrong = [i for i in range(len(cuts)) if not _is_gutter(columns[i], columns[i + 1], cuts[i], unit)]
        if not wrong:
            return [column.boxes for column in columns]
        # What is no gutter joins its two sides to one column; the narrowest goes first, then all is judged again.
        narrowest = min(wrong, key=lambda i: cuts[i][1] - cuts[i][0])
        joined = columns[narrowest].boxes + columns[narrowest + 1].boxes
        columns[narrowest : narrowest + 2] = [_as_column(joined, unit)]
        del cuts[narrowest]
    return []


def _as_column(boxes: list[Box], unit: float) -> _Column:
    """Prose: most of the text stands in wide lines that fill the column (answers below a question may be short)."""
    rows = _rows(boxes)
    width = max(box.right for box in boxes) - min(box.left for box in boxes)
    least = max(_PROSE_WIDTH * unit, _PROSE_FILL * width)
    inked = [(sum(box.width for box in row), is_tabular(row)) for row in rows]
    wide = sum(length for length, tabular in inked if length >= least and not tabular)
    is_prose = wide >= _PROSE_SHARE * sum(length for length, _ in inked)
    return _Column(boxes, sorted(_middle(row) for row in rows), is_prose)


def _is_gutter(left: _Column, right: _Column, gap: Interval, unit: float) -> bool:
    """True if two columns stand beside this gap: prose, or many rows that are not on common lines as in a table.

    Gaps between words are as wide as a narrow gutter, but do not stand above each other over many rows.
    """
    fewer, more = sorted((left.middles, right.middles), key=len)
    is_wide = gap[1] - gap[0] >= _GUTTER * unit
    if left.is_prose and right.is_prose:
        return len(fewer) >= (2 if is_wide else _ALIGNED_ROWS)
    if not is_wide or len(fewer) < _INDEPENDENT_ROWS:
        return False
    aligned = sum(_nearest(more, middle) < 0.15 * unit for middle in fewer)
    return aligned < 0.4 * len(fewer)


def _nearest(values: list[float], value: float) -> float:
    """The distance to the nearest of some sorted values."""
    place = bisect_left(values, value)
    return min(abs(other - value) for other in values[max(place - 1, 0) : place + 1])


def _middle(row: Row) -> float:
    return median(box.middle for box in row)


def _split(boxes: list[Box], cuts: Sequence[Interval]) -> list[list[Box]]:
    columns: list[list[Box]] = [[] for _ in range(len(cuts) + 1)]
    for box in boxes:
        columns[sum(box.left + box.right > gap[0] + gap[1] for gap in cuts)].append(box)
    return columns


def _strips(boxes: Iterable[Box]) -> list[list[Box]]:
    """Groups of boxes, from top to bottom, that a horizontal line can separate.

    Boxes count without the outer fifth of their height: neighbouring lines often touch.
    """
    strips: list[list[Box]] = []
    reach = -math.inf
    for box in sorted(boxes, key=lambda box: (box.top + 0.2 * box.height, box.left, box.index)):
        if box.top + 0.2 * box.height >= reach or not strips:
            strips.append([])
        strips[-1].append(box)
        reach = max(reach, box.bottom - 0.2 * box.height)
    return strips


def _union(intervals: list[Interval]) -> list[Interval]:
    """The same ground covered by intervals that do not touch, from left to right."""
    union: list[Interval] = []
    for low, high in sorted(intervals):
        if union and low <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], high))
        else:
            union.append((low, high))
    return union


def _between(union: list[Interval]) -> list[Interval]:
    return [(a[1], b[0]) for a, b in pairwise(union)]


def _rows(boxes: list[Box]) -> Region:
    """Boxes on one line joined into rows, from left to right, and the rows from top to bottom."""
    rows: list[Row] = []
    for box in sorted(boxes, key=lambda box: (box.middle, box.left, box.index)):
        row = next((row for row in reversed(rows[-3:]) if _beside(row, box)), None)
        if row is None:
            rows.append([box])
        else:
            row.append(box)
    for row in rows:
        row.sort(key=lambda box: (box.left, box.index))
    return rows


def _beside(row: Row, box: Box) -> bool:
    """True if `box` stands on the line of the nearest piece of the row, and not over any of its pieces."""
    nearest = min(row, key=lambda other: max(other.left - box.right, box.left - other.right))
    shared = min(nearest.bottom, box.bottom) - max(nearest.top, box.top)
    overlap = min(nearest.right, box.right) - max(nearest.left, box.left)
    on_line = shared > 0.5 * min(nearest.height, box.height)
    return on_line and overlap <= 0.5 * min(nearest.width, box.width)


def extent(boxes: list[Box]) -> tuple[float, float]:
    """Top and bottom."""
    return min(box.top for box in boxes), max(box.bottom for box in boxes)


def is_tabular(row: Row) -> bool:
    """True if a wide gap splits the row."""
    return any(b.left - a.right > _TABLE_GAP * min(a.height, b.height) for a, b in pairwise(row))


def page_text(quads: Sequence[Quad], texts: Sequence[str]) -> str:
    """The page's text: pieces of a row joined, rows of a paragraph joined, an empty line between paragraphs.

    Chinese and Japanese are joined without spaces; a word broken by a hyphen at the line's end is put together.
    Rows of short pieces (tables, forms, receipts, lists) keep their line ends.
    """
    blocks: list[str] = []
    for region in layout(quads):
        blocks += _paragraphs(region, texts)
    return "\n\n".join(blocks)


def _paragraphs(region: Region, texts: Sequence[str]) -> list[str]:
    """The region's paragraphs as text; a gap that is clearly wider than the usual one starts a new one."""
    left = min(row[0].left for row in region)
    right = max(row[-1].right for row in region)
    gaps = [extent(row)[0] - extent(previous)[1] for previous, row in pairwise(region)]
    usual = median(gaps) if gaps else 0.0
    blocks = [_row_text(region[0], texts)]
    for gap, (previous, row) in zip(gaps, pairwise(region), strict=True):
        line = _row_text(row, texts)
        if gap > usual + _PARAGRAPH_GAP * min(_height(previous), _height(row)):
            blocks.append(line)
        elif _runs_on(previous, row, texts, left=left, right=right):
            blocks[-1] = join_lines(blocks[-1], line)
        else:
            blocks[-1] += "\n" + line
    return [block for block in (block.strip("\n") for block in blocks) if block]


def _row_text(row: Row, texts: Sequence[str]) -> str:
    """The pieces of a row; what stands far apart is parted by a space in any script."""
    text = texts[row[0].index].strip()
    for before, box in pairwise(row):
        piece = texts[box.index].strip()
        is_apart = box.left - before.right > min(before.height, box.height)
        text = f"{text} {piece}".strip() if is_apart else join_pieces(text, piece)
    return text


def _height(row: Row) -> float:
    return median(box.height for box in row)


def _runs_on(previous: Row, row: Row, texts: Sequence[str], *, left: float, right: float) -> bool:
    """True if a paragraph may go on from one row to the next: the same size, no indent, and no room was left.

    A typesetter breaks a line where the next word does not fit; where it would have fitted, the break has a meaning.
    """
    size, next_size = _height(previous), _height(row)
    if not 0.75 * next_size < size < 1.33 * next_size or is_tabular(previous) or is_tabular(row):
        return False
    if row[0].left - left > _INDENT * size:
        return False
    text = texts[row[0].index].strip()
    word = 1 if text and _is_cjk(text[0]) else len(text.split(" ")[0])
    return right - previous[-1].right < (word + 1) * row[0].width / max(len(text), 1)


def join_pieces(first: str, second: str) -> str:
    """Two pieces of a row: a space between them, but none between Chinese or Japanese characters.

    >>> join_pieces("Total", "12.50"), join_pieces("総額", "千円")
    ('Total 12.50', '総額千円')
    """
    solid = first and second and _is_cjk(first[-1]) and _is_cjk(second[0])
    return first + second if solid else f"{first} {second}".strip()


def join_lines(first: str, second: str) -> str:
    """Two lines of one paragraph: like pieces, and a word that a hyphen breaks is put together.

    >>> join_lines("an exam-", "ple"), join_lines("the years 1990-", "2000"), join_lines("你好", "世界")
    ('an example', 'the years 1990-2000', '你好世界')
    """
    if len(first) > 1 and second and first[-1] in "-\u2010" and first[-2].isalnum():
        return first[:-1] + second if first[-2].islower() and second[0].islower() else first + second
    return join_pieces(first, second)


def _is_cjk(char: str) -> bool:
    """True if the character is as wide as high; not Korean, which parts words by spaces."""
    if "\uac00" <= char <= "\ud7a3" or "\u1100" <= char <= "\u11ff":
        return False
    return unicodedata.east_asian_width(char) in "WF"
