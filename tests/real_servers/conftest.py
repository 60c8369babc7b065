"""Where `script/test-servers` has put the programs, and one of them running."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Start = Callable[..., contextlib.AbstractContextManager[str]]


@pytest.fixture(scope="session")
def programs() -> Path:
    """The folder with an environment for each program."""
    place = os.environ.get("LOUPE_REAL_SERVERS")
    if not place:
        pytest.skip("real servers: script/test-servers")
    return Path(place)


@pytest.fixture(scope="session")
def start(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Start:
    """Start a program of an environment, with {port} in its arguments replaced; gives its address, and ends it."""

    @contextlib.contextmanager
    def started(environment: str, program: str, *arguments: str, seconds: float = 120) -> Iterator[str]:
        port = _free_port()
        log = tmp_path_factory.mktemp(environment) / "server.log"
        words = [str(programs / environment / "bin" / program), *(each.format(port=port) for each in arguments)]
        with log.open("wb") as output:
            process = subprocess.Popen(words, stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd=log.parent)
        try:
            _wait(process, port, log, seconds)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait()

    return started


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], port: int, log: Path, seconds: float) -> None:
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise AssertionError(
        f"{process.args} does not answer:\n{log.read_text(encoding='utf-8', errors='replace')[-4000:]}"
    )
