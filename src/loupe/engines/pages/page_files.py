"""A page as an image file that a program can open: the file itself where that works, else a temporary PNG."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from loupe.engines.pages.page_reader import PageReader
from loupe.errors import RejectedError
from loupe.files.scratch import scratch_folder
from loupe.types import PageSource, Request


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
    with scratch_folder("loupe-page-") as folder:
        # Absolute, so that no name can be taken for an option.
        yield await reader.file(source, folder, longest=longest, dpi=dpi, formats=formats)
