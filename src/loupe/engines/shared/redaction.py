"""Keeping an API key out of everything that is stored or printed, whatever a server echoes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from loupe.errors import LoupeError
from loupe.types import Output

#: What stands in the place of a key.
MARK = "[key]"
#: A shorter key ("test", "none") is no secret, and could be a word of the page: answers keep it, errors do not.
SHORTEST_SECRET = 8
#: Names of query parameters that hold a key.
_SECRET_NAME = re.compile(r"key|token|secret|sig|auth|pass|code", re.I)
_SECRET_FLAG = r"-*(?:[\w-]*[-_])?(?:key|token|secret|password)"
#: An argument that holds a key (`--api-key`), and in group 1 what stands before a key that follows in the same word.
_SECRET_ARGUMENT = re.compile(rf"(?=-)(?:{_SECRET_FLAG}$|({_SECRET_FLAG}[= ]))", re.I)


@dataclass(frozen=True, slots=True)
class Redaction:
    """What must not be seen: no key in an error or a header, no long one in an answer either."""

    keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, key: str, base_urls: Sequence[str]) -> Redaction:
        """The key of a server, and those in the queries of its addresses."""
        queries = [pair for url in base_urls for pair in parse_qsl(urlsplit(url).query)]
        return cls(tuple(dict.fromkeys([key, *(value for name, value in queries if _SECRET_NAME.search(name))])))

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys that are looked for in answers too."""
        return tuple(key for key in self.keys if len(key) >= SHORTEST_SECRET)

    def text(self, text: str) -> str:
        """A message or header without any key."""
        for key in filter(None, self.keys):
            text = text.replace(key, MARK)
        return text

    def data(self, data: bytes) -> bytes:
        """The bytes of an answer without secrets."""
        for secret in self.secrets:
            for written in {secret, _in_json(secret), _in_json(secret).replace("/", "\\/")}:
                data = data.replace(written.encode(), MARK.encode())
        return data

    def output(self, output: Output) -> Output:
        """An output without secrets, also where they came in escapes or piece by piece."""
        if not self.secrets:
            return output
        response = output.response
        encoded = msgspec.json.encode(response)
        if (clean := self.data(encoded)) != encoded:
            response = msgspec.json.decode(clean)
        text, reasoning, reason = map(self._said, (output.text, output.reasoning, output.finish_reason))
        return replace(output, text=text or "", reasoning=reasoning, finish_reason=reason, response=response)

    def _said(self, text: str | None) -> str | None:
        for secret in self.secrets if text else ():
            text = text.replace(secret, MARK) if text else text
        return text

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Errors of ours leave the block without keys."""
        try:
            yield
        except LoupeError as error:
            error.message, error.hint = self.text(error.message), self.text(error.hint)
            error.args = (error.message,)
            raise


def _in_json(text: str) -> str:
    return msgspec.json.encode(text).decode()[1:-1]


def without_secret_arguments(words: Sequence[str]) -> list[str]:
    """The words of a command line with the mark in the place of keys: `--api-key KEY`, `--hf-token=KEY`.

    >>> without_secret_arguments(["serve", "--api-key", "abc", "--hf-token=abc", "--max-tokens", "9"])
    ['serve', '--api-key', '[key]', '--hf-token=[key]', '--max-tokens', '9']
    """
    shown: list[str] = []
    value_follows = False
    for word in words:
        found = _SECRET_ARGUMENT.match(word)
        if found:
            shown.append(f"{found[1]}{MARK}" if found[1] else word)
        else:
            shown.append(MARK if value_follows and not word.startswith("-") else word)
        value_follows = bool(found and not found[1])
    return shown


def without_secret_keys(tables: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Tables of arguments with the mark in the place of keys."""
    return {
        name: {key: MARK if re.fullmatch(_SECRET_FLAG, key, re.I) else value for key, value in table.items()}
        for name, table in tables.items()
    }
