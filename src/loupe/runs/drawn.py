"""A part of a benchmark drawn at random: by seed and sample id alone, so that a larger draw holds the smaller one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """`count` samples, the first in the order that a seed gives to all ids; `last` is the place of the last of them."""

    count: int
    seed: int = 0
    last: str = ""

    def holds(self, ident: str) -> bool:
        """Whether a sample of the set is one of those drawn."""
        return _place(self.seed, ident) <= self.last


def draw(ids: Sequence[str], count: int, seed: int) -> Drawn:
    """At most `count` of these ids at random; each is as likely as any other."""
    places = sorted(_place(seed, ident) for ident in ids)[:count]
    return Drawn(count=len(places), seed=seed, last=places[-1] if places else "")


def _place(seed: int, ident: str) -> str:
    return hashlib.sha256(f"{seed}\n{ident}".encode("utf-8", "surrogatepass")).hexdigest()
