"""The openai engine against a real server on loopback: what is read, and every fault in its class."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from loupe.engines.chat.http_failures import fitting_max_tokens
from loupe.engines.openai import open_engine
from loupe.errors import (
    EngineError,
    EngineTimeoutError,
    EngineUnavailableError,
    RejectedError,
    TransientEngineError,
)
from loupe.types import Request
from tests.support.asking import ASK, ask, settings
from tests.support.chat_server import Received, Reply, chat_server


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOUPE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    Image.new("RGB", (60, 40), "white").save(tmp_path / "page.jpg")
    return tmp_path / "page.jpg"


def test_an_answer_becomes_text_tokens_and_finish_reason() -> None:
    output, _ = ask(Reply(text="  Hello\n"))
    assert (output.text, output.finish_reason, output.input_tokens, output.output_tokens) == (
        "  Hello\n",
        "stop",
        11,
        7,
    )


def test_the_stored_response_has_neither_content_nor_image(page: Path) -> None:
    output, _ = ask(Reply(text="CONTENT", message={"refusal": None}), Request(id="a", images=(page,)))
    assert output.response is not None
    assert output.response["choices"][0]["message"] == {"role": "assistant", "refusal": None}
    assert "CONTENT" not in str(output.response)
    assert "base64" not in str(output.response)


CUT = Reply(text="cut o", finish_reason="length")


def test_an_answer_that_was_cut_off_is_asked_for_once_more_with_more_room_if_wanted() -> None:
    output, server = ask([CUT, Reply(text="cut off no more")], retry_truncated=500)
    assert output.text == "cut off no more"
    assert [request.body["max_tokens"] for request in server.requests] == [100, 500]
    assert ask([CUT, Reply(status=500)], retry_truncated=500)[0].text == "cut o"
    assert len(ask([CUT])[1].requests) == 1


def test_length_is_reported_as_the_server_says_it() -> None:
    output, _ = ask(Reply(text="cut", finish_reason="length"))
    assert (output.text, output.finish_reason) == ("cut", "length")


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_reasoning_is_kept_apart_from_the_text(key: str) -> None:
    output, _ = ask(Reply(text="42", message={key: "I think"}))
    assert (output.text, output.reasoning) == ("42", "I think")
    assert "I think" not in str(output.response)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "completion_tokens": "many"}])
def test_missing_token_counts_are_unknown_not_zero(usage: Any) -> None:
    output, _ = ask(Reply(usage=usage))
    assert (output.text, output.input_tokens, output.output_tokens) == ("hello", None, None)


def test_null_content_is_an_empty_text() -> None:
    assert ask(Reply(text=None))[0].text == ""


def test_content_in_parts_is_joined() -> None:
    parts = {"content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}
    assert ask(Reply(message=parts))[0].text == "Hello"


def test_ten_megabytes_of_text_arrive_whole() -> None:
    output, _ = ask(Reply(text="äbcdefghi " * 1_000_000))
    assert output.text == "äbcdefghi " * 1_000_000


def test_endless_repetition_arrives_as_it_was_said() -> None:
    assert ask(Reply(text="loop " * 50_000, finish_reason="length"))[0].text == "loop " * 50_000


def test_json_under_a_wrong_content_type_is_still_read() -> None:
    assert ask(Reply(content_type="text/plain"))[0].text == "hello"


def stream(*events: str) -> Reply:
    return Reply(raw="".join(f"data: {event}\n\n" for event in events).encode(), content_type="text/event-stream")


PIECES = [
    '{"id": "1", "choices": [{"delta": {"role": "assistant", "content": "Hel"}}]}',
    '{"id": "1", "choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]}',
    '{"id": "1", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}',
]


def test_a_server_that_only_streams_is_understood() -> None:
    output, _ = ask(stream(*PIECES, "[DONE]"))
    assert (output.text, output.finish_reason, output.output_tokens) == ("Hello", "stop", 2)


def test_a_stream_that_breaks_off_is_no_answer() -> None:
    with pytest.raises(TransientEngineError, match="broke off"):
        ask(stream(PIECES[0]))


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529, 408])
def test_failing_servers_may_be_asked_again(status: int) -> None:
    with pytest.raises(TransientEngineError, match=f"HTTP {status}: overloaded") as raised:
        ask(Reply(status=status, error="overloaded"))
    assert not raised.value.rate


@pytest.mark.parametrize(
    ("status", "headers", "wait"),
    [
        (429, {}, None),
        (429, {"Retry-After": "1.5"}, 1.5),
        (429, {"Retry-After": "3600"}, 3600.0),
        (503, {"Retry-After": "2"}, 2.0),
    ],
)
def test_busy_servers_say_how_long_to_wait(status: int, headers: dict[str, str], wait: float | None) -> None:
    with pytest.raises(TransientEngineError) as raised:
        ask(Reply(status=status, headers=headers))
    assert (raised.value.rate, raised.value.retry_after) == (True, wait)


@pytest.mark.parametrize(
    "reply",
    [
        Reply(raw=b"<html>It works!</html>", content_type="text/html"),
        Reply(raw=b'{"choices": [{"message"'),
        Reply(raw=b'{"id": "1", "object": "chat.completion"}'),
        Reply(raw=b'{"choices": []}'),
        Reply(raw=b'{"choices": [{"finish_reason": "stop"}]}'),
        Reply(raw=b'{"choices": "none"}'),
        Reply(raw=b'{"error": {"message": "model crashed"}}'),
        Reply(raw=b"[]"),
        Reply(raw=b""),
        Reply(raw=b"\xff\xfe"),
        Reply(raw=b"[" * 100_000),
        Reply(message={"content": 42}),
        Reply(cut=20),
        Reply(cut=0),
        Reply(drop=True),
        Reply(headers={"Content-Encoding": "gzip"}),
    ],
    ids=lambda reply: str(reply.raw[:30] if reply.raw is not None else (reply.cut, reply.drop, dict(reply.message))),
)
def test_an_answer_that_is_none_may_be_asked_for_again_and_is_never_an_empty_text(reply: Reply) -> None:
    with pytest.raises(TransientEngineError) as raised:
        ask(reply)
    assert not raised.value.rate
    assert len(raised.value.message) < 600


@pytest.mark.parametrize("status", [400, 404, 413, 422, 405])
def test_a_refused_request_keeps_the_servers_reason(status: int) -> None:
    with pytest.raises(RejectedError, match=f"HTTP {status}: image too large"):
        ask(Reply(status=status, error="image too large"))


def test_the_reason_of_a_refusal_is_bounded() -> None:
    with pytest.raises(RejectedError) as raised:
        ask(Reply(status=400, error="long " * 100_000))
    assert len(raised.value.message) < 1_100


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_key_ends_the_run_with_a_hint(status: int) -> None:
    with pytest.raises(EngineUnavailableError, match="refuses the key") as raised:
        ask(Reply(status=status, error="bad key"))
    assert "--api-key" in raised.value.hint


@pytest.mark.parametrize(
    "reply",
    [
        Reply(status=500, error="RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"),
        Reply(status=400, error="CUDA error: an illegal memory access was encountered"),
        Reply(status=402, error="pay first"),
        Reply(status=429, error="You exceeded your current quota (insufficient_quota)"),
        Reply(status=307, headers={"Location": "https://elsewhere.example/v1"}, error="moved"),
    ],
    ids=lambda reply: reply.error[:20],
)
def test_a_server_that_cannot_go_on_ends_the_run(reply: Reply) -> None:
    with pytest.raises(EngineUnavailableError):
        ask(reply)


@pytest.mark.parametrize(
    ("status", "words", "hint"),
    [
        (
            500,
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            "--server-arg=--mmproj=FILE.gguf",
        ),
        (500, "failed to process inputs: this model is missing data required for image input", "--model ID"),
        (404, "No endpoints found that support image input", "--model ID"),
    ],
)
def test_a_model_that_gets_no_images_ends_the_run_with_what_is_missing(status: int, words: str, hint: str) -> None:
    with pytest.raises(EngineUnavailableError, match="the model does not accept images") as raised:
        ask(Reply(status=status, error=words))
    assert words in raised.value.message
    assert hint in raised.value.hint


def test_a_fault_of_one_image_is_no_word_about_all_images() -> None:
    with pytest.raises(RejectedError):
        ask(Reply(status=400, error="this server does not support image format WEBP"))


CONTEXT_ERROR = (
    "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens "
    "(1000 in the messages, 4000 in the completion)."
)


def test_a_prompt_that_leaves_less_room_is_asked_once_more_with_what_fits(page: Path) -> None:
    request = Request(id="a", prompt="Read.", images=(page,), max_tokens=4000)
    output, server = ask([Reply(status=400, error=CONTEXT_ERROR), "read"], request)
    first, second = (received.body for received in server.requests)
    assert (output.text, first["max_tokens"], second["max_tokens"]) == ("read", 4000, 3095)
    assert first["messages"] == second["messages"]
    assert output.response is not None
    assert output.response["max_tokens_reduced_to"] == 3095


def test_a_context_error_that_stays_is_a_refusal_after_two_questions() -> None:
    seen: list[int] = []

    def always(received: Received) -> Reply:
        seen.append(received.number)
        return Reply(status=400, error=CONTEXT_ERROR)

    with pytest.raises(RejectedError, match="maximum context length"):
        ask(always, Request(id="a", prompt="Read.", max_tokens=4000))
    assert seen == [1, 2]


VLLM_LIMIT = (
    "max_tokens=4000 cannot be greater than max_model_len=2048. Please request fewer output tokens. "
    "(parameter=max_tokens, value=4000)"
)


def test_a_limit_above_the_models_length_is_asked_once_more_with_that_length_and_then_with_what_fits() -> None:
    left = (
        "This model's maximum context length is 2048 tokens and your request has 1000 input tokens (2048 > 2048 - 1000)"
    )
    request = Request(id="a", prompt="Read.", max_tokens=4000)
    for replies, sent in [
        ([Reply(status=400, error=VLLM_LIMIT), "read"], [4000, 2048]),
        ([Reply(status=400, error=VLLM_LIMIT), Reply(status=400, error=left), "read"], [4000, 2048, 1047]),
    ]:
        output, server = ask(replies, request)
        assert (output.text, [each.body["max_tokens"] for each in server.requests]) == ("read", sent)
        assert output.response is not None
        assert output.response["max_tokens_reduced_to"] == sent[-1]


def test_a_server_that_always_wants_fewer_tokens_is_asked_three_times() -> None:
    def fewer(received: Received) -> Reply:
        return Reply(status=400, error=f"max_tokens must be less than or equal to {received.body['max_tokens'] - 1}")

    with pytest.raises(RejectedError, match="less than or equal to 3997"):
        ask(fewer, Request(id="a", prompt="Read.", max_tokens=4000))


def test_an_answer_that_was_cut_at_the_servers_own_limit_is_not_asked_for_with_more_room() -> None:
    request = Request(id="a", prompt="Read.", max_tokens=4000)
    output, server = ask([Reply(status=400, error=VLLM_LIMIT), CUT], request, retry_truncated=8000)
    assert (output.text, len(server.requests)) == ("cut o", 2)


@pytest.mark.parametrize(
    ("message", "asked", "fitting"),
    [
        (CONTEXT_ERROR, 4000, 3095),
        (VLLM_LIMIT, 4000, 2048),
        (VLLM_LIMIT, 2048, None),
        (
            "max_tokens is too large: 8000. This model supports at most 4096 completion tokens, whereas you provided "
            "8000.",
            8000,
            4096,
        ),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 9000, 8192),
        ("`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens` …", 20_000, 16_384),
        (
            "The parameter `max_completion_tokens` specified in the request are not valid: integer above maximum "
            "value, expected a value <= 12288, but got 32000 instead.",
            32_000,
            12_288,
        ),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 8192 "
            "tokens and your request has 1000 input tokens (8192 > 8192 - 1000).",
            8192,
            7191,
        ),
        (
            "You passed 4090 input tokens and requested 100 output tokens. However, the model's context length is only "
            "4096 tokens",
            100,
            5,
        ),
        ("This model's maximum context length is 4096 tokens, your prompt has 5000 input tokens", 100, None),
        ("max_tokens must be at least 1, got -2", 100, None),
        ("image too large", 100, None),
    ],
)
def test_the_room_that_is_left_is_read_from_the_servers_words(message: str, asked: int, fitting: int | None) -> None:
    assert fitting_max_tokens(message, asked) == fitting


def test_no_answer_in_time_is_a_timeout_within_that_time() -> None:
    began = time.monotonic()
    with pytest.raises(EngineTimeoutError, match=r"no full answer within 0\.2 s"):
        ask(Reply(hang=True), timeout=0.2)
    assert time.monotonic() - began < 5


def test_a_slow_answer_within_the_limit_is_an_answer() -> None:
    assert ask(Reply(delay=0.2), timeout=20)[0].text == "hello"


def test_an_answer_that_stops_half_way_and_stays_silent_is_a_timeout() -> None:
    with pytest.raises(EngineTimeoutError):
        ask(Reply(headers={"Content-Length": "100000"}), timeout=0.2)


def test_an_endless_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loupe.engines.openai.MOST_ANSWER_BYTES", 1_000_000)
    with pytest.raises(EngineError, match="longer than 1 MB") as raised:
        ask(Reply(text="x" * 3_000_000))
    assert not isinstance(raised.value, TransientEngineError)


def test_a_server_that_dies_between_two_questions_may_be_asked_again_but_is_not_healthy() -> None:
    async def main() -> bool:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(chat_server())
            async with open_engine(settings(server.url)) as engine:
                await stack.aclose()
                with pytest.raises(TransientEngineError, match=r"(?i)cannot connect|disconnected|reset"):
                    await engine.predict(ASK)
                assert engine.healthy is not None
                return await engine.healthy()

    assert asyncio.run(main()) is False
