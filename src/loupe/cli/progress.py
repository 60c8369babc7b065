"""Watching a run: one live block on a terminal, one line every ten seconds elsewhere; Ctrl-C once to stop well."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeVar

from loupe.cli.output import console, drawn, on_terminal, say
from loupe.cli.signals import told
from loupe.report.terminal import format_margin, format_value

if TYPE_CHECKING:
    from rich.console import RenderableType

    from loupe.inference.progress import Progress

T = TypeVar("T")

POLL_SECONDS = 0.25
LINE_SECONDS = 10.0
#: An engine that is still opening knows no tasks to stop; after this time the whole run is cancelled.
STOP_SECONDS = 3.0


async def supervise(work: Awaitable[T], progress: Progress, *, plain: bool, unit: str) -> T:
    """Await `work` while showing its progress; Ctrl-C once lets it finish what is in flight, twice stops it.

    SIGTERM and SIGHUP count as Ctrl-C: a batch system that ends the job, or a closed terminal, can be continued.
    `unit` is that of the headline measure.
    """
    task = asyncio.ensure_future(work)
    try:
        with told(lambda: _interrupt(progress, task)), _view(progress, plain=plain, unit=unit) as refresh:
            while not task.done():
                await asyncio.wait({task}, timeout=POLL_SECONDS)
                refresh()
    finally:
        if not task.done():
            task.cancel()
    return task.result()


def _interrupt(progress: Progress, task: asyncio.Future[T]) -> None:
    if progress.stopping:
        say("stopping now")
        progress.stop_now()
        asyncio.get_running_loop().call_later(STOP_SECONDS, task.cancel)
    else:
        progress.request_stop()
        say(f"finishing {progress.in_flight} in flight; again to stop now")


def _view(progress: Progress, *, plain: bool, unit: str) -> AbstractContextManager[Callable[[], None]]:
    return _live(progress, unit) if on_terminal() and not plain else _lines(progress, unit)


@contextmanager
def _live(progress: Progress, unit: str) -> Iterator[Callable[[], None]]:
    from rich.live import Live

    screen = console(stderr=True)
    first = _block(progress, unit)
    with drawn(Live(first, console=screen, auto_refresh=False, transient=True, redirect_stdout=False)) as live:
        yield lambda: live.update(_block(progress, unit), refresh=True)


@contextmanager
def _lines(progress: Progress, unit: str) -> Iterator[Callable[[], None]]:
    shown = time.monotonic()

    def refresh() -> None:
        nonlocal shown
        if time.monotonic() - shown >= LINE_SECONDS:
            shown = time.monotonic()
            say(f"{progress.engine} {progress.benchmark}: {status_line(progress, unit=unit)}")

    yield refresh


def _block(progress: Progress, unit: str) -> RenderableType:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    ended = progress.resumed + progress.done
    head = Table.grid(padding=(0, 1))
    head.add_row(
        Text(f"{progress.engine} on {progress.benchmark}", style="bold"),
        ProgressBar(total=max(progress.total, 1), completed=ended, width=40),
        Text(f"{ended:,}/{progress.total:,}"),
        Text(progress.note or (f"{_duration(progress.eta)} left" if progress.eta is not None else ""), style="cyan"),
    )
    return Group(head, Text(status_line(progress, unit=unit, brief=True), style="dim"))


def status_line(progress: Progress, *, unit: str, brief: bool = False) -> str:
    """All counters in one line; what is zero is left out. `brief` leaves out what the bar shows."""
    parts = [] if brief else [f"{progress.resumed + progress.done:,}/{progress.total:,}"]
    parts.append(f"{progress.pages_per_second:.2f} pages/s{_live_rate(progress)}")
    if progress.tokens_per_second:
        parts.append(f"{progress.tokens_per_second:,.0f} tokens/s")
    # While a server is waited for, nobody knows.
    if progress.eta is not None and not brief and not progress.note:
        parts.append(f"{_duration(progress.eta)} left")
    limit = f" of at most {progress.limit():,}" if progress.limit else ""
    counts = {
        f"in flight{limit}": progress.in_flight,
        "from before": progress.resumed,
        "retries": progress.retries,
        "failed": progress.failed,
        "truncated": progress.outcomes["truncated"],
        "empty": progress.outcomes["empty"],
        "loops": progress.outcomes["repeated"],
    }
    parts += [f"{count:,} {name}" for name, count in counts.items() if count]
    if progress.headline is not None and progress.headline.value is not None:
        value, margin = format_value(progress.headline.value, unit), format_margin(progress.headline, unit)
        # A few pages that are all alike give an interval of no width, which nobody should believe.
        margin = "" if progress.headline.low == progress.headline.high else margin
        # Of the pages so far: the final number may be another one, the more so where it is made of several measures.
        parts.append(f"{progress.headline_name} so far {value} {margin}".rstrip())
    parts += [tell() for tell in (progress.spent, progress.status) if tell is not None]
    parts.append(progress.note)
    return " · ".join(filter(None, parts))


def _live_rate(progress: Progress) -> str:
    """The rate of the last seconds, where it is not the mean."""
    live = progress.live_rate
    return "" if live is None else f" (now {live:.2f})"


def _duration(seconds: float | None) -> str:
    whole = round(seconds or 0.0)
    if whole < 100:
        return f"{whole} s"
    if whole < 100 * 60:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
