"""What a target makes of a number: files in a world of their own, and the commands that open them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.command_line import installed

#: Stands in the canary files, and nowhere else: whatever shows it has read outside of the folder.
SECRET = "canary-7f3a91"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`loupe WORDS` in the folder `cwd` of the case. `view` and `review` are asked for every page, in this process."""

    words: tuple[str, ...]
    cwd: str = "."


def command(*words: object, cwd: str = ".") -> Command:
    return Command(words=tuple(map(str, words)), cwd=cwd)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Where a case stands: `case` is the foreign folder, `home` and `tmp` are private, `canary` must never change."""

    root: Path
    #: Files of the harness that never change: templates by name, and the engine `reader.py`.
    kept: Path

    @property
    def case(self) -> Path:
        return self.root / "case"

    @property
    def canary(self) -> Path:
        return self.root / "canary"

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @property
    def reader(self) -> str:
        """The engine that reads without any model: a function of the harness."""
        return f"python:{self.kept / 'reader.py'}:right"


#: How often a case has a command that starts processes: they take a second, all others some hundredths of one.
_DEAR = 0.15


def choose(
    dice: random.Random, cheap: Sequence[Command], dear: Sequence[Command], *, count: int = 3, often: float = _DEAR
) -> list[Command]:
    """Some of the commands that there are, now and then one of those that take long."""
    cheap, dear = ([each for each in some if installed([each.words])] for some in (cheap, dear))
    chosen = dice.sample(cheap, min(count, len(cheap)))
    return [*chosen, dice.choice(dear)] if dear and dice.random() < often else chosen


Make = Callable[[random.Random, World], Sequence[Command]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One kind of foreign files. `template` is written once; `make` mutates its copy in the case.

    `share` is its part of a long run; `memory` in bytes bounds each process, `seconds` the CPU time of a command. What
    matches `lie` is a forged number, which may stand only beside the mark of scores from elsewhere ("": none).
    """

    name: str
    make: Make
    template: Callable[[World], None] | None = None
    share: int = 10
    memory: int = 1 << 30
    seconds: int = 30
    lie: str = ""
