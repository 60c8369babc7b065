"""The text layer of PDF pages: no recognition at all, a floor and a ceiling for born-digital documents.

Renderer: PDFium through pypdfium2. Each document is opened in a worker process: a PDF may be hostile.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import msgspec

from loupe.engines.pages.page_reader import single_page
from loupe.engines.registry import PLAIN_TEXT, Profile
from loupe.errors import EngineError, EngineUnavailableError, PageError, RejectedError
from loupe.types import Engine, Output, PdfPage, Request
from loupe.workers.child import Loaded
from loupe.workers.limits import cores
from loupe.workers.pool import worker_pool

if TYPE_CHECKING:
    from pypdfium2 import PdfTextPage


class Settings(Profile, frozen=True, kw_only=True):
    """Keys of the kind `pdf_text`: only those that every kind has."""

    gives: ClassVar[frozenset[str] | None] = PLAIN_TEXT

    concurrency: int | None = msgspec.field(default_factory=lambda: min(4, cores()))
    timeout: float = 60.0


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Yield the engine. An image file is rejected (it has no text layer); a page without text is an empty answer."""
    async with worker_pool("loupe.engines.pdf_text:load", {}, workers=settings.concurrency or 1, bounded=True) as pool:

        async def predict(request: Request) -> Output:
            page = single_page(request)
            if not isinstance(page, PdfPage):
                name = page.name if isinstance(page, Path) else page.path.name
                raise RejectedError(f"no text layer: {name} is an image file")
            if page.variant:
                # Nothing would be turned or blurred in what this engine reads, so its numbers would mean nothing.
                raise EngineUnavailableError(
                    f"pdf_text reads the text layer, but the pages are pictures here (variant={page.variant})",
                    hint="use an engine that reads images, or no variant",
                )
            return await pool.ask(request, timeout=settings.timeout)

        yield Engine(predict=predict, facts=pool.facts)


def load() -> Loaded:
    """The engine as a worker uses it."""
    import pypdfium2

    facts = {"pypdfium2": version("pypdfium2"), "pdfium": str(pypdfium2.PDFIUM_INFO)}
    return Loaded(read=_read, facts=facts)


def _read(request: Request) -> str:
    page = request.images[0]
    assert isinstance(page, PdfPage)
    return page_text(page)


def page_text(page: PdfPage) -> str:
    """The text layer of a page, read in this process. Raises PageError or EngineError for one that cannot be read."""
    import pypdfium2

    from loupe.data.page_drawing import open_pdf

    with open_pdf(page.path) as document:
        if not 1 <= page.page <= len(document):
            raise PageError(f"{page.path}: has no page {page.page} (pages 1 to {len(document)})")
        try:
            text = _shown(document[page.page - 1].get_textpage())
        except pypdfium2.PdfiumError as error:
            raise EngineError(f"{page.path}: the text of page {page.page} cannot be read ({error})") from None
    return _as_text(str(text))


def _shown(layer: PdfTextPage) -> str:
    """The text inside the page's CropBox: what lies outside of it is on no picture of the page."""
    import pypdfium2.raw as pdfium

    left, bottom, right, top = layer.page.get_bbox()
    shown: list[str] = []
    start, is_shown, gap = 0, True, ""
    count = layer.count_chars()
    for number in range(count):
        if pdfium.FPDFText_IsGenerated(layer, number):
            # Blanks and line ends that PDFium adds have no place: they belong to the character before them.
            gap += "" if is_shown else chr(pdfium.FPDFText_GetUnicode(layer, number))
            continue
        x1, y1, x2, y2 = layer.get_charbox(number, loose=True)
        inside = left <= (x1 + x2) / 2 <= right and bottom <= (y1 + y2) / 2 <= top
        if is_shown and not inside:
            shown.append(layer.get_text_range(start, number - start) if number > start else "")
            gap = ""
        elif inside and not is_shown:
            # What was left out between two lines does not join them.
            shown.append(next((sign for sign in "\n " if sign in gap and not "".join(shown[-1:]).endswith(sign)), ""))
            start = number
        is_shown = inside
    if is_shown:
        shown.append(layer.get_text_range(start, count - start))
    return "".join(shown)


def _as_text(raw: str) -> str:
    """PDFium's text as plain text: its line ends, and its marks for a hyphen at a line end and for no character."""
    # U+FFFE (and U+0002 in older releases) stands for a hyphen at which a word was broken over two lines.
    text = raw.replace("\r\n", "\n").replace("\r", "\n").replace("\ufffe\n", "").replace("\x02\n", "")
    return text.replace("\ufffe", "").replace("\x02", "").replace("\x00", "").strip("\n")
