"""Which samples of a run are still to be asked, and in what order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from loupe.runs.places import Place
from loupe.types import RETRIED, Sample


@dataclass(frozen=True, slots=True)
class Remaining:
    """`done` samples have an answer that stands; the others with a record, `repeated`, are asked again."""

    done: frozenset[str]
    repeated: frozenset[str]

    @classmethod
    def of(cls, asked: Collection[str], places: Mapping[str, Place], redo: Collection[str]) -> Remaining:
        """What is left of the samples `asked`; `redo` names classes that are repeated, too.

        A page of which regions were lost is asked again; its answer counts until a better one comes.
        """
        known = {ident: places[ident] for ident in asked if ident in places}
        repeated = {ident for ident, each in known.items() if each.mark in RETRIED or each.mark in redo or each.lost}
        return cls(frozenset(known.keys() - repeated), frozenset(repeated))

    def in_order(self, samples: Callable[[], Iterator[Sample]]) -> Iterator[Sample]:
        """New ones first: what failed once may fail again, and must not keep the run from the others."""
        yield from (each for each in samples() if each.id not in self.done and each.id not in self.repeated)
        if self.repeated:
            yield from (each for each in samples() if each.id in self.repeated)
