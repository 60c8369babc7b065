"""The tables of an `http` profile (docs/engines/services.md). Wrong paths and placeholders are found on loading."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from loupe.engines.services.paths import compiled
from loupe.engines.services.placeholders import ANY, KNOWN, names_in

_SECONDS = (0.05, 600.0)


class Call(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, omit_defaults=True):
    """One request. `json`, `multipart` or `raw` says what its body is; `format` what the answer's body is.

    In `multipart`, the value `{page}` is the file; a list or table is written as JSON.
    """

    url: str
    method: Literal["GET", "POST", "PUT"] = "POST"
    query: dict[str, str | int | float | bool] = {}
    headers: dict[str, str] = {}
    json: dict[str, Any] | list[Any] | None = None
    multipart: dict[str, Any] = {}
    raw: bool = False
    format: Literal["json", "jsonl", "text", "none"] = "json"

    def __post_init__(self) -> None:
        if sum((self.json is not None, bool(self.multipart), self.raw)) > 1:
            raise ValueError("name one of json, multipart and raw")
        for name in names_in([self.url, self.query, self.headers, self.json, self.multipart]):
            check_placeholder(name)


class Poll(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, omit_defaults=True):
    """How a job is asked whether it is done.

    `status` is the path of a word that is one of `done` or `failed` in the end, `error` that of what went wrong. In
    place of words, `pending_codes` are the HTTP codes that mean "not yet". `after` are the codes of the first answer
    that start a job; none: all do. `every` seconds pass between two questions, growing by `backoff` up to `at_most`.
    """

    url: str
    every: float = 1.0
    backoff: float = 1.3
    at_most: float = 10.0
    query: dict[str, str | int | float | bool] = {}
    status: str = ""
    done: list[str] = []
    failed: list[str] = []
    error: str = ""
    pending_codes: list[int] = []
    after: list[int] = []
    format: Literal["json", "jsonl", "text", "none"] = "json"

    def __post_init__(self) -> None:
        check_paths([self.status, self.error])
        for name in names_in([self.url, self.query]):
            check_placeholder(name)
        if bool(self.status) != bool(self.done) or not (self.status or self.pending_codes):
            raise ValueError("poll needs status and done, or pending_codes")
        for key in ("every", "at_most"):
            if not _SECONDS[0] <= getattr(self, key) <= _SECONDS[1]:
                raise ValueError(
                    f"poll.{key} = {getattr(self, key):g}: must be from {_SECONDS[0]:g} to {_SECONDS[1]:g}"
                )
        if not 1 <= self.backoff <= 10:
            raise ValueError(f"poll.backoff = {self.backoff:g}: must be from 1 to 10")


class Fetch(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, omit_defaults=True):
    """A further address to get the answer from; only where the path `when` finds something."""

    url: str
    when: str = ""
    format: Literal["json", "jsonl", "text"] = "json"

    def __post_init__(self) -> None:
        check_paths([self.when])
        for name in names_in([self.url]):
            check_placeholder(name)


class Answer(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, omit_defaults=True):
    """Where the text is: `text` for the answer as a whole, `pages` for a list with the text of each page.

    Several texts are joined by `join`; `page_break` is the line between the pages of a document. `finish` is the path
    of a word; those in `truncated` mean that the answer was cut off. What stands at `lost` failed at the service.
    """

    text: str = ""
    pages: str = ""
    join: str = "\n\n"
    page_break: str = ""
    finish: str = ""
    truncated: list[str] = []
    lost: str = ""

    def __post_init__(self) -> None:
        check_paths([self.text, self.pages, self.finish, self.lost])
        if not (self.text or self.pages):
            raise ValueError("answer names neither text nor pages")


class UsagePaths(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, omit_defaults=True):
    """Where the service says what it charges for."""

    pages: str = ""
    credits: str = ""
    input_tokens: str = ""
    output_tokens: str = ""

    def __post_init__(self) -> None:
        check_paths([self.pages, self.credits, self.input_tokens, self.output_tokens])


class Errors(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, omit_defaults=True):
    """What failures mean, beyond the usual codes.

    `message` is the path of what the service says. `auth`, `retry` and `rejected` are further HTTP codes. What stands
    at a path named `…_if` of an answer makes it a failure: any (`failed_if`), one to ask again (`retry_if`), one of
    this page alone (`rejected_if`), or a used-up quota, which ends the run (`quota_if`).
    """

    message: str = ""
    auth: list[int] = []
    retry: list[int] = []
    rejected: list[int] = []
    failed_if: str = ""
    retry_if: str = ""
    rejected_if: str = ""
    quota_if: str = ""

    def __post_init__(self) -> None:
        check_paths([self.message, self.failed_if, self.retry_if, self.rejected_if, self.quota_if])


class Rate(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, omit_defaults=True):
    """How often the service may be asked; `polls_count` where questions about a job count, too."""

    per_second: float | None = None
    per_minute: float | None = None
    polls_count: bool = False

    def __post_init__(self) -> None:
        for key in ("per_second", "per_minute"):
            value = getattr(self, key)
            if value is not None and not 0 < value < 1e6:
                raise ValueError(f"rate.{key} = {value:g}: must be above 0")

    @property
    def pause(self) -> float:
        """The least seconds between two requests."""
        return max(1 / self.per_second if self.per_second else 0.0, 60 / self.per_minute if self.per_minute else 0.0)


def check_paths(paths: list[str]) -> None:
    """Raises ValueError for what is no JMESPath."""
    for path in filter(None, paths):
        compiled(path)


def check_placeholder(name: str) -> None:
    """Raises ValueError for a placeholder that there is not."""
    kind, colon, rest = name.partition(":")
    if kind not in KNOWN or bool(colon) != KNOWN[kind]:
        raise ValueError(f"no placeholder {{{name}}}; there are {ANY}")
    if kind == "page" and colon and rest not in ("base64", "data_url", "name", "type"):
        raise ValueError(f"no placeholder {{{name}}}; of a page there are base64, data_url, name and type")
    if kind in ("upload", "submit", "poll", "last"):
        compiled(rest)


def secrets_named(values: Mapping[str, Any] | list[Any]) -> Iterator[str]:
    """The names of secrets that texts to any depth ask for."""
    yield from (name.removeprefix("secret:") for name in names_in(values) if re.match("secret:", name))
