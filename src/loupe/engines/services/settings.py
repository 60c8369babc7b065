"""The keys of an `http` profile (docs/engines/http.md)."""

from __future__ import annotations

import math
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from loupe.engines.pages.page_images import parse_rule
from loupe.engines.registry import WHOLE_PAGES, Profile
from loupe.engines.services.placeholders import names_in, secrets_in
from loupe.engines.services.tables import Answer, Call, Errors, Fetch, Poll, Rate, UsagePaths, check_texts
from loupe.engines.shared.hosts import hosts_beyond, is_local

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
        """What the service gets: images of pages, and whole PDFs if it is told to."""
        return ("image",) if self.document is None else ("image", "pdf")

    @property
    def unproven(self) -> str:
        """What of a profile has never been tried; "" where nobody claims anything."""
        said = "the service itself was never asked: its documented format was tried on a server of Loupe's"
        return said if self.tried == "stand-in" else ""

    @property
    def _texts(self) -> list[Any]:
        """All texts in which placeholders stand."""
        calls = [each for each in (self.upload, self.submit, self.document) if each]
        texts = [[each.url, each.query, each.headers, each.json, each.multipart] for each in calls]
        return [self.headers, *texts, self.poll.query if self.poll else {}]

    def signature(self) -> dict[str, str]:
        """What is sent: the rule for images, or whole documents."""
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
