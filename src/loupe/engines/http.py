"""A service over HTTP that a profile describes: cloud OCR, or a parser that runs as a server.

Source: docs/engines/http.md. One page is one request, or a PDF is sent once and its pages are told apart
(`send = "document"`). The scheduler decides about retries; here everything that can fail becomes its error class.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from loupe.data.certificates import open_client
from loupe.engines.pages.page_images import ImageRule, encode_untouched, parse_rule
from loupe.engines.pages.page_reader import PageReader, page_reader, single_page
from loupe.engines.pages.whole_documents import Conversions, Document, conversions, told_apart
from loupe.engines.services.placeholders import filled_text, secrets_in
from loupe.engines.services.settings import Settings
from loupe.engines.shared.redaction import Redaction
from loupe.errors import EngineError, EngineUnavailableError, PageError, UsageError
from loupe.files.foreign import read_data
from loupe.types import Engine, Output, PageSource, PdfPage, Request

if TYPE_CHECKING:
    from loupe.engines.services.client import Read, ServiceClient

__all__ = ["Settings", "open_engine"]

_MOST_DOCUMENT_BYTES = 500_000_000
#: A key that could end its header, and begin another one, is none.
_KEY = re.compile(r"[!-~]+")


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Look for the keys, then yield the engine. Raises UsageError where one is not set or there is no address.

    Raises EngineUnavailableError where nothing answers at the address.
    """
    import aiohttp

    from loupe.engines.services.calls import Caller, Pace
    from loupe.engines.services.client import ServiceClient
    from loupe.engines.services.placeholders import open_elsewhere

    if not settings.url:
        raise UsageError("the profile names no address of its service", hint="use --base-url https://HOST")
    secrets = _secrets(settings)
    concurrency = settings.concurrency or 1
    own = open_client(connector={"limit": concurrency}, cookie_jar=aiohttp.DummyCookieJar())
    async with (
        own,
        open_elsewhere(concurrency) as elsewhere,
        page_reader(timeout=settings.timeout) as reader,
        conversions() as documents,
    ):
        caller = Caller(
            own=own,
            elsewhere=elsewhere,
            base_url=settings.url,
            headers=_headers(settings.headers, secrets),
            errors=settings.errors,
            redaction=Redaction(tuple(secrets.values())),
            connect_timeout=settings.connect_timeout,
            key_hint=f"check {', '.join([*settings.secrets.values(), *settings.optional_secrets.values()]) or 'it'}",
            pace=Pace(settings.rate.pause),
        )
        client = ServiceClient(settings=settings, caller=caller, secrets=secrets)
        if not await caller.answers():
            start = f"start it: {settings.start}, or " if settings.start else ""
            raise EngineUnavailableError(f"no service answers at {settings.url}", hint=f"{start}--base-url URL")
        service = _Service(settings, client, reader, parse_rule(settings.image), documents)
        yield Engine(
            predict=service.predict, healthy=caller.answers, facts={"host": urlsplit(settings.url).hostname or ""}
        )


