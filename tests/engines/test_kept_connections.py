"""Servers close connections that they said they would keep: what breaks there unanswered is asked once more at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from loupe.engines.openai import open_engine
from loupe.errors import TransientEngineError
from loupe.types import Output, Request
from tests.support.asking import ASK, settings
from tests.support.chat_server import ChatServer, Reply, Script, chat_server, in_thread
from tests.support.command_line import loupe, needs


def ask_often(script: Script, times: int, *, at_once: int, forgets: bool = True) -> tuple[list[Output], ChatServer]:
    """So many questions to one engine, in groups."""

    async def main() -> tuple[list[Output], ChatServer]:
        async with chat_server(script, forgets=forgets) as server, open_engine(settings(server.url)) as engine:
            found: list[Output] = []
            for _ in range(times // at_once):
                found += await asyncio.gather(*(engine.predict(ASK) for _ in range(at_once)))
            return found, server

    return asyncio.run(main())


@pytest.mark.parametrize("at_once", [1, 8])
def test_a_server_that_closes_each_connection_after_one_answer_loses_no_request(at_once: int) -> None:
    outputs, server = ask_often("read {number}", 32, at_once=at_once)
    # Each is answered once: none that was answered is sent again.
    assert sorted(output.text for output in outputs) == sorted(f"read {number}" for number in range(1, 33))
    assert server.count == 32


def test_a_request_that_breaks_on_a_new_connection_too_is_sent_twice_and_no_more() -> None:
    sent = 0

    async def main() -> None:
        nonlocal sent
        async with chat_server(Reply(drop=True)) as server, open_engine(settings(server.url)) as engine:
            with pytest.raises(TransientEngineError):
                await engine.predict(ASK)
            sent = server.count

    asyncio.run(main())
    assert sent == 2


def test_an_answer_that_has_begun_is_not_asked_for_again() -> None:
    async def main() -> int:
        async with chat_server([Reply(), Reply(cut=20)]) as server, open_engine(settings(server.url)) as engine:
            await engine.predict(ASK)
            with pytest.raises(TransientEngineError):
                await engine.predict(ASK)
            return server.count

    assert asyncio.run(main()) == 2


def test_a_large_page_is_sent_whole_the_second_time() -> None:
    text = "words " * 400_000

    async def main() -> list[bool]:
        async with chat_server("read", forgets=True) as server, open_engine(settings(server.url)) as engine:
            for _ in range(3):
                await engine.predict(Request(id="a", prompt=text, max_tokens=10))
            return [request.prompt == text for request in server.requests]

    assert asyncio.run(main()) == [True] * 3


@needs("load")
def test_a_load_test_counts_no_error_for_a_connection_that_was_closed(tmp_path: Path) -> None:
    with in_thread("read", forgets=True) as server:
        words = ("load", "sample_pages", "--base-url", server.url, "--sweep", "4", "--no-stream", "--plain")
        done = loupe(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "errors" in done.stdout and "error;" not in done.stdout + done.stderr
