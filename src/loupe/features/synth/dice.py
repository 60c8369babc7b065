"""Chance that is the same on every machine and in every Python: sha256 of a name and a counter, and integers alone.

`random` and NumPy may change their streams from one release to the next; a page must not.
"""

from __future__ import annotations

import hashlib
from collections.abc import MutableSequence, Sequence
from typing import TypeVar

T = TypeVar("T")
_SPAN = 1 << 64


class Dice:
    """Throws that depend on `names` alone, and on how many were thrown before.

    >>> Dice(7, "plain").below(100) == Dice(7, "plain").below(100)
    True
    """

    def __init__(self, *names: object) -> None:
        self._key = hashlib.sha256("\x1f".join(map(str, names)).encode()).digest()
        self._thrown = 0

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1, each as likely as any other. Raises ValueError for n < 1."""
        if n < 1:
            raise ValueError(f"nothing is below {n}")
        while True:
            drawn = hashlib.sha256(self._key + self._thrown.to_bytes(8, "big")).digest()
            self._thrown += 1
            number = int.from_bytes(drawn[:8], "big")
            if number < _SPAN - _SPAN % n:
                return number % n

    def between(self, least: int, most: int) -> int:
        """A whole number from `least` to `most`, both included."""
        return least + self.below(most - least + 1)

    def chance(self, percent: int) -> bool:
        """True so many times out of a hundred."""
        return self.below(100) < percent

    def choice(self, values: Sequence[T]) -> T:
        """One of the values. Raises ValueError if there is none."""
        return values[self.below(len(values))]

    def shuffle(self, values: MutableSequence[T]) -> None:
        """Put the values into any order, in place."""
        for last in range(len(values) - 1, 0, -1):
            other = self.below(last + 1)
            values[last], values[other] = values[other], values[last]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """The values in any order."""
        mixed = list(values)
        self.shuffle(mixed)
        return mixed

    def several(self, values: Sequence[T], count: int) -> list[T]:
        """So many different ones of the values, in any order."""
        return self.shuffled(values)[:count]

    def digits(self, count: int) -> str:
        """So many digits, the first of which is no zero."""
        return "".join(str(self.between(1, 9) if place == 0 else self.below(10)) for place in range(count))
