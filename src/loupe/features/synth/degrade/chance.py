"""Random numbers that are the same on every machine and in every version of NumPy.

SHA-256 of a seed and a purpose gives single numbers, and the key of Philox for many: the raw words of a bit generator
never change (NEP 19), while the distributions of NumPy's generators may. No number depends on which was drawn before.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Chance:
    """The chance of one seed, for one purpose."""

    seed: int
    purpose: str

    def integer(self, what: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included; the same for the same words."""
        return low + int.from_bytes(self._key(what)[:8], "little") % (high - low + 1)

    def octets(self, what: str, count: int) -> Bytes:
        """So many bytes, each value as likely as any other."""
        words = np.random.Philox(key=int.from_bytes(self._key(what)[:16], "little")).random_raw(-(-count // 8))
        return np.asarray(words).astype("<u8").view(np.uint8)[:count]

    def _key(self, what: str) -> bytes:
        return hashlib.sha256(f"{self.seed}/{self.purpose}/{what}".encode()).digest()
