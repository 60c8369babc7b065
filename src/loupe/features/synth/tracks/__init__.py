"""The tracks: each turns one thing up and leaves all others alone; a function from a base page to pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loupe.features.synth.page import Page, Setting
from loupe.features.synth.tracks import exact_values, order, running_text, tables_and_formulas, traps


def _next(ladder: int) -> tuple[int, int]:
    return ladder, 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """`share` is its weight in the order of pages; `worded`: its text may be in any language.

    `place` says of the ladders of a track, one after the other, which base page they are of, and how often it came
    before. So many base pages have one language before the next has its turn: `round`.
    """

    pages: Callable[[Setting], list[Page]]
    share: int
    worded: bool = True
    place: Callable[[int], tuple[int, int]] = _next
    round: int = 1


TRACKS: Mapping[str, Track] = {
    "plain": Track(pages=running_text.plain_pages, share=12),
    "prior": Track(pages=running_text.prior_pages, share=20),
    "detail": Track(pages=exact_values.detail_pages, share=8, worded=False),
    "legibility": Track(pages=running_text.legibility_pages, share=28),
    "density": Track(pages=running_text.density_pages, share=10),
    "degrade": Track(pages=running_text.damaged_pages, share=94, place=running_text.place, round=running_text.ROUND),
    "tables": Track(pages=tables_and_formulas.table_pages, share=18, worded=False),
    "formulas": Track(pages=tables_and_formulas.formula_pages, share=12, worded=False),
    "order": Track(pages=order.pages, share=12),
    "languages": Track(pages=running_text.language_pages, share=16, worded=False),
    "traps": Track(pages=traps.trap_pages, share=38, worded=False),
}
