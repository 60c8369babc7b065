"""A service over HTTP that a profile describes: cloud OCR, or a parser that runs as a server.

Source: docs/engines/services.md. One page is one request (`send = "image"`), or a PDF is sent once and its pages are
told apart (`send = "document"`). The scheduler decides about retries; here everything that can fail becomes its error
class.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from loupe.engines.pages.page_files import single_page
from loupe.engines.pages.page_images import ImageRule, encode_untouched, parse_rule
from loupe.engines.pages.page_reader import PageReader, page_reader
from loupe.engines.pages.told_pages import told_apart
from loupe.engines.registry import Profile
from loupe.engines.services.calls import Caller, Sent, is_local
from loupe.engines.services.client import ServiceClient
from loupe.engines.services.description import (
    Answer,
    Call,
    Errors,
    Fetch,
    Poll,
    Rate,
    UsagePaths,
    check_placeholder,
    secrets_named,
)
from loupe.engines.services.pace import Pace
from loupe.engines.services.placeholders import filled_text, names_in
from loupe.engines.shared.redaction import MARK, Redaction, is_secret_name
from loupe.engines.workers.conversions import Conversions, Document, conversions
from loupe.errors import EngineError, PageError, UsageError
from loupe.files.foreign import read_data
from loupe.types import Engine, Output, PdfPage, Request

#: A header whose key is a placeholder holds none: `Bearer {secret:key}`.
_NO_KEY_IN_IT = re.compile(r"(?:\w{1,10} )?\{secret:\w+\}")
_MOST_DOCUMENT_BYTES = 500_000_000


class Settings(Profile, frozen=True, kw_only=True):
    """Keys of an `http` profile; see docs/engines/services.md. `secrets` holds names of environment variables."""

    base_url: str | list[str]
    model: str = ""
    secrets: dict[str, str] = msgspec.field(default_factory=dict)
    optional_secrets: dict[str, str] = msgspec.field(default_factory=dict)
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    send: Literal["image", "document"] = "image"
    image: str = "none"
    upload: Call | None = None
    submit: Call
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

    def __post_init__(self) -> None:
        parse_rule(self.image)
        for name in names_in([self.headers, self.base_url]):
            check_placeholder(name)
        used = {*secrets_named([self.headers, self._addresses, *map(_texts_of, self._calls)])}
        for name in sorted(used - {*self.secrets, *self.optional_secrets}):
            raise ValueError(f'{{secret:{name}}} is not in [secrets]: {name} = "NAME_OF_A_VARIABLE"')
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"base_url = {self.url!r}: must be one address with https://")
        if parts.scheme == "http" and not self.insecure and not is_local(parts.hostname):
            raise ValueError(
                f"base_url = {self.url!r} would send pages unencrypted; write https://, or insecure = true"
            )

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._addresses[0] if len(self._addresses) == 1 else ""

    @property
    def host(self) -> str:
        """The host of the service; "" where it runs on this machine."""
        found = urlsplit(self.url).hostname or ""
        return "" if is_local(found) else found

    @property
    def _addresses(self) -> list[str]:
        return [self.base_url] if isinstance(self.base_url, str) else list(self.base_url)

    @property
    def _calls(self) -> list[Call]:
        return [self.submit] if self.upload is None else [self.upload, self.submit]

    def signature(self) -> dict[str, str]:
        """What is sent: the rule for images, or whole documents."""
        return {"img": "pdf" if self.send == "document" else self.image.replace(" ", "")}

    def defining(self) -> dict[str, Any]:
        """Where the service stands, and how often it may be asked, changes no answer."""
        skipped = {"base_url", "secrets", "optional_secrets", "rate", "insecure", "connect_timeout", "usage", "errors"}
        return {key: value for key, value in super().defining().items() if key not in skipped}

    def stored(self) -> dict[str, Any]:
        """All settings; the names of variables with keys are no keys."""
        shown = _with_placeholders(super().stored(), msgspec.to_builtins(self))
        return {**shown, "secrets": dict(self.secrets), "optional_secrets": dict(self.optional_secrets)}


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Look for the keys, then yield the engine. Raises UsageError where a variable with a key is not set."""
    import aiohttp

    secrets = _secrets(settings)
    concurrency = settings.concurrency or 1
    caller = Caller(
        session=aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=concurrency), cookie_jar=aiohttp.DummyCookieJar()
        ),
        base_url=settings.url,
        headers=_headers(settings.headers, secrets),
        errors=settings.errors,
        redaction=Redaction(tuple(secrets.values())),
        connect_timeout=settings.connect_timeout,
        key_hint=f"check {', '.join(settings.secrets.values()) or 'the key'}",
        pace=Pace(settings.rate.pause),
    )
    client = ServiceClient(
        caller=caller,
        secrets=secrets,
        model=settings.model,
        upload=settings.upload,
        submit=settings.submit,
        poll=settings.poll,
        fetch=tuple(settings.fetch),
        answer=settings.answer,
        usage=settings.usage,
        polls_count=settings.rate.polls_count,
    )
    async with caller.session, page_reader(timeout=settings.timeout) as reader, conversions() as documents:
        service = _Service(settings, client, reader, parse_rule(settings.image), documents)
        yield Engine(predict=service.predict, facts={"host": urlsplit(settings.url).hostname or ""})


