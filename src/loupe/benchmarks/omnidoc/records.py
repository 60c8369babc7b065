"""The records that pass between the steps of OmniDocBench 1.5."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A piece of a prediction: `text_all`, `equation_isolated`, `html_table` or `latex_table` (section 4).

    `start` and `end` are where it stands; those of different steps are not always comparable (4, steps 8 and 11).
    """

    category: str
    content: str
    start: int
    end: int
    fine_category: str = ""
    language: str = ""
