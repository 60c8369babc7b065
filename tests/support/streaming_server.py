"""A chat server of hidden capacity that streams: words come one by one, what is too much waits or is refused.

with streaming_server(capacity=8, seconds=0.05) as server:
    ... server.url ... server.prompts ...
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

WORDS = ("read", " word", " by", " word")


@dataclass
class StreamingServer:
    """Answers take `seconds`, a quarter of them until the first word; `refuses`: more than `capacity` get a 429."""

    capacity: int
    seconds: float
    streams: bool = True
    refuses: bool = False
    url: str = ""
    active: int = 0
    prompts: list[str] = field(default_factory=list)
    streamed: int = 0

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "test-model"}]})

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = msgspec.json.decode(await request.read())
        self.prompts.append(str(body["messages"][-1]["content"]))
        if body.get("stream") and not self.streams:
            return web.json_response({"error": {"message": "stream is not supported"}}, status=400)
        if self.refuses and self.active >= self.capacity:
            return web.json_response({"error": {"message": "too many"}}, status=429)
        self.active += 1
        try:
            async with self._seats:
                return await self._answer(request, streamed=bool(body.get("stream")))
        finally:
            self.active -= 1

    async def _answer(self, request: web.Request, *, streamed: bool) -> web.StreamResponse:
        usage = {"prompt_tokens": 10, "completion_tokens": len(WORDS)}
        if not streamed:
            await asyncio.sleep(self.seconds)
            message = {"role": "assistant", "content": "".join(WORDS)}
            return web.json_response({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})
        self.streamed += 1
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await self._send(response, {"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        for word in WORDS:
            await asyncio.sleep(self.seconds / len(WORDS))
            await self._send(response, {"choices": [{"delta": {"content": word}}]})
        await self._send(response, {"choices": [{"delta": {}, "finish_reason": "stop"}]})
        await self._send(response, {"choices": [], "usage": usage})
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _send(self, response: web.StreamResponse, event: object) -> None:
        await response.write(b"data: " + msgspec.json.encode(event) + b"\n\n")

    async def main(self, started: threading.Event, stop: asyncio.Event) -> None:
        self._seats = asyncio.Semaphore(10**6 if self.refuses else self.capacity)
        application = web.Application(client_max_size=2**26)
        application.add_routes([web.get("/v1/models", self.models), web.post("/v1/chat/completions", self.chat)])
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        started.set()
        await stop.wait()
        await runner.cleanup()


@contextlib.contextmanager
def streaming_server(**settings: Any) -> Iterator[StreamingServer]:
    """The server on a thread of its own."""
    server, started = StreamingServer(**settings), threading.Event()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.main(started, stop),), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
