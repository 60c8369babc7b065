"""An application on a loopback address until it is asked to stop, behind a guard: one person's browser may ask.

The server listens on loopback alone. A Host header that is not this very server's is refused, so that no web page can
get here under a name of its own (DNS rebinding). Reading needs the cookie that the printed address sets; writing needs
the token in a header, an Origin that is this server, and JSON, which no foreign page can send (CSRF). Cookies know no
ports: other servers of this machine that the same browser visits get the cookie, and could read with it. So no page
has the token in it. The address brings it behind a `#`, and the browser keeps it for pages of this very port.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import logging
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from urllib.parse import parse_qsl, urlencode

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from loupe.errors import UsageError

#: What a page of ours may do: load what this server has, and nothing else; no inline script or style.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
TOKEN_HEADER = "x-loupe-token"
_READING = frozenset({"GET", "HEAD"})
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>Loupe</title></head>
<body><h1>Loupe shows nothing here</h1><p>{message}.</p></body></html>
"""


@dataclass(frozen=True, slots=True)
class Keys:
    """The secrets of one start. The cookie is made from the token, not the other way round."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @property
    def cookie(self) -> str:
        """The cookie, which a browser sends by itself; it lets read, and no more than that."""
        return hashlib.sha256(f"read {self.token}".encode()).hexdigest()


class Guard:
    """Answers for the application what must not reach it, and sets the headers of every answer."""

    def __init__(self, app: ASGIApp, *, keys: Keys, port: int, name: str, policy: str = POLICY) -> None:
        self._app = app
        self._policy = policy
        self._keys = keys
        self._names = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        self._cookie_name = f"loupe-{name}-{port}"
        self._again = f"open the address that loupe {name} printed"
        self._anew = f"loupe {name} was restarted: open the address that the terminal shows now"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def signed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS | {"Content-Security-Policy": self._policy})
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        entry = self._entry(scope)
        refusal = self._foreign(scope, headers)
        is_page = scope["method"] == "GET" and "text/html" in headers.get("accept", "")
        if refusal:
            await _answer(signed, 403, refusal, is_page=is_page)
        elif entry is not None:
            await _answer(signed, *entry[:2], is_page=is_page, headers=entry[2])
        elif refusal := self._unknown(scope, headers):
            await _answer(signed, 403, refusal, is_page=is_page)
        else:
            await self._app(scope, receive, signed)

    def _foreign(self, scope: Scope, headers: Headers) -> str:
        """The reason to call a request foreign: it comes from another place, or to another name. "" if it is not."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._names:
            return "this server does not accept that host name"
        origins = {f"http://{hosts[0].lower()}"}
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in origins:
            return "requests from other pages are refused"
        if scope["method"] not in _READING:
            if origin is None:
                return "a change needs an Origin header"
            if headers.get("sec-fetch-site", "same-origin") != "same-origin":
                return "requests from other pages are refused"
            if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
                return "a change must be JSON"
        return ""

    def _entry(self, scope: Scope) -> tuple[int, str, list[tuple[str, str]]] | None:
        """The answer to the printed address: the cookie, and the rest with the token where no server sees it."""
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in pairs if name == "token"]
        if scope["path"] != "/" or scope["method"] not in _READING or not given:
            return None
        if not _same(given[0], self._keys.token):
            return 403, f"the token is from another start: {self._again}", []
        rest = urlencode([pair for pair in pairs if pair[0] != "token"])
        cookie = f"{self._cookie_name}={self._keys.cookie}; Path=/; HttpOnly; SameSite=Lax"
        return 303, "", [("location", f"/{'?' if rest else ''}{rest}#token={given[0]}"), ("set-cookie", cookie)]

    def _unknown(self, scope: Scope, headers: Headers) -> str:
        """The reason that whoever asks is not known, if so."""
        cookies = cookie_parser("; ".join(headers.getlist("cookie")))
        known = cookies.get(self._cookie_name, "")
        if not _same(known, self._keys.cookie):
            return self._anew if known else f"this browser has no access: {self._again}"
        if scope["method"] not in _READING and not _same(headers.get(TOKEN_HEADER, ""), self._keys.token):
            return self._anew if headers.get(TOKEN_HEADER) else f"this page is read-only: {self._again}"
        return ""


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), known.encode())


async def _answer(
    send: Send, status: int, message: str, *, is_page: bool, headers: Iterable[tuple[str, str]] = ()
) -> None:
    """A short answer: JSON to a page of ours, which shows it, and a small page to a person who opened the address."""
    text = _PAGE.format(message=escape(message)) if is_page else json.dumps({"message": message})
    body = text.encode() if message else b""
    kind = "text/html; charset=utf-8" if is_page else "application/json"
    given = [("content-type", kind), ("content-length", str(len(body))), *headers]
    raw = [(name.encode(), value.encode("latin-1")) for name, value in given]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


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
    """True if a line of uvicorn says more than that the server stopped before a request was answered."""
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
