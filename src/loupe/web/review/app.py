"""A review on a loopback address: its pages and what they ask for. Changes come through `POST /change` and `/undo`."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from loupe.data.hub.katex import SCRIPT, STYLE, katex_folder, read_katex
from loupe.errors import DatasetError, LoupeError, MissingToolError, PageError, WriteError
from loupe.typed import json_decoder
from loupe.web import server
from loupe.web.page_pictures import SIZES, Pages, page_pictures
from loupe.web.phrases import Box
from loupe.web.responses import MEDIA_TYPES, html, number_in, read_body, refused, static_answer, with_body
from loupe.web.review.drafts import Boxes, text_lines
from loupe.web.review.entries import Change, FieldError, Status
from loupe.web.review.line_file import ConflictError
from loupe.web.review.session import Documents, Review
from loupe.web.review.views import STATIC_FILES, Preview, Previews, Views, previews

_FONT = re.compile(r"KaTeX_[A-Za-z0-9]+-[A-Za-z]+\.woff2")


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """A change as the page sends it: which line, what it looked like, and what becomes of it."""

    number: int
    seen: str
    status: Status | None = None
    fields: dict[str, Any] = {}
    known: int = -1
    going: str = ""
    confirmed: bool = False


class Shown(msgspec.Struct, forbid_unknown_fields=True):
    """A text to be rendered, or typed values (name → kind, text) to be read, as they are typed."""

    text: str = ""
    values: dict[str, tuple[str, str]] = {}


class Undone(msgspec.Struct, forbid_unknown_fields=True):
    """A wish to take back the last change; `known` is the revision that the page shows."""

    known: int = -1


class Left(msgspec.Struct, forbid_unknown_fields=True):
    """A tab that was closed."""

    tab: str


def application(review: Review, documents: Documents) -> Starlette:
    """The application; whoever serves it puts a `Guard` in front."""
    handlers = _Handlers(review, documents, Views(review, documents))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with page_pictures() as pages, previews() as renderer:
            handlers.pages, handlers.previews = pages, renderer
            yield

    routes = [
        Route("/", handlers.page),
        Route("/list", handlers.whole_list),
        Route("/entry/{number}", handlers.entry),
        Route("/state", handlers.state),
        Route("/page/{number}", handlers.picture),
        Route("/marks/{number}", handlers.marks),
        Route("/static/{name}", static_answer(STATIC_FILES)),
        Route("/katex/{name}", handlers.katex),
        Route("/katex/fonts/{name}", handlers.font),
        Route("/preview", handlers.preview, methods=["POST"]),
        Route("/change", with_body(handlers.change), methods=["POST"]),
        Route("/undo", with_body(handlers.undo), methods=["POST"]),
        Route("/leave", with_body(handlers.leave), methods=["POST"]),
    ]
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        exception_handlers={LoupeError: _explained, HTTPException: refused},
    )


class _Handlers:
    """The handlers of all addresses."""

    pages: Pages
    previews: Previews

    def __init__(self, review: Review, documents: Documents, views: Views) -> None:
        self._review = review
        self._documents = documents
        self._views = views
        self._boxes = Boxes(review.path.parent)

    def page(self, request: Request) -> Response:
        self._review.refresh()
        return html(self._views.page(number_in(request.query_params.get("line", ""))))

    def whole_list(self, _: Request) -> Response:
        self._review.refresh()
        return JSONResponse(self._views.state() | {"list": self._views.whole_list()})

    def entry(self, request: Request) -> Response:
        self._review.refresh()
        found = self._views.entry(_number(request), request.query_params.get("id", ""))
        if found is None:
            raise HTTPException(404, "this line no longer exists")
        return JSONResponse(found)

    def state(self, request: Request) -> Response:
        self._review.refresh()
        words = request.query_params
        others = self._review.others(words.get("tab", "")[:64], hidden=words.get("hidden") == "1")
        return JSONResponse(self._views.state() | {"others": others})

    async def picture(self, request: Request) -> Response:
        wanted = request.query_params.get("longest", "")
        if wanted not in map(str, SIZES):
            raise HTTPException(400, f"longest is one of {', '.join(map(str, SIZES))}")
        source = await run_in_threadpool(self._documents.source, _number(request))
        data = await self.pages.draw(source, int(wanted))
        return Response(data, media_type="image/png", headers={"Cache-Control": "private, max-age=60"})

    async def marks(self, request: Request) -> Response:
        placed = await run_in_threadpool(self._views.placed, _number(request))
        if placed is None:
            raise HTTPException(404, "this line no longer exists")
        entry, wanted = placed.entry, number_in(request.query_params.get("picture", ""))
        phrases = entry.phrases or text_lines(entry)
        try:
            first = self._documents.number(entry.document, entry.page)
            source = self._documents.source(first if wanted is None else wanted)
            found = await self.pages.find(source, [text for _, text in entry.phrases])
        except PageError:
            # The picture says what is wrong.
            return JSONResponse({"marks": {}, "size": None})
        places = found.places or [[] for _ in phrases]
        # What the text layer has not, the engine that drafted may have seen; it reads the first page of a sample.
        if not all(places) and wanted in (None, first):
            seen = await run_in_threadpool(self._boxes.marks, entry.id, [text for _, text in phrases])
            places = [of_layer or of_engine for of_layer, of_engine in zip(places, seen, strict=True)]
        marks: dict[str, list[list[Box]]] = {}
        for (name, _), there in zip(phrases, places, strict=True):
            if there:
                marks.setdefault(name, []).extend(there)
        return JSONResponse({"marks": marks, "size": found.size})

    def katex(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in (SCRIPT, STYLE):
            raise HTTPException(404, "no such file")
        try:
            katex = read_katex()
        except MissingToolError as error:
            raise HTTPException(404, error.message) from None
        return Response(katex.script if name == SCRIPT else katex.style, media_type=MEDIA_TYPES[Path(name).suffix])

    def font(self, request: Request) -> Response:
        name = request.path_params["name"]
        path = katex_folder() / "fonts" / name
        if not _FONT.fullmatch(name) or not path.is_file():
            raise HTTPException(404, "no such font")
        return Response(path.read_bytes(), media_type="font/woff2", headers={"Cache-Control": "private, max-age=600"})

    def change(self, body: bytes) -> Response:
        asked = json_decoder(Asked).decode(body)
        before = self._review.revision
        change = Change(status=asked.status, fields=asked.fields, going=asked.going[:64], confirmed=asked.confirmed)
        number = self._review.change(asked.number, asked.seen, change)
        return JSONResponse(self._views.changed(number, alone=asked.known == before))

    def undo(self, body: bytes) -> Response:
        asked = json_decoder(Undone).decode(body)
        before = self._review.revision
        done = self._review.undo()
        if done is None:
            return JSONResponse({"message": "there is nothing to undo"})
        said = {"message": f"undone: {done.says}"}
        return JSONResponse(self._views.changed(done.number, alone=asked.known == before) | said)

    async def preview(self, request: Request) -> Response:
        """A text as it looks, and values as they are read; nothing is changed."""
        try:
            asked = json_decoder(Shown).decode(await read_body(request))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise HTTPException(400, f"nothing to show: {error}") from None
        hint = self._review.truth.hint
        hints = {name: asdict(hint(kind, text)) for name, (kind, text) in asked.values.items()}
        shown = await self.previews.render(asked.text) if asked.text else Preview()
        return JSONResponse({"html": shown.html, "notice": shown.notice, "hints": hints})

    def leave(self, body: bytes) -> Response:
        self._review.leave(json_decoder(Left).decode(body).tab)
        return JSONResponse({})


def _number(request: Request) -> int:
    """The number in the path."""
    number = number_in(request.path_params["number"])
    if number is None:
        raise HTTPException(404, "no such number")
    return number


def _explained(_: Request, error: Exception) -> Response:
    """An error of ours, with the status by which the page tells what to do."""
    assert isinstance(error, LoupeError)
    kinds = {ConflictError: 409, FieldError: 422, PageError: 404, DatasetError: 423, WriteError: 423}
    status = next((status for kind, status in kinds.items() if isinstance(error, kind)), 500)
    what = {"field": error.field, "ask": error.ask} if isinstance(error, FieldError) else {"field": "", "ask": False}
    return JSONResponse({"message": error.message, "hint": error.hint, **what}, status_code=status)


#: Ports that no system gives to connections by itself.
_FIRST_PORT, _PORTS = 20_000, 10_000


async def serve(
    review: Review, data: Path, *, port: int | None, on_ready: Callable[[str], None], stop: asyncio.Event
) -> None:
    """Serve the review until `stop` is set; see `loupe.web.server`.

    Without a port it is the same one for the same file or folder each time, while that is free: tabs that were open
    when the last server died go on with the next one.
    """
    digest = hashlib.sha256(os.fsencode(review.path)).digest()
    usual = _FIRST_PORT + int.from_bytes(digest[:4]) % _PORTS
    await server.serve(
        application(review, Documents(data)),
        name="review",
        ports=[usual, 0] if port is None else [port],
        on_ready=on_ready,
        stop=stop,
    )
