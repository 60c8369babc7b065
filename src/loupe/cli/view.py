"""`loupe view`: runs in a browser on this machine, also while they are running."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import click

from loupe.cli.shared.beside import by_measure_option
from loupe.cli.shared.local_page import port_option, quiet_option, serve_locally
from loupe.cli.shared.run_paths import RunPath
from loupe.errors import RunError
from loupe.files.default_places import RUNS, default_place
from loupe.files.folder import Folder
from loupe.files.foreign import real_path


@click.command("view")
@click.argument("runs", metavar="[RUN...]", nargs=-1, type=RunPath(exists=True, file_okay=False))
@by_measure_option
@port_option
@quiet_option
def command(runs: tuple[Path, ...], by_measure: str, port: int, no_browser: bool) -> None:
    """View runs in a browser on this machine, even while they run.

    RUN is a run folder, or a folder of runs; without any, ./runs. Shows leaderboards, settings that differ, progress,
    slices, every sample, two runs side by side, and what an edited answer would score. Nothing is written. The address
    works on this machine alone, and only with its token. Ctrl-C ends.
    """
    from loupe.data.extras import need

    need("starlette", "uvicorn", extra="web", purpose="loupe view")
    from loupe.web.view.app import serve

    if not runs:
        Folder(default_place(str(RUNS), str(RUNS))).refuse_if_linked()
    roots = [real_path(path) for path in runs or (RUNS,)]
    names = ", ".join(map(str, runs)) or str(RUNS)
    _check_measure(roots, by_measure)

    async def serving(stop: asyncio.Event, ready: Callable[[str], None]) -> None:
        await serve(roots, port=port, on_ready=ready, stop=stop, measure=by_measure)

    serve_locally(serving, said=what_opens(names, roots), browser=not no_browser)


def _check_measure(roots: Sequence[Path], measure: str) -> None:
    """Raise UsageError for a measure that no run has: the pages would rank by another one without a word."""
    from loupe.cli.shared.run_paths import check_measure_of
    from loupe.runs.folder import RunFolder, find_runs

    found: list[RunFolder] = []
    for root in roots if measure else ():
        with suppress(RunError):  # The pages say what is wrong with it.
            found += [RunFolder.open(root)] if (root / "run.json").is_file() else find_runs(root)[0]
    check_measure_of(found, measure)


def what_opens(names: str, roots: Sequence[Path]) -> str:
    """The line below the address; runs are looked for where the pages look for them."""
    from loupe.runs.folder import find_runs

    if any((root / "run.json").is_file() or any(find_runs(root)) for root in roots):
        return f"{names}: open at this address; Ctrl-C ends it"
    return f"no run below {names} yet; the page at this address shows the first one when it begins; Ctrl-C ends it"
