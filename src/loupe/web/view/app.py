"""The viewer as an application on a loopback address: pages, pieces of samples, and an edited answer sent here."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from loupe.errors import LoupeError, PageError, RunError
from loupe.report.collect import reference_of
from loupe.typed import json_decoder
from loupe.types import Sample
from loupe.web import server
from loupe.web.page_pictures import Pages as Pictures
from loupe.web.page_pictures import page_pictures
from loupe.web.responses import html, read_body, refused, static_answer
from loupe.web.server import POLICY
from loupe.web.view.board import Board
from loupe.web.view.grid import Wanted, wanted_of
from loupe.web.view.pages import LONGEST_EDITED, STATIC_FILES, Pages, sample_script
from loupe.web.view.run_reader import RunIndex
from loupe.web.view.sample_page import Packers, SupersededError, WhatIf, drawings, payload_job
from loupe.web.view.shelf import Shelf

#: As for reviewing; besides, drawings of formulas come as data, and filters are forms that go to this server.
VIEW_POLICY = POLICY.replace("img-src 'self'", "img-src 'self' data:").replace(
    "form-action 'none'", "form-action 'self'"
)
_SMALL, _LARGE = 360, 1800
#: What reading a record meets whose file is another one than it was.
_CHANGED = (msgspec.MsgspecError, UnicodeError, OSError, RunError)

Made = TypeVar("Made")


class Edited(msgspec.Struct, forbid_unknown_fields=True):
    """An answer as somebody has edited it, in one of several tabs perhaps."""

    board: str
    run: str
    sample: str
    text: str
    tab: str = ""


def application(shelf: Shelf) -> Starlette:
    """The application; whoever serves it puts a `Guard` in front."""
    handlers = _Handlers(shelf, Pages(shelf))

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with page_pictures() as pictures:
            handlers.pictures = pictures
            try:
                yield
            finally:
                await run_in_threadpool(handlers.close)

    routes = [
        Route("/", handlers.home),
        Route("/state", handlers.state),
        Route("/run/{run}", handlers.run),
        Route("/b/{board}", handlers.board),
        Route("/b/{board}/slices", handlers.slices),
        Route("/b/{board}/samples", handlers.samples),
        Route("/b/{board}/compare", handlers.compare),
        Route("/b/{board}/sample", handlers.sample),
        Route("/b/{board}/payload", handlers.payload),
        Route("/b/{board}/drawings", handlers.drawings),
        Route("/b/{board}/picture", handlers.picture),
        Route("/b/{board}/what-if", handlers.what_if),
        Route("/what-if", handlers.score, methods=["POST"]),
        Route("/static/sample_page.js", handlers.script),
        Route("/static/{name}", static_answer(STATIC_FILES)),
    ]
    said = {LoupeError: handlers.explained, HTTPException: handlers.refused}
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers=said)


class _Handlers:
    """The handlers of all addresses. Plain functions run in threads, because they read files."""

    pictures: Pictures

    def __init__(self, shelf: Shelf, pages: Pages) -> None:
        self._shelf = shelf
        self._pages = pages
        self._packers = Packers()
        self._what_if = WhatIf()
        self._script = sample_script()

    def close(self) -> None:
        self._packers.close()
        self._what_if.close()

    def explained(self, request: Request, error: Exception) -> Response:
        """An error of the files, not of the viewer."""
        assert isinstance(error, LoupeError)
        status = 404 if isinstance(error, PageError) else 409
        if _is_for_a_person(request):
            return HTMLResponse(self._pages.refused(error.message, error.hint), status_code=status)
        said: dict[str, Any] = {"message": error.message, "hint": error.hint}
        return JSONResponse(said, status_code=status)

    def refused(self, request: Request, error: Exception) -> Response:
        """A refusal of what is not there: a page for people, JSON for scripts."""
        assert isinstance(error, HTTPException)
        if _is_for_a_person(request):
            text = error.detail[:1].upper() + error.detail[1:]
            return HTMLResponse(self._pages.refused(text), status_code=error.status_code, headers=error.headers)
        return refused(request, error)

    def home(self, _: Request) -> Response:
        return html(self._pages.home())

    def state(self, request: Request) -> Response:
        key = request.query_params.get("b")
        return JSONResponse({"stamp": self._board(key).stamp if key else self._shelf.look().stamp})

    def script(self, _: Request) -> Response:
        return Response(self._script, media_type="text/javascript", headers={"Cache-Control": "no-cache"})

    def _board(self, key: str) -> Board:
        board = self._shelf.look().boards.get(key)
        if board is None:
            raise HTTPException(404, "this benchmark has no runs here")
        return board

    def _of(self, request: Request) -> tuple[Board, Wanted]:
        board = self._board(request.path_params["board"])
        return board, wanted_of(board, request.query_params)

    def board(self, request: Request) -> Response:
        return html(self._pages.board(self._board(request.path_params["board"])))

    def run(self, request: Request) -> Response:
        found = self._shelf.run(request.path_params["run"])
        if found is None:
            raise HTTPException(404, "this run is no longer there")
        return html(self._pages.run(*found))

    def slices(self, request: Request) -> Response:
        board = self._board(request.path_params["board"])
        return html(self._pages.slices(board, request.query_params.get("run", "")))

    def samples(self, request: Request) -> Response:
        board, wanted = self._of(request)
        self._packers.warm()
        return html(self._pages.samples(board, wanted, dict(request.query_params)))

    def compare(self, request: Request) -> Response:
        board = self._board(request.path_params["board"])
        return html(self._pages.compare(board, dict(request.query_params)))

    def sample(self, request: Request) -> Response:
        board, wanted = self._of(request)
        self._packers.warm()
        ident = request.query_params.get("id", "")
        found = self._pages.sample(board, ident, wanted, dict(request.query_params))
        if found is None:
            raise HTTPException(404, board.part_note or "this sample is no longer there")
        return html(found)

    def _sample(self, request: Request) -> tuple[Board, str, Sequence[RunIndex]]:
        """The sample that is meant, and the runs whose answers are shown."""
        board, wanted = self._of(request)
        ident, runs = request.query_params.get("id", ""), board.ordered()
        if ident not in board.samples() and not any(ident in run.answers for run in runs):
            raise HTTPException(404, "this sample is no longer there")
        return board, ident, [runs[place] for place in wanted.runs] if wanted.runs else runs

    async def payload(self, request: Request) -> Response:
        job = await run_in_threadpool(self._read, request, payload_job)
        data = await self._packers.payload(job)
        return Response(data, media_type="application/json", headers={"Content-Encoding": "gzip"})

    def drawings(self, request: Request) -> Response:
        return JSONResponse(self._read(request, drawings))

    def _read(self, request: Request, make: Callable[[Board, str, Sequence[RunIndex]], Made]) -> Made:
        """Make something of a sample's records. If a file was just written anew, it is looked at once more."""
        try:
            return make(*self._sample(request))
        except _CHANGED:
            self._shelf.look(anew=True)
        try:
            return make(*self._sample(request))
        except _CHANGED as error:
            raise HTTPException(409, f"this run has just changed, or its files are damaged: {error}") from None

    async def picture(self, request: Request) -> Response:
        board, ident, _ = await run_in_threadpool(self._sample, request)
        sample = board.samples().get(ident)
        number = request.query_params.get("n", "")
        if sample is None or not (number.isascii() and number[:4].isdigit() and int(number[:4]) < len(sample.images)):
            raise HTTPException(404, "no such picture")
        longest = _SMALL if request.query_params.get("small") == "1" else _LARGE
        data = await self.pictures.draw(sample.images[int(number[:4])], longest)
        return Response(data, media_type="image/png", headers={"Cache-Control": "private, max-age=300"})

    def what_if(self, request: Request) -> Response:
        wanted = request.query_params.get("run", "") or request.query_params.get("a", "")

        def answer(board: Board, ident: str, runs: Sequence[RunIndex]) -> tuple[Board, str, RunIndex, str]:
            run = next((one for one in board.runs if one.key == wanted), runs[0])
            found = run.prediction_of(ident)
            return board, ident, run, found.text if found else ""

        board, ident, run, text = self._read(request, answer)
        reference = reference_of(board.group(), board.samples().get(ident) or Sample(id=ident))
        return html(self._pages.what_if(board, run, ident, text, reference, dict(request.query_params)))

    async def score(self, request: Request) -> Response:
        try:
            edited = json_decoder(Edited).decode(await read_body(request))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise HTTPException(400, f"not an answer: {error}") from None
        board = await run_in_threadpool(self._board, edited.board)
        run = next((one for one in board.runs if one.key == edited.run), None)
        sample = (await run_in_threadpool(board.samples)).get(edited.sample)
        if run is None or sample is None:
            raise HTTPException(404, "its ground truth is missing, so it cannot be scored")
        if len(edited.text) > LONGEST_EDITED:
            raise HTTPException(413, f"longer than {LONGEST_EDITED:,} characters")
        try:
            return JSONResponse(await self._what_if.score(board, run, sample, edited.text, tab=edited.tab))
        except SupersededError:
            raise HTTPException(409, "a later text is being scored") from None


def _is_for_a_person(request: Request) -> bool:
    """True if a browser asks for a page, and not a script for what is on one."""
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")


async def serve(
    roots: Sequence[Path], *, port: int, on_ready: Callable[[str], None], stop: asyncio.Event, measure: str = ""
) -> None:
    """Serve the runs below these folders, ranked by `measure`, until `stop` is set; see `loupe.web.server`."""
    await server.serve(
        application(Shelf(roots, measure)),
        name="view",
        ports=[port],
        on_ready=on_ready,
        stop=stop,
        policy=VIEW_POLICY,
    )
