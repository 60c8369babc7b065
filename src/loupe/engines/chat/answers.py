"""Reading the answers of OpenAI-compatible chat servers, tolerant of extra, missing and null fields.

Source: docs/protocols/engines.md#request and #outcomes. An answer without choices is an error that may pass, never an
empty text. What a reply without text is: endings.py.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import msgspec

from loupe.engines.chat.endings import blocked_prompt, provider_error
from loupe.errors import TransientEngineError
from loupe.typed import convert, decode_json, json_decoder
from loupe.types import Output

#: Bytes, or a part of them.
Buffer: TypeAlias = bytes | memoryview
#: What decoding hostile bytes raises: no JSON, no UTF-8, too deep.
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
#: Bytes of an answer beside its text that are stored (log probabilities, say): as objects they take many times that.
MOST_BESIDE = 4_000_000
#: A line of a stream that is longer holds words.
_LONG_LINE = 64_000
_DATA_LINE = re.compile(rb"(?:^|(?<=[\r\n]))data:([^\r\n]*)")
#: Parts of a message that are stored as fields of their own, so not in `Output.response`.
_STORED_APART = {"content", "reasoning", "reasoning_content"}


class Message(msgspec.Struct):
    """The message of an answer. `content` is a text, null, or a list of parts."""

    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: Any = None
    tool_calls: Any = None


class Choice(msgspec.Struct):
    """One answer; in a stream, `delta` holds a piece of it."""

    message: Message | None = None
    delta: Message | None = None
    finish_reason: Any = None
    error: Any = None


class ChatAnswer(msgspec.Struct):
    """The body of a chat completion, or one event of a stream."""

    choices: list[Choice] | None = None
    usage: Any = None
    error: Any = None


class _OutlineMessage(msgspec.Struct):
    content: msgspec.Raw = msgspec.Raw(b"null")
    reasoning_content: msgspec.Raw = msgspec.Raw(b"null")
    reasoning: msgspec.Raw = msgspec.Raw(b"null")


class _OutlineChoice(msgspec.Struct):
    message: _OutlineMessage | None = None
    delta: _OutlineMessage | None = None
    finish_reason: msgspec.Raw = msgspec.Raw(b"null")


class _FirstChoice(msgspec.Struct, array_like=True):
    """The first entry of a list; the others are skipped, however many there are."""

    choice: _OutlineChoice | None = None


class _Outline(msgspec.Struct):
    """The places of things in an answer: nothing is decoded yet, so nothing takes memory."""

    choices: _FirstChoice | None = None
    usage: msgspec.Raw = msgspec.Raw(b"null")
    error: msgspec.Raw = msgspec.Raw(b"null")

    @property
    def message(self) -> _OutlineMessage:
        choice = self.choices.choice if self.choices else None
        return (choice.message or choice.delta if choice else None) or _OutlineMessage()

    def texts(self) -> dict[str, msgspec.Raw]:
        """The texts of the answer, as far as they are plain."""
        said = {name: getattr(self.message, name) for name in ("content", "reasoning_content", "reasoning")}
        return {name: raw for name, raw in said.items() if bytes(memoryview(raw)[:1]) == b'"'}

    def essence(self, size: int) -> dict[str, Any]:
        """The answer without what is too large to be stored beside its text."""
        if len(memoryview(self.message.content)) > MOST_BESIDE and "content" not in self.texts():
            raise TransientEngineError(f"the server's answer has a content of {size // 10**6} MB that is no plain text")
        message = {name: json_decoder(str).decode(raw) for name, raw in self.texts().items()}
        choice = self.choices.choice if self.choices else None
        said = {name: message for name in ("message", "delta") if choice and getattr(choice, name)}
        choices = [{**said, "finish_reason": _small(choice.finish_reason)}] if choice else []
        return {"choices": choices, "usage": _small(self.usage), "error": _small(self.error), "left_out_bytes": size}


def _small(raw: msgspec.Raw) -> Any:
    return decode_json(raw) if len(memoryview(raw)) <= _LONG_LINE else None


def read_answer(body: bytes, content_type: str) -> Output:
    """The output in a chat completion. Raises TransientEngineError if there is none."""
    if content_type.startswith("text/event-stream") or body.startswith((b"data:", b"event:")):
        return _read_stream(body)
    raw = _decode(body, content_type)
    answer = _check(raw, content_type)
    if not answer.choices and blocked_prompt(raw):
        return _output(Message(), "content_filter", answer.usage, raw)
    if not answer.choices:
        raise TransientEngineError(f"the server's answer has no choices: {_excerpt(body)}")
    message = answer.choices[0].message
    if message is None:
        raise TransientEngineError(f"the server's answer has no message: {_excerpt(body)}")
    return _output(message, answer.choices[0].finish_reason, answer.usage, _without_text(raw))


def error_message(body: bytes) -> str:
    """Return a failing server's words in one line: OpenAI's `error.message`, FastAPI's `detail`, or the body itself."""
    try:
        raw = decode_json(body) if len(body) <= _LONG_LINE else None
    except _UNREADABLE:
        return _excerpt(body, 500)
    return _error_text(raw) or _excerpt(body, 500)


