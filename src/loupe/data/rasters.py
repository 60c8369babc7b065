"""Image files: the one place that opens them, by their content, and turns what they hold into upright RGB.

Conversion rules: docs/protocols/engines.md#images (RGB, alpha over white, EXIF orientation applied). Decoders are C
code and files are other people's, so this runs in bounded processes only (`loupe.data.bounds`); `header` may run
anywhere. Everything that cannot be read raises PageError with one line that names the file.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from loupe.errors import PageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

#: What is opened, by content (Pillow's names); a phone's MPO opens as JPEG. Left out: what starts a program
#: (PostScript), and what nobody scans to.
FORMATS: Final = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF", "JPEG2000", "PPM")
#: Larger pages are refused before they are decoded: 200 MP are 600 MB in memory.
MAX_PIXELS = 200_000_000
#: No image file is larger.
MAX_BYTES: Final = 512 << 20
#: Pixels converted at a time where that takes many bytes for each.
_STRIP_PIXELS = 100_000
#: `header` looks at so many bytes: a header is a few kilobytes, a hostile one as long as its file.
_HEADER_BYTES: Final = 1 << 20

#: What Pillow's decoders raise on hostile bytes, beside the OSError that they promise.
BROKEN = (OSError, ValueError, SyntaxError, EOFError, LookupError, TypeError, struct.error, zlib.error, RuntimeError)
_ORIENTATION = 0x0112
#: What files that are no such image often are, by what stands near their start (in lower case).
_OTHER_KINDS: Final = (
    ((b"%!ps", b"\xc5\xd0\xd3\xc6"), "PostScript"),
    ((b"<svg", b"<?xml"), "an SVG or XML file"),
    ((b"ftypheic", b"ftypheix", b"ftypheim", b"ftypmif1", b"ftypmsf1"), "a HEIC photo"),
    ((b"ftypavif", b"ftypavis"), "an AVIF image"),
    ((b"8bps",), "a Photoshop file"),
    ((b"<!doctype html", b"<html"), "a web page"),
    ((b"version https://git-lfs",), "a pointer of Git LFS (git lfs pull brings the image)"),
    ((b"pk\x03\x04",), "a zip archive or an office document"),
    ((b"\xd7\xcd\xc6\x9a", b" emf"), "a Windows metafile"),
    ((b"at&tform",), "a DjVu document"),
)


@contextmanager
def open_image(source: Path | bytes, name: Path | None = None) -> Iterator[Image]:
    """An image file, or the bytes of one, with its header read; `name` stands in messages about bytes.

    Raises PageError if it is missing, empty, not an image in one of FORMATS, or larger than MAX_PIXELS or MAX_BYTES.
    """
    from PIL import Image

    # Pillow would warn at 90 MP and only refuse at 179 MP; the check below is the stricter one.
    Image.MAX_IMAGE_PIXELS = None
    path = source if isinstance(source, Path) else name or Path("image")
    # A stream, not a path: Pillow maps files by path, and then decodes rotated gray TIFFs with the wrong width.
    with open_file(source) if isinstance(source, Path) else io.BytesIO(source) as stream:
        if stream.seek(0, io.SEEK_END) > MAX_BYTES:
            raise PageError(f"{path}: the file is larger than the limit of {MAX_BYTES >> 20} MB for an image")
        stream.seek(0)
        try:
            image = Image.open(stream, formats=FORMATS)
        except BROKEN as error:
            raise PageError(f"{path}: {_why_not_an_image(stream, error)}") from None
        if image.width * image.height > MAX_PIXELS:
            size = f"{image.width:,} x {image.height:,}"
            raise PageError(f"{path}: {size} pixels are more than the limit of {MAX_PIXELS // 10**6} megapixels")
        yield image


def header(data: bytes) -> Image | None:
    """The header of a JPEG or PNG, of which no pixel is to be read; None for anything else, or where it is long.

    Looks at the first megabyte only, so that it is quick and small enough for any process.
    """
    from PIL import Image

    Image.MAX_IMAGE_PIXELS = None
    try:
        image = Image.open(io.BytesIO(data[:_HEADER_BYTES]), formats=("JPEG", "PNG"))
    except BROKEN:
        return None
    return image if image.width * image.height <= MAX_PIXELS else None


def to_rgb(image: Image, name: Path) -> Image:
    """Decode `image` into upright RGB: alpha over white, 16 bit scaled down, EXIF orientation applied."""
    from PIL import Image as Pillow

    try:
        image.load()
        turn = _TURNS.get(orientation(image))
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
    return orientation(image) == 1


#: EXIF orientation → member of PIL.Image.Transpose.
_TURNS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}


def orientation(image: Image) -> int:
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
    # Pillow copies what is in the right mode already, and a page may be large.
    if image.has_transparency_data:
        rgba = image if image.mode == "RGBA" else image.convert("RGBA")
        white = Pillow.new("RGB", image.size, "white")
        white.paste(rgba, mask=rgba.getchannel("A"))
        return white
    return image if image.mode == "RGB" else image.convert("RGB")


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


def open_file(path: Path) -> BinaryIO:
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
    start = stream.read(1024)
    kind = next((kind for marks, kind in _OTHER_KINDS if any(mark in start[:64].lower() for mark in marks)), "")
    if kind:
        return f"is {kind}, which Loupe cannot open: save it as PNG or JPEG"
    return "is a PDF, not an image: name one of its pages" if b"%PDF-" in start else "not an image, or a broken one"


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
