"""Opening the openai engine: servers, models, health, several servers in turn."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from loupe.engines.openai import open_engine
from loupe.errors import (
    EngineUnavailableError,
    UsageError,
)
from loupe.types import Engine, Request
from tests.support.asking import ASK, settings
from tests.support.chat_server import Reply, chat_server, in_thread
from tests.support.command_line import loupe, needs


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOUPE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def opened(base_url: str | list[str], **keys: Any) -> Engine:
    """The engine as it is after opening (it is closed again)."""

    async def main() -> Engine:
        async with open_engine(settings(base_url, **keys)) as engine:
            return engine

    return asyncio.run(main())


def facts(*, models: Any, get: dict[str, Any] | None = None, **keys: Any) -> dict[str, str]:
    async def main() -> dict[str, str]:
        async with (
            chat_server(models=models, get=get) as server,
            open_engine(settings(server.url, **keys)) as engine,
        ):
            return dict(engine.facts)

    return asyncio.run(main())


def models(*ids: str) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": ident} for ident in ids]}


@pytest.fixture
def free_port() -> Iterator[int]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def test_a_server_that_is_not_there_is_named(free_port: int) -> None:
    with pytest.raises(EngineUnavailableError, match=f"no server answers at http://127.0.0.1:{free_port}/v1"):
        opened(f"http://127.0.0.1:{free_port}/v1")


def test_a_server_that_wants_a_key_says_so_before_the_first_sample() -> None:
    with pytest.raises(EngineUnavailableError, match=r"refuses the key \(HTTP 401\)"):
        facts(models=401)


def test_the_only_model_is_used_and_recorded() -> None:
    found = facts(
        models={"data": [{"id": "zai-org/GLM-OCR", "max_model_len": 16384}]}, get={"/version": {"version": "0.11.0"}}
    )
    assert found.pop("base_url").startswith("http://127.0.0.1:")
    assert found == {
        "model": "zai-org/GLM-OCR",
        "server": "vllm",
        "server_version": "0.11.0",
        "max_model_len": "16384",
    }


def test_of_several_models_one_must_be_named() -> None:
    with pytest.raises(UsageError, match="offers 2 models: one, two") as raised:
        facts(models=models("one", "two"))
    assert raised.value.hint == "use --model one"


def test_no_models_means_that_one_must_be_named() -> None:
    with pytest.raises(EngineUnavailableError, match="lists no models"):
        facts(models=404)


def test_a_named_model_needs_no_list_of_models() -> None:
    assert facts(models=404, model="mine")["model"] == "mine"


def test_a_model_that_vllm_does_not_serve_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="does not serve 'mine', only: theirs"):
        facts(models=models("theirs"), get={"/version": {"version": "0.11.0"}}, model="mine")


@pytest.mark.parametrize("version", [{"/version": {"version": "1"}}, {"/api/version": {"version": "1"}}])
def test_a_model_that_is_not_listed_is_refused_at_once_by_servers_that_serve_no_other(version: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"does not serve 'nemo', only: one, two") as error:
        facts(models=models("one", "two"), get=version, model="nemo")
    assert error.value.hint == "use --model one"


def test_an_unknown_server_may_serve_more_than_it_lists() -> None:
    assert facts(models=models("one", "two"), model="nemo")["model"] == "nemo"


@pytest.mark.parametrize(
    ("listed", "model"),
    [
        ("llava:latest", "llava"),
        ("models/gemini-x", "gemini-x"),
        ("a/b", "a/b:nitro"),
        ("c-sonnet-20260131", "c-sonnet-latest"),
    ],
)
def test_a_listed_model_may_be_named_as_its_server_takes_it(listed: str, model: str) -> None:
    assert facts(models=models(listed), model=model)["model"] == model


def test_a_server_that_answers_to_any_name_is_left_alone() -> None:
    assert facts(models=models("x.gguf"), get={"/props": {"build_info": "b1"}}, model="my-name")["model"] == "my-name"


@pytest.mark.parametrize("lists_models", [True, False])
def test_a_running_server_is_healthy_whether_or_not_it_lists_models(lists_models: bool) -> None:
    async def main() -> bool:
        async with (
            chat_server(models=models("m") if lists_models else 404) as server,
            open_engine(settings(server.url, model="m")) as engine,
        ):
            assert engine.healthy is not None
            return await engine.healthy()

    assert asyncio.run(main())


def test_several_servers_are_asked_in_turn() -> None:
    async def main() -> tuple[list[str], int, int]:
        async with chat_server("one") as one, chat_server("two") as two:
            async with open_engine(settings([one.url, two.url])) as engine:
                answers = [(await engine.predict(ASK)).text for _ in range(4)]
            return answers, len(one.requests), len(two.requests)

    assert asyncio.run(main()) == (["one", "two", "one", "two"], 2, 2)


def test_a_server_that_cannot_be_reached_is_left_out_while_others_answer() -> None:
    async def main() -> list[str]:
        async with chat_server("one") as one, AsyncExitStack() as stack:
            gone = await stack.enter_async_context(chat_server("gone"))
            async with open_engine(settings([one.url, gone.url])) as engine:
                await stack.aclose()
                first = [(await engine.predict(ASK)).text for _ in range(3)]
            async with open_engine(settings([gone.url, one.url])) as engine:
                assert engine.facts["base_url"] == f"{one.url}, {gone.url}"
                return [*first, (await engine.predict(ASK)).text]

    assert asyncio.run(main()) == ["one"] * 4


def test_as_many_questions_as_wanted_are_open_at_once_and_no_more() -> None:
    async def main() -> tuple[int, int]:
        async with chat_server(Reply(delay=0.05)) as server, open_engine(settings(server.url, concurrency=8)) as engine:
            await asyncio.gather(*(engine.predict(Request(id=str(number), prompt="Read.")) for number in range(24)))
            return server.peak, server.connections

    assert asyncio.run(main()) == (8, 8)


def test_a_model_that_the_server_does_not_list_is_said_and_what_it_lists_is_kept(tmp_path: Path) -> None:
    get = {"/props": {"default_generation_settings": {}, "build_info": "b1"}}
    with in_thread("read", models={"data": [{"id": "real-model"}]}, get=get) as server:
        words = ("run", "sample_pages", "--base-url", server.url, "--limit", "2", "--json")
        done = loupe(*words, "--model", "other-name", cwd=tmp_path)
        listed = loupe(*words, "--model", "real-model", cwd=tmp_path)
    note = "the server does not list 'other-name', only: real-model"
    found = json.loads(done.stdout)
    assert any(note in warning for warning in found["warnings"]), found["warnings"]
    info = json.loads((tmp_path / found["run"] / "run.json").read_text())
    assert info["facts"]["models_listed"] == "real-model"
    assert not any("does not list" in warning for warning in json.loads(listed.stdout)["warnings"])


@needs("load")
def test_load_says_that_the_server_does_not_list_a_model(tmp_path: Path) -> None:
    with in_thread("read", models={"data": [{"id": "real-model"}]}) as server:
        load = ("load", "sample_pages", "--base-url", server.url, "--sweep", "1", "--requests", "4", "--plain")
        said = loupe(*load, "--model", "other-name", cwd=tmp_path).stderr
    assert "the server does not list 'other-name', only: real-model" in said
