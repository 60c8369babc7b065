"""Blocks and items as the lines that are matched: normalised, the empty ones dropped.

Protocol: docs/protocols/omnidocbench.md#lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from loupe.benchmarks.omnidocbench.data.ground_truth import FORMULA, IGNORED
from loupe.benchmarks.omnidocbench.records import Block, Mode, PredictedItem

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
        """Whether its category is matched but never scored."""
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
    """How many lines take order, attribute, position or category from a neighbour."""
    return sum(line.looked_up is not (line.block if isinstance(line, TruthLine) else line.source) for line in lines)


def _raw(block: Block) -> str:
    return block.latex if block.category == FORMULA else block.text


def _norm(category: str, raw: str, rules: Rules) -> str:
    return rules.normalize_formula(raw) if category == FORMULA else rules.normalize_text(raw)
