"""`loupe serve`: OpenAI's own client against it, and every refusal as an error object."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import openai
import pytest

from loupe.engines.registry import load_profile
from loupe.errors import UsageError
from loupe.features.serve.app import serve
from loupe.features.serve.waiting_room import Body, WaitingRoom
from tests.support.pages import draw_page, write_pdf

FUNCTION = "tests.support.engine_functions:describe"


@asynccontextmanager
async def server(
    function: str = FUNCTION, *, host: str = "127.0.0.1", api_key: str = "", **settings: Any
) -> AsyncIterator[str]:
    """A running server in this process; the engine is a real worker process. Yields its base URL."""
    _, profile = load_profile("python", {"function": function, **settings})
    ready: asyncio.Queue[str] = asyncio.Queue()
    stop = asyncio.Event()
    serving = asyncio.create_task(
        serve(
            profile, "toy", address=(host, 0), api_key=api_key, on_ready=lambda url, _: ready.put_nowait(url), stop=stop
        )
    )
    getting = asyncio.create_task(ready.get())
    await asyncio.wait({serving, getting}, return_when=asyncio.FIRST_COMPLETED)
    if serving.done():
        getting.cancel()
        serving.result()
    try:
        yield getting.result()
    finally:
        stop.set()
        await serving


Session = aiohttp.ClientSession


def with_server(use: Callable[[Session, str], Awaitable[Any]], **settings: Any) -> Any:
    async def run() -> Any:
        async with server(**settings) as url, aiohttp.ClientSession() as session:
            return await use(session, url)

    return asyncio.run(run())


def data_url(path: Path, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def image_part(url: object) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def chat(*content: Any, **more: Any) -> dict[str, Any]:
    return {"model": "toy", "messages": [{"role": "user", "content": list(content)}], **more}


def refusal(body: Any, *, path: str = "chat/completions", **settings: Any) -> tuple[int, dict[str, Any]]:
    """Status and error object of one request; `body` is sent as JSON, or as it is if it is bytes."""

    async def use(session: Session, url: str) -> tuple[int, dict[str, Any]]:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        async with session.post(f"{url}/{path}", data=io.BytesIO(raw), headers=headers) as response:
            return response.status, (await response.json())["error"]

    found: tuple[int, dict[str, Any]] = with_server(use, **settings)
    assert set(found[1]) == {"message", "type", "param", "code"}
    return found


# ---- OpenAI's own client


async def ask_with_openai(url: str, page: str, **more: Any) -> Any:
    async with openai.AsyncOpenAI(base_url=url, api_key="EMPTY", max_retries=0) as client:
        content: Any = [image_part(page), {"type": "text", "text": "Read this."}]
        return await client.chat.completions.create(
            model="toy", messages=[{"role": "user", "content": content}], max_tokens=77, **more
        )


def test_openais_client_gets_an_answer(tmp_path: Path) -> None:
    page = draw_page(tmp_path / "page.png")

    async def use(_: Session, url: str) -> Any:
        return await ask_with_openai(url, data_url(page))

    answer = with_server(use)
    assert answer.choices[0].message.content == "prompt=Read this. pages=PNG max=77"
    assert answer.choices[0].finish_reason == "stop"
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (11, 7, 18)
    assert answer.model == "toy"


def test_openais_client_gets_a_stream(tmp_path: Path) -> None:
    page = draw_page(tmp_path / "page.png")

    async def use(_: Session, url: str) -> list[Any]:
        stream = await ask_with_openai(url, data_url(page), stream=True, stream_options={"include_usage": True})
        return [chunk async for chunk in stream]

    chunks = with_server(use, function="tests.support.engine_functions:read_at_length")
    pieces = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(pieces) == "lorem ipsum " * 500
    assert len(pieces) > 3
    reasons = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert reasons == [None] * (len(reasons) - 1) + ["length"]
    assert chunks[-1].usage.total_tokens == 0
    assert len({chunk.id for chunk in chunks}) == 1


def test_openais_client_lists_models_and_understands_errors(tmp_path: Path) -> None:
    async def use(_: Session, url: str) -> tuple[list[str], str]:
        async with openai.AsyncOpenAI(base_url=url, api_key="EMPTY", max_retries=2) as client:
            models = [model.id async for model in client.models.list()]
            retrieved = await client.models.retrieve("toy")
            with pytest.raises(openai.NotFoundError) as missing:
                await client.chat.completions.create(model="gpt-x", messages=[{"role": "user", "content": "hi"}])
            with pytest.raises(openai.BadRequestError, match="not fetched"):
                await ask_with_openai(url, "https://example.org/page.png")
            with pytest.raises(openai.UnprocessableEntityError, match=r"page-1\.png"):
                await ask_with_openai(url, "data:image/png;base64,AAAA")
            return [*models, retrieved.id], str(missing.value.code)

    found, code = with_server(use, function="tests.support.engine_functions:describe")
    assert found == ["toy", "toy"]
    assert code == "model_not_found"


# ---- pages


def test_a_pdf_is_read_page_by_page(tmp_path: Path) -> None:
    pdf = data_url(write_pdf(tmp_path / "a.pdf", "one", "two"), "application/pdf")
    file = {"type": "file", "file": {"filename": "a.pdf", "file_data": pdf}}

    async def use(session: Session, url: str) -> list[str]:
        texts = []
        for part in (image_part(pdf), file):
            async with session.post(f"{url}/chat/completions", json=chat(part)) as response:
                texts.append((await response.json())["choices"][0]["message"]["content"])
        return texts

    assert with_server(use) == ["prompt= pages=PDF1 max=None\n\nprompt= pages=PDF2 max=None"] * 2


def test_a_request_without_a_page_carries_its_text(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]

    async def use(session: Session, url: str) -> Any:
        async with session.post(f"{url}/chat/completions", json={"model": "toy", "messages": messages}) as response:
            return await response.json()

    answer = with_server(use)
    assert answer["choices"][0]["message"]["content"] == "prompt=Be brief.\n\nHello pages= max=None"


def test_pages_lie_in_a_private_folder_and_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    page = data_url(draw_page(tmp_path / "page.png"))

    async def use(session: Session, url: str) -> str:
        body = chat(image_part(page))
        async with session.post(f"{url}/chat/completions", json=body) as response:
            content: str = (await response.json())["choices"][0]["message"]["content"]
            return content

    where, mode = with_server(use, function="tests.support.engine_functions:where_is_it").rsplit(" ", 1)
    assert Path(where).is_relative_to(tmp_path)
    assert mode == "0o40700"
    assert [path.name for path in tmp_path.iterdir()] == ["page.png"]


# ---- refusals


@pytest.mark.parametrize(
    ("body", "message", "param"),
    [
        (b"{", "not a chat request", None),
        (b"\xff\xfe", "not a chat request", None),
        ({"model": "toy"}, "messages", None),
        ({"model": 3, "messages": []}, "model", None),
        ({"model": "toy", "messages": []}, "one user message", "messages"),
        (chat(image_part("http://169.254.169.254/x.png")), "not fetched", "messages[0].content[0].image_url"),
        (chat(image_part("file:///etc/passwd")), "file: addresses are not", "messages[0].content[0].image_url"),
        (chat(image_part("FILE:///etc/passwd")), "not fetched", "messages[0].content[0].image_url"),
        (chat(image_part("/etc/passwd")), "not fetched", "messages[0].content[0].image_url"),
        (chat(image_part(None)), "no data URL", "messages[0].content[0].image_url"),
        (chat(image_part("data:image/png,abc")), "base64", "messages[0].content[0].image_url"),
        (chat(image_part("data:image/png;base64,%%%")), "broken base64", "messages[0].content[0].image_url"),
        (chat(image_part("data:image/png;base64,")), "empty", "messages[0].content[0].image_url"),
        (chat(image_part("data:text/html;base64,AAAA")), "neither", "messages[0].content[0].image_url"),
        (chat({"type": "input_audio"}), "no part of type", "messages[0].content[0]"),
        (chat({"type": "text", "text": "a"}, n=2), "n must be 1", "n"),
        (chat({"type": "text", "text": "a"}, max_tokens=0), "at least 1", "max_tokens"),
        (
            {"model": "toy", "messages": [{"role": r, "content": "a"} for r in ("user", "assistant", "user")]},
            "no conversation",
            "messages",
        ),
    ],
)
def test_a_wrong_request_is_a_400_that_names_the_place(body: Any, message: str, param: str | None) -> None:
    status, error = refusal(body)
    assert status == 400
    assert message in error["message"]
    assert (error["type"], error["param"]) == ("invalid_request_error", param)


def test_a_page_that_cannot_be_read_is_a_422() -> None:
    status, error = refusal(chat(image_part("data:image/png;base64,AAAA")))
    assert (status, error["code"]) == (422, "page_not_readable")
    assert error["message"].startswith("page-1.png")


def test_a_body_that_is_too_large_is_a_413(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loupe.features.serve.app.MOST_BYTES", 1 << 20)
    status, error = refusal(chat(image_part("data:image/png;base64," + "A" * (2 << 20))))
    assert (status, error["message"]) == (413, "the body is larger than 1 MB")


def test_bodies_that_find_no_room_wait_unread_and_small_ones_pass(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("loupe.features.serve.app.MOST_BYTES", 1 << 20)
    page = draw_page(tmp_path / "page.png")
    large = json.dumps(chat(image_part(data_url(page)), {"type": "text", "text": "x" * 900_000})).encode()

    async def use(session: Session, url: str) -> list[int]:
        async def ask(body: bytes) -> int:
            headers = {"Content-Type": "application/json"}
            async with session.post(f"{url}/chat/completions", data=io.BytesIO(body), headers=headers) as response:
                return response.status

        return await asyncio.gather(*(ask(large) for _ in range(8)), ask(json.dumps(chat()).encode()))

    assert with_server(use) == [200] * 9


@pytest.mark.parametrize("stated", [True, False])
def test_room_is_held_by_bytes_that_came_until_they_are_decoded(stated: bool) -> None:
    """Five bodies of 90 bytes and five of 10 share room for 200, whether or not they state their length."""
    read: list[int] = []

    async def run() -> int:
        room, all_inside, most = WaitingRoom(100), asyncio.Event(), 0
        inside: list[Body] = []

        async def ask(size: int) -> None:
            nonlocal most

            async def parts() -> AsyncIterator[bytes]:
                for _ in range(size // 10):
                    await asyncio.sleep(0)
                    yield b"x" * 10

            request = SimpleNamespace(content_length=size if stated else None, content=SimpleNamespace(iter_any=parts))
            async with room.body(request) as body:  # type: ignore[arg-type]
                read.append(len(body.data))
                inside.append(body)
                most = max(most, sum(len(each.data) for each in inside))
                await asyncio.sleep(0)
                body.clear()
                if len(inside) == 10:
                    all_inside.set()
                await all_inside.wait()  # as for the engine

        async with asyncio.timeout(5):
            await asyncio.gather(*(ask(size) for size in (90, 10) * 5))
        return most

    assert asyncio.run(run()) <= 200
    assert sorted(read) == [10] * 5 + [90] * 5


def test_a_body_that_does_not_arrive_or_is_made_of_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loupe.features.serve.waiting_room._SECONDS", 0.2)

    async def use(_: Session, url: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.split(":")[2].split("/")[0]))
        head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: 1000\r\n\r\n{{".encode())
        status = await reader.readline()
        writer.close()
        return status

    assert with_server(use).startswith(b"HTTP/1.1 408")
    status, error = refusal(json.dumps(chat()).encode().replace(b"[]", b"[" + b"{}," * 1_000_001 + b"{}]"))
    assert (status, error["message"]) == (413, "the body has more than 1,000,000 values")
    status, error = refusal(chat(*[image_part("data:image/png;base64,AAAA")] * 101))
    assert (status, error["message"]) == (413, "the request has more than 100 files")


def test_an_unknown_path_a_wrong_method_and_a_wrong_type_are_error_objects() -> None:
    async def use(session: Session, url: str) -> list[tuple[int, str]]:
        found = []
        for method, path, headers in [
            ("GET", "/nothing", {}),
            ("GET", "/chat/completions", {}),
            ("OPTIONS", "/chat/completions", {"Origin": "http://evil.example"}),
            ("POST", "/chat/completions", {"Content-Type": "text/plain"}),
        ]:
            async with session.request(method, url + path, headers=headers) as response:
                assert "Access-Control-Allow-Origin" not in response.headers
                found.append((response.status, (await response.json())["error"]["code"]))
        return found

    assert with_server(use) == [
        (404, "unknown_url"),
        (405, "method_not_allowed"),
        (405, "method_not_allowed"),
        (415, "unsupported_media_type"),
    ]


@pytest.mark.parametrize(
    ("prompt", "status", "code", "message"),
    [
        ("raise", 500, "engine_error", "ValueError: bad value"),
        ("segfault", 500, "engine_error", "SIGSEGV"),
        ("hang", 504, "engine_timeout", "0.5 s"),
        ("refuse", 422, "page_not_readable", "not this page"),
    ],
)
def test_trouble_of_the_engine_has_a_status_of_its_own(prompt: str, status: int, code: str, message: str) -> None:
    found, error = refusal(
        chat({"type": "text", "text": prompt}), function="tests.support.engine_functions:misbehave", timeout=0.5
    )
    assert (found, error["code"]) == (status, code)
    assert message in error["message"]


def test_an_engine_that_is_gone_is_a_503(tmp_path: Path) -> None:
    """Its file vanishes, then its worker dies: no other can be started."""
    (tmp_path / "mine.py").write_text("import os\ndef go(request):\n    os._exit(1)\n")

    async def use(session: Session, url: str) -> list[int]:
        statuses = []
        for _ in range(2):
            async with session.post(f"{url}/chat/completions", json=chat({"type": "text", "text": "a"})) as response:
                statuses.append(response.status)
            (tmp_path / "mine.py").write_text("import os\nos._exit(1)\n")
        return statuses

    assert with_server(use, function=f"{tmp_path}/mine.py:go") == [500, 503]


# ---- who may ask


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:1", 200),
        ("127.0.0.1", 200),
        ("[::1]:8000", 200),
        ("evil.example", 403),
        ("evil.example:8000", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example", 403),
        ("", 403),
    ],
)
def test_a_foreign_host_name_is_refused(host: str, status: int) -> None:
    async def use(session: Session, url: str) -> int:
        async with session.get(f"{url}/models", headers={"Host": host}) as response:
            return response.status

    assert with_server(use) == status


@pytest.mark.parametrize(("key", "status"), [("secret", 200), ("secre", 401), ("", 401), ("sécret", 401)])
def test_a_key_is_asked_for_when_there_is_one(key: str, status: int) -> None:
    async def use(session: Session, url: str) -> int:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        async with session.get(f"{url}/models", headers=headers) as response:
            return response.status

    assert with_server(use, api_key="secret") == status


def test_health_says_ok() -> None:
    async def use(session: Session, url: str) -> Any:
        async with session.get(f"{url.removesuffix('/v1')}/health") as response:
            return await response.json()

    assert with_server(use) == {"status": "ok", "model": "toy"}


# ---- start and stop


def test_a_port_in_use_is_a_usage_error_with_a_way_out() -> None:
    async def run() -> None:
        _, profile = load_profile("python", {"function": FUNCTION})
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            await serve(profile, "toy", address=("127.0.0.1", port), on_ready=lambda *_: None, stop=asyncio.Event())

    with pytest.raises(UsageError, match=r"cannot listen on 127\.0\.0\.1 port"):
        asyncio.run(run())


def test_stopping_finishes_what_is_in_flight() -> None:
    async def run() -> str:
        async with aiohttp.ClientSession() as session:
            async with server("tests.support.engine_functions:misbehave") as url:
                asking = asyncio.create_task(_content(session, url, "sleep 0.8"))
                await asyncio.sleep(0.3)
            return await asking

    assert asyncio.run(run()).startswith("read ")


def test_a_client_that_leaves_frees_the_engine() -> None:
    async def run() -> str:
        async with server("tests.support.engine_functions:misbehave") as url, aiohttp.ClientSession() as session:
            asking = asyncio.create_task(_content(session, url, "hang"))
            await asyncio.sleep(0.5)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            return await _content(session, url, "fine")

    assert asyncio.run(run()).startswith("read ")


async def _content(session: Session, url: str, prompt: str) -> str:
    async with session.post(f"{url}/chat/completions", json=chat({"type": "text", "text": prompt})) as response:
        content: str = (await response.json())["choices"][0]["message"]["content"]
        return content
