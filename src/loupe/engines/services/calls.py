"""Send one request to a service, no more in a time than it allows, and tell what became of it.

The headers of a profile, and with them the key, go to the address that the profile names and nowhere else. Redirects
are not followed. What a failing answer means is that of chat servers (docs/protocols/engines.md#outcomes) but for what
the profile's `[errors]` say.
"""

from __future__ import annotations

import asyncio
import base64
import io
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import aiohttp

from loupe import __version__
from loupe.data.certificates import check_tls
from loupe.data.hub.patience import retry_after_seconds
from loupe.engines.chat.answers import error_message
from loupe.engines.chat.http_body import read_body
from loupe.engines.chat.http_failures import NotFoundError, UnreachableError, failure, used_up
from loupe.engines.services.paths import look, said_at
from loupe.engines.services.placeholders import FILE, Address, Find, address_of, filled, filled_text
from loupe.engines.services.settings import Call, Errors, Fetch, Format, Poll
from loupe.engines.shared.redaction import Redaction
from loupe.errors import (
    AccountError,
    EngineError,
    EngineUnavailableError,
    NoAnswerError,
    RejectedError,
    TransientEngineError,
)
from loupe.typed import decode_json, encode_json
from loupe.types import UNDECODABLE

#: Tells each request, for who writes a profile (`loupe engine test`).
STEPS = logging.getLogger("loupe.services")
#: Longer answers are no answers, nor are those of so many lists and objects: each takes more memory than its text.
MOST_BYTES, MOST_PARTS = 64_000_000, 2_000_000
#: Nor are those of so many values: it takes microseconds to look at each.
MOST_VALUES = 10_000_000
#: What a service answers that has forgotten a job; what a host answers whose presigned address has expired.
_GONE, _EXPIRED = frozenset({404, 410}), frozenset({400, 401, 403, 404, 410})


class GoneError(TransientEngineError):
    """A job, or its answer, is asked for in vain: the page is sent again."""

    def __init__(self, said: str) -> None:
        super().__init__(f"the service no longer has the job that it began, or its answer: {said}")


