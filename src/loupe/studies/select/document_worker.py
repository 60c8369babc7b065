"""Opening one document, in a worker process: it may be hostile. The picture of its first page, its text layers.

Imports little, for the worker starts with it. Source: docs/select.md.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from loupe.engines.workers.worker import Loaded
from loupe.typed import encode_json, json_decoder
from loupe.types import PageSource, PdfPage, Request

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
    from loupe.data.pages import pdf_page_count
    from loupe.engines.pdf_text import page_text

    source = request.images[0]
    target, texts = json_decoder(tuple[str, bool]).decode(request.text)
    _draw(source, Path(target))
    if not isinstance(source, PdfPage):
        pages = 1 + (_unpack(source, Path(target)) if texts else 0)
        return encode_json(Found(pages)).decode()
    pages = pdf_page_count(source.path)
    wanted = range(1, min(PAGES, pages) + 1) if texts else ()
    layers = [page_text(PdfPage(source.path, number)) for number in wanted]
    # A text layer may hold halves of characters, which no JSON can.
    whole = [layer.encode("utf-8", "replace").decode() for layer in layers]
    return encode_json(Found(pages, whole)).decode()


def frame_file(target: Path, number: int) -> Path:
    """Where page `number`, from 2 on, of an image file with several pages is put, beside the picture of its first."""
    return target.with_name(f"{target.stem}-{number}.png")


def _unpack(source: PageSource, target: Path) -> int:
    """Put the further pages of a TIFF file, as far as they are read, beside its picture; how many there are."""
    from loupe.data.rasters import BROKEN, MAX_PIXELS, open_image, to_rgb
    from loupe.errors import PageError

    if not isinstance(source, Path):
        return 0
    with open_image(source) as image:
        for number in range(2, PAGES + 1) if image.format == "TIFF" else ():
            try:
                image.seek(number - 1)
                if image.width * image.height > MAX_PIXELS:
                    return number - 2
                to_rgb(image, source).save(frame_file(target, number))
            except (PageError, *BROKEN):
                return number - 2  # a further page that is broken, or is not there, is none
    return PAGES - 1 if image.format == "TIFF" else 0


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
