"""Formulas of several lines become one formula for each line, as in OmniDocBench 1.6.

Protocol: docs/protocols/omnidocbench_v16.md#splitting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from loupe.benchmarks.omnidocbench.data.ground_truth import FORMULA
from loupe.benchmarks.omnidocbench.records import Block, Item, PredictedItem
from loupe.benchmarks.omnidocbench.text.formula_delimiters import without_tags
from loupe.benchmarks.omnidocbench.text.formula_lines import Lines, lines_of
from loupe.benchmarks.omnidocbench.text.formula_rows import rows_of


def split_block_lines(blocks: Iterable[Block]) -> list[Block]:
    """Lines take the order of their formula and a thousandth each."""
    return [part for block in blocks for part in _split_block(block)]


def _split_block(block: Block) -> list[Block]:
    found = lines_of(block.latex) if block.category == FORMULA else None
    if found is None:
        return [block]
    return [
        replace(block, latex=f"\\[{line}\\]", order=None if block.order is None else float(block.order) + number / 1000)
        for number, line in enumerate(found.lines, start=1)
    ]


def no_order_to_split(blocks: Iterable[Block]) -> bool:
    """Whether a formula would be split that has no order: upstream ends with TypeError, we leave its lines without."""
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
    """Where the lines stand in a formula; the last one ends with the text behind the environment."""
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
