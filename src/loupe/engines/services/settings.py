"""Define the keys and tables of an `http` profile (docs/engines/http.md).

Wrong paths and placeholders are found on loading.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

import msgspec

from loupe.engines.pages.page_images import parse_rule
from loupe.engines.registry import WHOLE_PAGES, Profile
from loupe.engines.services.paths import compiled
from loupe.engines.services.placeholders import ANSWERED, check_placeholders, is_placeholder, names_in, secrets_in
from loupe.engines.shared.hosts import hosts_beyond, is_local
from loupe.engines.shared.redaction import is_secret_name

#: Keys that change no answer: where a service stands, how often it is asked, what its errors mean.
_NOT_DEFINING = frozenset(
    {
        "base_url",
        "secrets",
        "optional_secrets",
        "rate",
        "insecure",
        "connect_timeout",
        "usage",
        "errors",
        "tried",
        "start",
    }
)
#: Keys of `poll` that say how soon is asked again, not what the answer is.
_PACE = frozenset({"every", "backoff", "at_most"})
#: Tables that hold no key: `check_texts` has seen to it.
_CLEAN = ("headers", "upload", "submit", "document", "poll", "fetch", "secrets", "optional_secrets")


class Table(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, omit_defaults=True):
    """A table of a profile."""


class UsagePaths(Table, frozen=True):
    """The paths at which the service says what it charges for."""

    pages: str = ""
    credits: str = ""
    input_tokens: str = ""
    output_tokens: str = ""

    def __post_init__(self) -> None:
        check_paths(self.pages, self.credits, self.input_tokens, self.output_tokens)


class Errors(Table, frozen=True):
    """The meaning of failures, beyond the usual codes.

    `message` is the path of what the service says. `auth`, `quota`, `retry`, `rejected` and `gone` (the job, or its
    answer, is no longer there) are HTTP codes. What stands at a path named `…_if` of an answer makes it a failure: any
    (`failed_if`), one to ask again (`retry_if`), one of this page alone (`rejected_if`), a refusal or a content filter
    (`refused_if`), or a quota that is used up, which ends the run (`quota_if`).
    """

    message: str = "detail || error.message || message || error"
    auth: list[int] = []
    quota: list[int] = []
    retry: list[int] = []
    rejected: list[int] = []
    gone: list[int] = []
    failed_if: str = ""
    retry_if: str = ""
    rejected_if: str = ""
    refused_if: str = ""
    quota_if: str = ""

    def __post_init__(self) -> None:
        check_paths(self.message, self.failed_if, self.retry_if, self.rejected_if, self.refused_if, self.quota_if)


class Rate(Table, frozen=True):
    """The limit on requests to the service; `polls_count` where questions about a job count, too."""

    per_second: float | None = None
    per_minute: float | None = None
    polls_count: bool = False

    def __post_init__(self) -> None:
        for key in ("per_second", "per_minute"):
            value = getattr(self, key)
            if value is not None and not 0.1 <= value < 1e6:
                raise ValueError(f"rate.{key} = {value:g}: must be at least 0.1")

    @property
    def pause(self) -> float:
        """The least seconds between two requests."""
        return max(1 / self.per_second if self.per_second else 0.0, 60 / self.per_minute if self.per_minute else 0.0)


def check_paths(*paths: str) -> None:
    """Raises ValueError for what is no JMESPath."""
    for path in filter(None, paths):
        compiled(path)


class Settings(Profile, frozen=True, kw_only=True):
    """Keys of an `http` profile; see docs/engines/http.md.

    `base_url` may be left to the command line (`--base-url`). `secrets` holds names of environment variables;
    `optional_secrets` those of keys that a service may not need. `document` is what is sent in place of `submit` for a
    whole PDF, where `send` says so. `start` says how a server of your own is started, `tried` what the profile was
    proven on: a server of ours that speaks as the service's documentation says, or the real one.
    """

    base_url: str | list[str] = ""
    model: str = ""
    secrets: dict[str, str] = msgspec.field(default_factory=dict)
    optional_secrets: dict[str, str] = msgspec.field(default_factory=dict)
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    send: Literal["page", "document"] = "page"
    image: str = "none"
    upload: Call | None = None
    submit: Call
    document: Call | None = None
    poll: Poll | None = None
    fetch: list[Fetch] = msgspec.field(default_factory=list)
    answer: Answer
    usage: UsagePaths = UsagePaths()
    errors: Errors = Errors()
    rate: Rate = Rate()
    insecure: bool = False
    connect_timeout: float = 30.0
    concurrency: int | None = 4
    adapters: list[str] = msgspec.field(default_factory=lambda: ["newlines", "strip"])
    start: str = ""
    tried: Literal["", "stand-in", "real"] = ""

    def __post_init__(self) -> None:
        parse_rule(self.image)
        if not 0 < self.connect_timeout < math.inf:
            raise ValueError(f"connect_timeout = {self.connect_timeout:g}: must be above 0 seconds and finite")
        check_texts([self.headers])
        if other := next((name for name in names_in(self.headers) if not name.startswith("secret:")), ""):
            raise ValueError(f"headers: {{{other}}} is for the headers of a request, such as [submit.headers]")
        if self.base_url not in ("", []):
            _check_base_url(self.url, insecure=self.insecure)
        if self.model and "model" not in names_in(self._texts):
            raise ValueError(f"model = {self.model!r}: no request of this profile names a {{model}}")
        unknown = secrets_in(self._texts) - {*self.secrets, *self.optional_secrets}
        for name in sorted(unknown):
            raise ValueError(f'{{secret:{name}}} is not in [secrets]: {name} = "NAME_OF_A_VARIABLE"')
        for name in [*self.secrets.values(), *self.optional_secrets.values()]:
            if not (name.isidentifier() and name.isascii()):
                raise ValueError(f"secrets: {name[:4]}… is no name of an environment variable")
        if self.send == "document" and self.document is None:
            raise ValueError("send = 'document': the profile does not say how whole documents are sent ([document])")
        first = ("upload",) if self.upload else ()
        for name, known in (("upload", ()), ("submit", first), ("document", first), ("poll", (*first, "submit"))):
            _check_order(name, getattr(self, name), known)

    @property
    def url(self) -> str:
        """The address of the service, without the path that it is asked at; "" where not exactly one is written."""
        written = [self.base_url] if isinstance(self.base_url, str) else self.base_url
        return written[0].rstrip("/").removesuffix(self.submit.url) if len(written) == 1 else ""

    @property
    def gives(self) -> frozenset[str] | None:  # type: ignore[override]  # of other kinds it is the same for all
        """A service that is not told what is asked only reads."""
        return None if "prompt" in names_in(self._texts) else WHOLE_PAGES

    @property
    def services(self) -> tuple[str, ...]:
        """The host of the service, unless it runs on this machine."""
        return hosts_beyond(self.url)

    @property
    def reads(self) -> tuple[str, ...]:
        """The files that the service gets: images of pages, and whole PDFs if it is told to."""
        return ("image",) if self.document is None else ("image", "pdf")

    @property
    def unproven(self) -> str:
        """The part of a profile that has never been tried; "" if nobody claims anything."""
        said = "the service itself was never asked: its documented format was tried on a server of Loupe's"
        return said if self.tried == "stand-in" else ""

    @property
    def _texts(self) -> list[Any]:
        """All texts in which placeholders stand."""
        calls = [each for each in (self.upload, self.submit, self.document) if each]
        texts = [[each.url, each.query, each.headers, each.json, each.multipart] for each in calls]
        return [self.headers, *texts, self.poll.query if self.poll else {}]

    def signature(self) -> dict[str, str]:
        """The form of what is sent: the rule for images, or whole documents."""
        return {"img": "pdf" if self.send == "document" else self.image.replace(" ", "")}

    def defining(self) -> dict[str, Any]:
        """All that can change an answer; what is sent for documents only where documents are sent."""
        idle = {"document"} if self.send == "page" else {"submit"}
        kept = {key: value for key, value in super().defining().items() if key not in _NOT_DEFINING | idle}
        if poll := kept.get("poll"):
            kept["poll"] = {key: value for key, value in poll.items() if key not in _PACE}
        return kept

    def stored(self) -> dict[str, Any]:
        """All settings; the names of variables that hold keys, and placeholders for keys, are no keys."""
        written = msgspec.to_builtins(self)
        return {**super().stored(), **{key: written[key] for key in _CLEAN}}


def _check_base_url(url: str, *, insecure: bool) -> None:
    """Raises ValueError for what is no address of a service, or one to which pages would go unencrypted."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        parts = urlsplit("")
    plain = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
        raise ValueError("base_url: must be one address with https://")
    if parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("base_url: must be without query and password; keys belong into [secrets]")
    if parts.scheme == "http" and not insecure and not is_local(parts.hostname):
        raise ValueError(f"base_url = {url!r} would send pages unencrypted; write https://, or insecure = true")


