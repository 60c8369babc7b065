"""Finding servers on loopback: one is used, several are listed, kinds and loaded models are told apart."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import aiohttp
import pytest

from loupe.cli.shared.chosen_engines import choose_engines
from loupe.cli.shared.flags import Flags
from loupe.cli.shared.server_options import find_server, served_model
from loupe.engines.chat.discovery import (
    Addresses,
    Endpoint,
    Server,
    address,
    addresses_of,
    as_found,
    beside_url,
    check_addresses,
    choose_model,
    discover,
    identify,
    join_url,
    located,
    normalize_base_url,
    probe,
)
from loupe.engines.chat.endpoints import reach
from loupe.engines.chat.exchange import open_session
from loupe.engines.environments.model_server import FoundServer, one_server
from loupe.engines.registry import load_profile
from loupe.errors import EngineUnavailableError, UsageError
from tests.support.chat_server import ChatServer, Reply, chat_server


def models(*ids: str) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": ident} for ident in ids]}


@pytest.fixture
def dead_port() -> Iterator[int]:
    """A port that refuses connections for as long as the test runs: bound, but not listening."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


async def here(ports: list[int], *, first: bool = False) -> str:
    """The server on this machine."""
    return (await located(Addresses(("auto:first",) if first else ()), ports)).urls[0]


def found(*answers: Any, first: bool = False) -> tuple[str, list[str]]:
    """What is found among servers whose /v1/models answers so, and the URLs of all of them."""

    async def main() -> tuple[str, list[str]]:
        async with AsyncExitStack() as stack:
            servers = [await stack.enter_async_context(chat_server(models=answer)) for answer in answers]
            ports = [server.port for server in servers]
            return address(await here(ports, first=first)), [server.url for server in servers]

    return asyncio.run(main())


def test_the_only_server_is_used(dead_port: int) -> None:
    async def main() -> bool:
        async with chat_server() as server:
            return await here([dead_port, server.port]) == as_found(server.url)

    assert asyncio.run(main())


def test_several_servers_are_listed_with_their_models() -> None:
    with pytest.raises(UsageError) as raised:
        found(models("glm-ocr"), models("qwen", "olmocr"))
    assert "2 model servers answer on this machine" in raised.value.message
    assert "(glm-ocr)" in raised.value.message
    assert "(qwen, olmocr)" in raised.value.message
    assert "auto:first" in raised.value.hint


def test_the_first_of_several_can_be_asked_for() -> None:
    url, urls = found(models("glm-ocr"), models("qwen"), first=True)
    assert url == urls[0]


def test_no_server_is_an_error_that_names_the_way_out(dead_port: int) -> None:
    with pytest.raises(EngineUnavailableError, match="no model server answers") as raised:
        asyncio.run(here([dead_port]))
    assert "--base-url" in raised.value.hint


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_needs_a_key_counts_as_found(status: int) -> None:
    url, urls = found(status)
    assert url == urls[0]


@pytest.mark.parametrize(
    "answer",
    [404, 500, {"hello": "world"}, [], Reply(raw=b"<html>a web page</html>"), Reply(raw=b"["), Reply(drop=True)],
    ids=str,
)
def test_other_web_servers_are_no_model_servers(answer: Any) -> None:
    url, urls = found(answer, models("glm-ocr"))
    assert url == urls[1]


def test_servers_that_accept_and_stay_silent_cost_two_seconds_in_all() -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(8)]
        began = time.monotonic()
        assert asyncio.run(discover([listener.getsockname()[1] for listener in silent])) == []
        assert time.monotonic() - began < 3.0


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, ""),
        ({"LOUPE_BASE_URL": "http://a:1/v1", "OPENAI_BASE_URL": "http://b:1/v1"}, "http://a:1/v1"),
        ({"OPENAI_BASE_URL": "https://api.example/v1/", "OLLAMA_HOST": "c"}, "https://api.example/v1"),
        ({"LOUPE_BASE_URL": " ", "VLLM_BASE_URL": "http://d:8000"}, "http://d:8000/v1"),
        ({"OLLAMA_HOST": "0.0.0.0"}, "http://127.0.0.1:11434/v1"),
        ({"OLLAMA_HOST": "gpu-box:9999"}, "http://gpu-box:9999/v1"),
        ({"OLLAMA_HOST": "https://ollama.example.com"}, "https://ollama.example.com:443/v1"),
        ({"OLLAMA_HOST": "https://gpu-box:8443/team/ollama/"}, "https://gpu-box:8443/team/ollama/v1"),
        ({"OLLAMA_HOST": "ollama.com"}, "https://ollama.com:443/v1"),
        ({"OLLAMA_HOST": "gpu-box/v1"}, "http://gpu-box:11434/v1"),
        ({"OLLAMA_HOST": "http://0.0.0.0"}, "http://127.0.0.1:80/v1"),
        ({"OLLAMA_HOST": "::1"}, "http://[::1]:11434/v1"),
        ({"OLLAMA_HOST": "[::]:9999"}, "http://[::1]:9999/v1"),
        ({"OLLAMA_HOST": ":9999"}, "http://127.0.0.1:9999/v1"),
    ],
)
def test_the_environment_names_a_server(environment: dict[str, str], url: str) -> None:
    assert addresses_of((), environment).urls == ((url,) if url else ())


