"""`loupe view` and `loupe review` asked for everything they show, without a socket: the application is called."""

from __future__ import annotations

import asyncio
import html
import json
import random
import re
import sys
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from tests.hostile.mutations import TEXTS, text

_LINK = re.compile(r"""(?:href|src|action)=["']?(/[^"'\s>#]*)""")
#: Requests of one visit.
_MOST = 25


class _Client:
    """Sends requests to an ASGI application that has started."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._sent: list[dict[str, Any]] = []
        self.failed: list[str] = []

    async def ask(self, target: str, body: object = None) -> tuple[int, str]:
        """Status and text of one answer."""
        path, _, query = target.partition("?")
        scope = {
            **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http"},
            **{"method": "GET" if body is None else "POST", "path": unquote(path, errors="replace")},
            **{"raw_path": path.encode(), "query_string": query.encode("utf-8", "replace"), "root_path": ""},
            **{
                "headers": [
                    (b"host", b"127.0.0.1:1"),
                    (b"accept", b"text/html"),
                    (b"content-type", b"application/json"),
                ]
            },
            **{"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 1), "state": {}},
        }
        data = b"" if body is None else json.dumps(body).encode()
        status, parts = 0, []
        waiting = [{"type": "http.request", "body": data, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if waiting:
                return waiting.pop()
            await asyncio.sleep(3600)
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            parts.append(message.get("body", b""))

        await asyncio.wait_for(self._app(scope, receive, send), 60)
        if status >= 500:
            self.failed.append(f"{target}: status {status}")
        return status, b"".join(parts).decode("utf-8", "replace")


async def _alive(app: Any, visit: Any) -> None:
    """Start the application, visit it, stop it."""
    inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    outbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    serving = asyncio.create_task(app({"type": "lifespan", "asgi": {"version": "3.0"}}, inbox.get, outbox.put))
    await inbox.put({"type": "lifespan.startup"})
    answer = await outbox.get()
    if answer["type"] != "lifespan.startup.complete":
        raise RuntimeError(f"the application does not start: {answer}")
    try:
        await visit()
    finally:
        await inbox.put({"type": "lifespan.shutdown"})
        await outbox.get()
        await serving


def visit(words: tuple[str, ...], dice: random.Random) -> int:
    """Every page behind `loupe view WORDS` or `loupe review WORDS`; 70 where one of them failed, as a bug does."""
    app = _viewer(words[1:]) if words[0] == "view" else _reviewer(words[1:])
    client = _Client(app)

    async def crawl() -> None:
        waiting = ["/", "/list", "/state", "/run/x", "/b/x", "/entry/1", "/page/1?size=1", "/marks/1"]
        seen = set(waiting)
        for _ in range(_MOST):
            if not waiting:
                return
            target = waiting.pop(0)
            status, said = await client.ask(target)
            found = [html.unescape(link) for link in _LINK.findall(said)] if status == 200 else []
            found += _pieces(target)
            new = [link for link in dict.fromkeys(found) if link not in seen and not link.startswith("/static")]
            dice.shuffle(new)
            seen.update(new)
            waiting += new
        await _change(client, dice, words[0])

    try:
        asyncio.run(_alive(app, crawl))
    except Exception:  # noqa: BLE001  what a server raises is a finding like a crash of a command
        traceback.print_exc()
        return 70
    for line in client.failed:
        print(line, file=sys.stderr)
    return 70 if client.failed else 0


def _pieces(target: str) -> list[str]:
    """What the scripts of a page ask for."""
    path, _, query = target.partition("?")
    if path.startswith("/b/") and path.count("/") == 2:
        return [f"{path}/{name}" for name in ("slices", "samples", "compare")]
    if path.endswith("/sample"):
        board = path.removesuffix("/sample")
        return [f"{board}/{name}?{query}&n=0&small=1" for name in ("payload", "drawings", "picture", "what-if")]
    return [f"{path}?sort={quote(TEXTS[4])}&page=-1&by=x&run={'9' * 30}"] if path.endswith("/samples") else []


async def _change(client: _Client, dice: random.Random, name: str) -> None:
    """What a page may send: an edited answer, a decision."""
    if name == "view":
        await client.ask("/what-if", {"board": "x", "run": "x", "sample": text(dice), "text": "a"})
        return
    status, said = await client.ask("/entry/1")
    seen = json.loads(said).get("seen", "") if status == 200 and said.startswith("{") else ""
    for state in ("verified", "rejected", "skipped"):
        fields = {"reference": text(dice).encode("utf-8", "replace").decode(), "text": "x"}
        await client.ask("/change", {"number": 1, "seen": seen, "status": state, "fields": fields, "confirmed": True})
    await client.ask("/preview", {"text": "**x** $a$"})
    await client.ask("/undo", {"known": -1})


def _viewer(words: tuple[str, ...]) -> Any:
    from loupe.web.view.app import application
    from loupe.web.view.shelf import Shelf

    return application(Shelf([Path(word).resolve() for word in words]))


def _reviewer(words: tuple[str, ...]) -> Any:
    """As `loupe review` opens it: `DIR`, `DIR --type TYPE`, or `tests FILE`."""
    from loupe.web.review.app import application
    from loupe.web.review.review_target import open_folder, open_tests
    from loupe.web.review.session import Documents, documents_folder

    if words[0] == "tests":
        file = Path(words[1])
        return application(open_tests(file), Documents(documents_folder(file, None)))
    folder = Path(words[0])
    kind = words[2] if len(words) > 2 else None
    return application(open_folder(folder, document_type=kind, by="x"), Documents(folder))
