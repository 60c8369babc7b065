"""An embedding server on loopback, for tests: real sockets, a small deterministic embedder, and faults on demand.

Words are hashed to directions and added up, an image is the direction of its mean colour: texts that share words are
near each other. `fault(number, body)` may answer in place of the embedder (number counts requests from 1):

    with embedding_server(lambda number, body: Fault(status=429) if number == 1 else None) as server: ...

By hand, or to be killed: `python -m tests.support.embedding_server` prints its base URL.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import io
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec
import numpy as np
from aiohttp import web
from PIL import Image

DIMENSION = 64
MODEL = "test-embedding"


@dataclass(frozen=True, kw_only=True)
class Fault:
    """An answer other than the embedder's: a status, a whole body, or a change of its rows."""

    status: int = 200
    body: bytes | None = None
    rows: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


Faults: TypeAlias = Callable[[int, dict[str, Any]], Fault | None]


def direction(text: str) -> np.ndarray:
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).standard_normal(DIMENSION)


def embed_text(text: str) -> np.ndarray:
    """Not of length 1: that is the client's business."""
    return np.sum([direction(word) for word in text.lower().split()] or [direction("")], axis=0)


def embed_messages(messages: list[dict[str, Any]]) -> np.ndarray:
    found = np.zeros(DIMENSION)
    for part in messages[-1]["content"]:
        if part["type"] == "text":
            found += embed_text(part["text"])
        else:
            url = part["image_url"]["url"]
            with Image.open(io.BytesIO(base64.b64decode(url[url.index(",") + 1 :]))) as image:
                assert image.width % 32 == 0 and image.height % 32 == 0
                colour = image.convert("RGB").resize((1, 1)).getpixel((0, 0))
            found += direction("red" if colour[0] > colour[2] else "blue")
    return found


@dataclass
class EmbeddingServer:
    """The state of a running server: every body, and how often each text was embedded."""

    fault: Faults | None = None
    tokenizes: bool = True
    port: int = 0
    model: str = MODEL
    bodies: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": self.model, "max_model_len": 8192}]})

    async def health(self, _: web.Request) -> web.Response:
        return web.Response()

    async def embeddings(self, request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read())
        self.bodies.append(body)
        self.paths.append(request.path)
        fault = self.fault(len(self.bodies), body) if self.fault else None
        fault = fault or Fault()
        await asyncio.sleep(fault.delay)
        if fault.status != 200 or fault.body is not None:
            return web.Response(status=fault.status, body=fault.body or b'{"error": "x"}', headers=fault.headers)
        inputs = body.get("input", [])
        vectors = [embed_text(words_of(one)) for one in inputs] if inputs else [embed_messages(body["messages"])]
        name = "data" if request.path == "/pooling" else "embedding"
        rows = [{"index": n, name: vector.tolist()} for n, vector in enumerate(vectors)]
        rows = fault.rows(rows) if fault.rows else rows
        # Clients must go by the index.
        return web.json_response({"object": "list", "data": rows[::-1], "usage": {"prompt_tokens": 1}})

    async def tokenize(self, request: web.Request) -> web.Response:
        """A token for each word, numbered by its digest; 1 begins and 2 ends where special ones are wanted."""
        if not self.tokenizes:
            return web.Response(status=404)
        body = msgspec.json.decode(await request.read())
        tokens = [token_of(word) for word in body["prompt"].split()]
        return web.json_response({"tokens": [1, *tokens, 2] if body["add_special_tokens"] else tokens})


_WORDS: dict[int, str] = {}


def token_of(word: str) -> int:
    number = 10 + int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
    _WORDS[number] = word
    return number


def words_of(text: str | list[int]) -> str:
    return text if isinstance(text, str) else " ".join(_WORDS[token] for token in text if token > 2)


async def _serve(state: EmbeddingServer) -> web.AppRunner:
    app = web.Application(client_max_size=1 << 30)
    app.router.add_get("/v1/models", state.models)
    app.router.add_get("/health", state.health)
    app.router.add_post("/v1/embeddings", state.embeddings)
    app.router.add_post("/pooling", state.embeddings)
    app.router.add_post("/tokenize", state.tokenize)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", state.port)
    await site.start()
    state.port = runner.addresses[0][1]
    return runner


def serve_alone(port: int, model: str) -> None:
    """Be such a server until the process is ended."""

    async def main() -> None:
        await _serve(EmbeddingServer(port=port, model=model))
        await asyncio.Event().wait()

    asyncio.run(main())


@contextlib.contextmanager
def embedding_server(fault: Faults | None = None, *, tokenizes: bool = True) -> Iterator[EmbeddingServer]:
    """A server on a thread of its own until the block ends."""
    state = EmbeddingServer(fault, tokenizes)
    ready: Future[Callable[[], None]] = Future()

    async def main() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        runner = await _serve(state)
        ready.set_result(lambda: loop.call_soon_threadsafe(stop.set))
        await stop.wait()
        await runner.cleanup()

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    stop = ready.result(timeout=10)
    try:
        yield state
    finally:
        stop()
        thread.join(10)
