"""Texts no longer than the model takes: cut at the end, by tokens and not by characters.

A token stands for at least a byte, so a text with fewer bytes than the limit needs no counting. Longer ones are counted
by the server's own tokenizer (vLLM); where there is none, they are sent whole, and the server decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from loupe.embedding.client import Text
from loupe.engines.shared.server_tokens import ServerTokenizer


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is sent for a text: itself, or the ids of as many of its tokens as fit. `unknown`: nobody could count."""

    text: Text
    truncated: bool = False
    unknown: bool = False


async def fit(text: str, limit: int, tokenizer: ServerTokenizer) -> Fitted:
    """A text that has at most `limit` tokens, special ones included."""
    # Special tokens: a start and an end at most, in the models that embed.
    if len(text.encode("utf-8", "replace")) <= limit - 8:
        return Fitted(text)
    whole, plain = await tokenizer.tokens(text, special=True), await tokenizer.tokens(text)
    if whole is None or plain is None:
        return Fitted(text, unknown=True)
    if len(whole) <= limit:
        return Fitted(text)
    before = _before(whole, plain)
    after = whole[before + len(plain) :]
    return Fitted(whole[:before] + plain[: limit - before - len(after)] + after, truncated=True)


async def fit_as_text(text: str, limit: int, tokenizer: ServerTokenizer) -> Fitted:
    """The same where only a text can be sent, as part of a conversation; `limit` counts its own tokens."""
    if len(text.encode("utf-8", "replace")) <= limit:
        return Fitted(text)
    plain = await tokenizer.tokens(text)
    if plain is None:
        return Fitted(text, unknown=True)
    if len(plain) <= limit:
        return Fitted(text)
    cut = await tokenizer.text(plain[:limit])
    # The last token may end within a character.
    return Fitted(text, unknown=True) if cut is None else Fitted(cut.rstrip("\ufffd"), truncated=True)


def _before(whole: list[int], plain: list[int]) -> int:
    """How many special tokens stand before the text; 0 where the text is not found in the whole."""
    extra = len(whole) - len(plain)
    return next((start for start in range(extra + 1) if whole[start : start + len(plain)] == plain), 0)
