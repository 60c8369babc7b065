"""The tracks: each turns one thing up and leaves all others alone. One file each, one function: base page → pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loupe.features.synth.page import Page
from loupe.features.synth.tracks import (
    damaged,
    density,
    detail,
    formulas,
    languages,
    legibility,
    order,
    plain,
    prior,
    tables,
    traps,
)
from loupe.features.synth.tracks.setting import Setting


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
    "plain": Track(pages=plain.pages, share=12),
    "prior": Track(pages=prior.pages, share=20),
    "detail": Track(pages=detail.pages, share=8, worded=False),
    "legibility": Track(pages=legibility.pages, share=28),
    "density": Track(pages=density.pages, share=10),
    "degrade": Track(pages=damaged.pages, share=94, place=damaged.place, round=damaged.ROUND),
    "tables": Track(pages=tables.pages, share=18, worded=False),
    "formulas": Track(pages=formulas.pages, share=12, worded=False),
    "order": Track(pages=order.pages, share=12),
    "languages": Track(pages=languages.pages, share=16, worded=False),
    "traps": Track(pages=traps.pages, share=38, worded=False),
}
