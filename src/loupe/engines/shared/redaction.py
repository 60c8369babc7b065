"""Keeping an API key out of everything that is stored or printed, whatever a server echoes."""

from __future__ import annotations

import functools
import html
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from loupe.errors import LoupeError
from loupe.typed import decode_json, encode_json
from loupe.types import Output

#: What stands in the place of a key.
MARK = "[key]"
#: A shorter key ("test", "none") is no secret, and could be a word of the page: answers keep it, errors do not.
SHORTEST_SECRET = 8
#: Names of query parameters that hold a key.
_SECRET_NAME = re.compile(r"key|token|secret|sig|auth|pass|code", re.I)
#: Last words of settings that hold a key, and what stands before `token` where that is a word of a model.
_SECRET_WORDS = {"key", "apikey", "secret", "password", "passwd", "pwd", "passphrase", "bearer"}
_SECRET_WORDS |= {"authorization", "auth", "credential", "credentials", "cookie"}
_PLAIN_TOKENS = {"eos", "bos", "pad", "unk", "sep", "cls", "mask", "image", "stop", "end", "start", "special"}
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.I)
_SECRET_FLAG = r"-*(?:[\w-]*[-_])?(?:key|token|secret|password)"
#: An argument that holds a key (`--api-key`), and in group 1 what stands before a key that follows in the same word.
_SECRET_ARGUMENT = re.compile(rf"(?=-)(?:{_SECRET_FLAG}$|({_SECRET_FLAG}[= ]))", re.I)


_URL_SAFE = str.maketrans("+/", "-_")


@dataclass(frozen=True, slots=True)
class Redaction:
    """The secrets that must not be seen: no key in an error or a header, no long one in an answer either."""

    keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, key: str, base_urls: Sequence[str], settings: Mapping[str, Any] | None = None) -> Redaction:
        """The key of a server, and those in the queries of its addresses and in further settings."""
        queries = [pair for url in base_urls for pair in parse_qsl(urlsplit(url).query)]
        found = [key, *(value for name, value in queries if _SECRET_NAME.search(name)), *secret_values(settings)]
        return cls(tuple(dict.fromkeys(found)))

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys that are looked for in answers too."""
        return tuple(key for key in self.keys if len(key) >= SHORTEST_SECRET)

    def text(self, text: str) -> str:
        """A message or header without any key."""
        return _without(text, self.keys)

    def data(self, data: bytes) -> bytes:
        """The bytes of an answer without secrets."""
        for secret in self.secrets:
            for written in _spellings(secret):
                data = data.replace(written.encode(), MARK.encode())
        return data

    def output(self, output: Output) -> Output:
        """An output without secrets, also where they came in escapes or piece by piece."""
        if not self.secrets:
            return output
        response = output.response
        encoded = encode_json(response)
        if (clean := self.data(encoded)) != encoded:
            response = decode_json(clean)
        text, reasoning, reason = map(self._said, (output.text, output.reasoning, output.finish_reason))
        return replace(output, text=text or "", reasoning=reasoning, finish_reason=reason, response=response)

    def _said(self, text: str | None) -> str | None:
        return _without(text, self.secrets) if text else text

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Errors of ours leave the block without keys."""
        try:
            yield
        except LoupeError as error:
            error.rewrite(self.text)
            raise


def _without(text: str, keys: Sequence[str]) -> str:
    for key in filter(None, keys):
        for written in _spellings(key):
            text = text.replace(written, MARK)
    return text


@functools.lru_cache(maxsize=64)
def _spellings(key: str) -> tuple[str, ...]:
    """Return a key as it is and in simple encodings, longest first: JSON, URL, HTML, hex, base64, also of its header.

    Within the base64 of a longer text, a key is one of three strings, by the bytes before it.
    """
    raw = key.encode("utf-8", "surrogatepass")
    coded = {b64encode(before + raw).decode() for before in (b"", b"Bearer ", b"Basic ", b"Token ")}
    if len(key) >= SHORTEST_SECRET:
        for before, begin in enumerate((0, 2, 3)):
            coded.add(b64encode(bytes(before) + raw).decode()[begin : (before + len(raw)) * 8 // 6])
        coded |= {raw.hex(), raw.hex().upper()}
    coded |= {one.translate(_URL_SAFE) for one in coded}
    found = {key, encode_json(key).decode()[1:-1], quote(raw, safe=""), quote(raw), html.escape(key), *coded}
    found |= {one.replace("/", "\\/") for one in found}
    return tuple(sorted(found, key=lambda one: (-len(one), one)))


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


def redacted(value: Any) -> Any:
    """Settings, tables and lists of them to any depth, with the mark in the place of keys, and addresses without any.

    >>> redacted({"vl_rec_api_key": "abc", "url": "https://me:pw@host/v1?api_key=abc", "max_tokens": 9})
    {'vl_rec_api_key': '[key]', 'url': 'https://host/v1', 'max_tokens': 9}
    """
    if isinstance(value, str):
        return without_credentials(value) if _ADDRESS.fullmatch(value) else value
    if isinstance(value, Mapping):
        return {key: _marked(each) if is_secret_name(str(key)) else redacted(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        words = without_secret_arguments(value) if all(isinstance(each, str) for each in value) else value
        return [redacted(each) for each in words]
    return value


def secret_values(value: Any) -> Iterator[str]:
    """Yield the texts that `redacted` replaces with the mark, addresses aside."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _texts(each) if is_secret_name(str(key)) else secret_values(each)
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from secret_values(each)


def is_secret_name(name: str) -> bool:
    """True if a setting of this name holds a key.

    >>> [name for name in ("apiKey", "X-Api-Key", "hf_token", "eos_token", "max_tokens", "api_key_env") if
    ... is_secret_name(name)]
    ['apiKey', 'X-Api-Key', 'hf_token']
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    *before, last = ["", *filter(None, re.split(r"[^a-z0-9]+", words))]
    return last in _SECRET_WORDS or (last == "token" and before[-1] not in _PLAIN_TOKENS)


def without_credentials(url: str) -> str:
    """An address without query, user name and password, each of which may be a key.

    >>> without_credentials("https://me:pw@host/v1?api_key=abc")
    'https://host/v1'
    """
    return re.sub(r"^([a-z][a-z0-9+.-]*://)?[^/]*@", r"\1", url.partition("?")[0], flags=re.I)


def _marked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _marked(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_marked(each) for each in value]
    return MARK if isinstance(value, str) and value else value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ():
        yield from _texts(each)
