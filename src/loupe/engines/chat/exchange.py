"""Send one request to a server over HTTP, and return its answer or the error that its failure stands for.

Source: docs/protocols/engines.md#outcomes. Chats and embeddings are asked through this.

Connections may have been closed meanwhile (RFC 9112, 9.3.1). A server may end a connection that it kept open just
as the next request is sent over it: llama-server does so after each streamed answer, others after some seconds of
silence. A request that breaks there before the first byte of an answer says nothing about the server: it is sent
once more, over a new connection.

Tokens are counted by a server's own tokenizer: vLLM's `/tokenize` and `/detokenize`, beside its `/v1`
(docs/protocols/engines.md#server-templates). Other servers have none, or one that speaks otherwise: then nothing is
known.
"""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from loupe import __version__
from loupe.data.certificates import check_tls, open_client
from loupe.engines.chat.answers import FirstToken
from loupe.engines.chat.discovery import beside_url, shown
from loupe.engines.chat.http_body import read_body
from loupe.engines.chat.http_failures import NoConnectionError, UnreachableError, failure
from loupe.engines.shared.redaction import Redaction
from loupe.errors import EngineTimeoutError, EngineUnavailableError, TransientEngineError
from loupe.typed import encode_json, json_decoder

if TYPE_CHECKING:
    import aiohttp


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of an answer with status 200, and what it is."""

    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """The way to ask servers: `timeout` is for a whole answer, `connect_timeout` for a connection, in seconds.

    `most` bytes are read of an answer. No error has a key in it; `key_hint` says what to do where a key is refused.
    """

    session: aiohttp.ClientSession
    redaction: Redaction
    timeout: float
    connect_timeout: float
    most: int
    key_hint: str

    async def ask(self, url: str, body: bytes, *, at: str = "", first: FirstToken | None = None) -> Answer:
        """Send a body. `at` says in errors which server it was; `first` sees a streamed answer as it comes."""
        import aiohttp

        # The limit of a whole request is ours: a wait for memory does not count.
        connecting = aiohttp.ClientTimeout(total=None, sock_connect=self.connect_timeout)
        try:
            async with (
                asyncio.timeout(self.timeout) as limit,
                post(self.session, url, body, timeout=connecting) as response,
            ):
                see = first.see if first and response.content_type == "text/event-stream" else None
                answer = await read_body(response, self.most, see=see, limit=limit)
        except aiohttp.ConnectionTimeoutError:
            raise NoConnectionError(f"no connection within {self.connect_timeout:g} s{at}") from None
        except TimeoutError:
            raise EngineTimeoutError(f"no full answer within {self.timeout:g} s{at}") from None
        except (aiohttp.ClientError, OSError) as error:
            check_tls(error, self.redaction.text(shown(url)), EngineUnavailableError)
            said = self.redaction.text(f"{type(error).__name__}: {error}{at}")
            if isinstance(error, aiohttp.ClientConnectorError):
                raise NoConnectionError(said) from None
            broken = isinstance(error, aiohttp.ClientConnectionError)
            raise (UnreachableError if broken else TransientEngineError)(said) from None
        headers = response.headers
        if response.status == 200:
            return Answer(answer, self.redaction.text(headers.get("Content-Type", "")))
        with self.redaction.errors():
            where = self.redaction.text(headers.get("Location", ""))
            raise failure(
                response.status,
                self.redaction.data(answer),
                headers.get("Retry-After"),
                key_hint=self.key_hint,
                location=where,
            )


#: Above this, aiohttp wants a stream, so that one write does not hold up the event loop.
_ONE_WRITE = 1_000_000
_AZURE = (".azure.com", ".azure.us", ".azure.cn")


@dataclass(slots=True)
class _Connection:
    """The facts known about the connection of one request."""

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


_MOST_BYTES = 64_000_000


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _Text(msgspec.Struct):
    prompt: str


@dataclass(slots=True)
class ServerTokenizer:
    """The tokenizer of the model behind a base URL. Every question may be answered with None: no such tokenizer."""

    session: aiohttp.ClientSession
    base_url: str
    model: str
    _missing: bool = False

    async def tokens(self, text: str, *, special: bool = False) -> list[int] | None:
        """The token ids of a text, with those that the tokenizer puts around it if `special`."""
        answer = await self._ask("tokenize", {"prompt": text, "add_special_tokens": special})
        try:
            found = json_decoder(_Tokens).decode(answer).tokens if answer else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        # llama-server does not know `prompt`, and finds no tokens in nothing.
        return found or (None if text else found)

    async def text(self, tokens: list[int]) -> str | None:
        """The text that token ids stand for."""
        answer = await self._ask("detokenize", {"tokens": tokens})
        try:
            return json_decoder(_Text).decode(answer).prompt if answer else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    async def _ask(self, path: str, body: dict[str, object]) -> bytes | None:
        import aiohttp

        if self._missing:
            return None
        url = beside_url(self.base_url, f"/{path}")
        data = encode_json({"model": self.model, **body})
        try:
            async with post(self.session, url, data) as response:
                if response.status == 200:
                    return await read_body(response, _MOST_BYTES)
                # 404 and 405: there is none; anything else may be about this one text.
                self._missing = response.status in (404, 405, 501)
        except (aiohttp.ClientError, OSError, TimeoutError):
            return None
        return None
