"""Page images and PDF pages: the one door through which pixels come into Loupe.

Pages are other people's files. They are read in a process with limits on memory and time: in this one if it has them
(`loupe.workers.limits`), else in one that is started with the first page. What breaks a limit, or its reader, is the
PageError of that page, as is everything else that cannot be read: one line that names the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from loupe.data import page_drawing
from loupe.data.bounded import ask
from loupe.data.page_drawing import BLANK_INK as BLANK_INK
from loupe.data.page_drawing import DEFAULT_DPI as DEFAULT_DPI
from loupe.files.file_names import IMAGE_SUFFIXES as IMAGE_SUFFIXES
from loupe.files.file_names import TIFF_SUFFIXES as TIFF_SUFFIXES
from loupe.types import PageSource, PdfPage, TiffPage

if TYPE_CHECKING:
    from PIL.Image import Image


def load_page(source: PageSource, *, longest: int | None = None, dpi: float | None = None) -> Image:
    """The page as an upright RGB image.

    `longest` limits the longer side of an image file (it never enlarges). A PDF page is rendered at `dpi`, by default
    144, or so that its longer side is `longest`; with both, at `dpi` but no larger than `longest`.
    """
    return ask(page_drawing.load_page, source, longest=longest, dpi=dpi)


def page_size(source: PageSource) -> tuple[int, int]:
    """Width and height of `load_page(source)` in pixels, from the header alone."""
    return ask(page_drawing.page_size, source)


def page_count(path: Path) -> int:
    """Return how many pages the file has: of a PDF or TIFF file all, of any other image 1."""
    return ask(page_drawing.page_count, path)


def frames(path: Path) -> tuple[str, int]:
    """Return the format of an image file, and how many pictures it holds: all but the first are moving ones."""
    return ask(page_drawing.frames, path)


def has_pages(path: Path | str) -> bool:
    """Return whether files of this name have numbered pages: PDF and TIFF."""
    return str(path).lower().endswith((".pdf", *TIFF_SUFFIXES))


def document_page(path: Path, number: int) -> PdfPage | TiffPage:
    """Return one page of a PDF or TIFF file, by the file's name."""
    return TiffPage(path, number) if path.suffix.lower() in TIFF_SUFFIXES else PdfPage(path, number)


def thumbnail(source: PageSource, longest: int) -> Image:
    """A small RGB version, quickly: JPEG files are decoded at reduced size."""
    return ask(page_drawing.thumbnail, source, longest=longest)


def ink_fraction(source: PageSource) -> float:
    """Share of clearly inked pixels, 0..1; below BLANK_INK the page is blank.

    Ink differs from the local paper colour (so shading and inverted pages do not matter) by more than the noise of the
    scan; single specks vanish in the smoothing. The outermost 2 % are ignored, where scanners leave dark edges.
    """
    return ask(page_drawing.ink_fraction, source)
