"""All runs below some folders, grouped by benchmark; looked at again whenever a page asks, at most once a second."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from loupe.errors import RunError
from loupe.runs.folder import find_runs
from loupe.view.board import Board
from loupe.view.run_index import RunIndex

_SECONDS = 1.0


class Shelf:
    """The runs. Those that appear later are found, those that cannot be read are named in `damaged`."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self.roots = list(roots)
        self.damaged: dict[str, str] = {}
        self._runs: dict[Path, RunIndex] = {}
        self._boards: dict[str, Board] = {}
        self._looked = float("-inf")
        self._lock = threading.RLock()

    def refresh(self) -> None:
        """Look at the files, unless that was done just now."""
        with self._lock:
            if time.monotonic() - self._looked < _SECONDS:
                return
            self._find()
            for run in self._runs.values():
                run.refresh()
            self._sort()
            self._looked = time.monotonic()

    def _find(self) -> None:
        found: dict[Path, RunIndex] = {}
        self.damaged = {}
        for root in self.roots:
            alone = (root / "run.json").is_file()
            paths = [root] if alone else [folder.path for folder in find_runs(root)[0]]
            if not alone:
                self.damaged |= {str(path): error.message for path, error in find_runs(root)[1].items()}
            for path in paths:
                try:
                    found[path] = self._runs.get(path) or RunIndex(path, root.parent if alone else root)
                except (RunError, OSError) as error:
                    self.damaged[str(path)] = str(error)
        self._runs = found

    def _sort(self) -> None:
        groups: dict[tuple[str, str, str], list[RunIndex]] = {}
        for run in self._runs.values():
            if run.problem:
                self.damaged[str(run.folder.path)] = run.problem
                continue
            info = run.folder.info
            groups.setdefault((info.benchmark_id, info.version, info.data_digest), []).append(run)
        boards: dict[str, Board] = {}
        for runs in groups.values():
            board = Board(runs)
            old = self._boards.get(board.key)
            if old is not None:
                old.runs = runs
            boards[board.key] = old or board
        self._boards = boards

    def boards(self) -> list[Board]:
        """The groups, by title."""
        self.refresh()
        return sorted(self._boards.values(), key=lambda board: board.key)

    def board(self, key: str) -> Board | None:
        """The group of this name."""
        self.refresh()
        return self._boards.get(key)

    def run(self, key: str) -> tuple[Board, RunIndex] | None:
        """The run of this name, with its group."""
        self.refresh()
        return next(((board, run) for board in self._boards.values() for run in board.runs if run.key == key), None)

    def stamp(self) -> str:
        """Another text whenever anything has changed."""
        parts = [*(board.stamp for board in self.boards()), repr(sorted(self.damaged.items()))]
        return hashlib.sha256("|".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
