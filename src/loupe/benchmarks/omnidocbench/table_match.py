"""Pair predicted tables with those of the ground truth, before the mixed match.

Version 1.6 compares tables of all formats in one list. The texts of a table without a partner join the mixed match
(docs/protocols/omnidocbench.md#tables).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from loupe.benchmarks.omnidocbench.answer_tables import latex_table_to_html
from loupe.benchmarks.omnidocbench.neighbours import distance_matrix
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
from loupe.benchmarks.omnidocbench.text_normalization import refusal
from loupe.benchmarks.shared.table_answers.html_grids import parse_html
from loupe.metrics.assignment import assign
from loupe.metrics.teds.table_tree import TedsError

if TYPE_CHECKING:
    from bs4 import Tag

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


def assign_table_lines(blocks: Sequence[Block], items: Sequence[Item], mode: Mode, rules: Rules) -> TableAssignment:
    """Assign predicted tables, those in LaTeX behind the others; nothing of what is left goes into another match.

    As upstream without its converter: a table in LaTeX is never assigned. `mode="fixed"` converts it.
    """
    html = [PredictedItem(index, item) for index, item in enumerate(items) if item.category == "html_table"]
    latex = [PredictedItem(index, item) for index, item in enumerate(items) if item.category == "latex_table"]
    if mode == "fixed":
        html, latex = [*html, *(PredictedItem(source.index, in_html(source.item)) for source in latex)], []
    sources = [*html, *latex]
    if not blocks:
        return TableAssignment(unscored=left_over(sources, "no table in the ground truth"))
    truth = [(block, norm) for block in blocks if (norm := _line(block.html, rules))]
    predicted = [(source, norm) for source in html if (norm := _line(source.item.content, rules))]
    if not truth:
        # Upstream then looks up the first predicted table, converted ones included.
        error = "" if predicted else "IndexError"
        return TableAssignment(unscored=left_over(sources, "unmatched"), upstream_error=error)
    distances = distance_matrix([norm for _, norm in truth], [norm for _, norm in predicted])
    column_of = dict(zip(*(side.tolist() for side in assign(distances)), strict=True))
    samples = []
    for row, (block, _) in enumerate(truth):
        sample = unmatched_table(row, block, looked_up=blocks[row], rules=rules)
        if row in column_of:
            column = column_of[row]
            sample = matched_table(
                sample,
                column,
                predicted[column][0],
                looked_up=sources[column] if column else None,
                distance=float(distances[row, column]),
                rules=rules,
            )
        samples.append(sample)
    matched = {id(predicted[column][0]) for column in column_of.values()}
    return TableAssignment(
        samples=samples,
        unscored=left_over([source for source in sources if id(source) not in matched], "unmatched"),
        upstream_error=next(refusals(samples), ""),
    )


def _line(table: str, rules: Rules) -> str:
    """Return the text that is compared for a table: its normal form, or the string itself if it is not a table."""
    return rules.normalize_table(table) if "<table" in table.lower() else table


_MIDDLE_DOT = r"$\cdot$"


class Cell(NamedTuple):
    """The text of a cell, and whether it joins the match of texts: only a `td` with nothing but text does."""

    text: str
    joins: bool


class Cells(NamedTuple):
    """The cells that hold text, in their order; or the exception with which the table ends upstream's whole run."""

    found: Sequence[Cell] = ()
    upstream_error: str = ""


def cells_of(table: str) -> Cells:
    """The cells of a table; none where the parser gives up, or the table is beyond all measure (minutes upstream)."""
    try:
        cells = parse_html(table).find_all(["td", "th"])
    except TedsError as error:
        return Cells(upstream_error=error.upstream)
    return Cells([found for cell in cells if (found := _cell(cell))])


def _cell(cell: Tag) -> Cell | None:
    text = _only_text(cell)
    if text and cell.name == "td":
        return Cell(text.replace(_MIDDLE_DOT, "").strip(), joins=True)
    # The cells of a table within a cell speak for themselves.
    text = "" if cell.find(["td", "th"]) else cell.get_text(" ", strip=True)
    return Cell(text, joins=False) if text else None


def _only_text(cell: Tag) -> str:
    """BeautifulSoup's `.string` without its recursion: the text, if a chain of single children ends in one; or ""."""
    from bs4 import Tag
    from bs4.element import NavigableString

    node: object = cell
    while isinstance(node, Tag):
        node = node.contents[0] if len(node.contents) == 1 else None
    return str(node) if isinstance(node, NavigableString) else ""
