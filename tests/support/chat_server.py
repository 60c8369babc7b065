"""A scriptable OpenAI-compatible server on loopback, for tests: real sockets, every fault on demand.

    async with chat_server(["first", Reply(status=503), "third"]) as server:
        ... server.url ... server.requests ...

A script is one reply for all, a list (its last entry repeats), or a function of the request. A string stands for
`Reply(text=...)`. `get` answers other paths: a dict or list is sent as JSON, an int is a bare status, a function of the
request gives either. `in_thread` runs the same server beside synchronous tests, `in_process` as a process of its own,
and by hand:

    python -m tests.support.chat_server --port 0 --delay 0.01 --text "read {prompt}"     (prints its base URL)
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import concurrent.futures
import contextlib
import hashlib
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

MODELS = {"object": "list", "data": [{"id": "test-model", "object": "model", "max_model_len": 8192}]}


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer and its faults. In `text`, `{prompt}`, `{number}` and `{image}` (a digest) are filled in.

    `error` is the message of a failing status; `raw` replaces the whole body; `cut` closes the connection after so many
    bytes of the body; `hang` never answers; `drop` closes without a word; `delay` is in seconds; `message` adds keys.
    """

    text: str | None = "hello"
    status: int = 200
    finish_reason: str | None = "stop"
    usage: Mapping[str, int] | None = field(default_factory=lambda: {"prompt_tokens": 11, "completion_tokens": 7})
    message: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    error: str = ""
    raw: bytes | None = None
    delay: float = 0.0
    cut: int | None = None
    hang: bool = False
    drop: bool = False