@pytest.mark.parametrize("text", ["auto", " auto:first "])
def test_auto_is_no_host(text: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        normalize_base_url(text)
    for urls in ([text], ["gpu1:8000"]):
        check_addresses(urls)
    with pytest.raises(ValueError, match="cannot be combined with others"):
        check_addresses(["gpu1:8000", text])


@pytest.mark.parametrize("variable", ["", "LOUPE_BASE_URL"])
def test_every_command_looks_on_this_machine_before_it_takes_auto_for_an_address(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with chat_server(models=models("m")) as server:
            monkeypatch.setattr("loupe.engines.chat.discovery.PORTS", [server.port])
            monkeypatch.setattr("loupe.engines.chat.discovery.located.__defaults__", ([server.port],))
            monkeypatch.setenv(variable or "IGNORED", "auto")
            written = "" if variable else "auto"
            assert await one_server(written, "http://usual:1/v1") == FoundServer(server.url, variable)
            found = await asyncio.to_thread(find_server, [written] if written else [])
            assert found == as_found(server.url)
            _, profile = load_profile("openai", {"base_url": found})
            assert await asyncio.to_thread(served_model, profile) == "m"

    asyncio.run(main())


def test_auto_of_a_variable_is_as_good_as_none_where_no_server_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUPE_BASE_URL", "auto")
    monkeypatch.setattr("loupe.engines.chat.discovery.located.__defaults__", ([],))
    monkeypatch.setattr("loupe.cli.shared.chosen_engines.find_spec", lambda _: True)
    assert [name for name, _ in choose_engines(Flags())] == ["rapidocr"]
    with pytest.raises(EngineUnavailableError, match="no model server answers"):
        choose_engines(Flags(base_url=("auto",)))


def test_a_named_server_is_used_without_looking_for_others() -> None:
    named = addresses_of((), {"LOUPE_BASE_URL": "http://named:1/v1"})
    assert asyncio.run(located(named, ports=[])) == named


def test_a_wrong_address_in_the_environment_is_named() -> None:
    with pytest.raises(UsageError, match=r"^VLLM_BASE_URL 'ftp://x' is not an address such as") as raised:
        addresses_of((), {"VLLM_BASE_URL": "ftp://x"})
    assert raised.value.hint.endswith("or unset VLLM_BASE_URL")


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        ("https://host/openai/v1/", "https://host/openai/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("https://host/x?api-version=1", "https://host/x?api-version=1"),
        ("host:8000/v1/chat/completions", "http://host:8000/v1"),
        ("https://host/v1/chat/completions/", "https://host/v1"),
        (
            "https://h/openai/deployments/d/chat/completions?api-version=1",
            "https://h/openai/deployments/d?api-version=1",
        ),
        ("https://h/openai/deployments/d/embeddings?api-version=1", "https://h/openai/deployments/d?api-version=1"),
        ("https://h/models/chat/completions?api-version=1", "https://h/models?api-version=1"),
        ("https://h/models?api-version=1", "https://h/models?api-version=1"),
        ("https://h/openai/v1/responses", "https://h/openai/v1"),
        ("https://h/v1/models", "https://h/v1"),
    ],
)
def test_addresses_are_completed(text: str, url: str) -> None:
    assert normalize_base_url(text) == normalize_base_url(url) == url


@pytest.mark.parametrize("text", ["", "http://", "ftp://host", "http://host:99999", "http://host:port", "file:///etc"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an address such as"):
        normalize_base_url(text)


@pytest.mark.parametrize("end", ["?api-version=2025-04-01-preview", "/", ""])
def test_an_address_of_the_responses_api_is_refused(end: str) -> None:
    with pytest.raises(ValueError, match=r"Responses API, which Loupe does not speak; give .*/chat/completions"):
        normalize_base_url(f"https://me.openai.azure.com/openai/responses{end}")


def test_paths_are_joined_before_the_query() -> None:
    assert join_url("https://host/x/v1?v=1", "models") == "https://host/x/v1/models?v=1"
    assert beside_url("https://host/x/v1?v=1", "/health") == "https://host/x/health?v=1"


@pytest.mark.parametrize(("host", "wanted"), [("me.openai.azure.com", "sk"), ("azure.com.evil.example", None)])
def test_azure_gets_the_key_under_its_own_name(host: str, wanted: str | None) -> None:
    async def main() -> str | None:
        async with open_session("sk", timeout=1, urls=[f"https://{host}/openai/v1"]) as session:
            assert session.headers["Authorization"] == "Bearer sk"
            return session.headers.get("api-key")

    assert asyncio.run(main()) == wanted


def test_the_deployment_in_an_address_of_azure_is_the_model() -> None:
    found = Endpoint(base_url="https://h/openai/deployments/gpt4o?api-version=1", status=404)
    assert choose_model(found, Server()) == "gpt4o"


VLLM = {"/version": {"version": "0.11.0"}}
SGLANG = {"/get_server_info": {"model_path": "m", "version": "0.5.10"}}
LLAMA = {"/props": {"default_generation_settings": {}, "build_info": "b7000-abc"}}
OLLAMA = {"/api/version": {"version": "0.12.0"}, "/api/ps": {"models": [{"name": "glm-ocr:latest"}]}}
MLX = {"/health": {"status": "healthy", "loaded_model": "mlx-community/GLM-OCR-bf16"}}


@pytest.mark.parametrize(
    ("get", "header", "server"),
    [
        (VLLM, "uvicorn", Server(kind="vllm", version="0.11.0")),
        (SGLANG | VLLM | OLLAMA, "uvicorn", Server(kind="sglang", version="0.5.10")),
        (LLAMA | OLLAMA, "llama.cpp", Server(kind="llama_server", version="b7000-abc")),
        ({}, "llama.cpp", Server(kind="llama_server")),
        (OLLAMA, "", Server(kind="ollama", version="0.12.0", loaded="glm-ocr:latest")),
        (OLLAMA | {"/api/ps": {"models": []}}, "", Server(kind="ollama", version="0.12.0")),
        (MLX, "mlx_vlm/0.7.10", Server(kind="mlx_vlm", version="0.7.10", loaded="mlx-community/GLM-OCR-bf16")),
        ({"/version": Reply(raw=b"<html>"), "/props": []}, "", Server()),
    ],
)
def test_the_kind_of_a_server_shows_in_its_answers(get: dict[str, Any], header: str, server: Server) -> None:
    async def main(running: ChatServer) -> Server:
        async with aiohttp.ClientSession() as session:
            endpoint = await probe(session, running.url)
            assert endpoint is not None
            return await identify(session, endpoint)

    async def with_server() -> Server:
        listed = Reply(raw=b'{"data": [{"id": "m"}]}', headers={"Server": header})
        async with chat_server(models=listed, get=get) as running:
            return await main(running)

    assert asyncio.run(with_server()) == server


def endpoint(*ids: str) -> Endpoint:
    return Endpoint(base_url="http://127.0.0.1:1/v1", models=tuple({"id": ident} for ident in ids))


@pytest.mark.parametrize(
    ("ids", "server", "model"),
    [
        (("only",), Server(), "only"),
        (("a", "b"), Server(kind="ollama", loaded="b"), "b"),
        (("a", "b", "c"), Server(kind="mlx_vlm", loaded="c"), "c"),
    ],
)
def test_the_model_is_the_only_one_or_the_loaded_one(ids: tuple[str, ...], server: Server, model: str) -> None:
    assert choose_model(endpoint(*ids), server) == model


def test_many_models_are_listed_in_part() -> None:
    with pytest.raises(UsageError, match=r"offers 12 models: m0, .*m9 and 2 more"):
        choose_model(endpoint(*(f"m{number}" for number in range(12))), Server(kind="ollama"))


@pytest.mark.parametrize("base_urls", [[], ["auto"], ["auto:first"]])
def test_an_engine_without_an_address_asks_the_server_on_this_machine(base_urls: list[str]) -> None:
    async def main() -> bool:
        async with chat_server() as server, aiohttp.ClientSession() as session:
            found = await reach(
                Addresses(tuple(base_urls)), session, connect_timeout=5, key_hint="", ports=[server.port]
            )
            return [each.endpoint.base_url for each in found] == [server.url]

    assert asyncio.run(main())


def test_keys_are_not_sent_to_servers_that_are_only_looked_for() -> None:
    async def main() -> list[str | None]:
        async with chat_server() as server, chat_server(models=404) as other:
            await discover([server.port, other.port])
            return [request.headers.get("authorization") for request in server.others + other.others]

    assert asyncio.run(main()) == [None, None]