def _check_order(name: str, call: Call | Poll | None, known: tuple[str, ...]) -> None:
    """Raises ValueError where a request needs an answer that does not come before it."""
    texts: list[Any] = [call.url, call.query] if call else []
    texts += [call.headers, call.json, call.multipart] if isinstance(call, Call) else []
    for placeholder in names_in(texts):
        kind = placeholder.partition(":")[0].removesuffix("_header")
        if kind in ("upload", "submit", "poll") and kind not in known:
            raise ValueError(f"{name}: {{{placeholder}}} is not known yet")


#: What a body is read as.
Format: TypeAlias = Literal["json", "jsonl", "text", "none"]
Query: TypeAlias = dict[str, str | int | float | bool]

_PATH = re.compile(r"/[!-~]*")
#: A value of a key that holds none: `Bearer {secret:key}`.
_NO_KEY_IN_IT = re.compile(r"(?:\w{1,10} )?\{secret:\w+\}")
_SHORTEST, _LONGEST = 0.05, 600.0


class Call(Table, frozen=True):
    """One request. `json`, `multipart` or `raw` says what its body is, `format` what the body of the answer is.

    In `multipart`, the value `{page}` is the file; a list or table is written as JSON. `url` is a path of the service.
    """

    url: str
    method: Literal["GET", "POST", "PUT"] = "POST"
    query: Query = {}
    headers: dict[str, str] = {}
    json: dict[str, Any] | list[Any] | None = None
    multipart: dict[str, Any] = {}
    raw: bool = False
    format: Format = "json"

    def __post_init__(self) -> None:
        if sum((self.json is not None, bool(self.multipart), self.raw)) != 1:
            raise ValueError("name one of json, multipart and raw = true")
        check_path(self.url)
        check_texts([self.query, self.headers, self.json, self.multipart])


