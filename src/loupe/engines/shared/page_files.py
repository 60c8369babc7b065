"""A page as an image file that a program can open: the file itself where that works, else a temporary PNG."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from loupe.data.packed import packed_name, read_packed
from loupe.data.pages import is_upright, open_image
from loupe.engines.shared.page_reader import PageReader
from loupe.errors import RejectedError
from loupe.types import PackedImage, PageSource, Request


def single_page(request: Request) -> PageSource:
    """The one page of a request. Raises RejectedError if it has none or several: such an engine reads one at a time."""
    if len(request.images) != 1:
        raise RejectedError(f"this engine reads one page per request, not {len(request.images)}")
    return request.images[0]


@asynccontextmanager
async def page_file(
    source: PageSource, *, longest: int | None, dpi: float | None, formats: frozenset[str], reader: PageReader
) -> AsyncIterator[Path]:
    """An absolute path of the page as an image in one of `formats` (Pillow's names), upright.

    The source itself if it is such a file; else a PNG in a private temporary folder that is deleted afterwards.
    Raises PageError if the page cannot be read.
    """
    if isinstance(source, Path) and (await asyncio.to_thread(_fitting, source, source, longest, formats)) != "":
        # Absolute, so that no name can be taken for an option.
        yield source.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="loupe-page-") as name:
        folder = Path(name)
        path = None
        if isinstance(source, PackedImage):
            path = await asyncio.to_thread(_unpack, source, folder, longest, formats)
        yield path or await reader.write(source, folder, longest=longest, dpi=dpi)


def _fitting(source: Path | bytes, name: Path, longest: int | None, formats: frozenset[str]) -> str:
    """The format of an image that the program can be given as it is, else "". Reads the header only."""
    with open_image(source, name) as image:
        small = longest is None or max(image.size) <= longest
        fits = image.format in formats and small and is_upright(image) and getattr(image, "n_frames", 1) == 1
        return str(image.format) if fits else ""


def _unpack(source: PackedImage, folder: Path, longest: int | None, formats: frozenset[str]) -> Path | None:
    """The very bytes of an image in a data file as a file of its own; None where that does not work."""
    data = read_packed(source)
    kind = _fitting(data, packed_name(source), longest, formats)
    if not kind:
        return None
    path = folder / f"page.{kind.lower()}"
    path.write_bytes(data)
    return path
