"""Tokens as a server's own tokenizer counts them: vLLM's `/tokenize` and `/detokenize`, beside its `/v1`.

Source: docs/protocols/engines.md#server-templates. Other servers have none, or one that speaks otherwise: then nothing
is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from loupe.engines.chat.discovery import beside_url
from loupe.engines.chat.http_body import read_body
from loupe.engines.chat.posting import post
from loupe.typed import encode_json, json_decoder

if TYPE_CHECKING:
    import aiohttp

_MOST_BYTES = 64_000_000


class _Tokens(msgspec.Struct):
    tokens: list[int]


class _Text(msgspec.Struct):
    prompt: str


@dataclass(slots=True)
class ServerTokenizer:
    """The tokenizer of the model behind a base URL. Every question may be answered with None: no such tokenizer."""

    session: aiohttp.ClientSession
    base_url: str
    model: str
    _missing: bool = False

    async def tokens(self, text: str, *, special: bool = False) -> list[int] | None:
        """The token ids of a text, with those that the tokenizer puts around it if `special`."""
        answer = await self._ask("tokenize", {"prompt": text, "add_special_tokens": special})
        try:
            found = json_decoder(_Tokens).decode(answer).tokens if answer else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        # llama-server does not know `prompt`, and finds no tokens in nothing.
        return found or (None if text else found)

    async def text(self, tokens: list[int]) -> str | None:
        """The text that token ids stand for."""
        answer = await self._ask("detokenize", {"tokens": tokens})
        try:
            return json_decoder(_Text).decode(answer).prompt if answer else None
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    async def _ask(self, path: str, body: dict[str, object]) -> bytes | None:
        import aiohttp

        if self._missing:
            return None
        url = beside_url(self.base_url, f"/{path}")
        data = encode_json({"model": self.model, **body})
        try:
            async with post(self.session, url, data) as response:
                if response.status == 200:
                    return await read_body(response, _MOST_BYTES)
                # 404 and 405: there is none; anything else may be about this one text.
                self._missing = response.status in (404, 405, 501)
        except (aiohttp.ClientError, OSError, TimeoutError):
            return None
        return None
