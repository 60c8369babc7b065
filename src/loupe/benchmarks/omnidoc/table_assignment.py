"""Tables, before the mixed match: which predicted table is held against which of the ground truth (section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from scipy.optimize import linear_sum_assignment

from loupe.benchmarks.omnidoc.distances import distance_matrix
from loupe.benchmarks.omnidoc.latex_table_html import latex_table_to_html
from loupe.benchmarks.omnidoc.records import (
    Block,
    Item,
    MatchedSample,
    Mode,
    PredictedItem,
    Unscored,
    UnscoredPiece,
    piece_of,
)
from loupe.benchmarks.omnidoc.table_cells import cells_of
from loupe.benchmarks.omnidoc.table_normalization import normalize_table


@dataclass(slots=True, kw_only=True)
class TableAssignment:
    """The table samples of a page, the cells that go into the mixed match, and what goes nowhere."""

    mode: Mode
    samples: list[MatchedSample] = field(default_factory=list)
    cells: list[PredictedItem] = field(default_factory=list)
    unscored: list[UnscoredPiece] = field(default_factory=list)
    upstream_error: str = ""

    def leave(self, sources: Sequence[PredictedItem], reason: Unscored) -> None:
        """Note tables that no sample has."""
        self.unscored += [UnscoredPiece(piece=piece_of(source), reason=reason) for source in sources]


def assign_tables(blocks: Sequence[Block], items: Sequence[Item], mode: Mode) -> TableAssignment:
    """Assign the predicted tables of the more frequent format; HTML if there are as many of both.

    Fixed mode makes HTML of LaTeX tables, so that there is one format; what it cannot read is scored as it stands.
    """
    if mode == "fixed":
        items = [_in_html(item) if item.category == "latex_table" else item for item in items]
    html = [PredictedItem(index, item) for index, item in enumerate(items) if item.category == "html_table"]
    latex = [PredictedItem(index, item) for index, item in enumerate(items) if item.category == "latex_table"]
    result = TableAssignment(mode=mode)
    if not blocks:
        result.leave([*html, *latex], "no table in the ground truth")
        return result
    in_latex = len(latex) > len(html)
    predicted = latex if in_latex else html
    result.leave(html if in_latex else latex, "other table format")
    _assign(blocks, predicted, in_latex, result)
    return result


def _in_html(latex: Item) -> Item:
    return replace(latex, category="html_table", content=latex_table_to_html(latex.content) or latex.content)


def _assign(
    blocks: Sequence[Block], predicted: Sequence[PredictedItem], in_latex: bool, result: TableAssignment
) -> None:
    kept = [block for block in blocks if block.html and (block.latex or not in_latex)]
    if not kept:
        # Without any prediction upstream ends: it looks up the first of them. There is nothing to score either way.
        result.upstream_error = "" if predicted else "IndexError"
        result.leave(predicted, "unmatched")
        return
    distances = distance_matrix(
        [block.latex if in_latex else block.html for block in kept], [source.item.content for source in predicted]
    )
    rows, columns = (side.tolist() for side in linear_sum_assignment(distances))
    column_of = dict(zip(rows, columns, strict=True))
    for row, block in enumerate(kept):
        sample = _unmatched(row, block, looked_up=blocks[row] if result.mode == "parity" else block)
        if row in column_of:
            column = column_of[row]
            sample = _matched(sample, column, predicted[column], float(distances[row, column]), result.mode)
        result.samples.append(_without_prediction(sample) if in_latex else sample)
    for column in sorted(set(range(len(predicted))) - set(columns)):
        _give_back(predicted[column], result)


def _unmatched(row: int, block: Block, *, looked_up: Block) -> MatchedSample:
    return MatchedSample(
        gt_idx=(row,),
        pred_idx=(),
        gt=block.html,
        pred="",
        norm_gt=normalize_table(block.html),
        norm_pred="",
        gt_category_type=block.fine_category or block.category,
        pred_category_type="",
        gt_position=(looked_up.order or None,),
        pred_position=None,
        gt_attribute=(looked_up.attribute,),
        edit=1.0,
        step="none",
        distance=1.0,
        anno_ids=(block.parts,),
    )


def _matched(sample: MatchedSample, column: int, source: PredictedItem, distance: float, mode: Mode) -> MatchedSample:
    item = source.item
    named = _is_named(column, mode)
    return replace(
        sample,
        pred_idx=(column,),
        pred=item.content,
        norm_pred=normalize_table(item.content),
        pred_category_type=(item.fine_category or item.category) if named else "",
        pred_position=item.start if named else None,
        edit=distance,
        step="table",
        distance=distance,
        pieces=(piece_of(source),),
    )


def _is_named(column: int, mode: Mode) -> bool:
    """Upstream asks whether the index is true, so of the first predicted table neither category nor place is told."""
    return column > 0 or mode == "fixed"


def _without_prediction(sample: MatchedSample) -> MatchedSample:
    """A table assigned in LaTeX: upstream empties what was predicted, and scores it as missing (7)."""
    return replace(
        sample,
        pred_idx=(),
        pred="",
        norm_pred="",
        pred_category_type="",
        pred_position=None,
        edit=1.0,
        latex_zeroed=True,
    )


def _give_back(source: PredictedItem, result: TableAssignment) -> None:
    """The cells of a table without partner join the mixed match as texts; a cell with more than plain text does not."""
    cells = cells_of(source.item.content)
    texts = [_as_item(source, cell.text) for cell in cells if cell.joins]
    result.cells += texts
    if texts:
        result.leave([_as_item(source, cell.text) for cell in cells if not cell.joins], "cell with more than text")
    else:
        result.leave([source], "unmatched")


def _as_item(table: PredictedItem, cell: str) -> PredictedItem:
    return PredictedItem(table.index, replace(table.item, content=cell, category="text_all"))