@dataclass(frozen=True)
class Received:
    """One request as it arrived; `number` counts chat requests from 1."""

    method: str
    path: str
    headers: Mapping[str, str]
    data: bytes
    number: int = 0

    @property
    def body(self) -> dict[str, Any]:
        return msgspec.json.decode(self.data) if self.data else {}

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The content parts of the last message."""
        content = self.body["messages"][-1]["content"]
        return [{"type": "text", "text": content}] if isinstance(content, str) else content

    @property
    def prompt(self) -> str:
        return "".join(part["text"] for part in self.parts if part["type"] == "text")

    @property
    def images(self) -> list[tuple[str, bytes]]:
        """MIME type and bytes of every image."""
        urls = [part["image_url"]["url"] for part in self.parts if part["type"] == "image_url"]
        return [(url[5 : url.index(";")], base64.b64decode(url[url.index(",") + 1 :], validate=True)) for url in urls]


Script: TypeAlias = str | Reply | Sequence[str | Reply] | Callable[[Received], str | Reply]


@dataclass
class ChatServer:
    """The state of a running server. `requests` holds chat requests only, `others` the rest.

    `forgets`: each connection has one answer, the next request over it is read and dropped, as if it had met the end.
    """

    script: Script
    get: Mapping[str, Any]
    keep_bodies: bool = True
    forgets: bool = False
    port: int = 0
    requests: list[Received] = field(default_factory=list)
    others: list[Received] = field(default_factory=list)
    count: int = 0
    active: int = 0
    peak: int = 0
    connections: int = 0
    tls: bool = False

    @property
    def root(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The base URL that a client is given."""
        return f"{self.root}/v1"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, kept alive over many requests."""
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while (request := await _read(reader)) is not None:
                if not await self._answer(request, writer):
                    break
                if self.forgets:
                    await _read(reader)
                    break
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async def _answer(self, request: Received, writer: asyncio.StreamWriter) -> bool:
        path = request.path.partition("?")[0]
        if not path.endswith("/chat/completions"):
            self.others.append(request)
            answer = self.get.get(path, 404)
            return await _send(writer, _plain_reply(answer(request) if callable(answer) else answer), b"")
        self.count += 1
        request = Received(request.method, request.path, request.headers, request.data, self.count)
        if self.keep_bodies:
            self.requests.append(request)
        self.active += 1
        self.peak = max(self.peak, self.active)
        try:
            reply = self._pick(request)
            if reply.hang:
                await asyncio.Event().wait()
            await asyncio.sleep(reply.delay)
            return await _send(writer, reply, _chat_body(reply, request))
        finally:
            self.active -= 1

    def _pick(self, request: Received) -> Reply:
        if callable(self.script):
            chosen = self.script(request)
        elif isinstance(self.script, (str, Reply)):
            chosen = self.script
        else:
            chosen = self.script[min(request.number, len(self.script)) - 1]
        return Reply(text=chosen) if isinstance(chosen, str) else chosen


async def _read(reader: asyncio.StreamReader) -> Received | None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    return Received(method, path, headers, await reader.readexactly(int(headers.get("content-length", 0))))


async def _send(writer: asyncio.StreamWriter, reply: Reply, body: bytes) -> bool:
    """Write one answer; False when the connection is to be closed."""
    if reply.drop:
        return False
    body = reply.raw if reply.raw is not None else body
    headers = {"Content-Type": reply.content_type, "Content-Length": str(len(body)), **reply.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    writer.write(f"HTTP/1.1 {reply.status} Scripted\r\n{lines}\r\n".encode("latin-1"))
    writer.write(body if reply.cut is None else body[: reply.cut])
    await writer.drain()
    return reply.cut is None


def _chat_body(reply: Reply, request: Received) -> bytes:
    if reply.raw is not None:
        return b""
    if reply.status >= 400:
        return msgspec.json.encode({"error": {"message": reply.error or f"scripted {reply.status}"}})
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": _fill(reply.text, request), **reply.message},
        "finish_reason": reply.finish_reason,
    }
    answer = {"id": f"chat-{request.number}", "object": "chat.completion", "model": "test-model", "choices": [choice]}
    return msgspec.json.encode(answer | ({"usage": dict(reply.usage)} if reply.usage is not None else {}))


def _fill(text: str | None, request: Received) -> str | None:
    if text is None or "{" not in text:
        return text
    text = text.replace("{number}", str(request.number)).replace("{prompt}", request.prompt)
    if "{image}" in text:
        text = text.replace("{image}", hashlib.sha256(b"".join(data for _, data in request.images)).hexdigest()[:16])
    return text


def _plain_reply(answer: Any) -> Reply:
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, int):
        return Reply(status=answer, raw=b'{"error": {"message": "scripted"}}')
    return Reply(raw=msgspec.json.encode(answer))


@contextlib.asynccontextmanager
async def chat_server(
    script: Script = "hello",
    *,
    models: Any = MODELS,
    get: Mapping[str, Any] | None = None,
    port: int = 0,
    keep_bodies: bool = True,
    forgets: bool = False,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[ChatServer]:
    """A server that answers as `script` says until the block ends. `models` answers /v1/models."""
    answers = {"/v1/models": models, "/health": {"status": "ok"}} | dict(get or {})
    state = ChatServer(script, answers, keep_bodies, forgets, tls=tls is not None)
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(state.serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        task.add_done_callback(lambda _: writer.close())

    server = await asyncio.start_server(connected, "127.0.0.1", port, limit=2**20, backlog=1024, ssl=tls)
    state.port = server.sockets[0].getsockname()[1]
    try:
        yield state
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def in_thread(script: Script = "hello", **options: Any) -> Iterator[ChatServer]:
    """The same server on a thread of its own, for tests that are not asynchronous (the command line)."""
    ready: concurrent.futures.Future[tuple[ChatServer, Callable[[], None]]] = concurrent.futures.Future()

    async def main() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        async with chat_server(script, **options) as state:
            ready.set_result((state, lambda: loop.call_soon_threadsafe(stop.set)))
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    state, stop = ready.result(timeout=10)
    try:
        yield state
    finally:
        stop()
        thread.join(10)


@contextlib.contextmanager
def in_process(*, text: str = "hello", delay: float = 0.0, port: int = 0, tls: Path | None = None) -> Iterator[str]:
    """The same server as a process of its own, whose base URL this yields: its CPU time is not ours.

    `tls` is a file with a certificate and its key. (Refused handshakes leave open sockets behind in asyncio.)
    """
    secure = ["--tls", str(tls)] if tls else []
    with module_server(__name__, "--text", text, "--delay", str(delay), "--port", str(port), *secure) as url:
        yield url


@contextlib.contextmanager
def module_server(module: str, *words: str) -> Iterator[str]:
    """A module of the tests as a process; its first line is the base URL that this yields."""
    command = [sys.executable, "-m", module, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


async def _main(options: argparse.Namespace) -> None:
    reply, tls = Reply(text=options.text, delay=options.delay), None
    if options.tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(options.tls)
    async with chat_server(reply, port=options.port, keep_bodies=False, tls=tls) as server:
        print(server.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A chat server for tests, on loopback.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--text", default="hello", help="{prompt}, {number} and {image} are filled in")
    parser.add_argument("--tls", default="", help="file with a certificate and its key")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main(parser.parse_args()))
