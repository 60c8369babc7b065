"""Documents made ready before any model is asked: the picture of the first page, the text of the first three.

Files are opened in a worker process: they may be hostile. Source: docs/select.md.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from loupe.data.pages import document_page, has_pages
from loupe.engines.registry import Profile
from loupe.errors import EngineError, LoupeError, PageError
from loupe.features.select.document_worker import PAGES, Found
from loupe.features.select.documents import Document
from loupe.files.folder import Folder
from loupe.inference.progress import Progress
from loupe.servers.keeper import open_profile
from loupe.typed import encode_json, json_decoder
from loupe.types import Engine, PageSource, Request
from loupe.workers.pool import WorkerPool, worker_pool

if TYPE_CHECKING:
    from loupe.pipeline.plan import Executor

#: A text layer with so many characters is used as it stands; no text is longer.
LAYER_CHARACTERS, MOST_CHARACTERS = 50, 12_000
#: Seconds that opening one document may take.
_PATIENCE = 120.0
_READERS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be made: pictures into `folder`; texts, where `ocr` names the engine for what has no text layer.

    With an `executor` the engine reads on its machines.
    """

    folder: Path
    ocr: tuple[str, Profile] | None = None
    executor: Executor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Pictures and texts by document id; `unread` says why some documents have no text."""

    images: Mapping[str, Path]
    texts: Mapping[str, str]
    unread: Mapping[str, str]


async def prepare(documents: Sequence[Document], wanted: Wanted, tell: Callable[[str, int], None]) -> Prepared:
    """Make pictures and texts; `tell` hears of every document done. Raises PageError that names all
    which cannot be opened.

    Where OCR fails on a page, that page has no text, and `unread` says so.
    """
    images: dict[str, Path] = {}
    found: dict[str, Found] = {}
    broken: list[str] = []
    async with worker_pool("loupe.features.select.document_worker:load", {}, workers=1, bounded=True) as pool:
        for number, document in enumerate(documents):
            tell("preparing", number)
            images[document.id] = wanted.folder / f"{number}.jpg"
            try:
                found[document.id] = await _open(pool, document, images[document.id], texts=wanted.ocr is not None)
            except LoupeError as error:
                broken.append(error.message)
    if broken:
        raise PageError(
            f"{len(broken)} of {len(documents)} documents cannot be opened:",
            listed=broken,
            hint="fix them, or move them out of the folder",
        )
    texts: dict[str, str] = {}
    unread: dict[str, str] = {}
    if wanted.ocr is not None:
        texts = {each.id: text for each in documents if (text := _layer(found[each.id])) is not None}
        scans = [document for document in documents if document.id not in texts]
        if scans:
            read = await _recognise(scans, found, images, wanted, tell)
            for document, (text, problem) in zip(scans, read, strict=True):
                texts[document.id] = text
                unread |= {document.id: problem} if problem else {}
    return Prepared(images=images, texts=texts, unread=unread)


async def _open(pool: WorkerPool, document: Document, target: Path, *, texts: bool) -> Found:
    asked = encode_json([str(target), texts]).decode()
    request = Request(id=document.id, images=(document.page,), text=asked)
    output = await pool.ask(request, timeout=_PATIENCE)
    return json_decoder(Found).decode(output.text)


def _layer(found: Found) -> str | None:
    """The text layer of the first pages, None where there is too little of it."""
    text = _joined(found.layers)
    return text if sum(not char.isspace() for char in text) >= LAYER_CHARACTERS else None


def _joined(pages: Sequence[str]) -> str:
    return "\n\n".join(page.strip() for page in pages)[:MOST_CHARACTERS]


async def _recognise(
    scans: Sequence[Document],
    found: Mapping[str, Found],
    images: Mapping[str, Path],
    wanted: Wanted,
    tell: Callable[[str, int], None],
) -> list[tuple[str, str]]:
    """The texts of documents without a text layer, and what went wrong with them."""
    from loupe.engines.adapters.steps import apply_adapters

    assert wanted.ocr is not None
    label, profile = wanted.ocr
    places = asyncio.Semaphore(profile.concurrency if isinstance(profile.concurrency, int) else _READERS)
    done = 0

    async def page(engine: Engine, source: PageSource, ident: str) -> tuple[str, str]:
        async with engine.places.place() if engine.places else places:
            try:
                output = await engine.predict(Request(id=ident, images=(source,), task="text"))
            except (EngineError, LoupeError) as error:
                return "", error.message
        return apply_adapters(output.text, profile.adapters), ""

    async def document(engine: Engine, one: Document) -> tuple[str, str]:
        nonlocal done
        sources = _pages(one, found[one.id].pages)
        pages = await asyncio.gather(*(page(engine, source, f"{one.id}#{n}") for n, source in enumerate(sources, 1)))
        done += 1
        tell(f"reading with {label}", done)
        return _joined([text for text, _ in pages]), next((problem for _, problem in pages if problem), "")

    async with AsyncExitStack() as stack:
        files = Folder(wanted.folder)
        if wanted.executor is not None and wanted.executor.reads(profile):
            opened = wanted.executor.open_profile(profile, Progress())
        else:
            opened = open_profile(profile, folder=files)
        engine = await stack.enter_async_context(opened)
        return await asyncio.gather(*(document(engine, one) for one in scans))


def _pages(document: Document, count: int) -> list[PageSource]:
    """The first pages of a document."""
    if not has_pages(document.path):
        return [document.path]
    return [document_page(document.path, number) for number in range(1, min(PAGES, count) + 1)]
