"""The reader of pages as a worker process runs it: other people's PDFs are never opened in the server itself."""

from __future__ import annotations

import ctypes
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from loupe.data.page_drawing import open_pdf
from loupe.data.pages import load_page, page_size
from loupe.errors import PageError
from loupe.typed import encode_json, json_decoder
from loupe.types import Output, PageSource, PdfPage, Request
from loupe.web.phrases import MOST_CHARACTERS, Box, page_text, places
from loupe.workers.child import Loaded

if TYPE_CHECKING:
    from pypdfium2 import PdfPage as PdfiumPage

#: Fractions of the page are computed on a grid of so many steps.
_GRID = 100_000


class Order(msgspec.Struct):
    """A wish for a page; travels as the prompt of a request."""

    task: Literal["draw", "find"]
    longest: int = 0
    phrases: list[str] = []


class Found(msgspec.Struct):
    """The size of a page in pixels (a PDF at the resolution of `load_page`), and the places of each phrase."""

    size: tuple[int, int]
    places: list[list[list[Box]]]


def load() -> Loaded:
    """The reader."""
    return Loaded(read=_read)


def _read(request: Request) -> Output:
    (source,) = request.images
    order = json_decoder(Order).decode(request.prompt)
    if order.task == "draw":
        return Output(text="", response={"data": _draw(source, order.longest)})
    return Output(text=encode_json(Found(page_size(source), _find(source, order.phrases))).decode())


def _draw(source: PageSource, longest: int) -> bytes:
    image = load_page(source, longest=longest)
    stream = io.BytesIO()
    image.save(stream, "PNG", compress_level=1)
    return stream.getvalue()


def _find(source: PageSource, phrases: Sequence[str]) -> list[list[list[Box]]]:
    """For each phrase its places, for each place the boxes of its lines; an image has no text layer."""
    if not isinstance(source, PdfPage):
        return [[] for _ in phrases]
    with open_pdf(source.path) as document:
        if not 1 <= source.page <= len(document):
            raise PageError(f"{source.path}: has no page {source.page} (pages 1 to {len(document)})")
        text = page_text(list(_characters(document[source.page - 1])))
    return [places(text, phrase) for phrase in phrases]


def _characters(page: PdfiumPage) -> Iterator[tuple[str, Box]]:
    """The characters of the text layer with their boxes, turned as the page is drawn."""
    import pypdfium2.raw as pdfium

    layer = page.get_textpage()
    for number in range(min(layer.count_chars(), MOST_CHARACTERS)):
        code = pdfium.FPDFText_GetUnicode(layer, number)
        if code <= 32 or 0xD800 <= code < 0xE000 or code > 0x10FFFF or code in (0xFFFE, 0xFFFF):
            continue
        left, bottom, right, top = layer.get_charbox(number, loose=True)
        (x1, y1), (x2, y2) = _on_picture(page, pdfium, left, top), _on_picture(page, pdfium, right, bottom)
        yield chr(code), (min(x1, x2), min(y1, y2), max(x1, x2), max(y1, y2))


def _on_picture(page: PdfiumPage, pdfium: Any, x: float, y: float) -> tuple[float, float]:
    """A point of the page as fractions of its picture, from the left and from the top."""
    across, down = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDF_PageToDevice(page, 0, 0, _GRID, _GRID, 0, x, y, ctypes.byref(across), ctypes.byref(down))
    return across.value / _GRID, down.value / _GRID
