"""How well one string fits somewhere in another: the least distance of all windows of its own length.

Protocol: docs/protocols/omnidocbench.md#main-match.
Upstream measures every window, which is where nearly all its time goes. A window that is moved by one character differs
by at most two edits, so a window that is far off says that its neighbours are far off too, and they are skipped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from loupe.benchmarks.omnidocbench.work import Work

#: How many short distances cost as much as one call from here; and for how many needles there is room at once.
_AT_ONCE: Final = 16
_NEEDLES: Final = 1000


def window_distance(
    needle: str, text: str, *, bound: float = math.inf, enough: float = 0.0, work: Work | None = None
) -> float:
    """Least Levenshtein distance of `needle` and any part of `text` of its length, divided by that length.

    Range 0..1, lower is better. Infinite where it is above `bound`, and where `needle` is empty or longer than `text`.
    Where it is below `enough`, any distance below `enough` may be returned.

    Raises TooMuchWorkError where `work` is given and is used up.

    >>> window_distance("harbor", "the old harbour book")
    0.16666666666666666
    """
    length = len(needle)
    last = len(text) - length
    if not length or last < 0:
        return math.inf
    if needle in text:
        return 0.0
    # Only what has fewer edits than this is of interest: at first, what is within the bound.
    limit = edits_within(bound, length) + 1
    found = math.inf
    offset = measured = 0
    while offset <= last:
        edits = Levenshtein.distance(needle, text[offset : offset + length])
        measured += 1
        if edits < limit:
            limit = edits
            found = edits / length
            if found < enough:
                break
        # A step saves two edits at most: so many steps it takes at least until a window is below the limit.
        offset += 1 + (edits - limit) // 2
    if work:
        work.spend(length, length, times=measured)
    return found


def short_window_distances(needles: Sequence[str], text: str, work: Work) -> list[float]:
    """`window_distance` of needles of one length, with no bound: faster where steps save little, as for short ones."""
    length = len(needles[0])
    windows = sorted({text[offset : offset + length] for offset in range(len(text) - length + 1)})
    if not windows:
        return [math.inf] * len(needles)
    work.spend(length, length, times=len(needles) * len(windows) // _AT_ONCE)
    found: list[float] = []
    for first in range(0, len(needles), _NEEDLES):
        some = needles[first : first + _NEEDLES]
        edits = cdist(some, windows, scorer=Levenshtein.distance, dtype=np.int32)
        found += (edits.min(axis=1) / length).tolist()
    return found


def edits_within(bound: float, length: int) -> int:
    """The most edits that, divided by `length`, are not above `bound`; the division decides, as in upstream."""
    edits = min(length, int(bound * length) + 1) if math.isfinite(bound) else length
    while edits > 0 and edits / length > bound:
        edits -= 1
    return edits
