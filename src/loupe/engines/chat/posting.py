"""Requests over connections that the server may have closed meanwhile (RFC 9112, 9.3.1).

A server may end a connection that it kept open just as the next request is sent over it: llama-server does so after
each streamed answer, others after some seconds of silence. A request that breaks there before the first byte of an
answer says nothing about the server: it is sent once more, over a new connection.
"""

from __future__ import annotations

import io
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from loupe import __version__
from loupe.data.certificates import open_client

if TYPE_CHECKING:
    import aiohttp

#: Above this, aiohttp wants a stream, so that one write does not hold up the event loop.
_ONE_WRITE = 1_000_000
_AZURE = (".azure.com", ".azure.us", ".azure.cn")


@dataclass(slots=True)
class _Connection:
    """What is known of the connection of one request."""

    used_before: bool = False


def open_session(
    key: str,
    *,
    timeout: float | None,
    connect_timeout: float | None = None,
    connections: int = 100,
    urls: Sequence[str] = (),
) -> aiohttp.ClientSession:
    """A session for `post`, with a key. Seconds for a whole answer and for a connection, where `post` has no others.

    `urls` are the servers that it asks: those of Azure want the key under a name of their own.
    """
    import aiohttp

    is_azure = any((urlsplit(url).hostname or "").endswith(_AZURE) for url in urls)
    return _session(
        headers={
            "Authorization": f"Bearer {key}",
            **({"api-key": key} if is_azure else {}),
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"loupe/{__version__}",
        },
        timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=connect_timeout),
        connector={"limit": connections, "keepalive_timeout": 60, "ttl_dns_cache": 300},
    )


def _session(**options: Any) -> aiohttp.ClientSession:
    import aiohttp

    async def note(_: aiohttp.ClientSession, context: SimpleNamespace, __: object) -> None:
        if isinstance(context.trace_request_ctx, _Connection):
            context.trace_request_ctx.used_before = True

    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(note)
    return open_client(**options, cookie_jar=aiohttp.DummyCookieJar(), trace_configs=[trace])


@asynccontextmanager
async def post(
    session: aiohttp.ClientSession, url: str, body: bytes, *, timeout: aiohttp.ClientTimeout | None = None
) -> AsyncIterator[aiohttp.ClientResponse]:
    """The answer to a POST, redirects as they are. Raises what aiohttp raises."""
    import aiohttp

    connection = _Connection()
    patience = timeout or session.timeout
    try:
        response = await session.post(
            url, data=_data(body), allow_redirects=False, timeout=patience, trace_request_ctx=connection
        )
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionResetError):
        if session.closed or not connection.used_before:
            raise
    else:
        async with response:
            yield response
        return
    async with (
        _session(headers=session.headers, timeout=patience) as fresh,
        fresh.post(url, data=_data(body), allow_redirects=False) as response,
    ):
        yield response


def _data(body: bytes) -> bytes | io.BytesIO:
    return body if len(body) <= _ONE_WRITE else io.BytesIO(body)
