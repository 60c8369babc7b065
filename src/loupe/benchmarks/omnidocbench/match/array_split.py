"""Formulas that are a one-column array become one formula for each row (docs/protocols/omnidocbench.md#array-split)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from loupe.benchmarks.omnidocbench.data.ground_truth import FORMULA
from loupe.benchmarks.omnidocbench.records import Block, Item, PredictedItem

_BEGIN: Final = "\\begin{array}{"
_END: Final = "\\end{array}"
_INVISIBLE = re.compile(r"[\s|]+")


class _Array(NamedTuple):
    """The first array of a formula: what stands between its marks, and from which offset on."""

    body: str
    start: int

    def rows(self) -> list[str]:
        return [row for row in map(str.strip, self.body.split("\\\\")) if row]


def split_block_arrays(blocks: Iterable[Block]) -> list[Block]:
    """Rows take the order of their formula and a tenth each; the text around the array is dropped."""
    return [part for block in blocks for part in _split_block(block)]


def _split_block(block: Block) -> list[Block]:
    array = _one_column_array(block.latex) if block.category == FORMULA else None
    if array is None:
        return [block]
    return [
        replace(block, latex=f"\\[{row}\\]", order=_order_of_row(block.order, number))
        for number, row in enumerate(array.rows(), start=1)
    ]


def no_order_to_split(blocks: Iterable[Block]) -> bool:
    """Whether a formula would be split that has no order: upstream ends with TypeError, we leave its rows without."""
    return any(block.order is None and block.category == FORMULA and _one_column_array(block.latex) for block in blocks)


def _order_of_row(order: float | None, number: int) -> float | None:
    """The tenth row has the next whole order, as upstream."""
    return None if order is None else round(float(order) + number / 10, 1)


def split_item_arrays(sources: Iterable[PredictedItem]) -> list[PredictedItem]:
    """Rows keep everything of their item but content and place."""
    return [
        PredictedItem(source.index, part)
        for source in sources
        for part in (_split_item(source.item) if source.item.category == FORMULA else (source.item,))
    ]


def _split_item(item: Item) -> Iterator[Item]:
    array = _one_column_array(item.content)
    if array is None:
        yield item
        return
    reached = 0
    for row in array.rows():
        offset = array.body.index(row, reached)
        reached = offset + len(row)
        start = item.start + array.start + offset
        yield replace(item, content=f"\\[{row}\\]", start=start, end=start + len(row) - 1)


def _one_column_array(latex: str) -> _Array | None:
    r"""The first `\begin{array}{spec}…\end{array}`, if its columns are one l, c or r, and maybe bars."""
    begin = latex.find(_BEGIN)
    spec_end = latex.find("}", begin + len(_BEGIN)) if begin >= 0 else -1
    body_end = latex.find(_END, spec_end + 1) if spec_end >= 0 else -1
    if body_end < 0:
        return None
    spec = _INVISIBLE.sub("", latex[begin + len(_BEGIN) : spec_end])
    return _Array(latex[spec_end + 1 : body_end], spec_end + 1) if spec in ("l", "c", "r") else None


def without_dollars(latex: str) -> str:
    """A formula that becomes the row of an array, without the dollars and newlines around it."""
    return latex.strip("$").strip("\n")
