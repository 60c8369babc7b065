"""Turn blocks and items into the lines that are matched: normalised, without empty ones.

Formulas of several lines become one formula for each line (docs/protocols/omnidocbench.md#array-split).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from loupe.benchmarks.omnidocbench.formula_lines import Lines, lines_of, rows_of
from loupe.benchmarks.omnidocbench.formula_normalization import without_tags
from loupe.benchmarks.omnidocbench.ground_truth import FORMULA, IGNORED
from loupe.benchmarks.omnidocbench.records import Block, Item, Mode, PredictedItem

if TYPE_CHECKING:
    from loupe.benchmarks.omnidocbench.rules import Rules


_T = TypeVar("_T", Block, PredictedItem)


@dataclass(frozen=True, slots=True, kw_only=True)
class TruthLine:
    """One block of the ground truth in the match."""

    raw: str
    norm: str
    category: str
    block: Block
    #: Where order and attribute are looked up: another block, if one before it was dropped.
    looked_up: Block

    @property
    def ignored(self) -> bool:
        """True if its category is matched but never scored."""
        return self.category in IGNORED


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedLine:
    """One item of the prediction in the match."""

    raw: str
    norm: str
    source: PredictedItem
    #: Where position and category are looked up: another item, if one before it was dropped.
    looked_up: PredictedItem

    @property
    def category(self) -> str:
        """The category in the results: the finer one if there is one."""
        item = self.looked_up.item
        return item.fine_category or item.category


def truth_lines(blocks: Sequence[Block], mode: Mode, rules: Rules) -> list[TruthLine]:
    """The lines of the ground truth, in the order of the blocks."""
    norms = [_norm(block.category, _raw(block), rules) for block in blocks]
    kept = [(block, norm) for block, norm in zip(blocks, norms, strict=True) if norm]
    sources = [block for block, _ in kept]
    return [
        TruthLine(
            raw=_raw(block),
            norm=norm,
            category=block.fine_category or block.category,
            block=block,
            looked_up=looked_up,
        )
        for (block, norm), looked_up in zip(kept, _looked_up(blocks, sources, mode), strict=True)
    ]


def predicted_lines(items: Sequence[PredictedItem], mode: Mode, rules: Rules) -> list[PredictedLine]:
    """The lines of the prediction, in the order of the items."""
    norms = [_norm(source.item.category, source.item.content, rules) for source in items]
    kept = [(source, norm) for source, norm in zip(items, norms, strict=True) if norm]
    sources = [source for source, _ in kept]
    return [
        PredictedLine(raw=source.item.content, norm=norm, source=source, looked_up=looked_up)
        for (source, norm), looked_up in zip(kept, _looked_up(items, sources, mode), strict=True)
    ]


def _looked_up(everything: Sequence[_T], kept: Sequence[_T], mode: Mode) -> Sequence[_T]:
    """Upstream drops lines but not their blocks and items and looks up the i-th of these for the i-th line (#lines)."""
    return everything[: len(kept)] if mode == "parity" else kept


def shifted(lines: Sequence[TruthLine] | Sequence[PredictedLine]) -> int:
    """Count the lines that take order, attribute, position or category from a neighbour."""
    return sum(line.looked_up is not (line.block if isinstance(line, TruthLine) else line.source) for line in lines)


def _raw(block: Block) -> str:
    return block.latex if block.category == FORMULA else block.text


def _norm(category: str, raw: str, rules: Rules) -> str:
    return rules.normalize_formula(raw) if category == FORMULA else rules.normalize_text(raw)


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
    return [part for block in blocks for part in _split_block_array(block)]


def _split_block_array(block: Block) -> list[Block]:
    array = _one_column_array(block.latex) if block.category == FORMULA else None
    if array is None:
        return [block]
    return [
        replace(block, latex=f"\\[{row}\\]", order=_order_of_row(block.order, number))
        for number, row in enumerate(array.rows(), start=1)
    ]


def no_order_for_rows(blocks: Iterable[Block]) -> bool:
    """True if a formula would be split that has no order: upstream ends with TypeError, we leave its rows without."""
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


def split_block_lines(blocks: Iterable[Block]) -> list[Block]:
    """Lines take the order of their formula and a thousandth each."""
    return [part for block in blocks for part in _split_block_lines(block)]


def _split_block_lines(block: Block) -> list[Block]:
    found = lines_of(block.latex) if block.category == FORMULA else None
    if found is None:
        return [block]
    return [
        replace(block, latex=f"\\[{line}\\]", order=None if block.order is None else float(block.order) + number / 1000)
        for number, line in enumerate(found.lines, start=1)
    ]


def no_order_for_lines(blocks: Iterable[Block]) -> bool:
    """True if a formula would be split that has no order: upstream ends with TypeError, we leave its lines without."""
    return any(block.order is None and block.category == FORMULA and lines_of(block.latex) for block in blocks)


def split_item_lines(sources: Iterable[PredictedItem]) -> list[PredictedItem]:
    """Lines keep everything of their item but content and place."""
    return [
        PredictedItem(source.index, part)
        for source in sources
        for part in (split_item(source.item) if source.item.category == FORMULA else (source.item,))
    ]


def split_item(item: Item) -> Iterator[Item]:
    """The lines of a formula as items, or the item itself."""
    found = lines_of(item.content)
    if found is None:
        yield item
        return
    for line, (start, end) in zip(found.lines, _places(item.content, found), strict=True):
        yield replace(item, content=f"\\[{line}\\]", start=item.start + start, end=item.start + end)


def _places(content: str, found: Lines) -> list[tuple[int, int]]:
    """Return the places of the lines in a formula; the last one ends with the text behind the environment."""
    offset = max(0, content.find(found.body))
    places, reached = [], 0
    for row in rows_of(found.body):
        raw = without_tags(row).strip()
        if not raw:
            continue
        place = found.body.find(raw, reached)
        place = reached if place < 0 else place
        reached = place + len(raw)
        places.append((offset + place, offset + reached - 1))
    if found.suffix:
        mark = f"\\end{{{found.environment}}}"
        behind = content.find(mark, offset + len(found.body))
        suffix = content.find(found.suffix, behind + len(mark)) if behind >= 0 else -1
        if suffix >= 0:
            places[-1] = (places[-1][0], suffix + len(found.suffix) - 1)
    return places
