"""Whether an answer says yes or no. Source: docs/select.md. An answer that says both or neither says nothing."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["yes", "no"]

_WORDS: dict[str, Verdict] = {
    **dict.fromkeys(("yes", "true", "ja", "oui", "si", "sí"), "yes"),
    **dict.fromkeys(("no", "false", "nein", "non"), "no"),
}
_WORD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b")
_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_CLOSE = re.compile("</think>", re.IGNORECASE)
_FENCE = re.compile(r"```[A-Za-z]{0,20}")
_EMPHASIS = re.compile(r"[*_`~]")
_KEYS = ("match", "is_match", "isMatch", "answer")
#: A yes and a no within so many words: the answer has not decided.
_FIRST_WORDS = 5
#: What a model says beyond this is no answer of one word any more; nor is a JSON object of that length.
LONGEST = 100_000


def without_thinking(answer: str) -> str:
    """The answer without its `<think>` blocks, and without code fences around what is left.

    A block that never closes takes everything to the end with it; one that never opened (the chat template did that),
    everything up to its close.
    """
    text = _THINKING.sub("", answer)
    return _FENCE.sub("", text[_last_close(text) :]).strip()


def _last_close(text: str) -> int:
    """Behind the last `</think>` that is left without its opening."""
    closes = [found.end() for found in _CLOSE.finditer(text)]
    return closes[-1] if closes else 0


def parse_verdict(answer: str, document_type: str) -> Verdict | None:
    """What the answer says, None where it cannot be told.

    A JSON object with a boolean, or a yes or no, under a known key wins; else the first word that says yes or no does.

    >>> parse_verdict("<think>No?</think>**YES**.", "invoice"), parse_verdict('{"is_invoice": false}', "invoice")
    ('yes', 'no')
    """
    text = without_thinking(answer)[:LONGEST]
    if (found := _from_json(text, document_type)) is not None:
        return found
    plain = unicodedata.normalize("NFKC", _EMPHASIS.sub("", text)).casefold()
    first = " ".join(plain.split(maxsplit=_FIRST_WORDS)[:_FIRST_WORDS])
    if len({_WORDS[word] for word in _WORD.findall(first)}) > 1:
        return None
    word = _WORD.search(plain)
    return _WORDS[word[0]] if word else None


def _from_json(text: str, document_type: str) -> Verdict | None:
    if not text.startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    for key in (*_KEYS, f"is_{document_type}", f"is_{document_type.replace(' ', '_')}"):
        value = found.get(key)
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str) and value.strip().casefold() in _WORDS:
            return _WORDS[value.strip().casefold()]
    return None
