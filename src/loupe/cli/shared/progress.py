"""Watching a run: one live block on a terminal, one line every ten seconds elsewhere; Ctrl-C once to stop well."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from loupe.cli.shared.output import console, drawn, on_terminal, say
from loupe.cli.shared.signals import told
from loupe.quantities import duration
from loupe.results.control_characters import on_one_line
from loupe.results.status_line import status_line

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from loupe.inference.progress import Progress

T = TypeVar("T")

LINE_SECONDS = 10.0


async def supervise(work: Awaitable[T], progress: Progress, *, plain: bool) -> T:
    """Await `work` while showing its progress; Ctrl-C once lets it finish what is in flight, twice stops it.

    SIGTERM and SIGHUP count as Ctrl-C: a batch system that ends the job, or a closed terminal, can be continued.
    """
    from loupe.pipeline.supervision import watch

    with _view(progress, plain=plain) as refresh:
        return await watch(work, progress, told=told, refresh=refresh, say=say)


def _view(progress: Progress, *, plain: bool) -> AbstractContextManager[Callable[[], None]]:
    return _live(progress) if on_terminal() and not plain else _lines(progress)


@contextmanager
def _live(progress: Progress) -> Iterator[Callable[[], None]]:
    from rich.live import Live

    screen = console(stderr=True)
    first = _block(progress)
    with drawn(Live(first, console=screen, auto_refresh=False, transient=True, redirect_stdout=False)) as live:
        yield lambda: live.update(_block(progress), refresh=True)


@contextmanager
def _lines(progress: Progress) -> Iterator[Callable[[], None]]:
    shown = time.monotonic()

    def refresh() -> None:
        nonlocal shown
        if time.monotonic() - shown >= LINE_SECONDS:
            shown = time.monotonic()
            overall = "" if progress.overall is None else f"{progress.overall()} · "
            say(f"{overall}{progress.engine} {progress.benchmark}: {status_line(progress)}")

    yield refresh


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(on_one_line(text), style=style)


def _block(progress: Progress) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    ended = progress.resumed + progress.done
    head = Table.grid(padding=(0, 1))
    head.add_row(
        _text(f"{progress.engine} on {progress.benchmark}", style="bold"),
        ProgressBar(total=max(progress.total, 1), completed=ended, width=40),
        _text(f"{ended:,}/{progress.total:,}"),
        _text(progress.note or (f"{duration(progress.eta)} left" if progress.eta is not None else ""), style="cyan"),
    )
    above = [] if progress.overall is None else [_text(progress.overall(), style="bold cyan")]
    return Group(*above, head, _text(status_line(progress, brief=True), style="dim"))


@dataclass
class Overall:
    """Several runs one after another: how many, which one it is, and how long all of them have taken."""

    total: int
    number: int = 0
    started: float = field(default_factory=time.monotonic)
    said: set[str] = field(default_factory=set)

    def line(self) -> str:
        """`run 2 of 6, 14 min 02 s`."""
        return f"run {self.number} of {self.total}, {duration(time.monotonic() - self.started)}"

    def stopped(self) -> str:
        """`run 2 of 6 stopped, 4 not begun`."""
        left = self.total - self.number
        return f"run {self.number} of {self.total} stopped" + (f", {left:,} not begun" if left else "")
