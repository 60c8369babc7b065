"""Opening one document, in a worker process: it may be hostile. The picture of its first page, its text layers.

Imports little, for the worker starts with it. Source: docs/select.md.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from loupe.typed import encode_json, json_decoder
from loupe.types import PageSource, PdfPage, Request
from loupe.workers.child import Loaded

#: Pixels of the longer side of a picture, and how far a small image is enlarged.
LONGEST, SHORTEST, MOST_ENLARGED = 2048, 1024, 2.0
QUALITY = 90
#: Pages that are read.
PAGES = 3


class Found(msgspec.Struct):
    """What was found: the number of pages, and their text layers."""

    pages: int = 1
    layers: list[str] = []


def load() -> Loaded:
    """The worker's side."""
    return Loaded(read=_read)


def _read(request: Request) -> str:
    from loupe.data.pages import page_count
    from loupe.engines.pdf_text import page_text

    source = request.images[0]
    target, texts = json_decoder(tuple[str, bool]).decode(request.text)
    _draw(source, Path(target))
    pages = page_count(source if isinstance(source, Path) else source.path)
    if not isinstance(source, PdfPage):
        return encode_json(Found(pages)).decode()
    wanted = range(1, min(PAGES, pages) + 1) if texts else ()
    layers = [page_text(PdfPage(source.path, number)) for number in wanted]
    # A text layer may hold halves of characters, which no JSON can.
    whole = [layer.encode("utf-8", "replace").decode() for layer in layers]
    return encode_json(Found(pages, whole)).decode()


def _draw(source: PageSource, target: Path) -> None:
    """The page as a JPEG: its longer side within the limits, an image at most twice as large as it was."""
    from PIL import Image

    from loupe.data.pages import load_page, page_size

    longest = max(page_size(source))
    if isinstance(source, PdfPage):
        picture = load_page(source, longest=min(LONGEST, max(SHORTEST, longest)))
    else:
        picture = load_page(source, longest=LONGEST)
        factor = min(SHORTEST / longest, MOST_ENLARGED)
        if factor > 1:
            size = (round(picture.width * factor), round(picture.height * factor))
            picture = picture.resize(size, Image.Resampling.LANCZOS)
    picture.save(target, "JPEG", quality=QUALITY)
