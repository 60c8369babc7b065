"""An API key goes to servers that a person named, and to nobody else: not to who answers at a usual port."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import loupe as package
from loupe.engines.chat.discovery import PORTS, address, addresses_of, as_found, is_named, located, normalize_base_url
from loupe.engines.openai import open_engine
from loupe.errors import EngineUnavailableError
from loupe.runs.folder import RunFolder
from tests.support.asking import ASK, settings
from tests.support.chat_server import MODELS, ChatServer, Reply, chat_server, in_thread
from tests.support.command_line import installed, loupe, make_folder
from tests.support.report_runs import draw_page

KEY = "sk-mine-0123456789"
KEYS = {"OPENAI_API_KEY": KEY, "HF_TOKEN": "hf-0123456789"}
TOKENIZER = {"/tokenize": {"tokens": [1, 2], "count": 2}}


def keys_seen(server: ChatServer) -> set[str | None]:
    """What every request brought as its key; there was one at least."""
    seen = [request.headers.get("authorization") for request in (*server.requests, *server.others)]
    assert seen
    return set(seen)


def test_only_an_address_that_a_person_wrote_is_named() -> None:
    assert all(map(is_named, ("http://127.0.0.1:8000/v1", "127.0.0.1:8000", "auto.example:80", "auto:8000")))
    assert not any(map(is_named, ("", "auto", "auto:first", as_found("http://127.0.0.1:8000/v1"))))
    assert address(as_found("http://h:1/v1")) == normalize_base_url(as_found("http://h:1/v1")) == "http://h:1/v1"


def test_who_answers_at_a_usual_port_is_asked_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    async def main() -> tuple[set[str | None], set[str | None]]:
        async with chat_server() as found, chat_server() as named:
            for environment in ({}, {"OPENAI_BASE_URL": named.url}):
                [url] = (await located(addresses_of((), environment), [found.port])).urls
                async with open_engine(settings(url)) as engine:
                    await engine.predict(ASK)
                    assert await engine.healthy() if engine.healthy else True
            return keys_seen(found), keys_seen(named)

    found, named = asyncio.run(main())
    assert found <= {None, "Bearer EMPTY"}
    assert named == {f"Bearer {KEY}"}


def test_of_several_addresses_one_that_nobody_named_is_enough_for_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    async def main() -> set[str | None]:
        async with chat_server() as one, chat_server() as two:
            async with open_engine(settings([one.url, as_found(two.url)])) as engine:
                await engine.predict(ASK)
            return keys_seen(one) | keys_seen(two)

    assert asyncio.run(main()) == {"Bearer EMPTY"}


def test_a_found_server_that_wants_a_key_is_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    async def main() -> tuple[str, str]:
        async with chat_server(models=401) as server:
            with pytest.raises(
                EngineUnavailableError, match="needs a key, which Loupe sends only to servers that you name"
            ) as raised:
                async with open_engine(settings(as_found(server.url))):
                    pass
            return raised.value.hint, server.url

    hint, url = asyncio.run(main())
    assert hint == f"if you trust it, name it: --base-url {url}"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_neither_the_key_nor_the_page_follows_a_redirection(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv("LOUPE_API_KEY", KEY)

    async def main() -> tuple[int, int]:
        async with chat_server() as thief:
            elsewhere = {"Location": f"{thief.url}/chat/completions"}
            away = Reply(status=status, raw=b"", headers=elsewhere)
            async with (
                chat_server(away, get={"/tokenize": away}) as server,
                open_engine(settings(server.url)) as engine,
            ):
                with contextlib.suppress(Exception):
                    await engine.predict(ASK)
                assert server.requests
            return len(thief.requests), len(thief.others)

    assert asyncio.run(main()) == (0, 0)


def test_a_proxy_of_the_environment_sees_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUPE_API_KEY", KEY)

    async def main() -> int:
        async with chat_server() as proxy, chat_server() as server:
            for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
                monkeypatch.setenv(name, proxy.root)
            async with open_engine(settings(server.url)) as engine:
                await engine.predict(ASK)
            return len(proxy.requests) + len(proxy.others)

    assert asyncio.run(main()) == 0


def test_every_request_to_a_server_refuses_redirections_and_takes_no_proxy() -> None:
    root = Path(package.__file__).parent
    hub = root / "data/hub/fetch.py"  # files come from where the hub sends us; aiohttp takes the token off on the way
    wrong = []
    for file in set(root.rglob("*.py")) - {hub}:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            given = {word.arg: word.value for word in node.keywords}
            asks = node.func.attr in {"get", "post", "put", "request", "head", "ws_connect"}
            if asks and "session" in ast.unparse(node.func.value).lower():
                refused = given.get("allow_redirects")
                if not (isinstance(refused, ast.Constant) and refused.value is False):
                    wrong.append(f"{file.name}:{node.lineno}")
            if "trust_env" in given:
                wrong.append(f"{file.name}:{node.lineno}")
    assert not wrong


@pytest.fixture
def here(tmp_path: Path) -> Path:
    make_folder(tmp_path, count=2)
    draw_page(tmp_path / "page.png", "A page")
    (tmp_path / "page.txt").write_text("A page")
    return tmp_path


COMMANDS = {
    "run": ("run", "mydocs", "--base-url", "{url}", "--fresh"),
    "infer": ("infer", "mydocs", "--base-url", "{url}", "--fresh"),
    "named engine": ("run", "mydocs", "-e", "openai", "--base-url", "{url}", "--fresh"),
    "load": ("load", "mydocs", "--base-url", "{url}", "--requests", "2", "--sweep", "1"),
    "engine test": ("engine", "test", "openai", "--base-url", "{url}"),
    "embed": ("embed", "runs/python-reader.py_right/mydocs", "--base-url", "{url}", "--no-regions"),
    "compress": (
        *("compress", "--image", "page.png", "--ground-truth", "page.txt", "--mode", "base"),
        *("-e", "openai", "--base-url", "{url}"),
    ),
}


@pytest.mark.parametrize("name", [name for name in COMMANDS if installed([COMMANDS[name]])])
def test_no_command_sends_a_key_to_a_server_that_was_found(here: Path, name: str) -> None:
    if name == "embed":
        assert loupe("run", "mydocs", "-e", "python:reader.py:right", cwd=here).returncode == 0
    seen = []
    for mark in ("auto:", ""):
        with in_thread("alpha", get=TOKENIZER) as server:
            words = [word.replace("{url}", mark + server.url) for word in COMMANDS[name]]
            done = loupe(*words, cwd=here, env=KEYS)
            assert server.others, done.stderr
            seen.append(keys_seen(server))
    assert seen[0] <= {None, "Bearer EMPTY"}
    assert f"Bearer {KEY}" in seen[1] <= {None, f"Bearer {KEY}"}


@contextlib.contextmanager
def a_usual_port() -> Iterator[int]:
    """A port at which Loupe looks for servers, free; skips where there is one already."""
    for port in reversed(PORTS):
        with socket.socket() as held:
            if held.connect_ex(("127.0.0.1", port)) == 0:
                pytest.skip(f"something answers at port {port}")
    yield PORTS[-1]


def test_a_run_that_finds_its_server_by_itself_sends_no_key_and_keeps_the_plain_address(here: Path) -> None:
    async def main() -> tuple[set[str | None], str]:
        server = ChatServer("alpha", {"/v1/models": MODELS})
        with a_usual_port() as port:
            listening = await asyncio.start_server(server.serve, "127.0.0.1", port)
        async with listening:
            done = await asyncio.to_thread(loupe, "run", "mydocs", cwd=here, env=KEYS)
        return keys_seen(server), done.stderr

    seen, said = asyncio.run(main())
    assert seen <= {None, "Bearer EMPTY"} and "Bearer EMPTY" in seen, said
    stored = RunFolder.open(here / "runs/test-model/mydocs").info
    assert stored.profile["base_url"] == stored.facts["base_url"] == f"http://127.0.0.1:{PORTS[-1]}/v1"