@dataclass(frozen=True, slots=True)
class _Service:
    """One service that is asked for pages."""

    settings: Settings
    client: ServiceClient
    reader: PageReader
    rule: ImageRule
    documents: Conversions
    charges: dict[Hashable, Mapping[str, float]] = field(default_factory=dict)

    async def predict(self, request: Request) -> Output:
        """Return what the service reads on a page, or what it read there when it had the whole document."""
        page = single_page(request)
        redaction = self.client.caller.redaction
        with redaction.errors():
            if self.settings.send == "document" and isinstance(page, PdfPage) and not page.variant:
                output = await self._of_document(request, page)
            else:
                output = await self._of_page(request, page)
        return redaction.output(output)

    async def _of_page(self, request: Request, page: PageSource) -> Output:
        from loupe.engines.services.calls import Sent

        image = encode_untouched(page, self.rule) if self.rule.kind == "none" else None
        image = image or await self.reader.encode(page, self.rule)
        sent = Sent(image.data, image.mime, f"page.{image.mime.partition('/')[2]}")
        read = await self.client.read(request, sent, timeout=self.settings.timeout)
        return _output(read, read.texts[0])

    async def _of_document(self, request: Request, page: PdfPage) -> Output:
        key = (page.path, request.prompt)
        document = await self.documents.get(key, partial(self._convert, key, request, page.path))
        if not 1 <= page.page <= len(document.pages):
            raise PageError(f"{page.path}: has no page {page.page} (pages 1 to {len(document.pages)})")
        # A document is paid for as a whole, whichever of its pages are asked for: with the first of them.
        charged = self.charges.pop(key, {"pages": 0, "credits": 0})
        text = document.pages[page.page - 1]
        return Output(text=text, finish_reason="stop", seconds=document.seconds, charged=charged)

    async def _convert(self, key: Hashable, request: Request, path: Path) -> Document:
        """A whole document; it may take as long as its pages may one by one."""
        from loupe.engines.services.calls import Sent

        count = await self.reader.count(path)
        data = await asyncio.to_thread(read_data, path)
        if len(data) > _MOST_DOCUMENT_BYTES:
            raise PageError(f"{path}: larger than {_MOST_DOCUMENT_BYTES // 10**6} MB")
        sent = Sent(data, "application/pdf", "document.pdf")
        # The same for all its pages: whichever of them comes next asks about a job that was begun, and begins none.
        whole = Request(id=str(path), prompt=request.prompt)
        read = await self.client.read(whole, sent, timeout=count * self.settings.timeout, whole=True)
        if read.cut:
            raise EngineError("the service cut the document off")
        pages, answer = read.texts, self.settings.answer
        if not answer.per_page:
            pages = await asyncio.to_thread(told_apart, pages[0], count, page_break=answer.page_break)
        if len(pages) != count:
            raise EngineError(f"the service gave {len(pages)} pages for a document of {count}")
        self.charges[key] = _charged(read, count)
        return Document(pages, round(read.seconds / count, 4))


def _charged(read: Read, pages: int) -> dict[str, float]:
    """Return what is charged for so many pages, as far as the service says something else than one price a page."""
    return {"pages": pages} | {key: read.usage[key] for key in ("pages", "credits") if key in read.usage}


def _output(read: Read, text: str) -> Output:
    """The answer for one page."""
    tokens = [int(read.usage[key]) if key in read.usage else None for key in ("input_tokens", "output_tokens")]
    return Output(
        text=text,
        finish_reason="length" if read.cut else "stop",
        input_tokens=tokens[0],
        output_tokens=tokens[1],
        seconds=read.seconds,
        charged=_charged(read, 1),
    )


def _secrets(settings: Settings) -> dict[str, str]:
    """The keys by name. Raises UsageError where a variable is not set, or holds what can be no key."""
    values = {variable: os.environ.get(variable, "").strip() for variable in settings.secrets.values()}
    missing = [variable for variable, value in values.items() if not value]
    if missing:
        raise UsageError(
            f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not set: the service needs a key",
            hint=f"export {missing[0]}=…",
        )
    named = {**settings.optional_secrets, **settings.secrets}
    found = {name: value for name, variable in named.items() if (value := os.environ.get(variable, "").strip())}
    for name, value in found.items():
        if not _KEY.fullmatch(value):
            raise UsageError(f"{named[name]} is no key: it holds a space, a line break or a letter beyond ASCII")
    return found


def _headers(headers: Mapping[str, str], secrets: Mapping[str, str]) -> dict[str, str]:
    """The headers with their keys; without those whose key is optional and not set."""
    have = {name: value for name, value in headers.items() if secrets_in(value) <= secrets.keys()}
    return {name: filled_text(value, lambda found: secrets[found.partition(":")[2]]) for name, value in have.items()}
