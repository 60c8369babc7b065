"""Any engine as an OpenAI-compatible server on this machine.

Source: https://platform.openai.com/docs/api-reference/chat. Bound to loopback unless told otherwise. Pages come as
data URLs only; a Host header that is a foreign name is refused, so that no web page can reach the server by pointing
a name of its own at this machine (DNS rebinding); a body must say it is JSON, which browsers do not send across sites.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import socket
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from loupe import __version__
from loupe.data.pages import document_page, has_pages
from loupe.engines.chat.endpoints import chosen_server
from loupe.engines.pages.page_reader import PageReader, page_reader
from loupe.engines.registry import Profile, engine_module
from loupe.errors import LoupeError, UsageError
from loupe.features.serve.api_errors import ApiError, error_response, from_engine
from loupe.features.serve.chat_answers import Answer
from loupe.features.serve.chat_requests import MOST_PAGES, ChatRequest, parse_chat_request
from loupe.features.serve.waiting_room import Body, WaitingRoom, too_large
from loupe.files.scratch import scratch_folder
from loupe.typed import encode_json
from loupe.types import Engine, Output, PageSource, Request

if TYPE_CHECKING:
    from aiohttp import web

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

#: Larger bodies are refused; base64 takes a third more than the file.
MOST_BYTES = 64 * 10**6
#: Requests that are passed on at once to another server, where its profile leaves the number open.
_AT_ONCE = 32
#: Seconds that requests in flight get when the server stops.
_PATIENCE = 30.0


async def serve(
    settings: Profile,
    label: str,
    *,
    address: tuple[str, int] = ("127.0.0.1", 8000),
    api_key: str = "",
    on_ready: Callable[[str, str], None],
    stop: asyncio.Event,
) -> None:
    """Open the engine and answer requests until `stop` is set; then finish what is in flight.

    `on_ready` gets the base URL (`http://127.0.0.1:8000/v1`) once requests are taken, and which server the engine asks
    in turn, where nobody named it; port 0 picks a free one. Raises what opening the engine raises, UsageError if the
    address cannot be bound.
    """
    from aiohttp import web

    host, port = address
    async with (
        engine_module(settings.kind).open_engine(settings) as engine,
        page_reader(timeout=settings.timeout, workers=1) as reader,
    ):
        seats = asyncio.Semaphore(_AT_ONCE if settings.concurrency == "auto" else settings.concurrency or 1)
        server = _Server(engine=engine, model=label, host=host, api_key=api_key, seats=seats, reader=reader)
        # A client that leaves frees its seat: its handler is cancelled.
        runner = web.AppRunner(
            server.application(), handler_cancellation=True, shutdown_timeout=_PATIENCE, access_log=None
        )
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, host, port).start()
            except (OSError, OverflowError) as error:
                why = error.strerror if isinstance(error, OSError) else str(error)
                raise UsageError(
                    f"cannot listen on {host} port {port}: {why}", hint="choose another port: --port 0"
                ) from None
            on_ready(_base_url(host, runner.addresses[0][1]), chosen_server(engine.facts))
            await stop.wait()
        finally:
            await runner.cleanup()


def _base_url(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"


async def _sign(request: web.Request, response: web.StreamResponse) -> None:
    """Say which program answers, as clients that tell servers apart expect."""
    response.headers["Server"] = f"loupe/{__version__}"


@dataclass(slots=True, kw_only=True)
class _Server:
    """The handlers and what they share."""

    engine: Engine
    model: str
    host: str
    api_key: str
    seats: asyncio.Semaphore
    reader: PageReader
    room: WaitingRoom = field(default_factory=lambda: WaitingRoom(MOST_BYTES))
    #: Bodies are decoded one after another, since each takes several times its size meanwhile.
    decoding: asyncio.Lock = field(default_factory=asyncio.Lock)

    def application(self) -> web.Application:
        from aiohttp import web

        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            return await self._guard(request, handler)

        application = web.Application(middlewares=[guard])
        application.on_response_prepare.append(_sign)
        application.router.add_get("/health", self._health)
        application.router.add_get("/v1/models", self._models)
        application.router.add_get("/v1/models/{model}", self._one_model)
        application.router.add_post("/v1/chat/completions", self._chat)
        return application

    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Who may ask, and every error as an error object."""
        from aiohttp import web

        try:
            self._check_host(request)
            self._check_key(request)
            return await handler(request)
        except ApiError as error:
            return error_response(error)
        except LoupeError as error:
            return error_response(from_engine(error))
        except web.HTTPException as error:
            kept = {name: value for name, value in error.headers.items() if name == "Allow"}
            return error_response(_explain(error.status, request), kept)
        except Exception as error:  # noqa: BLE001  the border: a failure of one request must not end the server
            return error_response(ApiError(500, f"{type(error).__name__}: {error}", code="internal_error"))

    def _check_host(self, request: web.Request) -> None:
        """An address cannot be rebound; a name must be one of this machine's."""
        name = _host_name(request.headers.get("Host", ""))
        if not _is_address(name) and name not in {"localhost", self.host.lower(), socket.gethostname().lower()}:
            raise ApiError(403, f"this server does not answer to the name {name!r}", code="host_not_allowed")

    def _check_key(self, request: web.Request) -> None:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
        if self.api_key and not hmac.compare_digest(given.encode(), self.api_key.encode()):
            raise ApiError(401, "the API key is missing or wrong", code="invalid_api_key")

    async def _health(self, _: web.Request) -> web.Response:
        if self.engine.healthy is not None and not await self.engine.healthy():
            raise ApiError(503, "the engine does not answer", code="engine_unavailable", retry=True)
        return _json({"status": "ok", "model": self.model})

    async def _models(self, _: web.Request) -> web.Response:
        return _json({"object": "list", "data": [self._described()]})

    async def _one_model(self, request: web.Request) -> web.Response:
        self._check_model(request.match_info["model"])
        return _json(self._described())

    def _described(self) -> dict[str, object]:
        return {"id": self.model, "object": "model", "created": 0, "owned_by": "loupe", "facts": self.engine.facts}

    def _check_model(self, model: str) -> None:
        if model != self.model:
            raise ApiError(404, f"no model {model!r} here, only {self.model!r}", param="model", code="model_not_found")

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        if request.content_type != "application/json":
            raise ApiError(415, "the body must be application/json", code="unsupported_media_type")
        async with self.room.body(request) as body:
            with scratch_folder("loupe-serve-") as folder:
                try:
                    asked = await self._decode(body, folder)
                    pages = await self._sources(asked.paths)
                    outputs = await self._read(pages, asked.prompt, asked.max_tokens)
                except LoupeError as error:
                    # Where the page lay for a moment is no business of the client's.
                    error.rewrite(lambda text: text.replace(f"{folder}/", ""))
                    raise
        answer = Answer(self.model, outputs)
        if not asked.stream:
            return web.Response(body=answer.whole(), content_type="application/json")
        # The engine is done before the first event, so that its failure still has a status of its own.
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(request)
        for event in answer.events(include_usage=asked.include_usage):
            await response.write(event)
        await response.write_eof()
        return response

    async def _decode(self, body: Body, folder: Path) -> ChatRequest:
        """Decode the request, with its pages in the folder, and give up the room of the body. Raises ApiError."""
        async with self.decoding:
            asked = await asyncio.to_thread(parse_chat_request, body.data, folder)
            body.clear()
        self._check_model(asked.model)
        return asked

    async def _sources(self, paths: Sequence[Path]) -> list[PageSource]:
        """The pages of all files. Raises ApiError for too many."""
        found: list[PageSource] = []
        for path in paths:
            count = await self.reader.count(path) if has_pages(path) else 1
            if len(found) + count > MOST_PAGES:
                raise ApiError(
                    413, f"the request has {len(found) + count} pages, the limit is {MOST_PAGES}", code="too_many_pages"
                )
            found += [document_page(path, number) for number in range(1, count + 1)] if has_pages(path) else [path]
        return found

    async def _read(self, pages: list[PageSource], prompt: str, max_tokens: int | None) -> list[Output]:
        """Return what the engine says of each page; without a page, of the prompt alone."""
        ident = uuid.uuid4().hex
        requests = [
            Request(id=f"{ident}-{i}", prompt=prompt, images=(page,), max_tokens=max_tokens)
            for i, page in enumerate(pages, 1)
        ] or [Request(id=ident, prompt=prompt, text=prompt, max_tokens=max_tokens)]
        outputs = []
        for request in requests:
            async with self.seats:
                outputs.append(await self.engine.predict(request))
        return outputs


def _explain(status: int, request: web.Request) -> ApiError:
    """Explain what aiohttp refuses by itself."""
    if status == 404:
        return ApiError(404, f"no {request.path} here", code="unknown_url")
    if status == 405:
        return ApiError(405, f"{request.path} does not take {request.method}", code="method_not_allowed")
    if status == 413:
        return too_large(MOST_BYTES)
    return ApiError(status, "the request was refused", code="refused")


def _json(value: object) -> web.Response:
    from aiohttp import web

    return web.Response(body=encode_json(value), content_type="application/json")


def _host_name(header: str) -> str:
    """The Host header without port and brackets."""
    name = header.partition("]")[0].removeprefix("[") if header.startswith("[") else header.rpartition(":")[0] or header
    return name.rstrip(".").lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
