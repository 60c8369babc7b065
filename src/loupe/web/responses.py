"""Answers that every application gives: bodies read up to a limit, files served as they are, refusals."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

MEDIA_TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_LARGEST_BODY = 4 * 10**6
_NUMBER = re.compile("[0-9]{1,9}")


def static_files(*folders: Path) -> dict[str, Path]:
    """Everything in these folders that is served as it is, by name."""
    found = (path for folder in folders for path in sorted(folder.iterdir()))
    return {path.name: path for path in found if path.suffix in MEDIA_TYPES}


#: What both doors bring along.
SHARED_FILES = static_files(Path(__file__).parent / "static")


def static_answer(files: Mapping[str, Path]) -> Callable[[Request], Response]:
    """The handler of `/static/{name}`: these files and no others."""

    def answer(request: Request) -> Response:
        path = files.get(request.path_params["name"])
        if path is None:
            raise HTTPException(404, "no such file")
        return Response(path.read_bytes(), media_type=MEDIA_TYPES[path.suffix], headers={"Cache-Control": "no-cache"})

    return answer


def with_body(handler: Callable[[bytes], Response]) -> Callable[[Request], Awaitable[Response]]:
    """A handler of bodies, which are small; it runs in a thread, because it waits for the disk."""

    async def handle(request: Request) -> Response:
        try:
            return await run_in_threadpool(handler, await read_body(request))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise HTTPException(400, f"not a valid change: {error}") from None

    return handle


async def read_body(request: Request) -> bytes:
    """The body, unless it is larger than a change can be."""
    parts = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > _LARGEST_BODY:
            raise HTTPException(413, f"the change is larger than {_LARGEST_BODY // 10**6} MB")
        parts.append(part)
    return b"".join(parts)


def number_in(text: str) -> int | None:
    """The number that a part of an address is; None for any other text, and for more digits than a line number has.

    >>> number_in("12"), number_in("9" * 5000), number_in("٣"), number_in("-1")
    (12, None, None, None)
    """
    return int(text) if _NUMBER.fullmatch(text) else None


def html(text: str) -> Response:
    """A page."""
    return Response(text, media_type="text/html")


def refused(_: Request, error: Exception) -> Response:
    """A refusal as JSON."""
    assert isinstance(error, HTTPException)
    return JSONResponse({"message": error.detail}, status_code=error.status_code, headers=error.headers)
