"""One question to a server over HTTP: its answer, or the error that its failure stands for.

Source: docs/protocols/engines.md#outcomes. Chats and embeddings are asked through this.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loupe.data.certificates import check_tls
from loupe.engines.chat.answers import FirstToken
from loupe.engines.chat.discovery import shown
from loupe.engines.chat.http_body import read_body
from loupe.engines.chat.http_failures import NoConnectionError, UnreachableError, failure
from loupe.engines.chat.posting import post
from loupe.engines.shared.redaction import Redaction
from loupe.errors import EngineTimeoutError, EngineUnavailableError, TransientEngineError

if TYPE_CHECKING:
    import aiohttp


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of an answer with status 200, and what it is."""

    body: bytes
    content_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """How servers are asked: `timeout` is for a whole answer, `connect_timeout` for a connection, in seconds.

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
