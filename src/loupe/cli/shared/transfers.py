"""Show how far a long copy is: a bar with totals on a terminal, one line every ten seconds elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from loupe.cli.shared.output import as_json, console, drawn, on_terminal, say, table
from loupe.quantities import counted, size

if TYPE_CHECKING:
    from loupe.data.hub.download import Order
    from loupe.data.hub.fetch import Tally
    from loupe.data.hub.manifest import Manifest

#: done, total (0: unknown), note.
Show = Callable[[int, int, str], None]

_POLL_SECONDS = 0.25
_LINE_SECONDS = 10.0


def fetch(order: Order, *, plain: bool) -> Manifest:
    """Get one data set, with its progress on standard error; Ctrl-C leaves what is here for the next call."""
    from loupe.data.hub.download import get
    from loupe.data.hub.fetch import Tally

    tally = Tally()
    with _watching(order.dataset.id, tally, plain=plain):
        manifest = get(order, tally)
    say(
        f"{order.root}: {counted(len(manifest.files), 'file')}, {size(manifest.size)}, all checked; "
        f"{manifest.repo} at {manifest.revision[:12]}; licence: {manifest.licence}"
    )
    return manifest


def download_if_missing(name: str, *, source: str, plain: bool) -> None:
    """Fetch the benchmark's data, or that copy of it, unless it is here or there is nothing to fetch (`--download`)."""
    from loupe.benchmarks.registry import data_set, find_data_set
    from loupe.data.hub.download import Order, is_begun
    from loupe.data.hub.store import default_root

    found = data_set(name)
    if found is None:
        return
    if source in found.sources:
        found = find_data_set(name, source=source)
    order = Order(dataset=found, root=default_root(found.place))
    if not order.root.exists() or is_begun(order):
        fetch(order, plain=plain)


def show_survey(orders: Sequence[Order], *, json: bool, plain: bool) -> None:
    """Show what `get` would fetch, from the hub's listing."""
    from loupe.data.hub.download import survey

    found = []
    for order in orders:
        say(f"asking the hub about {order.dataset.id}")
        found.append((order, survey(order)))
    if json:
        as_json(
            [
                {
                    "id": order.dataset.id,
                    "revision": listing.revision,
                    "bytes": listing.size,
                    "files": len(listing.files),
                }
                for order, listing in found
            ]
        )
        return
    rows = [
        (order.dataset.id, f"{len(listing.files):,}", size(listing.size), listing.repo, listing.revision[:12])
        for order, listing in found
    ]
    table(("data set", "files to fetch", "size", "on the hub", "commit"), rows, plain=plain)
    say(f"together {size(sum(listing.size for _, listing in found))}")


@contextmanager
def counting(name: str, total: int, *, plain: bool, bytes: bool = True) -> Iterator[Callable[[int], None]]:
    """A function that is told how much more was done, from any thread; shown as it grows."""
    lock, done = threading.Lock(), 0
    with _display(name, plain=plain, bytes=bytes) as show:

        def tell(more: int) -> None:
            nonlocal done
            with lock:
                done += more
                show(done, total, "")

        yield tell


@contextmanager
def _watching(name: str, tally: Tally, *, plain: bool) -> Iterator[None]:
    """Show a tally from a second thread; the first one works, so that Ctrl-C reaches it."""
    over = threading.Event()
    with _display(name, plain=plain, bytes=True) as show:

        def watch() -> None:
            while not over.wait(_POLL_SECONDS):
                files = f"{tally.files_done:,}/{tally.files:,} files " if tally.files else ""
                show(tally.bytes_done, tally.bytes, (files + tally.note).strip())

        thread = threading.Thread(target=watch, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@contextmanager
def _display(name: str, *, plain: bool, bytes: bool) -> Iterator[Show]:
    if on_terminal() and not plain:
        with _bar(name, bytes=bytes) as show:
            yield show
        return
    shown = time.monotonic()

    def show_line(done: int, total: int, note: str) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _LINE_SECONDS:
            shown = time.monotonic()
            say(f"{name}: {_amount(done, total, bytes=bytes)} {note}".rstrip())

    yield show_line


@contextmanager
def _bar(name: str, *, bytes: bool) -> Iterator[Show]:
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    amount = (
        (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        if bytes
        else (TextColumn("{task.completed:,.0f}"),)
    )
    columns = (TextColumn("{task.fields[title]}", markup=False), BarColumn(), *amount)
    with drawn(Progress(*columns, console=console(stderr=True), transient=True)) as progress:
        task = progress.add_task("", total=None, title=name)

        def show(done: int, total: int, note: str) -> None:
            progress.update(task, completed=done, total=total or None, title=f"{name} {note}".rstrip())

        yield show


def _amount(done: int, total: int, *, bytes: bool) -> str:
    def text(count: int) -> str:
        return size(count) if bytes else f"{count:,}"

    return f"{text(done)} of {text(total)} ({done / total:.0%})" if total else text(done)
