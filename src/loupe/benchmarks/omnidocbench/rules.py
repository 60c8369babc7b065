"""The rules that the versions of the evaluator decide differently, side by side; all else they share.

Protocol: docs/protocols/omnidocbench.md and docs/protocols/omnidocbench_v16.md. `page_match.py` goes through them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

from loupe.benchmarks.omnidocbench import lines
from loupe.benchmarks.omnidocbench.answer_tables import html_of_latex_table
from loupe.benchmarks.omnidocbench.extraction import Extraction, read_answer, read_answer_rescuing
from loupe.benchmarks.omnidocbench.formula_normalization import (
    normalize_bare_formula,
    normalize_formula,
    without_delimiters,
)
from loupe.benchmarks.omnidocbench.ground_truth import GroundTruth, read_counted_ground_truth, read_ground_truth
from loupe.benchmarks.omnidocbench.page_elements import Elements, MixedMatch, of_formulas_matched_again, of_mixed_match
from loupe.benchmarks.omnidocbench.records import Block, Item, Mode, PredictedItem
from loupe.benchmarks.omnidocbench.table_match import TableAssignment, assign_table_lines, assign_tables
from loupe.benchmarks.omnidocbench.text_normalization import (
    guards,
    normalize_guarded_text,
    normalize_table,
    normalize_table_1_6,
    normalize_text,
)
from loupe.benchmarks.shared import latex_characters, latex_characters_2_10
from loupe.benchmarks.shared.latex_characters import Conversion

Normalize: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """One version: a function for each step in which versions differ."""

    name: str
    #: A page of the annotation as blocks.
    read_ground_truth: Callable[[Mapping[str, Any], Mode], GroundTruth]
    #: An answer as items.
    read_answer: Callable[[str], Extraction]
    #: The spelling in which each kind is compared.
    normalize_text: Normalize
    normalize_formula: Normalize
    normalize_table: Normalize
    #: A formula as plain characters.
    latex_to_text: Callable[[str], Conversion]
    #: What keeps the inline formulas of a text from being converted, one entry for each; None where nothing is said.
    guards: Callable[[str], list[str]] | None
    #: Formulas of several lines as one formula for each line.
    split_blocks: Callable[[Iterable[Block]], list[Block]]
    split_items: Callable[[Iterable[PredictedItem]], list[PredictedItem]]
    #: The tables of both sides, before all else is matched.
    assign_tables: Callable[[Sequence[Block], Sequence[Item], Mode, Rules], TableAssignment]
    #: What becomes of the samples of the match of all else.
    elements_of: Callable[[MixedMatch, Rules], Elements]
    #: A formula that is to be a row of an array, without what delimits it.
    bare_formula: Normalize
    #: A run of neighbouring predictions has no more than so many.
    longest_run: int
    #: Whether a formula may be found within a prediction.
    formulas_are_contained: bool
    #: Whether formulas and tables count for the reading order, and not only texts.
    orders_all: bool
    #: A page may end upstream's time if its match takes so many seconds there.
    may_time_out: float
    #: Whether upstream ends because a formula that it splits has no order.
    no_order_to_split: Callable[[Iterable[Block]], bool]


V1_5: Final = Rules(
    name="1.5",
    read_ground_truth=read_ground_truth,
    read_answer=read_answer,
    normalize_text=normalize_text,
    normalize_formula=normalize_formula,
    normalize_table=normalize_table,
    latex_to_text=latex_characters.convert,
    guards=None,
    split_blocks=lines.split_block_arrays,
    split_items=lines.split_item_arrays,
    no_order_to_split=lines.no_order_for_rows,
    bare_formula=lines.without_dollars,
    longest_run=sys.maxsize,
    formulas_are_contained=True,
    orders_all=False,
    may_time_out=15.0,
    assign_tables=assign_tables,
    elements_of=of_mixed_match,
)

V1_6: Final = Rules(
    name="1.6",
    read_ground_truth=read_counted_ground_truth,
    read_answer=read_answer_rescuing,
    normalize_text=normalize_guarded_text,
    normalize_formula=normalize_bare_formula,
    normalize_table=normalize_table_1_6,
    latex_to_text=latex_characters_2_10.convert,
    guards=guards,
    split_blocks=lines.split_block_lines,
    split_items=lines.split_item_lines,
    no_order_to_split=lines.no_order_for_lines,
    bare_formula=without_delimiters,
    longest_run=160,
    formulas_are_contained=False,
    orders_all=True,
    may_time_out=150.0,
    assign_tables=assign_table_lines,
    elements_of=of_formulas_matched_again,
)

#: 1.6 where LaTeXML is installed (`latex_tables=latexml`).
V1_6_LATEXML: Final = replace(
    V1_6, name="1.6+latexml", read_answer=partial(read_answer_rescuing, convert_table=html_of_latex_table)
)

VERSIONS: Final = {each.name: each for each in (V1_5, V1_6, V1_6_LATEXML)}

#: The engine of 1.5 with the pylatexenc of 1.6.
MDPBENCH: Final = replace(
    V1_5,
    name="MDPBench",
    normalize_text=partial(normalize_text, convert=latex_characters_2_10.convert),
    latex_to_text=latex_characters_2_10.convert,
)
