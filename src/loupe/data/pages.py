"""Reading page images and PDF pages: the one place where pixels come from.

Conversion rules: protocols/engines.md A2 (RGB, alpha over white, EXIF orientation applied). Renderer: PDFium.
Everything that cannot be read raises PageError with one line that names the file.
"""

from __future__ import annotations

import io
import math
import struct
import threading
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from loupe.data.packed import packed_name, read_packed
from loupe.data.variants import SCAN_LONGEST, is_quarter_turn, is_turned, made_worse, turned
from loupe.errors import PageError
from loupe.types import PackedImage, PageSource, PdfPage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image
    from pypdfium2 import PdfDocument

    GrayPixels = NDArray[np.float32]

#: Larger pages are refused before they are decoded: 200 MP are 600 MB in memory.
MAX_PIXELS = 200_000_000
#: PDF pages are rendered at this resolution unless asked otherwise.
DEFAULT_DPI = 144.0
#: Pixels converted at a time where that takes many bytes for each.
_STRIP_PIXELS = 100_000
#: A page with a smaller share of inked pixels holds no text: one short word on an A4 page is about twice this.
BLANK_INK = 0.0002

#: What Pillow's decoders raise on hostile bytes, beside the OSError that they promise.
BROKEN = (OSError, ValueError, SyntaxError, EOFError, LookupError, TypeError, struct.error, zlib.error, RuntimeError)
_ORIENTATION = 0x0112
#: PDFium is not thread-safe: every call into it, from any module, happens under this lock.
_PDFIUM = threading.RLock()


def load_page(source: PageSource, *, longest: int | None = None, dpi: float | None = None) -> Image:
    """The page as an upright RGB image.

    `longest` limits the longer side of an image file (it never enlarges). A PDF page is rendered at `dpi`, by default
    144, or so that its longer side is `longest`; with both, at `dpi` but no larger than `longest`.
    """
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
        return (image.height, image.width) if _orientation(image) >= 5 else (image.width, image.height)


def pdf_page_count(path: Path) -> int:
    """How many pages the PDF has."""
    with open_pdf(path) as document:
        return len(document)


def thumbnail(source: PageSource, longest: int) -> Image:
    """A small RGB version, quickly: JPEG files are decoded at reduced size."""
    if isinstance(source, PdfPage):
        return _render(source, longest=longest, dpi=None)
    with _opened(source) as image:
        # Twice the size leaves enough pixels for a clean last step.
        image.draft(None, (2 * longest, 2 * longest))
        return shrink(to_rgb(image, _name(source)), longest, quick=True)


def ink_fraction(source: PageSource) -> float:
    """Share of clearly inked pixels, 0..1; below BLANK_INK the page is blank.

    Ink differs from the local paper colour (so shading and inverted pages do not matter) by more than the noise of the
    scan; single specks vanish in the smoothing. The outermost 2 % are ignored, where scanners leave dark edges.
    """
    import numpy as np
    from PIL import ImageFilter

    gray = thumbnail(source, 1000).convert("L").filter(ImageFilter.BoxBlur(1))
    inset = round(0.02 * min(gray.size))
    gray = gray.crop((inset, inset, gray.width - inset, gray.height - inset))
    pixels = np.asarray(gray, dtype=np.float32)
    contrast = np.abs(pixels - _paper(pixels))
    noise = 1.4826 * float(np.median(contrast))
    return float((contrast > max(30.0, 5.0 * noise)).mean())


def _opened(source: Path | PackedImage) -> AbstractContextManager[Image]:
    if isinstance(source, PackedImage):
        return open_image(read_packed(source), packed_name(source))
    return open_image(source)


def _name(source: Path | PackedImage) -> Path:
    return packed_name(source) if isinstance(source, PackedImage) else source


@contextmanager
def open_image(source: Path | bytes, name: Path | None = None) -> Iterator[Image]:
    """An image file, or the bytes of one, with its header read; `name` stands in messages about bytes.

    Raises PageError if it is missing, empty, not an image, or larger than MAX_PIXELS.
    """
    from PIL import Image

    # Pillow would warn at 90 MP and only refuse at 179 MP; the check below is the stricter one.
    Image.MAX_IMAGE_PIXELS = None
    path = source if isinstance(source, Path) else name or Path("image")
    # A stream, not a path: Pillow maps files by path, and then decodes rotated gray TIFFs with the wrong width.
    with _open_file(source) if isinstance(source, Path) else io.BytesIO(source) as stream:
        try:
            image = Image.open(stream)
        except BROKEN as error:
            raise PageError(f"{path}: {_why_not_an_image(stream, error)}") from None
        if image.width * image.height > MAX_PIXELS:
            size = f"{image.width:,} x {image.height:,}"
            raise PageError(f"{path}: {size} pixels are more than the limit of {MAX_PIXELS // 10**6} megapixels")
        yield image