class Poll(Table, frozen=True):
    """The requests by which a job is asked whether it is done.

    `status` is the path of a word that is one of `done` or `failed` in the end, `error` that of what went wrong. In
    place of words, `pending_codes` are the HTTP codes that mean "not yet". `after` are the codes of the first answer
    that start a job; none: all do. `every` seconds pass between two questions, growing by `backoff` up to `at_most`.
    """

    url: str
    every: float = 1.0
    backoff: float = 1.3
    at_most: float = 10.0
    query: Query = {}
    status: str = ""
    done: list[str] = []
    failed: list[str] = []
    error: str = ""
    pending_codes: list[int] = []
    after: list[int] = []
    format: Format = "json"

    def __post_init__(self) -> None:
        check_paths(self.status, self.error)
        check_address(self.url)
        check_texts([self.query])
        if bool(self.status) != bool(self.done) or not (self.status or self.pending_codes):
            raise ValueError("poll needs status and done, or pending_codes")
        for key in ("every", "at_most"):
            if not _SHORTEST <= getattr(self, key) <= _LONGEST:
                raise ValueError(f"poll.{key} = {getattr(self, key):g}: must be from {_SHORTEST:g} to {_LONGEST:g}")
        if not 1 <= self.backoff <= 10:
            raise ValueError(f"poll.backoff = {self.backoff:g}: must be from 1 to 10")


class Fetch(Table, frozen=True):
    """A further address to get the answer from; only where the path `when` finds something."""

    url: str
    when: str = ""
    format: Literal["json", "jsonl", "text"] = "json"

    def __post_init__(self) -> None:
        check_paths(self.when)
        check_address(self.url)


class Answer(Table, frozen=True):
    """The place of the text: `text` is the path of a text or list of texts, which are joined by `join`.

    `per_page`: the list has one entry for each page, so that the pages of a document can be told apart; else
    `page_break` is the line between them. `finish` is the path of a word or list of words, those in `truncated` mean
    that the answer was cut off. What stands at `lost` failed at the service.
    """

    text: str
    join: str = "\n\n"
    per_page: bool = False
    page_break: str = ""
    finish: str = ""
    truncated: list[str] = []
    lost: str = ""

    def __post_init__(self) -> None:
        check_paths(self.text, self.finish, self.lost)
        if not self.text:
            raise ValueError("answer.text is empty")


def check_texts(texts: list[Any]) -> None:
    """Raises ValueError for a placeholder that there is not, or a key that stands in the profile itself."""
    check_placeholders(texts)
    check_paths(*_paths_in(texts))
    for name in _keys_in(texts):
        raise ValueError(f'{name} holds a key: write "{{secret:key}}", and secrets = {{ key = "NAME_OF_A_VARIABLE" }}')


def check_path(url: str) -> None:
    """Raises ValueError for an address that is no path of the service, or that holds a key or a page."""
    if not _PATH.fullmatch(url):
        raise ValueError(f"url = {url!r}: must be a path of base_url, such as /v1/ocr")
    check_placeholders(url)
    check_paths(*_paths_in(url))
    if secrets_in(url) or any(name.startswith("page:") for name in names_in(url)):
        raise ValueError(f"url = {url!r}: keys and pages do not stand in addresses")


def check_address(url: str) -> None:
    """The same for an address that the service may name itself: it may be one placeholder, too."""
    if is_placeholder(url) and url[1:].partition(":")[0] in (*ANSWERED, "submit_header"):
        check_paths(*_paths_in(url))
    else:
        check_path(url)


def _paths_in(value: Any) -> list[str]:
    named = [name.partition(":") for name in names_in(value)]
    return [path for kind, _, path in named if kind in ANSWERED]


def _keys_in(value: Any) -> Collection[str]:
    """The names of what holds a key and is no placeholder, to any depth."""
    if isinstance(value, list):
        return [name for each in value for name in _keys_in(each)]
    if not isinstance(value, dict):
        return []
    found = [name for each in value.values() for name in _keys_in(each)]
    written = [(name, each) for name, each in value.items() if isinstance(each, str) and is_secret_name(name)]
    return [*found, *(name for name, each in written if each and not _NO_KEY_IN_IT.fullmatch(each))]
