"""Show what readers must know of the scores of a group: flags by name, with counts and the samples that raise them."""

from __future__ import annotations

from dataclasses import dataclass, field

from loupe.explanation import Explanation
from loupe.types import Result

#: Samples named for one flag of one engine.
NAMED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagCell:
    """One flag of one engine: how often, on how many samples, and those with most of it."""

    count: str
    samples: int
    named: list[tuple[str, str]]
    more: int


@dataclass(slots=True)
class Flags:
    """Flags as they are met, sample by sample: name → meaning, and (name, engine) → sample → count."""

    meanings: dict[str, str] = field(default_factory=dict)
    counts: dict[tuple[str, int], dict[str, float]] = field(default_factory=dict)

    def add(self, engine: int, sample: str, explanation: Explanation | None) -> None:
        """Note what is flagged in one answer."""
        for flag in explanation.flags if explanation else ():
            self.meanings.setdefault(flag.name, flag.meaning)
            self.counts.setdefault((flag.name, engine), {})[sample] = flag.count

    def rows(self, engines: int) -> list[tuple[str, str, list[FlagCell | None]]]:
        """Name, meaning and a cell for each engine, those on most samples first."""
        met = sorted(self.meanings, key=lambda name: -sum(len(self.counts.get((name, e), ())) for e in range(engines)))
        return [(name, self.meanings[name], [self._cell(name, engine) for engine in range(engines)]) for name in met]

    def warnings(self, result: Result | None) -> list[str]:
        """The warnings of a result that are not said by a flag already; a missing prediction is worth both."""
        told = tuple(f"{name}:" for name in self.meanings if name != "missing-prediction")
        return [text for text in result.warnings if not text.startswith(told)] if result else []

    def _cell(self, name: str, engine: int) -> FlagCell | None:
        found = self.counts.get((name, engine))
        if not found:
            return None
        order = sorted(found, key=lambda sample: (-found[sample], sample))
        return FlagCell(
            count=f"{sum(found.values()):,.6g}",
            samples=len(found),
            named=[(sample, f"{found[sample]:,.6g}") for sample in order[:NAMED]],
            more=max(0, len(order) - NAMED),
        )
