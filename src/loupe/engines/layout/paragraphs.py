"""From rows of text boxes to paragraphs: what is joined by a space, by nothing, by a line end, or by an empty line."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from loupe.engines.layout.reading_order import Quad, Region, Row, extent, is_tabular, layout

#: In units of the height of lines.
_PARAGRAPH_GAP = 0.5
_INDENT = 0.8


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
    """Whether a paragraph may go on from one row to the next: the same size, no indent, and no room was left.

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
    """Whether the character is as wide as high; not Korean, which parts words by spaces."""
    if "\uac00" <= char <= "\ud7a3" or "\u1100" <= char <= "\u11ff":
        return False
    return unicodedata.east_asian_width(char) in "WF"