@dataclass(frozen=True, slots=True)
class _Service:
    """One service that is asked for pages."""

    settings: Settings
    client: ServiceClient
    reader: PageReader
    rule: ImageRule
    documents: Conversions

    async def predict(self, request: Request) -> Output:
        """What the service reads on a page, or what it read there when it had the whole document."""
        page = single_page(request)
        redaction = self.client.caller.redaction
        if self.settings.send == "document" and isinstance(page, PdfPage) and not page.variant:
            document = await self.documents.get((page.path, request.prompt), partial(self._convert, request, page.path))
            if not 1 <= page.page <= len(document.pages):
                raise PageError(f"{page.path}: has no page {page.page} (pages 1 to {len(document.pages)})")
            text = document.pages[page.page - 1]
            return redaction.output(Output(text=text, finish_reason="stop", seconds=document.seconds))
        image = encode_untouched(page, self.rule) if self.rule.kind == "none" else None
        image = image or await self.reader.encode(page, self.rule)
        sent = Sent(image.data, image.mime, f"page.{image.mime.partition('/')[2]}")
        read = await self.client.read(request, sent, timeout=self.settings.timeout)
        return redaction.output(read.output(self.settings.answer.join.join(filter(None, read.texts))))

    async def _convert(self, request: Request, path: Path) -> Document:
        """A whole document; it may take as long as its pages may one by one."""
        count = await self.reader.count(path)
        data = await asyncio.to_thread(read_data, path)
        if len(data) > _MOST_DOCUMENT_BYTES:
            raise PageError(f"{path}: larger than {_MOST_DOCUMENT_BYTES // 10**6} MB")
        whole = replace(request, id=str(path))
        sent = Sent(data, "application/pdf", "document.pdf")
        read = await self.client.read(whole, sent, timeout=count * self.settings.timeout)
        if read.finish_reason != "stop":
            raise EngineError("the service cut the document off")
        pages = read.texts
        if not self.settings.answer.pages:
            (text,) = read.texts
            pages = await asyncio.to_thread(told_apart, text, count, page_break=self.settings.answer.page_break)
        if len(pages) != count:
            raise EngineError(f"the service gave {len(pages)} pages for a document of {count}")
        return Document(pages, round(read.seconds / count, 4))


def _secrets(settings: Settings) -> dict[str, str]:
    """The keys by name. Raises UsageError where a variable is not set."""
    missing = [name for name in settings.secrets.values() if not os.environ.get(name, "").strip()]
    if missing:
        raise UsageError(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set: the service needs a key",
            hint=f"export {missing[0]}=…",
        )
    named = {**settings.optional_secrets, **settings.secrets}
    return {key: value for key, name in named.items() if (value := os.environ.get(name, "").strip())}


def _headers(headers: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """The headers with their keys; without those whose key is optional and not set."""
    have = {name: value for name, value in headers.items() if {*secrets_named([value])} <= secrets.keys()}
    return {name: filled_text(value, lambda found: secrets[found.partition(":")[2]]) for name, value in have.items()}


def _texts_of(call: Call) -> list[Any]:
    return [call.url, call.query, call.headers, call.json, call.multipart]


def _with_placeholders(stored: Any, written: Any, name: str = "") -> Any:
    """What is stored, with headers and fields as written whose only key is a placeholder."""
    if isinstance(stored, dict) and isinstance(written, dict):
        return {key: _with_placeholders(each, written.get(key), str(key)) for key, each in stored.items()}
    is_placeholder = isinstance(written, str) and _NO_KEY_IN_IT.fullmatch(written)
    return written if stored == MARK and is_secret_name(name) and is_placeholder else stored
