"""`loupe review`: ground truth beside the page, in a browser on this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loupe.cli.lazy import SuggestingGroup
from loupe.cli.output import say

if TYPE_CHECKING:
    from loupe.review.session import Review


@click.group("review", cls=SuggestingGroup)
def command() -> None:
    """Go through a benchmark's ground truth beside the page, in a browser: verify, reject, edit."""


@command.command("tests")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE.jsonl")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of the documents, or one with `pdfs`. Default: that of the file.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: 0, a free one.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def tests(file: Path, data: Path | None, port: int, no_browser: bool) -> None:
    """Review the tests of an olmOCR-Bench file: verify, reject, edit, beside the page.

    Each decision is written to the file at once, in the field `checked`; other lines stay as they are, byte for byte.
    The address works on this machine alone, and only with its token. Ctrl-C ends.
    """
    from loupe.data.extras import need

    need("starlette", "uvicorn", extra="web", purpose="loupe review")
    from loupe.review.documents import documents_folder
    from loupe.review.olmocr_tests import TESTS
    from loupe.review.session import Review

    review = Review(file, TESTS)
    counts = review.counts()
    if counts["broken"]:
        where = next(row.entry.problem for row in review.entries() if row.entry.broken)
        say(f"{counts['broken']} lines cannot be read and stay as they are; the first: {where}")
    asyncio.run(_serve(review, documents_folder(file, data), port=port, browser=not no_browser))


async def _serve(review: Review, data: Path, *, port: int, browser: bool) -> None:
    from loupe.review.server import serve

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)

    def ready(address: str) -> None:
        click.echo(address)
        say(f"{review.name} is open at this address; Ctrl-C ends it")
        if browser and _has_display():
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    await serve(review, data, port=port, on_ready=ready, stop=stop)


def _has_display() -> bool:
    """Whether a browser would get a window; without one, Python would start a browser for terminals."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
