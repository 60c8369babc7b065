"""Answer a chat request: one JSON object, or server-sent events that build the same text.

Source: https://platform.openai.com/docs/api-reference/chat/object and .../chat/streaming.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence

from loupe.typed import encode_json
from loupe.types import Output

#: Characters per event of a stream.
_PIECE = 1000


class Answer:
    """The outputs of one request's pages as one answer; pages are parted by an empty line."""

    def __init__(self, model: str, outputs: Sequence[Output]) -> None:
        self._model = model
        self._id = f"chatcmpl-{uuid.uuid4().hex}"
        self._created = int(time.time())
        self._text = "\n\n".join(output.text for output in outputs)
        cut = any(output.finish_reason == "length" for output in outputs)
        self._finish_reason = "length" if cut else "stop"
        prompt = sum(output.input_tokens or 0 for output in outputs)
        completion = sum(output.output_tokens or 0 for output in outputs)
        self._usage = {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
        }

    def whole(self) -> bytes:
        """The `chat.completion` object."""
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": self._text, "refusal": None},
            "logprobs": None,
            "finish_reason": self._finish_reason,
        }
        return encode_json({**self._head("chat.completion"), "choices": [choice], "usage": self._usage})

    def events(self, *, include_usage: bool) -> Iterator[bytes]:
        """The `chat.completion.chunk` events, and the mark of the end."""
        yield self._event({"role": "assistant", "content": ""})
        for start in range(0, len(self._text), _PIECE):
            yield self._event({"content": self._text[start : start + _PIECE]})
        yield self._event({}, self._finish_reason)
        if include_usage:
            yield _framed({**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage})
        yield b"data: [DONE]\n\n"

    def _event(self, delta: dict[str, str], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        return _framed({**self._head("chat.completion.chunk"), "choices": [choice]})

    def _head(self, kind: str) -> dict[str, object]:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model}


def _framed(event: dict[str, object]) -> bytes:
    return b"data: " + encode_json(event) + b"\n\n"
