"""Tables, before the mixed match: which predicted table is held against which of the ground truth.

Protocol: docs/protocols/omnidocbench.md#tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from loupe.benchmarks.omnidocbench.match.distances import distance_matrix
from loupe.benchmarks.omnidocbench.match.unmatched_cells import cells_of
from loupe.benchmarks.omnidocbench.records import (
    Block,
    Item,
    MatchedSample,
    Mode,
    PredictedItem,
    Unscored,
    UnscoredPiece,
    piece_of,
)
from loupe.benchmarks.omnidocbench.scores.latex_table_html import latex_table_to_html
from loupe.benchmarks.omnidocbench.text.table_normalization import refusal
from loupe.metrics.assignment import assign

if TYPE_CHECKING:
    from loupe.benchmarks.omnidocbench.rules import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class TableAssignment:
    """The table samples of a page, the cells that go into the mixed match, and what goes nowhere."""

    samples: Sequence[MatchedSample] = ()
    cells: Sequence[PredictedItem] = ()
    unscored: Sequence[UnscoredPiece] = ()
    upstream_error: str = ""


def assign_tables(blocks: Sequence[Block], items: Sequence[Item], mode: Mode, rules: Rules) -> TableAssignment:
    """Assign the predicted tables of the more frequent format; HTML if there are as many of both.

    Fixed mode makes HTML of LaTeX tables, so that there is one format; what it cannot read is scored as it stands.
    """
    if mode == "fixed":
        items = [in_html(item) if item.category == "latex_table" else item for item in items]
    html = [PredictedItem(index, item) for index, item in enumerate(items) if item.category == "html_table"]
    latex = [PredictedItem(index, item) for index, item in enumerate(items) if item.category == "latex_table"]
    if not blocks:
        return TableAssignment(unscored=left_over([*html, *latex], "no table in the ground truth"))
    in_latex = len(latex) > len(html)
    predicted, others = (latex, html) if in_latex else (html, latex)
    found = _assigned(blocks, predicted, mode, rules, in_latex=in_latex)
    return replace(found, unscored=[*left_over(others, "other table format"), *found.unscored])


def left_over(sources: Sequence[PredictedItem], reason: Unscored) -> list[UnscoredPiece]:
    """Tables that no sample has."""
    return [UnscoredPiece(piece=piece_of(source), reason=reason) for source in sources]


def in_html(latex: Item) -> Item:
    """A table in LaTeX as one in HTML, if it can be converted."""
    return replace(latex, category="html_table", content=latex_table_to_html(latex.content) or latex.content)


def _assigned(
    blocks: Sequence[Block], predicted: Sequence[PredictedItem], mode: Mode, rules: Rules, *, in_latex: bool
) -> TableAssignment:
    kept = [block for block in blocks if block.html and (block.latex or not in_latex)]
    if not kept:
        # Without any prediction upstream ends: it looks up the first of them. There is nothing to score either way.
        return TableAssignment(
            unscored=left_over(predicted, "unmatched"), upstream_error="" if predicted else "IndexError"
        )
    distances = distance_matrix(
        [block.latex if in_latex else block.html for block in kept], [source.item.content for source in predicted]
    )
    rows, columns = (side.tolist() for side in assign(distances))
    column_of = dict(zip(rows, columns, strict=True))
    samples = []
    for row, block in enumerate(kept):
        sample = unmatched_table(row, block, looked_up=blocks[row] if mode == "parity" else block, rules=rules)
        if row in column_of:
            column = column_of[row]
            source = predicted[column]
            named = source if column > 0 or mode == "fixed" else None
            sample = matched_table(
                sample, column, source, looked_up=named, distance=float(distances[row, column]), rules=rules
            )
        samples.append(_without_prediction(sample) if in_latex else sample)
    given = [_given_back(predicted[column]) for column in sorted(set(range(len(predicted))) - set(columns))]
    return TableAssignment(
        samples=samples,
        cells=[cell for cells, _, _ in given for cell in cells],
        unscored=[piece for _, pieces, _ in given for piece in pieces],
        upstream_error=next(filter(None, [*(error for *_, error in given), *refusals(samples)]), ""),
    )


def refusals(samples: Sequence[MatchedSample]) -> Iterator[str]:
    """The exceptions with which tables end upstream's whole run."""
    for sample in samples:
        yield from filter(None, (refusal(sample.gt, sample.norm_gt), refusal(sample.pred, sample.norm_pred)))


def unmatched_table(row: int, block: Block, *, looked_up: Block, rules: Rules) -> MatchedSample:
    """A table of the ground truth without a prediction."""
    return MatchedSample(
        gt_idx=(row,),
        pred_idx=(),
        gt=block.html,
        pred="",
        norm_gt=rules.normalize_table(block.html),
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


def matched_table(
    sample: MatchedSample,
    column: int,
    source: PredictedItem,
    *,
    looked_up: PredictedItem | None,
    distance: float,
    rules: Rules,
) -> MatchedSample:
    """The sample with a prediction. Upstream asks whether the index is true, so of the first predicted table neither
    category nor place is told: `looked_up` is then None."""
    item, named = source.item, looked_up.item if looked_up else None
    return replace(
        sample,
        pred_idx=(column,),
        pred=item.content,
        norm_pred=rules.normalize_table(item.content),
        pred_category_type=(named.fine_category or named.category) if named else "",
        pred_position=named.start if named else None,
        edit=distance,
        step="table",
        distance=distance,
        pieces=(piece_of(source),),
    )


def _without_prediction(sample: MatchedSample) -> MatchedSample:
    """A table assigned in LaTeX: upstream empties what was predicted, and scores it as missing (#tables)."""
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


def _given_back(source: PredictedItem) -> tuple[list[PredictedItem], list[UnscoredPiece], str]:
    """The cells of a table without partner, which join the mixed match as texts, what does not join, and what ends it.

    A cell with more than plain text does not join.
    """
    cells, error = cells_of(source.item.content)
    texts = [_as_item(source, cell.text) for cell in cells if cell.joins]
    if not texts:
        return [], left_over([source], "unmatched"), error
    others = [_as_item(source, cell.text) for cell in cells if not cell.joins]
    return texts, left_over(others, "cell with more than text"), error


def _as_item(table: PredictedItem, cell: str) -> PredictedItem:
    return PredictedItem(table.index, replace(table.item, content=cell, category="text_all"))
