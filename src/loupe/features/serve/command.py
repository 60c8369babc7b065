"""`loupe serve`: any engine as an OpenAI-compatible server on this machine."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loupe.cli.shared.api_key import key_options
from loupe.cli.shared.options import YES
from loupe.cli.shared.output import print_data, print_line, say
from loupe.cli.shared.signals import told
from loupe.files.default_places import RUNS

if TYPE_CHECKING:
    from loupe.engines.registry import Profile


_KEY_VARIABLE = "LOUPE_SERVE_API_KEY"
_API_KEY_FILE, _API_KEY = key_options(_KEY_VARIABLE, "File with the key that clients must send")


@click.command("serve")
@click.argument("engine")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Address to bind. Default: this machine only.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, metavar="N", help="Default: 8000; 0: a free one.")
@_API_KEY_FILE
@_API_KEY
@click.option("--name", metavar="NAME", help="What clients call the model. Default: the engine's name.")
@click.option("-n", "--concurrency", type=click.IntRange(min=1), metavar="N", help="Pages to read at once.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Seconds per page.")
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    default=RUNS,
    metavar="DIR",
    help="With `stop`: root of the runs.",
)
@click.option(
    "--in",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    hidden=True,
    help="Folder in which ENGINE is named.",
)
@YES
def command(
    engine: str,
    host: str,
    port: int,
    name: str | None,
    concurrency: int | None,
    timeout: float | None,
    runs: Path,
    folder: Path | None,
    yes: bool,
) -> None:
    """Offer an engine as an OpenAI-compatible server on this machine.

    The base URL is printed once the engine is open. Ctrl-C finishes what is in flight, and ends.

    `loupe serve stop` ends the model servers that a killed `loupe run --serve …` left behind.
    """
    if folder is not None:
        # Started by `--serve loupe`, in a folder of Loupe's: the engine's name counts where its user is.
        os.chdir(folder)
    if engine == "stop":
        _stop_left_over(runs)
        return
    from loupe.cli.shared.chosen_engines import agree_to_send
    from loupe.engines.registry import load_profile

    label, profile = load_profile(engine, {"concurrency": concurrency, "timeout": timeout})
    agree_to_send([profile], yes=yes)
    asyncio.run(_serve(name or label, profile, (host, port)))


def _stop_left_over(runs: Path) -> None:
    """Stop every server whose run below `runs` was killed, and say which."""
    from loupe.servers.record import kept_root, left_over, stop_left_over

    found = [*left_over(runs), *left_over(kept_root())]
    for folder, record in found:
        stop_left_over(folder, record)
        print_line(f"stopped {record.kind} with {record.model} (process {record.pid}) of {folder.path}")
    if not found:
        say(f"no run below {runs} has a leftover server")


async def _serve(label: str, profile: Profile, address: tuple[str, int]) -> None:
    from loupe.features.serve.app import serve

    stop = asyncio.Event()

    def ready(url: str, chosen: str) -> None:
        print_data(url)
        if chosen:
            say(f"{label}: {chosen}")
        say(f"{label} answers at {url}; Ctrl-C ends it")

    key = os.environ.get(_KEY_VARIABLE, "")
    with told(stop.set):
        await serve(profile, label, address=address, api_key=key, on_ready=ready, stop=stop)
