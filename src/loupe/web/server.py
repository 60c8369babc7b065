"""An application on a loopback address, behind the guard, until it is asked to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator, Sequence

import uvicorn
from starlette.types import ASGIApp

from loupe.errors import UsageError
from loupe.web.guard import POLICY, Guard, Keys

HOST = "127.0.0.1"
#: Seconds that requests in flight get when the server stops.
_PATIENCE = 3


class _Server(uvicorn.Server):
    """Says when it takes requests; signals are the business of the command."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn does it."""
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a line of uvicorn says more than that the server stopped before a request was answered."""
    error = record.exc_info[1] if record.exc_info else None
    return not (isinstance(error, asyncio.CancelledError) or "graceful shutdown exceeded" in record.getMessage())


@contextlib.contextmanager
def _quiet_end() -> Iterator[None]:
    log = logging.getLogger("uvicorn.error")
    log.addFilter(_is_news)
    try:
        yield
    finally:
        log.removeFilter(_is_news)


async def serve(
    app: ASGIApp,
    *,
    name: str,
    ports: Sequence[int],
    on_ready: Callable[[str], None],
    stop: asyncio.Event,
    policy: str = POLICY,
) -> None:
    """Serve `app` behind a guard until `stop` is set; `on_ready` gets the address with its token.

    It listens at the first of `ports` that is free; 0 stands for any. `name` is that of the command. Raises UsageError
    where all are taken.
    """
    with _bound(ports) as listener, _quiet_end():
        keys = Keys()
        number = listener.getsockname()[1]
        config = uvicorn.Config(
            Guard(app, keys=keys, port=number, name=name, policy=policy),
            http="h11",
            loop="asyncio",
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_PATIENCE,
        )
        server = _Server(config, lambda: on_ready(f"http://{HOST}:{number}/?token={keys.token}"))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            server.should_exit = True
            stopping.cancel()
            await serving


@contextlib.contextmanager
def _bound(ports: Sequence[int]) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        for port in ports:
            try:
                listener.bind((HOST, port))
                break
            except OSError as error:
                why = (error.strerror or str(error)).lower()
        else:
            raise UsageError(f"cannot listen on {HOST} port {port}: {why}", hint="choose another port: --port 0")
        yield listener
