"""All runs below some folders, grouped by benchmark; looked at again whenever a page asks, at most once a second."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from loupe.errors import RunError
from loupe.results.groups import tell_apart
from loupe.runs.folder import find_runs
from loupe.web.view.board import Board, board_ident, board_key
from loupe.web.view.run_reader import RunIndex, RunReader

_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Look:
    """Everything as it was at one moment: a page is made from one look, whatever happens meanwhile.

    `damaged` names runs of which something cannot be read; those that could be read before stand on their boards.
    """

    boards: Mapping[str, Board]
    damaged: Mapping[str, str]
    stamp: str = ""

    def title(self, board: Board) -> str:
        """The name of the board, told apart from others of the same benchmark."""
        same = {key: replace(other.group()) for key, other in self.boards.items() if other.ident[0] == board.ident[0]}
        tell_apart(list(same.values()))
        return same[board.key].title if board.key in same else board.group().title


class Shelf:
    """The runs. Those that appear later are found, those that cannot be read are named as damaged.

    `measure` ranks the runs of each benchmark that has it.
    """

    def __init__(self, roots: Sequence[Path], measure: str = "") -> None:
        self.roots = list(roots)
        self._measure = measure
        self._runs: dict[Path, RunReader] = {}
        self._look = Look({}, {})
        self._looked = float("-inf")
        self._lock = threading.RLock()

    def look(self, *, anew: bool = False) -> Look:
        """The runs as they are; the files are looked at again unless that was done just now."""
        with self._lock:
            if anew or time.monotonic() - self._looked >= _SECONDS:
                damaged = self._find()
                runs = [reader.refresh() for reader in self._runs.values()]
                readable = [run for run, reader in zip(runs, self._runs.values(), strict=True) if reader.readable]
                damaged |= {str(run.folder.path): run.problem for run in runs if run.problem}
                boards = self._sorted(readable)
                parts = [*(board.stamp for board in boards.values()), repr(sorted(damaged.items()))]
                stamp = hashlib.sha256("|".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
                self._look = Look(boards, damaged, stamp)
                self._looked = time.monotonic()
            return self._look

    def _find(self) -> dict[str, str]:
        """Take in what runs there are; those that cannot be opened, with the reason."""
        found: dict[Path, RunReader] = {}
        damaged: dict[str, str] = {}
        for root in self.roots:
            paths = [root]
            if not (root / "run.json").is_file():
                folders, broken = find_runs(root)
                # One that was open already stays: what was read last is shown beside the reason.
                paths = [*(folder.path for folder in folders), *(path for path in broken if path in self._runs)]
                damaged |= {str(path): error.message for path, error in broken.items()}
            for path in paths:
                try:
                    found[path] = self._runs.get(path) or RunReader(path, root.parent if path == root else root)
                except (RunError, OSError) as error:
                    damaged[str(path)] = str(error)
        self._runs = found
        return damaged

    def _sorted(self, found: Sequence[RunIndex]) -> dict[str, Board]:
        """The runs as boards, by key. A board of which nothing has changed is the one of before."""
        groups: dict[tuple[str, str, str], list[RunIndex]] = {}
        for run in found:
            groups.setdefault(board_ident(run), []).append(run)
        boards = {}
        for ident, runs in groups.items():
            key = board_key(ident)
            old = self._look.boards.get(key)
            unchanged = old is not None and len(old.runs) == len(runs) and all(map(_is, old.runs, runs))
            boards[key] = old if old is not None and unchanged else Board(runs, before=old, measure=self._measure)
        return {key: boards[key] for key in sorted(boards)}

    def boards(self) -> list[Board]:
        """The groups, by key."""
        return list(self.look().boards.values())

    def run(self, key: str) -> tuple[Board, RunIndex] | None:
        """The run of this name, with its group."""
        return next(((board, run) for board in self.boards() for run in board.runs if run.key == key), None)


def _is(one: RunIndex, other: RunIndex) -> bool:
    return one is other
