"""Commands that open a page of this machine in a browser: the address on standard output, Ctrl-C ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable

import click

from loupe.cli.shared.output import print_data, say
from loupe.cli.shared.signals import told
from loupe.helpers import environment

port_option = click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="Default: 0, a free one."
)
quiet_option = click.option("--no-browser", is_flag=True, help="Only print the address.")

Serving = Callable[[asyncio.Event, Callable[[str], None]], Awaitable[None]]


def serve_locally(serving: Serving, *, said: str, browser: bool) -> None:
    """Run `serving(stop, ready)` until Ctrl-C; `ready` gets the address, which is printed and opened."""
    asyncio.run(_serve(serving, said=said, browser=browser))


async def _serve(serving: Serving, *, said: str, browser: bool) -> None:
    stop = asyncio.Event()

    def ready(address: str) -> None:
        print_data(address)
        say(said)
        if browser and _has_display():
            threading.Thread(target=_open, args=(address,), daemon=True).start()

    with told(stop.set):
        await serving(stop, ready)


def _open(address: str) -> None:
    """Open the address from a process of its own, whose variables the browser copies, and which Ctrl-C spares."""
    subprocess.run(
        [sys.executable, "-I", "-m", "webbrowser", address],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment("network", "desktop"),
        start_new_session=True,
        check=False,
    )


def _has_display() -> bool:
    """True if a browser would get a window; without one, Python would start a browser for terminals."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