@dataclass(frozen=True)
class Sent:
    """A page or document as it is sent."""

    data: bytes
    type: str
    name: str

    @cached_property
    def base64(self) -> str:
        """The file in letters."""
        return base64.b64encode(self.data).decode()

    @cached_property
    def data_url(self) -> str:
        """The file as an address that holds it."""
        return f"data:{self.type};base64,{self.base64}"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its code, its headers with names in lower case, and its body as the profile says it is read."""

    status: int
    headers: Mapping[str, str]
    data: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Sends requests to one service. `headers` are those of the profile, with the keys."""

    own: aiohttp.ClientSession
    elsewhere: aiohttp.ClientSession
    base_url: str
    headers: Mapping[str, str]
    errors: Errors
    redaction: Redaction
    connect_timeout: float
    key_hint: str
    pace: Pace

    async def answers(self) -> bool:
        """True if anything answers at the address of the service; it is given no key."""
        try:
            async with self.own.get(
                self.base_url,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=self.connect_timeout, sock_connect=self.connect_timeout),
            ):
                return True
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            check_tls(error, self.base_url, EngineUnavailableError)
            return False

    async def send(self, call: Call, find: Find, sent: Sent) -> Reply:
        """Upload or submit a page. Raises the error that a failing answer stands for."""
        address = address_of(self.base_url, call.url, find)
        body, headers = _body(call, find, sent)
        for name, value in call.headers.items():
            headers[name] = _header(filled_text(value, find))
        try:
            return await self._exchange(call.method, _with_query(address, call.query, find), call.format, headers, body)
        except NotFoundError as error:
            raise EngineUnavailableError(
                f"the service has no such address or model: {error.message}", hint="check --base-url and --model"
            ) from None

    async def ask(self, about: Poll | Fetch, find: Find) -> Reply:
        """Ask about a job, or for its answer; "not yet" has no data. Raises GoneError where nobody knows of it."""
        address = address_of(self.base_url, about.url, find)
        pending: list[int] = []
        if isinstance(about, Poll):
            pending = about.pending_codes
            address = _with_query(address, about.query, find)
        return await self._exchange("GET", address, about.format, pending=pending)

    async def _exchange(
        self,
        method: str,
        address: Address,
        form: Format,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        pending: list[int] | None = None,
    ) -> Reply:
        """The answer, read; `pending` are the codes of one that is not ready, where a job is asked about."""
        with self.redaction.errors():
            status, told, data = await self._answered(method, address, headers or {}, body)
            if status in (pending or []):
                return Reply(status, told, None)
            if not 200 <= status < 300:
                asks = pending is not None
                raise await asyncio.to_thread(self._failure, status, told, data, is_own=address.is_own, asks=asks)
            # In a thread: of an answer made to be slow, the other pages and the time limit must not know.
            return await asyncio.to_thread(self._replied, Reply(status, told, data), form, is_own=address.is_own)

    def _replied(self, reply: Reply, form: Format, *, is_own: bool) -> Reply:
        """The answer with its body read. Raises the error of one that is a failure although its code says otherwise."""
        read = replace(reply, data=_read(reply.data, form))
        if is_own:
            self._refuse_failed(read.data)
        return read

    async def _answered(
        self, method: str, address: Address, headers: Mapping[str, str], body: Any
    ) -> tuple[int, dict[str, str], bytes]:
        """The code, headers and body of the answer. Raises UnreachableError where there is none."""
        began = time.monotonic()
        session, known = (self.own, self.headers) if address.is_own else (self.elsewhere, {})
        try:
            async with session.request(
                method,
                address.url,
                data=body,
                headers={"User-Agent": f"loupe/{__version__}", "Accept-Encoding": "identity", **headers, **known},
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.connect_timeout),
            ) as response:
                told = {name.lower(): value for name, value in response.headers.items()}
                data = self.redaction.data(await read_body(response, MOST_BYTES))
                shown = self.redaction.text(f"{method} {address.url.with_query(None)}")
                STEPS.info(
                    "%s: %d, %s bytes, %.2f s", shown, response.status, f"{len(data):,}", time.monotonic() - began
                )
                return response.status, told, data
        except TimeoutError:
            raise UnreachableError(f"no connection within {self.connect_timeout:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            check_tls(error, address.url.host or self.base_url, EngineUnavailableError)
            raise UnreachableError(f"{type(error).__name__}: {error}") from None

    def _failure(
        self, status: int, headers: Mapping[str, str], body: bytes, *, is_own: bool, asks: bool
    ) -> EngineError:
        """The error that an answer with another code than 2.. stands for."""
        try:
            data = _read(body, "json")
        except EngineError:
            data = None
        said = f"HTTP {status}: {said_at(self.errors.message, data) or error_message(body)}"
        wait = headers.get("retry-after")
        if not is_own:
            return _elsewhere(status, said, retry_after_seconds(wait))
        found = self._told_by_profile(data, said, wait) or self._told_by_code(status, said, wait, asks=asks)
        if found is not None:
            return found
        usual = failure(status, body, wait, key_hint=self.key_hint, location=headers.get("location", ""))
        usual.rewrite(lambda text: text.replace(f"HTTP {status}: {error_message(body)}", said))
        return usual

    def _told_by_code(self, status: int, said: str, wait: str | None, *, asks: bool) -> EngineError | None:
        """The error that the profile makes of a code; 409 is a conflict that passes unless it says otherwise."""
        errors = self.errors
        if asks and (status in _GONE or status in errors.gone):
            return GoneError(said)
        if status in errors.quota:
            return used_up(said)
        if status in errors.auth:
            return AccountError(f"the service refuses the key: {said}", hint=self.key_hint)
        if status in errors.rejected:
            return RejectedError(said)
        if status in errors.retry or status == 409:
            return TransientEngineError(said, retry_after=retry_after_seconds(wait), rate=status in (429, 503))
        return None

    def _told_by_profile(self, data: Any, said: str, wait: str | None = None) -> EngineError | None:
        """The error that the profile's conditions make of an answer."""
        errors = self.errors
        if look(errors.quota_if, data):
            return used_up(said)
        if look(errors.retry_if, data):
            return TransientEngineError(said, retry_after=retry_after_seconds(wait))
        if look(errors.refused_if, data):
            return NoAnswerError(said, outcome="refused")
        return RejectedError(said) if look(errors.rejected_if, data) else None

    def _refuse_failed(self, data: Any) -> None:
        """Raises the error of an answer that is a failure although its code says otherwise."""
        said = said_at(self.errors.message, data) or "the service reports a failure and does not say which"
        known = self._told_by_profile(data, said)
        if known is not None:
            raise known
        if look(self.errors.failed_if, data):
            raise EngineError(f"the service could not read it: {said}")


def _elsewhere(status: int, said: str, wait: float | None) -> EngineError:
    """The error of another host, at which no key was refused: it was given none."""
    if status in _EXPIRED:
        return GoneError(said)
    if status == 429 or status >= 500:
        return TransientEngineError(said, retry_after=wait, rate=status == 429)
    return EngineError(f"the answer cannot be fetched from where the service says that it is: {said}")


def _read(body: bytes, form: Format) -> Any:
    """The body as data. Raises TransientEngineError for one that is not what the profile says."""
    if form == "none":
        return None
    try:
        if form == "text":
            return body.decode("utf-8")
        if body.count(b"[") + body.count(b"{") > MOST_PARTS:
            raise EngineError(f"the service's answer is made of more than {MOST_PARTS:,} lists and objects")
        if body.count(b",") + body.count(b"\n") > MOST_VALUES:
            raise EngineError(f"the service's answer is made of more than {MOST_VALUES:,} values")
        return (
            [decode_json(line) for line in body.splitlines() if line.strip()] if form == "jsonl" else decode_json(body)
        )
    except UNDECODABLE as error:
        said = " ".join(str(error).split())[:200]
        raise TransientEngineError(f"the service's answer cannot be read as {form}: {said}") from None


def _with_query(address: Address, query: Mapping[str, Any], find: Find) -> Address:
    """An address of the service with a query; another host gets none."""
    if not (query and address.is_own):
        return address
    texts = {name: _in_query(filled(value, find)) for name, value in query.items()}
    return Address(address.url.extend_query(texts), is_own=True)


def _in_query(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _header(value: str) -> str:
    """Return a value that a header may contain. Raises EngineError for a line break, which would begin another one."""
    if not value.isprintable():
        raise EngineError("a header of the request would hold a line break or another control character")
    return value


def _body(call: Call, find: Find, sent: Sent) -> tuple[Any, dict[str, str]]:
    """Return the body to send, and the headers that describe it. Streams: aiohttp writes long bytes in one piece."""
    if call.json is not None:
        return io.BytesIO(encode_json(filled(call.json, find))), {"Content-Type": "application/json"}
    if call.raw:
        return io.BytesIO(sent.data), {"Content-Type": sent.type}
    form = aiohttp.FormData()
    for name, value in call.multipart.items():
        if value == FILE:
            form.add_field(name, io.BytesIO(sent.data), filename=sent.name, content_type=sent.type)
            continue
        value = filled(value, find)
        form.add_field(name, value if isinstance(value, str) else encode_json(value).decode())
    return form, {}


@dataclass(slots=True)
class Pace:
    """Lets requests go with at least `pause` seconds between them, in the order in which they come."""

    pause: float
    _next: float = field(default=0.0)

    async def turn(self) -> None:
        """Wait until the next request may be sent."""
        if not self.pause:
            return
        now = asyncio.get_running_loop().time()
        mine = max(now, self._next)
        self._next = mine + self.pause
        await asyncio.sleep(mine - now)
