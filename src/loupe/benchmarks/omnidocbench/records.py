"""Define the records that pass between the steps of OmniDocBench, and the bound on the work of a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

#: `parity` computes what the official evaluator does, every oddity included; `fixed` mends them
#: (docs/protocols/omnidocbench.md#modes).
Mode: TypeAlias = Literal["parity", "fixed"]

#: How a ground-truth element came to its prediction; `none` if it has none.
Step: TypeAlias = Literal[
    "assignment",
    "run merge",
    "containment",
    "leftover",
    "short cut",
    "table",
    "plain assignment",
    "local span",
    "none",
]

#: Why a piece of a prediction is in no score.
Unscored: TypeAlias = Literal[
    "unmatched",  # nothing was left to pair it with
    "cell with more than text",  # of a table without partner (#tables): with `<br>` and the like, or a `th`
    "matched to an ignored category",  # its partner is a header, a caption and so on, which have no score
    "taken by an ignored category",  # the same, before the match proper (#ignored-categories)
    "no table in the ground truth",  # a table on a page without tables (#tables)
    "other table format",  # HTML where LaTeX was assigned, or the other way round (#tables)
    "empty after normalisation",  # such as `---` (#lines)
    "inline formula",  # not matched; its characters stand in a text item, too (#formulas)
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A piece of a prediction: `text_all`, `equation_isolated`, `html_table` or `latex_table`.

    Protocol: docs/protocols/omnidocbench.md#extraction.
    `start` and `end` are where it stands; not always comparable across steps (#markdown-tables, #paragraphs).
    """

    category: str
    content: str
    start: int
    end: int
    fine_category: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class PredictedItem:
    """An item in the match, and which item of the page it is or was made from (#array-split, #tables)."""

    index: int
    item: Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """An element of the ground truth, or several parts cut by a break (#truncated-blocks), all named in `parts`."""

    category: str
    #: Its category in the match, if the annotation has a finer one.
    fine_category: str = ""
    text: str = ""
    latex: str = ""
    html: str = ""
    order: float | None = None
    anno_id: int | str | None = None
    #: Empty for joined blocks, so they are in no attribute group.
    attribute: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[int | str | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of the prediction as the report shows it: which item it is, where it stands, what it holds."""

    item: int
    start: int
    end: int
    category: str
    content: str


def piece_of(source: PredictedItem) -> Piece:
    """Return the piece that the report shows of an item."""
    item = source.item
    return Piece(item=source.index, start=item.start, end=item.end, category=item.category, content=item.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedSample:
    """One sample of one element: ground truth beside prediction, as the official `P_<element>_result.json` has it.

    The first group of fields is official, oddities included (#fields); the last says what really was matched, and how.
    """

    #: Indices into the lines that are not empty (#lines); of a local span into the pieces as they are: trust `pieces`.
    #: No prediction: an empty tuple, which upstream writes as [""].
    gt_idx: tuple[int, ...]
    pred_idx: tuple[int, ...]
    gt: str
    pred: str
    norm_gt: str
    norm_pred: str
    gt_category_type: str
    pred_category_type: str
    #: None stands for upstream's "".
    gt_position: tuple[float | None, ...]
    pred_position: int | None
    gt_attribute: tuple[Mapping[str, Any], ...]
    #: The distance that the match reports; never scored.
    edit: float
    #: What is scored: docs/protocols/omnidocbench.md#metrics. Both 0 only if both texts are empty.
    edit_num: int = 0
    upper_len: int = 0
    #: Tables only.
    teds: float | None = None
    teds_structure_only: float | None = None
    #: Display formulas only: None where CDM was not computed; and why a side is not drawn, or what CDM lacks.
    cdm: float | None = None
    cdm_failure: str = ""

    step: Step
    #: Of the lines that the step compared, 0..1; what its bound was held against.
    distance: float
    anno_ids: tuple[tuple[int | str | None, ...], ...] = ()
    pieces: tuple[Piece, ...] = ()
    #: A LaTeX table: upstream empties the prediction (#tables), pred_idx becomes "". `pieces` still has it.
    latex_zeroed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingOrder:
    """The sample of the element reading_order: orders as annotated, and as the prediction has them."""

    gt: tuple[float, ...]
    pred: tuple[float, ...]
    edit: float
    edit_num: int
    upper_len: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnscoredPiece:
    """A piece of the prediction that no score knows, and why; `anno_ids` name the ignored block that it went to."""

    piece: Piece
    reason: Unscored
    anno_ids: tuple[int | str | None, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StolenLine:
    """A piece that an ignored category took (#ignored-categories), though it fits this block best."""

    piece: Piece
    anno_ids: tuple[int | str | None, ...]
    distance: float
    ignored_category: str
    ignored_distance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FormFacts:
    """The parts of an answer that extraction lost, or took for something else; flags and the search for faults read it.

    Protocol: docs/protocols/omnidocbench.md#extraction.
    """

    #: Inline formulas with an empty line within.
    formulas_over_paragraphs: int = 0
    #: Of Markdown tables (#bar-tables): cells in no converted table, lines swallowed above it, prose taken for rows.
    table_cells_lost: int = 0
    lines_above_tables_lost: int = 0
    stray_bars: int = 0
    #: What is left after all that was taken out has no empty line, so each line is a block (#paragraphs).
    split_by_lines: bool = False
    text_blocks: int = 0
    #: Version 1.6 only: formulas rescued from images, cells and texts, by kind; inline formulas dropped; descriptions
    #: of pictures whose formulas became text.
    rescued: Mapping[str, int] = field(default_factory=dict)
    short_inline_dropped: int = 0
    image_descriptions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFacts:
    """The facts that flags need about one page, beside its samples and unscored pieces.

    Protocol: docs/protocols/omnidocbench.md#modes.
    """

    #: Blocks or items that normalise to nothing while others follow: look-ups by index are shifted (#lines).
    shifted_blocks: int = 0
    shifted_items: int = 0
    #: anno_ids whose text the ground truth holds more than once (#truncated-blocks).
    doubled_parts: tuple[int | str | None, ...] = ()
    stolen_lines: tuple[StolenLine, ...] = ()
    #: The estimated time of upstream (line_match.py), and whether it may reach its 30 s (#time-limit).
    #: None where the match was given up.
    upstream_seconds: float | None = 0.0
    would_time_out: bool = False
    #: A page beyond all measure (`Work`): its match is not the official one, neither with nor without the time limit.
    plain_assignment: bool = False
    #: The exception with which upstream ends its whole run on this page ("no end": it never does); what we do instead
    #: is in `match_page`.
    upstream_error: str = ""
    form: FormFacts = FormFacts()
    #: Predicted tables in LaTeX that were not converted (1.6), and the sum of TEDS of the page's tables if they were.
    unconverted_tables: int = 0
    converted_teds: float = 0.0
    #: What kept inline formulas of the answer from being converted, by guard (1.6); None where there are no guards.
    guarded: Mapping[str, int] | None = None
    #: The way in which the formulas were paired, where several are tried (1.6).
    formula_choice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMatch:
    """All samples of one page, in upstream's order, and what is in none of them."""

    text_block: tuple[MatchedSample, ...] = ()
    display_formula: tuple[MatchedSample, ...] = ()
    table: tuple[MatchedSample, ...] = ()
    reading_order: ReadingOrder | None = None
    #: With the place of the first predicted table, which the official order does not know (1.6); None where it is the
    #: same.
    mended_order: ReadingOrder | None = None
    #: Formulas matched to text or code. They follow the text_block samples of all pages if any page has one of its
    #: own; else they are in no element (#samples). Fields are those that they have as text.
    formulas_as_text: tuple[MatchedSample, ...] = ()
    unscored: tuple[UnscoredPiece, ...] = ()
    facts: PageFacts = PageFacts()


#: Five to ten seconds of one core. The most expensive real page, wrapped at 45 characters with every fourth one wrong,
#: takes a thirtieth, and some 40 s in the official evaluator.
MOST_STEPS: Final = 3_000_000_000
#: What a comparison costs before it looks at a character, with what is done around it.
_CALL: Final = 1000


class TooMuchWorkError(Exception):
    """A page whose match would take more than `MOST_STEPS`."""


class Work:
    """Steps that were taken for one page: a step is what 64 characters of one text cost per character of the other."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self.left = most

    def spend(self, length: int, other: int, *, times: int = 1) -> None:
        """Count edit distances of texts of these lengths. Raises TooMuchWorkError."""
        self.left -= times * (_CALL + max(length, other) * (min(length, other) // 64 + 1))
        if self.left < 0:
            raise TooMuchWorkError
