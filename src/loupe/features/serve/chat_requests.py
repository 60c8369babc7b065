"""Read what a chat request asks for: the prompt and the pages. Only data URLs are accepted.

Source: https://platform.openai.com/docs/api-reference/chat/create. A server that fetches addresses for its clients can
be sent to any machine behind the firewall, so `http:` and `file:` addresses are refused, with the reason.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from loupe.features.serve.api_errors import ApiError
from loupe.typed import json_decoder
from loupe.types import UNDECODABLE

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+-]+=[^;,]*)*(;base64)?,", re.IGNORECASE)
_SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/jpg": ".jpg",
    "image/webp": ".webp",
    "image/gif": ".gif",
    "image/tiff": ".tif",
    "image/bmp": ".bmp",
    "application/pdf": ".pdf",
}

#: More pages in a request than this are refused.
MOST_PAGES = 100
#: A body of more values than this is no chat request, and takes more memory than its bytes.
_MOST_VALUES = 1_000_000


class _StreamOptions(msgspec.Struct):
    include_usage: bool = False


class _Message(msgspec.Struct):
    role: str
    content: str | list[dict[str, Any]] | None = None


class _Body(msgspec.Struct):
    """The keys that matter here; sampling settings mean nothing to an engine that does not sample."""

    messages: list[_Message]
    model: str
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One checked request."""

    model: str
    prompt: str
    paths: tuple[Path, ...]
    stream: bool
    include_usage: bool
    max_tokens: int | None


def parse_chat_request(raw: bytearray, folder: Path) -> ChatRequest:
    """Check a request body, and write its pages into the folder. Raises ApiError that says which part is wrong."""
    if sum(map(raw.count, b"{[,")) > _MOST_VALUES:
        raise ApiError(413, f"the body has more than {_MOST_VALUES:,} values", code="body_too_large")
    try:
        with memoryview(raw) as view:
            body = json_decoder(_Body).decode(view)
    except UNDECODABLE as error:
        raise ApiError(400, f"the body is not a chat request: {error}", code="invalid_body") from None
    if body.n not in (None, 1):
        raise ApiError(400, "one answer per request: n must be 1", param="n", code="unsupported_value")
    max_tokens = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    if max_tokens is not None and max_tokens < 1:
        raise ApiError(400, "max_tokens must be at least 1", param="max_tokens", code="invalid_value")
    prompt, paths = _read_messages(body.messages, folder)
    return ChatRequest(
        model=body.model,
        prompt=prompt,
        paths=tuple(paths),
        stream=bool(body.stream),
        include_usage=body.stream_options is not None and body.stream_options.include_usage,
        max_tokens=max_tokens,
    )


def _read_messages(messages: list[_Message], folder: Path) -> tuple[str, list[Path]]:
    """Prompt and pages of the one user message; a system message stands before its text."""
    users = [(i, message) for i, message in enumerate(messages) if message.role == "user"]
    if len(users) != 1 or any(message.role in ("assistant", "tool", "function") for message in messages):
        raise ApiError(
            400,
            "an OCR engine holds no conversation: send one user message",
            param="messages",
            code="unsupported_value",
        )
    texts: list[str] = []
    paths: list[Path] = []
    for i, message in enumerate(messages):
        if message.role not in ("user", "system", "developer"):
            raise ApiError(400, f"unknown role {message.role!r}", param=f"messages[{i}].role", code="invalid_value")
        texts.append(_read_content(message.content, f"messages[{i}].content", folder, paths))
    return "\n\n".join(text for text in texts if text), paths


def _read_content(content: str | list[dict[str, Any]] | None, where: str, folder: Path, paths: list[Path]) -> str:
    if not isinstance(content, list):
        return content or ""
    texts: list[str] = []
    for i, part in enumerate(content):
        place = f"{where}[{i}]"
        kind = part.get("type")
        if kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind == "image_url":
            url = part.get("image_url")
            paths.append(
                _store(url.get("url") if isinstance(url, dict) else url, f"{place}.image_url", folder, len(paths) + 1)
            )
        elif kind == "file":
            file = part.get("file")
            paths.append(
                _store(
                    file.get("file_data") if isinstance(file, dict) else None, f"{place}.file", folder, len(paths) + 1
                )
            )
        else:
            raise ApiError(400, f"no part of type {kind!r}: text, image_url, file", param=place, code="invalid_value")
        if len(paths) > MOST_PAGES:
            raise ApiError(413, f"the request has more than {MOST_PAGES} files", param=place, code="too_many_pages")
    return "\n".join(texts)


def _store(url: object, where: str, folder: Path, number: int) -> Path:
    """Write the page in a data URL into the folder. Raises ApiError for any other address and for data that is none."""
    if not isinstance(url, str) or not url:
        raise ApiError(400, f"{where} holds no data URL", param=where, code="invalid_image_url")
    if url[:5].lower() != "data:":
        scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]{0,20}:", url)
        raise ApiError(
            400,
            f"{where}: {scheme[0] if scheme else 'other'} addresses are not fetched; send the page itself as "
            "data:image/png;base64,...",
            param=where,
            code="invalid_image_url",
        )
    found = _DATA_URL.match(url)
    if found is None or not found[2]:
        raise ApiError(400, f"{where} is not data:TYPE;base64,...", param=where, code="invalid_image_url")
    suffix = _SUFFIXES.get(found[1].lower())
    if suffix is None:
        raise ApiError(
            400, f"{where}: {found[1]} is neither an image nor a PDF", param=where, code="invalid_image_format"
        )
    try:
        data = b64decode(url[found.end() :], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ApiError(400, f"{where}: broken base64 ({error})", param=where, code="invalid_base64") from None
    if not data:
        raise ApiError(400, f"{where} is empty", param=where, code="invalid_image")
    path = folder / f"page-{number}{suffix}"
    path.write_bytes(data)
    return path
