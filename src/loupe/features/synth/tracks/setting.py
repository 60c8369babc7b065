"""What a track makes a base page from: its number, its chance, and its text."""

from __future__ import annotations

from dataclasses import dataclass

from loupe.features.synth.dice import Dice
from loupe.features.synth.text.prose import Prose


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Base page `number` (from 0) of a track; `codes` are the languages to choose from, `prose` is its text.

    `visit` is how often the base page came before, for a track whose ladders come in parts.
    """

    track: str
    seed: int
    number: int
    visit: int = 0
    codes: tuple[str, ...]
    prose: Prose

    @property
    def base(self) -> str:
        """The name of the base page, which is the group of its samples."""
        return f"{self.track}-{self.number:04}"

    @property
    def code(self) -> str:
        """The language of the text."""
        return self.prose.code

    def dice(self, *names: object) -> Dice:
        """Chance of its own for whatever has these names."""
        return Dice(self.seed, self.track, self.number, *names)
