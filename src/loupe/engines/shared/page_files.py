"""A page as an image file that a program can open: the file itself where that works, else a temporary PNG."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from loupe.data.pages import is_upright, load_page, open_image
from loupe.errors import RejectedError
from loupe.types import PageSource, Request


def single_page(request: Request) -> PageSource:
    """The one page of a request. Raises RejectedError if it has none or several: such an engine reads one at a time."""
    if len(request.images) != 1:
        raise RejectedError(f"this engine reads one page per request, not {len(request.images)}")
    return request.images[0]


@asynccontextmanager
async def page_file(
    source: PageSource, *, longest: int | None, dpi: float | None, formats: frozenset[str]
) -> AsyncIterator[Path]:
    """An absolute path of the page as an image in one of `formats` (Pillow's names), upright.

    The source itself if it is such a file; else a PNG in a private temporary folder that is deleted afterwards.
    Raises PageError if the page cannot be read.
    """
    if isinstance(source, Path) and await asyncio.to_thread(_fits, source, longest, formats):
        # Absolute, so that no name can be taken for an option.
        yield source.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="loupe-page-") as folder:
        path = Path(folder) / "page.png"
        await asyncio.to_thread(_write, source, path, longest, dpi)
        yield path


def _fits(path: Path, longest: int | None, formats: frozenset[str]) -> bool:
    """Whether the program can be given the file as it is. Reads the header only."""
    with open_image(path) as image:
        small = longest is None or max(image.size) <= longest
        return image.format in formats and small and is_upright(image) and getattr(image, "n_frames", 1) == 1


def _write(source: PageSource, path: Path, longest: int | None, dpi: float | None) -> None:
    image = load_page(source, longest=longest, dpi=dpi)
    # Programs judge sizes by the resolution that the file states.
    resolution = dpi if dpi is not None and not isinstance(source, Path) else None
    image.save(path, compress_level=1, dpi=(resolution, resolution) if resolution else None)
