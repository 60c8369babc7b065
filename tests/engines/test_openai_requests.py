"""What the openai engine sends, which key, and what its profiles may say."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from loupe.engines.chat.discovery import Addresses
from loupe.engines.chat.endpoints import key_for
from loupe.engines.chat.http_body import AnswerMemory, make_room
from loupe.engines.openai import open_engine
from loupe.engines.registry import load_profile
from loupe.errors import (
    EngineUnavailableError,
    PageError,
    ProfileError,
    RejectedError,
    TransientEngineError,
)
from loupe.types import Engine, Output, Request
from tests.support.asking import ASK, ask, sent, settings
from tests.support.chat_server import Reply, chat_server


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOUPE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    Image.new("RGB", (60, 40), "white").save(tmp_path / "page.jpg")
    return tmp_path / "page.jpg"


def test_the_body_holds_the_image_first_then_the_prompt(page: Path) -> None:
    body = sent(Request(id="a", prompt="Read this.", images=(page,), max_tokens=100)).body
    assert [part["type"] for part in body["messages"][0]["content"]] == ["image_url", "text"]
    assert {key: value for key, value in body.items() if key != "messages"} == {
        "model": "test-model",
        "max_tokens": 100,
        "temperature": 0.0,
    }


def test_an_image_that_fits_arrives_byte_for_byte(page: Path) -> None:
    received = sent(Request(id="a", prompt="Read this.", images=(page,)))
    assert (received.images, received.prompt) == ([("image/jpeg", page.read_bytes())], "Read this.")


def test_a_large_image_arrives_fitted(tmp_path: Path) -> None:
    Image.effect_noise((2560, 1600), 90).save(tmp_path / "large.png")
    (mime, data), *_ = sent(Request(id="a", images=(tmp_path / "large.png",))).images
    assert len(data) > 1_000_000  # beyond what aiohttp sends in one piece
    assert (mime, Image.open(io.BytesIO(data)).size) == ("image/jpeg", (2048, 1280))


def test_without_a_prompt_there_is_no_text_part(page: Path) -> None:
    assert [part["type"] for part in sent(Request(id="a", images=(page,))).parts] == ["image_url"]


def test_without_an_image_the_content_is_a_plain_string() -> None:
    body = sent(Request(id="a", prompt="Summarise.", text="Long text.")).body
    assert body["messages"] == [{"role": "user", "content": "Summarise.\n\nLong text."}]


def test_text_can_come_first(page: Path) -> None:
    received = sent(Request(id="a", prompt="Read.", images=(page, page)), content_order="text_first")
    assert [part["type"] for part in received.parts] == ["text", "image_url", "image_url"]


def test_a_system_prompt_comes_before_the_user() -> None:
    assert sent(system="You are a scanner.").body["messages"][0] == {"role": "system", "content": "You are a scanner."}


def test_sampling_settings_and_the_extra_body_are_sent_as_written() -> None:
    body = sent(
        top_p=0.5,
        top_k=1,
        min_p=0.1,
        repetition_penalty=1.1,
        seed=7,
        stop=["END"],
        max_tokens=5,
        extra_body={"skip_special_tokens": False, "vllm_xargs": {"ngram_size": 30}},
    ).body
    del body["messages"], body["model"]
    assert body == {
        "max_tokens": 5,
        "temperature": 0.0,
        "top_p": 0.5,
        "top_k": 1,
        "min_p": 0.1,
        "repetition_penalty": 1.1,
        "seed": 7,
        "stop": ["END"],
        "skip_special_tokens": False,
        "vllm_xargs": {"ngram_size": 30},
    }


def test_the_servers_own_temperature_is_left_alone_on_demand() -> None:
    assert "temperature" not in sent(temperature="server").body


@pytest.mark.parametrize(
    ("keys", "field"),
    [
        ({"model": "gpt-5-mini"}, "max_completion_tokens"),
        ({"model": "o3"}, "max_completion_tokens"),
        ({"model": "olmocr"}, "max_tokens"),
        ({"max_tokens_field": "max_completion_tokens"}, "max_completion_tokens"),
        ({"model": "o3", "max_tokens_field": "max_tokens"}, "max_tokens"),
    ],
)
def test_the_token_limit_has_the_name_that_the_model_wants(keys: dict[str, str], field: str) -> None:
    body = sent(**keys).body
    assert {key: value for key, value in body.items() if key.startswith("max")} == {field: 100}


def test_a_broken_page_is_an_error_of_its_sample(tmp_path: Path) -> None:
    (tmp_path / "page.png").write_bytes(b"no image")
    with pytest.raises(PageError, match=r"page\.png: not an image"):
        ask("hello", Request(id="a", images=(tmp_path / "page.png",)))


def test_the_image_is_read_once_even_when_the_request_is_repeated(page: Path) -> None:
    async def main() -> list[bytes]:
        request = Request(id="a", prompt="Read.", images=(page,))
        async with (
            chat_server([Reply(status=500), Reply(text=""), "read"]) as server,
            open_engine(settings(server.url)) as engine,
        ):
            with pytest.raises(TransientEngineError):
                await engine.predict(request)
            page.unlink()
            assert [(await engine.predict(request)).text for _ in range(2)] == ["", "read"]
            return [received.data for received in server.requests]

    bodies = asyncio.run(main())
    assert bodies[0] == bodies[1] == bodies[2]


def test_the_key_of_the_environment_is_sent_and_stands_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUPE_API_KEY", "sk-secret")

    async def main() -> tuple[str, str]:
        async with chat_server() as server, open_engine(settings(server.url)) as engine:
            output = await engine.predict(ASK)
            return server.requests[0].headers["authorization"], f"{engine.facts} {output}"

    header, visible = asyncio.run(main())
    assert header == "Bearer sk-secret"
    assert "sk-secret" not in visible


def test_without_a_key_the_header_says_empty() -> None:
    assert sent().headers["authorization"] == "Bearer EMPTY"


NAMED = Addresses(("http://gpu1:8000/v1",))


@pytest.mark.parametrize(
    ("variable", "environment", "key"),
    [
        ("", {}, "EMPTY"),
        ("", {"OPENAI_API_KEY": "b"}, "b"),
        ("", {"LOUPE_API_KEY": "a", "OPENAI_API_KEY": "b"}, "a"),
        ("MINE", {"MINE": "c\n", "OPENAI_API_KEY": "b"}, "c"),
        ("MINE", {"MINE": "c", "LOUPE_API_KEY": "a"}, "c"),
        ("MINE", {"LOUPE_API_KEY": "a"}, "a"),
        ("MINE", {"MINE": "c", "LOUPE_GIVEN_API_KEY": "d"}, "d"),
    ],
)
def test_the_key_comes_from_the_first_variable_that_has_one(
    variable: str, environment: dict[str, str], key: str
) -> None:
    assert key_for(NAMED, variable, environment) == key


def test_a_named_variable_without_a_key_is_an_error_with_the_command_that_sets_it() -> None:
    with pytest.raises(EngineUnavailableError, match="MINE") as raised:
        key_for(NAMED, "MINE", {"OPENAI_API_KEY": "for somebody else"})
    assert raised.value.hint == "export MINE=KEY"


def test_a_key_that_a_server_repeats_is_redacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with pytest.raises(RejectedError, match=r"unknown parameter for \[key\]"):
        ask(Reply(status=400, error="unknown parameter for sk-secret"))


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"image": "fit"}, "image rule 'fit'"),
        ({"base_url": "ftp://host"}, "not an address such as"),
        ({"base_url": "http://me:hunter2@host/v1"}, "user name or password"),
        ({"timeout": 0}, "timeout = 0"),
        ({"max_tokens": -1}, "max_tokens = -1"),
        ({"temprature": 0}, "did you mean 'temperature'"),
        ({"api_key": "sk-1"}, "unknown key 'api_key'"),
    ],
)
def test_a_wrong_setting_is_explained_without_repeating_secrets(keys: dict[str, Any], reason: str) -> None:
    with pytest.raises(ProfileError, match=reason) as raised:
        load_profile("openai", keys)
    assert "hunter2" not in raised.value.message


def test_the_signature_names_image_rule_limit_temperature_and_other_sampling() -> None:
    made = settings("", max_tokens=4096, image="smart(28, 3136, 11289600)", repetition_penalty=1.1)
    assert made.signature() == {"img": "smart(28,3136,11289600)", "max": "4096", "t": "0", "repetition_penalty": "1.1"}


def test_where_the_server_stands_does_not_define_a_run_but_the_model_does() -> None:
    one, two = settings("http://a:1/v1", model="m"), settings("http://b:2/v1", model="m", timeout=9)
    assert one.defining() == two.defining()
    assert one.defining() != settings("http://a:1/v1", model="n").defining()


def test_waiting_for_memory_that_other_answers_take_is_no_time_out_of_the_server() -> None:
    async def main() -> Output:
        memory, taken = AnswerMemory(most=1_000_000), asyncio.Event()

        async def other() -> None:
            with memory.hold():
                await make_room(2_000_000)
                taken.set()
                await asyncio.sleep(1.6)

        async def ours(engine: Engine) -> Output:
            await taken.wait()
            with memory.hold():
                return await engine.predict(ASK)

        async with chat_server("word " * 2_000_000) as server, open_engine(settings(server.url, timeout=1)) as engine:
            return (await asyncio.gather(ours(engine), other()))[0]

    assert len(asyncio.run(main()).text) > 9_000_000