def _error_text(raw: Any) -> str:
    for key in ("error", "message", "detail"):
        value = raw.get(key) if isinstance(raw, dict) else None
        if isinstance(value, dict):
            value = value.get("message") or value.get("detail")
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())[:1000]
    return ""


def _decode(body: Buffer, content_type: str) -> Any:
    """The answer as objects; of one with very much beside its text only what matters."""
    try:
        if len(body) <= MOST_BESIDE:
            return decode_json(body)
        outline = json_decoder(_Outline).decode(body)
        beside = len(body) - sum(len(memoryview(raw)) for raw in outline.texts().values())
        return decode_json(body) if beside <= MOST_BESIDE else outline.essence(beside)
    except msgspec.ValidationError as error:
        raise TransientEngineError(f"the server's answer is no chat completion ({error})") from None
    except _UNREADABLE as error:
        what = f"the server's answer ({content_type or 'no content type'}) is no JSON"
        raise TransientEngineError(f"{what} ({error}): {_excerpt(body)}") from None


def _check(raw: Any, content_type: str) -> ChatAnswer:
    try:
        answer = convert(raw, ChatAnswer)
    except msgspec.ValidationError as error:
        raise TransientEngineError(f"the server's answer is no chat completion ({error})") from None
    reported = answer.error or next((choice.error for choice in (answer.choices or ())[:1] if choice.error), None)
    if reported:
        raise provider_error(reported, _error_text({"error": reported}) or content_type)
    return answer


def _output(message: Message, finish_reason: Any, usage: Any, response: Mapping[str, Any]) -> Output:
    tokens = usage if isinstance(usage, dict) else {}
    # There is no request without a token: servers that do not count say 0.
    sent, written = _count(tokens.get("prompt_tokens")) or None, _count(tokens.get("completion_tokens"))
    return Output(
        text=_join(message.content),
        finish_reason=finish_reason if isinstance(finish_reason, str) else None,
        input_tokens=sent,
        output_tokens=written if written or sent else None,
        reasoning=_join(message.reasoning_content) or _join(message.reasoning) or None,
        response=response,
    )


def _join(content: Any) -> str:
    """Return the text of a message: itself, nothing for null, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        return "".join(_join(part.get("text") if isinstance(part, dict) else part) for part in content)
    raise TransientEngineError(f"the server's answer has a content of type {type(content).__name__}")


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _without_text(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the answer as it came, without what is stored as a field of its own. A refusal among the parts stays."""
    choices = [
        {**choice, "message": _beside_text(choice["message"])} if isinstance(choice.get("message"), dict) else choice
        for choice in raw["choices"]
    ]
    return {**raw, "choices": choices}


