"""A part of a benchmark drawn at random, so that the same seed draws the same samples and a larger draw the smaller.

At random: by seed and sample id alone. Stratified: in proportion over what kinds of samples there are.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

#: Strata hold this many samples on average, or more: with fewer, drawing from each says no more than drawing from all.
_FEWEST = 4


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """`count` samples, the first in the order that a seed gives to all ids; `last` is the place of the last of them.

    Stratified: `strata` names what they are in proportion over ("task" and tags), and `ids` are the samples, sorted.
    """

    count: int
    seed: int = 0
    last: str = ""
    strata: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()

    def holds(self, ident: str) -> bool:
        """True if a sample of the set is one of those drawn."""
        if not self.ids:
            return _place(self.seed, ident) <= self.last
        place = bisect_left(self.ids, ident)
        return place < len(self.ids) and self.ids[place] == ident

    @property
    def way(self) -> str:
        """The way they were drawn: parts drawn in one way hold one another. `stratified(by=task+language,seed=0)`."""
        return f"stratified(by={'+'.join(self.strata)},seed={self.seed})" if self.ids else f"random(seed={self.seed})"


def draw(ids: Sequence[str], count: int, seed: int) -> Drawn:
    """At most `count` of these ids at random; each is as likely as any other."""
    places = sorted(_place(seed, ident) for ident in ids)[:count]
    return Drawn(count=len(places), seed=seed, last=places[-1] if places else "")


def draw_stratified(samples: Iterable[tuple[str, str, Mapping[str, str]]], count: int, seed: int) -> Drawn:
    """At most `count` of these samples (id, task, tags), of every kind as many as its share of all.

    The members of a stratum, in random order, stand evenly spaced on a line from 0 to 1 that begins at random; the
    first of all strata together are drawn. So each is as likely as any other, and a larger draw holds the smaller one.
    """
    rows = [(ident, {"task": task, **tags}) for ident, task, tags in samples]
    names = _strata([marks for _, marks in rows])
    members: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for ident, marks in rows:
        members[tuple(marks.get(name, "") for name in names)].append(ident)
    line = []
    for kind, idents in members.items():
        begin = int(_place(seed, repr(kind))[:12], 16) / 16**12
        for number, ident in enumerate(sorted(idents, key=lambda each: _place(seed, each))):
            line.append(((number + begin) / len(idents), _place(seed, ident), ident))
    drawn = tuple(sorted(ident for _, _, ident in sorted(line)[:count]))
    return Drawn(count=len(drawn), seed=seed, strata=tuple(names), ids=drawn)


def _strata(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The task, and tags with few values first, as many as leave strata with `_FEWEST` samples on average."""
    values: dict[str, set[str]] = defaultdict(set)
    for marks in rows:
        for name, value in marks.items():
            values[name].add(value)
    chosen = ["task"]
    for name in sorted(values.keys() - {"task"}, key=lambda each: (len(values[each]), each)):
        kinds = {tuple(marks.get(each, "") for each in (*chosen, name)) for marks in rows}
        if len(values[name]) > 1 and len(kinds) * _FEWEST <= len(rows):
            chosen.append(name)
    return chosen


def _place(seed: int, ident: str) -> str:
    return hashlib.sha256(f"{seed}\n{ident}".encode("utf-8", "surrogatepass")).hexdigest()
