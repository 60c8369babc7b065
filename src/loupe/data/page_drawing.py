"""Drawing page images and PDF pages, as `loupe.data.pages` asks for it, in a process with limits on memory and time.

Renderer: PDFium. Everything that cannot be read raises PageError with one line that names the file.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from loupe.data.bounded import name_of
from loupe.data.packed import packed_name, read_packed
from loupe.data.rasters import (
    allow_large,
    moving_pictures,
    open_file,
    open_image,
    orientation,
    shrink,
    tiff_page_count,
    to_rgb,
)
from loupe.data.variants import SCAN_LONGEST, is_quarter_turn, is_turned, made_worse, turned
from loupe.errors import PageError
from loupe.types import PackedImage, PageSource, PdfPage, TiffPage
from loupe.workers.limits import max_pixels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image
    from pypdfium2 import PdfDocument

    GrayPixels = NDArray[np.float32]

#: PDF pages are rendered at this resolution unless asked otherwise.
DEFAULT_DPI = 144.0
#: A page with a smaller share of inked pixels holds no text: one short word on an A4 page is about twice this.
BLANK_INK = 0.0002
#: How files of a format are called, where that is not its name.
_USUAL_ENDINGS = {"TIFF": "tif", "JPEG2000": "jp2", "JPEG": "jpg"}
#: PDFium is not thread-safe: every call into it, from any module, happens under this lock.
_PDFIUM = threading.RLock()


def load_page(source: PageSource, *, longest: int | None = None, dpi: float | None = None) -> Image:
    """The page as an upright RGB image, at most `longest` pixels long; a PDF page at `dpi`, by default DEFAULT_DPI."""
    if isinstance(source, PdfPage):
        return _render(source, longest=longest, dpi=dpi)
    with _opened(source) as image:
        return shrink(to_rgb(image, _name(source)), longest)


def page_size(source: PageSource) -> tuple[int, int]:
    """Width and height of `load_page(source)` in pixels, from the header alone."""
    if isinstance(source, PdfPage):
        with open_pdf(source.path) as document:
            width, height = _pixels(*_points(document, source), DEFAULT_DPI / 72, source)
            return (height, width) if is_turned(source.variant) else (width, height)
    with _opened(source) as image:
        return (image.height, image.width) if orientation(image) >= 5 else (image.width, image.height)


def page_count(path: Path) -> int:
    """Return how many pages the file has: of a PDF or TIFF file all, of any other image 1."""
    if path.suffix.lower() == ".pdf":
        with open_pdf(path) as document:
            return len(document)
    with open_image(path) as image, open_file(path) as stream:
        return tiff_page_count(stream, path) if image.format == "TIFF" else 1


def frames(path: Path) -> tuple[str, int]:
    """Return the format of an image file, and how many pictures it holds if they move."""
    with open_image(path) as image:
        return str(image.format), moving_pictures(image)


def thumbnail(source: PageSource, longest: int) -> Image:
    """A small RGB version, quickly: JPEG files are decoded at reduced size."""
    if isinstance(source, PdfPage):
        return _render(source, longest=longest, dpi=None)
    with _opened(source) as image:
        # Twice the size leaves enough pixels for a clean last step.
        image.draft(None, (2 * longest, 2 * longest))
        return shrink(to_rgb(image, _name(source)), longest, quick=True)


def ink_fraction(source: PageSource) -> float:
    """Share of clearly inked pixels of the page, 0..1, as `loupe.data.pages` says."""
    import numpy as np
    from PIL import ImageFilter

    gray = thumbnail(source, 1000).convert("L").filter(ImageFilter.BoxBlur(1))
    inset = round(0.02 * min(gray.size))
    gray = gray.crop((inset, inset, gray.width - inset, gray.height - inset))
    pixels = np.asarray(gray, dtype=np.float32)
    contrast = np.abs(pixels - _paper(pixels))
    noise = 1.4826 * float(np.median(contrast))
    return float((contrast > max(30.0, 5.0 * noise)).mean())


def _opened(source: Path | TiffPage | PackedImage) -> AbstractContextManager[Image]:
    if isinstance(source, PackedImage):
        return open_image(read_packed(source), packed_name(source))
    return open_image(source.path, page=source.page) if isinstance(source, TiffPage) else open_image(source)


def _name(source: Path | TiffPage | PackedImage) -> Path:
    if isinstance(source, TiffPage):
        return Path(name_of(source))
    return packed_name(source) if isinstance(source, PackedImage) else source


@contextmanager
def open_pdf(path: Path) -> Iterator[PdfDocument]:
    """An open PDF. PDFium is not thread-safe: the block holds the process-wide lock, so keep it short."""
    import pypdfium2

    open_file(path).close()
    with _PDFIUM:
        try:
            document = pypdfium2.PdfDocument(path)
        except pypdfium2.PdfiumError as error:
            if kind := _image_kind(path):
                hint = f"rename it to {path.stem}.{_USUAL_ENDINGS.get(kind, kind.lower())}"
                raise PageError(f"{path}: is an image ({kind}), not a PDF", hint=hint) from None
            raise PageError(f"{path}: {_why_not_a_pdf(str(error))}") from None
        try:
            yield document
        finally:
            document.close()


def write_picture_as_pdf(image: Image, path: Path, *, dpi: float) -> None:
    """Write a PDF whose only page shows this RGB image, without loss, one pixel 1/dpi of an inch."""
    import pypdfium2

    width, height = image.width * 72 / dpi, image.height * 72 / dpi
    with _PDFIUM:
        document = pypdfium2.PdfDocument.new()
        try:
            picture = pypdfium2.PdfImage.new(document)
            picture.set_bitmap(pypdfium2.PdfBitmap.from_pil(image))
            picture.set_matrix(pypdfium2.PdfMatrix().scale(width, height))
            page = document.new_page(width, height)
            page.insert_obj(picture)
            page.gen_content()
            document.save(path)
        finally:
            document.close()


def write_page_alone(source: PdfPage, path: Path) -> Path:
    """A PDF with this page alone, as it is: the document itself if it has no other page, else one written to `path`.

    Raises PageError. What a document holds besides its pages (bookmarks, the structure of a tagged PDF) is left out.
    """
    import pypdfium2

    with open_pdf(source.path) as document:
        if not 1 <= source.page <= len(document):
            raise PageError(f"{source.path}: has no page {source.page} (pages 1 to {len(document)})")
        if len(document) == 1:
            return source.path.absolute()
        alone = pypdfium2.PdfDocument.new()
        try:
            alone.import_pages(document, [source.page - 1])
            alone.save(path)
        except pypdfium2.PdfiumError as error:
            raise PageError(f"{source.path}: page {source.page} cannot be taken out ({error})") from None
        finally:
            alone.close()
    return path


def _paper(pixels: GrayPixels) -> GrayPixels:
    """The paper's grey value around each pixel: the median of its block, about a sixteenth of the page wide."""
    import numpy as np

    side = max(16, max(pixels.shape) // 16)
    paper = np.empty_like(pixels)
    for top in range(0, pixels.shape[0], side):
        for left in range(0, pixels.shape[1], side):
            block = np.s_[top : top + side, left : left + side]
            paper[block] = np.median(pixels[block])
    return paper


def _render(source: PdfPage, *, longest: int | None, dpi: float | None) -> Image:
    """The page, or the variant of it that the source names."""
    if not source.variant:
        return _render_plain(source, longest=longest, dpi=dpi)
    if is_quarter_turn(source.variant):
        return turned(_render_plain(source, longest=longest, dpi=dpi), source.variant)
    from PIL import Image as Pillow

    size = _render_plain(source, longest=longest, dpi=dpi).size
    scan = made_worse(_render_plain(source, longest=SCAN_LONGEST, dpi=None), source)
    return scan.resize(size, Pillow.Resampling.LANCZOS)


def _render_plain(source: PdfPage, *, longest: int | None, dpi: float | None) -> Image:
    with open_pdf(source.path) as document:
        width, height = _points(document, source)
        scale = (dpi or DEFAULT_DPI) / 72
        if longest is not None:
            # PDFium rounds up; a hair less than `longest` keeps float error from adding a pixel.
            fitting = (longest - 1e-4) / max(width, height)
            scale = fitting if dpi is None else min(scale, fitting)
        _pixels(width, height, scale, source)
        document.init_forms()
        page = document[source.page - 1]
        image: Image = page.render(scale=scale).to_pil()
        return image.convert("RGB") if image.mode != "RGB" else image.copy()


def _points(document: PdfDocument, source: PdfPage) -> tuple[float, float]:
    """Page size in points. Raises PageError if there is no such page."""
    import pypdfium2

    if not 1 <= source.page <= len(document):
        raise PageError(f"{source.path}: has no page {source.page} (pages 1 to {len(document)})")
    try:
        width, height = document[source.page - 1].get_size()
    except pypdfium2.PdfiumError:
        raise PageError(f"{source.path}: page {source.page} is broken") from None
    if not (math.isfinite(width) and math.isfinite(height) and width > 0 and height > 0):
        raise PageError(f"{source.path}: page {source.page} has no area")
    return width, height


def _pixels(width: float, height: float, scale: float, source: PdfPage) -> tuple[int, int]:
    """Rendered size. Raises PageError above `max_pixels`."""
    size = math.ceil(width * scale), math.ceil(height * scale)
    if size[0] * size[1] > max_pixels():
        limit = f"the limit of {max_pixels() // 10**6} megapixels"
        raise PageError(
            f"{source.path}: page {source.page} would have {size[0]:,} x {size[1]:,} pixels, above {limit}",
            hint=allow_large(*size),
        )
    return size


def _image_kind(path: Path) -> str:
    """The format of a file that is an image whatever its name says, "" for any other."""
    with suppress(PageError), open_image(path) as image:
        return str(image.format)
    return ""


def _why_not_a_pdf(message: str) -> str:
    if "password" in message.lower() or "security" in message.lower():
        return "the PDF is encrypted and needs a password"
    return "not a PDF, or a broken one"
