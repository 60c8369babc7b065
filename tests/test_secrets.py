"""Keys: whatever a server echoes, whatever is printed or stored, the key is not in it, and no child inherits it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from loupe.engines.openai import Settings, open_engine
from loupe.errors import LoupeError
from loupe.runs.folder import RunFolder
from tests.asking import ASK, settings
from tests.chat_server import Reply, chat_server, in_thread
from tests.command_line import loupe, make_folder

KEY = 'sk-se/cr"et-123456'
JSON_KEY = json.dumps(KEY)[1:-1]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("LOUPE_API_KEY", KEY)


def everything(script: Any, *, query: str = "", **options: Any) -> str:
    """All that the engine hands over for one question, answer or error, as text."""

    async def main() -> str:
        async with chat_server(script, **options) as server:
            url = server.url + query
            try:
                async with open_engine(settings(url)) as engine:
                    output = await engine.predict(ASK)
                    return msgspec.json.encode([output, dict(engine.facts)]).decode()
            except LoupeError as error:
                return f"{error} {error.message} {error.hint}"

    return asyncio.run(main())


def chat(content: str, **more: Any) -> bytes:
    return json.dumps({"choices": [{"message": {"content": content}, "finish_reason": "stop"}], **more}).encode()


def stream(*pieces: str) -> bytes:
    events = [json.dumps({"choices": [{"delta": {"content": piece}}]}) for piece in pieces]
    return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()


@pytest.mark.parametrize(
    "reply",
    [
        Reply(text=f"you sent {KEY}"),
        Reply(text="a", message={"reasoning": f"they sent {KEY}"}),
        Reply(text="a", message={"extra": {KEY: [KEY]}}),
        Reply(text="a", finish_reason=KEY),
        Reply(raw=chat("a", echo={"Authorization": f"Bearer {KEY}"})),
        Reply(raw=chat(KEY).replace(b"/", b"\\/")),
        Reply(raw=chat("XX").replace(b"XX", "".join(f"\\u{ord(char):04x}" for char in KEY).encode())),
        Reply(raw=stream("a" + KEY[:9], KEY[9:])),
        Reply(raw=f"no JSON: {KEY}".encode()),
        Reply(raw=b" " * 150 + f"no JSON, and an excerpt that ends within {KEY}".encode()),
        Reply(raw=b"no JSON", content_type=f"text/{KEY}"),
        Reply(raw=json.dumps({"error": KEY}).encode()),
        Reply(status=400, error=f"refused {KEY}"),
        Reply(status=401, error=f"unknown {KEY}"),
        Reply(status=307, raw=b"", headers={"Location": f"http://elsewhere/?key={KEY}"}),
        Reply(status=500, error=KEY),
    ],
)
def test_a_key_that_the_server_echoes_is_neither_stored_nor_shown(reply: Reply) -> None:
    found = everything(reply)
    assert found
    assert KEY not in found and JSON_KEY not in found and KEY[:12] not in found


def test_a_key_that_the_server_lists_as_its_model_is_not_stored() -> None:
    assert KEY[:12] not in everything("a", models={"data": [{"id": KEY}]})


def test_an_answer_without_the_key_stays_as_it_is_and_a_short_key_is_no_reason_to_change_a_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LOUPE_API_KEY", "test")
    assert "a test of [key] and test" in everything(Reply(text="a test of [key] and test"))
    assert "refused [key]" in everything(Reply(status=400, error="refused test"))


def test_a_key_in_the_query_of_the_address_is_not_seen_either() -> None:
    found = everything(Reply(text="echo hidden-9876"), query="?api-key=hidden-9876&v=echo")
    assert "echo [key]" in found and "hidden-9876" not in found


def test_a_profile_is_stored_without_the_queries_of_its_addresses() -> None:
    one = msgspec.convert({"kind": "openai", "base_url": "https://h/v1?api-key=hidden"}, Settings)
    assert one.stored()["base_url"] == "https://h/v1"
    two = msgspec.convert({"kind": "openai", "base_url": ["h/v1?a=hidden", "https://i/v1"]}, Settings)
    assert two.stored()["base_url"] == ["h/v1", "https://i/v1"]
    assert two.stored()["image"] == "fit2048"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    make_folder(tmp_path)
    return tmp_path


def test_a_key_in_an_address_is_in_no_file_and_in_no_line_of_a_run(here: Path) -> None:
    refuse = Reply(status=401, raw=b'{"error": {"message": "expired: hidden-9876"}}')
    query = "?api-key=hidden-9876"
    with in_thread(["alpha", refuse]) as server:
        words = ("--base-url", server.url + query, "-n", "1", "--name", "server")
        done = loupe("run", "mydocs", *words, cwd=here)
    assert done.returncode == 4
    assert f"to continue: loupe run mydocs --base-url '{server.url}?api-key=...'" in done.stderr
    files = [path.read_bytes() for path in (here / "runs").rglob("*") if path.is_file()]
    assert RunFolder.open(here / "runs/server/mydocs").info.profile["base_url"] == [server.url]
    assert not any(b"hidden" in content for content in [*files, done.stderr.encode(), done.stdout.encode()])


def test_engine_show_leaves_the_query_of_an_address_out(here: Path) -> None:
    (here / "loupe.toml").write_text('[engines.mine]\nkind = "openai"\nbase_url = "https://h/v1?api-key=hidden"\n')
    for more in ((), ("--json",)):
        done = loupe("engine", "show", "mine", *more, cwd=here)
        assert "https://h/v1" in done.stdout and "hidden" not in done.stdout
