"""A bound on the work of one page, counted in steps and not in seconds: the same on every machine."""

from __future__ import annotations

from typing import Final

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