def to_rgb(image: Image, name: Path) -> Image:
    """Decode `image` into upright RGB: alpha over white, 16 bit scaled down, EXIF orientation applied."""
    from PIL import Image as Pillow

    try:
        image.load()
        turn = _TURNS.get(_orientation(image))
        plain = _flatten(image)
    except BROKEN as error:
        raise PageError(f"{name}: broken image ({_one_line(error)})") from None
    return plain.transpose(Pillow.Transpose(turn)) if turn is not None else plain


def shrink(image: Image, longest: int | None, *, quick: bool = False) -> Image:
    """The image with its longer side at most `longest` (Lanczos), or itself if it already fits."""
    if longest is None or max(image.size) <= longest:
        return image
    from PIL import Image as Pillow

    scale = longest / max(image.size)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Pillow.Resampling.LANCZOS, reducing_gap=2.0 if quick else None)


def is_upright(image: Image) -> bool:
    """Whether the header asks for no rotation; reads no pixels."""
    return _orientation(image) == 1


@contextmanager
def open_pdf(path: Path) -> Iterator[PdfDocument]:
    """An open PDF. PDFium is not thread-safe: the block holds the process-wide lock, so keep it short."""
    import pypdfium2

    _open_file(path).close()
    with _PDFIUM:
        try:
            document = pypdfium2.PdfDocument(path)
        except pypdfium2.PdfiumError as error:
            raise PageError(f"{path}: {_why_not_a_pdf(str(error))}") from None
        try:
            yield document
        finally:
            document.close()


#: EXIF orientation → member of PIL.Image.Transpose.
_TURNS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}


def _orientation(image: Image) -> int:
    """The EXIF orientation that is left to apply, 1 if there is none.

    Pillow turns TIFF by itself, and would decode a whole PNG in search of a block that comes after the pixels.
    """
    if image.format == "TIFF" or ("exif" not in image.info and image.format in ("JPEG", "PNG")):
        return 1
    try:
        return int(image.getexif().get(_ORIENTATION, 1))
    except BROKEN:
        return 1


def _flatten(image: Image) -> Image:
    """RGB from any mode."""
    from PIL import Image as Pillow

    if image.mode.startswith("I") or image.mode == "F":
        return _eight_bit(image)
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        white = Pillow.new("RGB", image.size, "white")
        white.paste(rgba, mask=rgba.getchannel("A"))
        return white
    return image.convert("RGB")


def _eight_bit(image: Image) -> Image:
    """RGB from grey values of 16 or 32 bits, or from fractions (Pillow's own conversion clips at 255).

    Works in strips: beside the image and the result, 4 bytes per pixel each, there is never a whole one.
    """
    import numpy as np
    from PIL import Image as Pillow

    largest = max((float(strip.max()) for _, strip in _strips(image)), default=0.0)
    if image.mode == "F":
        scale = 255.0 if largest <= 1.0 else 1.0
    else:
        scale = 1 / 257 if image.mode.startswith("I;16") or largest > 255 else 1.0
    page = Pillow.new("RGB", image.size)
    for top, strip in _strips(image):
        levels = np.clip(np.rint(np.clip(strip, 0, 65_535) * scale), 0, 255).astype(np.uint8)
        page.paste(Pillow.fromarray(levels).convert("RGB"), (0, top))
    return page


def _strips(image: Image) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Parts of a grey image from top to bottom, with the row that each starts at; what is no number reads as 0."""
    import numpy as np

    height = max(1, _STRIP_PIXELS // image.width)
    for top in range(0, image.height, height):
        strip = image.crop((0, top, image.width, min(top + height, image.height)))
        yield top, np.nan_to_num(np.asarray(strip, dtype=np.float64))


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
    """Rendered size. Raises PageError above MAX_PIXELS."""
    size = math.ceil(width * scale), math.ceil(height * scale)
    if size[0] * size[1] > MAX_PIXELS:
        limit = f"the limit of {MAX_PIXELS // 10**6} megapixels"
        raise PageError(f"{source.path}: page {source.page} would have {size[0]:,} x {size[1]:,} pixels, above {limit}")
    return size


def _open_file(path: Path) -> BinaryIO:
    """The file, open; PageError if there is none or it is empty (a pipe is refused, it would block)."""
    try:
        if not path.exists():
            raise PageError(f"{path}: no such file")
        if not path.is_file():
            raise PageError(f"{path}: not a file")
        if path.stat().st_size == 0:
            raise PageError(f"{path}: the file is empty (0 bytes)")
        return path.open("rb")
    except (OSError, ValueError) as error:
        raise PageError(f"{path}: {_one_line(error)}") from None


def _why_not_an_image(stream: BinaryIO, error: BaseException) -> str:
    """The likeliest reason in plain words."""
    from PIL import UnidentifiedImageError

    if not isinstance(error, UnidentifiedImageError):
        return f"broken image ({_one_line(error)})"
    stream.seek(0)
    is_pdf = b"%PDF-" in stream.read(1024)
    return "is a PDF, not an image: name one of its pages" if is_pdf else "not an image, or a broken one"


def _why_not_a_pdf(message: str) -> str:
    if "password" in message.lower() or "security" in message.lower():
        return "the PDF is encrypted and needs a password"
    return "not a PDF, or a broken one"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