def _beside_text(message: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in message.items() if key not in _STORED_APART}
    content = message.get("content")
    parts = [part.get("refusal") for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    refusals = [text for text in parts if isinstance(text, str) and text]
    return {"refusal": " ".join(refusals), **{key: value for key, value in kept.items() if value}} if refusals else kept


def _read_stream(body: bytes) -> Output:
    """The answer of a server that streams although it was not asked to; it must have come to its end."""
    said: dict[str, list[str]] = {"content": [], "reasoning": [], "refusal": [], "name": [], "arguments": []}
    beside: dict[str, Any] = {}
    choice: dict[str, Any] = {}
    usage, done = None, False
    for data in _events(body):
        if data == b"[DONE]":
            done = True
            continue
        raw = _decode(data, "event stream")
        answer = _check(raw, "event stream")
        usage = answer.usage or usage
        beside |= {key: value for key, value in raw.items() if key != "choices"} if isinstance(raw, dict) else {}
        if answer.choices:
            _take_piece(said, answer.choices[0].delta or answer.choices[0].message or Message())
            further = raw["choices"][0].items()
            choice |= {key: value for key, value in further if key not in ("delta", "message") and value is not None}
    finish_reason = choice.get("finish_reason")
    blocked = not choice and blocked_prompt(beside)
    if not (done or finish_reason or blocked):
        raise TransientEngineError("the server's stream broke off before its end")
    text = {name: "".join(pieces) for name, pieces in said.items()}
    message: dict[str, Any] = {"refusal": text["refusal"]} if text["refusal"] else {}
    if text["name"] or text["arguments"]:
        message["tool_calls"] = [{"function": {"name": text["name"], "arguments": text["arguments"]}}]
    response = {**beside, "choices": [{**choice, "message": message}], "streamed": True}
    written = Message(content=text["content"], reasoning=text["reasoning"])
    return _output(written, "content_filter" if blocked else finish_reason, usage, response)


def _take_piece(said: dict[str, list[str]], piece: Message) -> None:
    """Add what one event says to the pieces so far; of several tool calls, only the first."""
    said["content"].append(_join(piece.content))
    said["reasoning"].append(_join(piece.reasoning_content) or _join(piece.reasoning))
    said["refusal"].append(piece.refusal if isinstance(piece.refusal, str) else "")
    for call in piece.tool_calls if isinstance(piece.tool_calls, list) else ():
        function = call.get("function") if isinstance(call, dict) and not call.get("index") else None
        for name in ("name", "arguments"):
            if isinstance(function, dict) and isinstance(function.get(name), str):
                said[name].append(function[name])


class FirstToken:
    """When the first words of a streamed answer came, in seconds from the start; None until then."""

    def __init__(self) -> None:
        self.seconds: float | None = None
        self._began = time.monotonic()
        self._line = bytearray()

    def see(self, data: bytes) -> None:
        """Take in a piece of the body as it comes; after the first words there is nothing more to look for."""
        if self.seconds is not None:
            return
        self._line += data
        if len(self._line) > _LONG_LINE:
            self.seconds = time.monotonic() - self._began
            self._line.clear()
            return
        whole, end, rest = self._line.rpartition(b"\n")
        if not end:
            return
        self._line = rest
        if any(_has_words(event) for event in _events(bytes(whole))):
            self.seconds = time.monotonic() - self._began


def _has_words(event: Buffer) -> bool:
    try:
        choices = json_decoder(ChatAnswer).decode(event).choices or []
    except _UNREADABLE:
        return False
    pieces = (choice.delta or choice.message for choice in choices)
    return any(piece and (piece.content or piece.reasoning or piece.reasoning_content) for piece in pieces)


def _events(body: bytes) -> Iterator[Buffer]:
    """Yield what the events of a stream say, one after the other; a long one is not copied."""
    for line in _DATA_LINE.finditer(body):
        start, end = line.span(1)
        yield memoryview(body)[start:end] if end - start > _LONG_LINE else body[start:end].strip()


def _excerpt(body: Buffer, length: int = 200) -> str:
    """The start of a body in one printable line."""
    text = " ".join(bytes(body[: 4 * length]).decode(errors="replace").split())
    return text[:length] + ("…" if len(text) > length else "") or "(empty)"
