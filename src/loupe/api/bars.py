"""The progress of a run where it is seen: a line on a terminal, a bar in a notebook, nothing in a log."""

from __future__ import annotations

import sys
from html import escape
from typing import Any, Protocol

from loupe.inference.progress import Progress
from loupe.results.control_characters import on_one_line
from loupe.results.status_line import status_line

_CELLS = 24


class Bar(Protocol):
    """Shows one run; `unseen`: nobody looks at it."""

    unseen: bool

    def refresh(self) -> None:
        """Show what is true now."""

    def say(self, line: str) -> None:
        """Say something once."""

    def close(self) -> None:
        """Take the bar away."""


def bar_here(progress: Progress, *, shown: bool) -> Bar:
    """Return the bar for these surroundings; none if nobody would see it, or wants to."""
    if not shown:
        return _Nobody()
    if (shell := _notebook()) is not None:
        return _Cell(progress, shell)
    return _Line(progress) if sys.stderr.isatty() else _Nobody()


def _notebook() -> Any:
    """The function that shows things below a cell of a notebook; None outside of one."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    shell = get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython import display

    return display


class _Nobody:
    unseen = True

    def refresh(self) -> None:
        """Nobody is there."""

    def say(self, line: str) -> None:
        """Nobody is there."""

    def close(self) -> None:
        """Nothing was shown."""


class _Line:
    """One line on standard error that is written over."""

    unseen = False

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def refresh(self) -> None:
        """Write the line anew."""
        progress = self._progress
        share = (progress.resumed + progress.done) / max(progress.total, 1)
        full = round(_CELLS * min(share, 1.0))
        head = f"{progress.engine} on {progress.benchmark} {'█' * full}{'░' * (_CELLS - full)}"
        self._write(f"\r\x1b[K{self._fitting(f'{head} {status_line(progress)}')}")

    def say(self, line: str) -> None:
        """Leave a line above."""
        self._write(f"\r\x1b[K{on_one_line(line)}\n")

    def close(self) -> None:
        """Take the line away."""
        self._write("\r\x1b[K")

    @staticmethod
    def _fitting(text: str) -> str:
        from shutil import get_terminal_size

        return on_one_line(text)[: max(get_terminal_size().columns - 1, 20)]

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


class _Cell:
    """A bar below the cell of a notebook, which goes when the run is done."""

    unseen = False

    def __init__(self, progress: Progress, display: Any) -> None:
        self._progress, self._html = progress, display.HTML
        self._said: list[str] = []
        self._handle = display.display(self._html(""), display_id=True)

    def refresh(self) -> None:
        """Draw the bar anew."""
        progress = self._progress
        ended = progress.resumed + progress.done
        line = status_line(progress)
        self._show(
            f"<b>{escape(progress.engine)}</b> on {escape(progress.benchmark)} "
            f'<progress max="{max(progress.total, 1)}" value="{ended}" style="vertical-align:middle"></progress> '
            f"{escape(on_one_line(line))}"
        )

    def say(self, line: str) -> None:
        """Leave a line below the bar."""
        self._said.append(escape(on_one_line(line)))

    def close(self) -> None:
        """Take the bar away; what was said stays."""
        self._show("")

    def _show(self, bar: str) -> None:
        lines = [*([bar] if bar else []), *self._said]
        self._handle.update(self._html("".join(f'<div style="font-size:90%">{line}</div>' for line in lines)))
