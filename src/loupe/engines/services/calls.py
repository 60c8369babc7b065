"""One request to a service, and what became of it.

The headers of a profile, and with them the key, go to the address that the profile names and nowhere else. Redirects
are not followed. What a failing answer means is that of chat servers (docs/protocols/engines.md#outcomes) but for what
the profile's `[errors]` say.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urljoin, urlsplit

from loupe import __version__
from loupe.data.hub.patience import retry_after_seconds
from loupe.engines.chat.answers import error_message
from loupe.engines.chat.http_body import read_body
from loupe.engines.chat.http_failures import UnreachableError, failure
from loupe.engines.services.description import Call, Errors
from loupe.engines.services.pace import Pace
from loupe.engines.services.paths import look, texts
from loupe.engines.services.placeholders import FILE, Find, filled, filled_text
from loupe.engines.shared.redaction import Redaction
from loupe.errors import AccountError, EngineError, RejectedError, TransientEngineError
from loupe.typed import decode_json, encode_json
from loupe.types import UNDECODABLE

if TYPE_CHECKING:
    import aiohttp

#: Longer answers are no answers.
_MOST_BYTES = 64_000_000
#: Codes that a profile need not name.
_AUTH, _RETRY = frozenset({401, 402, 403}), frozenset({408, 409, 425, 429, 500, 502, 503, 504})
_AGAIN = "finished samples are kept, and the same command continues"


@dataclass(frozen=True, slots=True)
class Sent:
    """A page or document as it is sent."""

    data: bytes
    type: str
    name: str

    def part(self, name: str) -> str | None:
        """What `{page:NAME}` stands for."""
        if name == "name":
            return self.name
        if name == "type":
            return self.type
        encoded = base64.b64encode(self.data).decode() if name in ("base64", "data_url") else None
        return f"data:{self.type};base64,{encoded}" if name == "data_url" else encoded


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: its code, its headers with names in lower case, and its body as the profile says it is read."""

    status: int
    headers: Mapping[str, str]
    data: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Sends requests to one service. `headers` are those of the profile, secrets filled in."""

    session: aiohttp.ClientSession
    base_url: str
    headers: Mapping[str, str]
    errors: Errors
    redaction: Redaction
    connect_timeout: float
    key_hint: str
    pace: Pace = field(default_factory=lambda: Pace(0.0))

    async def call(
        self,
        call: Call,
        find: Find,
        sent: Sent | None = None,
        *,
        let: frozenset[int] = frozenset(),
        paced: bool = True,
    ) -> Reply:
        """Send a request. An answer with a code in `let` is given back as it is, unread.

        Raises the error that a failing answer stands for.
        """
        url = self._address(filled_text(call.url, find, lambda text: quote(text, safe="")))
        own = _origin(url) == _origin(self.base_url)
        headers = {**self.headers, **_filled_texts(call.headers, find)} if own else {}
        query = {name: _in_query(filled(value, find)) for name, value in call.query.items()}
        if paced:
            await self.pace.turn()
        status, told, body = await self._exchange(call, url, headers, query, find, sent)
        if status in let:
            return Reply(status, told, None)
        if not 200 <= status < 300:
            with self.redaction.errors():
                raise self._failure(status, told, body)
        reply = Reply(status, told, self._read(body, call.format))
        with self.redaction.errors():
            self._refuse_failed(reply)
        return reply

    async def _exchange(
        self, call: Call, url: str, headers: Mapping[str, str], query: Mapping[str, str], find: Find, sent: Sent | None
    ) -> tuple[int, dict[str, str], bytes]:
        """The code, headers and body of the answer. Raises UnreachableError where there is none."""
        import aiohttp

        body, more = _body(call, find, sent)
        try:
            async with self.session.request(
                call.method,
                url,
                params=query or None,
                data=body,
                headers={"User-Agent": f"loupe/{__version__}", **more, **headers},
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self.connect_timeout),
            ) as response:
                told = {name.lower(): value for name, value in response.headers.items()}
                return response.status, told, self.redaction.data(await read_body(response, _MOST_BYTES))
        except TimeoutError:
            raise UnreachableError(f"no connection within {self.connect_timeout:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise UnreachableError(self.redaction.text(f"{type(error).__name__}: {error}")) from None

    def _address(self, url: str) -> str:
        """The whole address. Raises EngineError for one that a service has no business to name."""
        try:
            whole = urljoin(self.base_url.rstrip("/") + "/", url.lstrip("/") if not _has_scheme(url) else url)
            there, here = urlsplit(whole), urlsplit(self.base_url)
            trusted = there.scheme == "https" or _origin(whole) == _origin(self.base_url) or is_local(here.hostname)
        except ValueError:
            trusted, there = False, urlsplit("")
        if not trusted or there.scheme not in ("http", "https"):
            raise EngineError("the service names an address for its answer that is neither its own nor https")
        return whole

    def _read(self, body: bytes, form: str) -> Any:
        """The body as data. Raises TransientEngineError for one that is not what the profile says."""
        if form == "none":
            return None
        try:
            if form == "text":
                return body.decode("utf-8")
            if form == "jsonl":
                return [decode_json(line) for line in body.splitlines() if line.strip()]
            return decode_json(body)
        except UNDECODABLE as error:
            said = " ".join(str(error).split())[:200]
            raise TransientEngineError(f"the service's answer cannot be read as {form}: {said}") from None

    def _failure(self, status: int, headers: Mapping[str, str], body: bytes) -> EngineError:
        """The error that an answer with another code than 2.. stands for."""
        try:
            data = decode_json(body)
        except UNDECODABLE:
            data = None
        said = f"HTTP {status}: {self._said(data) or error_message(body)}"
        wait = retry_after_seconds(headers.get("retry-after"))
        known = self._known_failure(data, said, wait)
        if known is not None:
            return known
        errors = self.errors
        if status in errors.auth or (status in _AUTH and status not in (*errors.retry, *errors.rejected)):
            return AccountError(f"the service refuses the key: {said}", hint=self.key_hint)
        if status in errors.rejected:
            return RejectedError(said)
        if status in errors.retry:
            return TransientEngineError(said, retry_after=wait, rate=status in (429, 503))
        found = failure(status, body, headers.get("retry-after"), key_hint=self.key_hint)
        if status in _RETRY and isinstance(found, RejectedError):
            return TransientEngineError(said, retry_after=wait)
        found.message = found.message.replace(f"HTTP {status}: {error_message(body)}", said)
        return found

    def _refuse_failed(self, reply: Reply) -> None:
        """Raises the error of an answer that is a failure although its code says otherwise."""
        said = self._said(reply.data)
        known = self._known_failure(reply.data, said or "the service reports a failure", None)
        if known is not None:
            raise known
        if self.errors.failed_if and look(self.errors.failed_if, reply.data):
            raise RejectedError(said or "the service reports a failure and does not say which")

    def _known_failure(self, data: Any, said: str, wait: float | None) -> EngineError | None:
        """The error that the profile's conditions make of an answer."""
        errors = self.errors
        if errors.quota_if and look(errors.quota_if, data):
            return AccountError(f"the quota is used up: {said}", hint=f"when there is more: {_AGAIN}")
        if errors.retry_if and look(errors.retry_if, data):
            return TransientEngineError(said, retry_after=wait)
        if errors.rejected_if and look(errors.rejected_if, data):
            return RejectedError(said)
        return None

    def _said(self, data: Any) -> str:
        """What the service says of a failure, in one line, where the profile names the place."""
        found = texts(look(self.errors.message, data)) if self.errors.message else []
        return " ".join("; ".join(found).split())[:1000]


def is_local(host: str | None) -> bool:
    """Whether a host is this machine."""
    return host is not None and (host in ("localhost", "::1") or host.startswith("127."))


def _has_scheme(url: str) -> bool:
    return "://" in url.partition("/")[0] + "//" and bool(urlsplit(url).scheme)


def _origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port: who is asked."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _filled_texts(values: Mapping[str, str], find: Find) -> dict[str, str]:
    return {name: filled_text(value, find) for name, value in values.items()}


def _in_query(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _body(call: Call, find: Find, sent: Sent | None) -> tuple[Any, dict[str, str]]:
    """What is sent, and the headers that say what it is."""
    import aiohttp

    if call.json is not None:
        return encode_json(filled(call.json, find)), {"Content-Type": "application/json"}
    if call.raw:
        assert sent is not None
        return sent.data, {"Content-Type": sent.type}
    if not call.multipart:
        return None, {}
    form = aiohttp.FormData()
    for name, value in call.multipart.items():
        if value == FILE:
            assert sent is not None
            form.add_field(name, sent.data, filename=sent.name, content_type=sent.type)
            continue
        value = filled(value, find)
        text = value if isinstance(value, str) else encode_json(value).decode()
        form.add_field(name, text)
    return form, {}
