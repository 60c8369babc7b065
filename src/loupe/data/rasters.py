"""Image files: the one place that opens them, by their content, and turns what they hold into upright RGB.

Conversion rules: docs/protocols/engines.md#images (RGB, alpha over white, EXIF orientation applied). Decoders are C
code and files are other people's, so this runs in bounded processes only (`loupe.workers.limits`); `header` may run
anywhere. Everything that cannot be read raises PageError with one line that names the file.
"""

from __future__ import annotations

import contextlib
import functools
import io
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from loupe.data.foreign_kinds import why_not_an_image
from loupe.data.tiff_pages import MOST_PAGES, beginning_with, pages_of
from loupe.errors import PageError
from loupe.workers.limits import ALLOW_LARGE, max_pixels

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

#: What is opened, by content (Pillow's names); a phone's MPO opens as JPEG. Left out: what starts a program
#: (PostScript), and what nobody scans to. `_formats` adds AVIF and HEIF if they can be decoded here.
FORMATS: Final = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF", "JPEG2000", "PPM")
#: Formats whose pictures after the first are not pages but move.
_MOVING: Final = frozenset({"PNG", "GIF", "WEBP", "AVIF"})
#: No image file is larger.
MAX_BYTES: Final = 512 * 10**6
#: Pixels converted at a time where that takes many bytes for each.
_STRIP_PIXELS = 100_000
#: `header` looks at so many bytes: a header is a few kilobytes, a hostile one as long as its file.
_HEADER_BYTES: Final = 1 << 20

#: What Pillow's decoders raise on hostile bytes, beside the OSError that they promise.
BROKEN = (OSError, ValueError, SyntaxError, EOFError, LookupError, TypeError, struct.error, zlib.error, RuntimeError)
_ORIENTATION = 0x0112


@contextmanager
def open_image(source: Path | bytes, name: Path | None = None, *, page: int = 1) -> Iterator[Image]:
    """An image file, or the bytes of one, with the header of a page read; `name` stands in messages about bytes.

    Raises PageError if it is missing, empty, not an image that can be decoded here, has no such page, or is larger than
    `max_pixels` or MAX_BYTES.
    """
    from PIL import Image, UnidentifiedImageError

    # Pillow would warn at 90 MP and only refuse at 179 MP; the check below is the stricter one.
    Image.MAX_IMAGE_PIXELS = None
    path = source if isinstance(source, Path) else name or Path("image")
    # A stream, not a path: Pillow maps files by path, and then decodes rotated gray TIFFs with the wrong width.
    with open_file(source) if isinstance(source, Path) else io.BytesIO(source) as stream:
        if stream.seek(0, io.SEEK_END) > MAX_BYTES:
            raise PageError(f"{path}: the file is larger than the limit of {MAX_BYTES // 10**6} MB for an image")
        stream.seek(0)
        try:
            image: Image.Image = Image.open(stream, formats=_formats())
        except UnidentifiedImageError:
            stream.seek(0)
            reason, hint = why_not_an_image(stream.read(1024), _formats(), source if isinstance(source, Path) else None)
            raise PageError(f"{path}: {reason}", hint=hint) from None
        except BROKEN as error:
            raise PageError(f"{path}: broken image ({_one_line(error)})") from None
        if image.format == "TIFF":
            image = _turned_to(image, stream, page, path, is_file=isinstance(source, Path))
        elif page != 1:
            raise PageError(f"{path}: is not a TIFF file, so it has no page {page}")
        if image.width * image.height > max_pixels():
            shown = f"{path}: page {page}:" if page > 1 else f"{path}:"
            size, limit = f"{image.width:,} x {image.height:,}", max_pixels() // 10**6
            raise PageError(
                f"{shown} {size} pixels are more than the limit of {limit} megapixels",
                hint=allow_large(image.width, image.height),
            )
        yield image


def allow_large(width: int, height: int) -> str:
    """Return the hint for a page that is above the limit."""
    return f"allow it (it takes more memory): export {ALLOW_LARGE}={-(-width * height // 10**6)}"


@functools.cache
def _formats() -> tuple[str, ...]:
    """Return the formats that can be decoded here: AVIF by most builds of Pillow, HEIC by pillow-heif."""
    from PIL import features

    more = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an older Pillow does not know what AVIF is
        if features.check("avif"):
            more.append("AVIF")
    with contextlib.suppress(ImportError):
        import pillow_heif  # type: ignore[import-not-found, unused-ignore]

        pillow_heif.register_heif_opener()
        more.append("HEIF")
    return *FORMATS, *more


def tiff_page_count(stream: BinaryIO, path: Path) -> int:
    """Return how many pages an open TIFF file has. Raises PageError for too many."""
    count = len(pages_of(stream, path))
    if count >= MOST_PAGES:
        raise PageError(f"{path}: has {count:,} pages or more, above the limit", hint="split it into several files")
    return max(1, count)


def _turned_to(image: Image, stream: BinaryIO, page: int, path: Path, *, is_file: bool) -> Image:
    """The TIFF file with the header of a page read. Raises PageError if there is none, or a broken one."""
    from PIL import Image as Pillow
    from PIL import UnidentifiedImageError

    places = pages_of(stream, path if is_file else None)
    if page > max(1, len(places)):
        raise PageError(f"{path}: has no page {page} (pages 1 to {max(1, len(places))})")
    if not places:
        return image  # nothing but smaller versions: the first is what there is
    try:
        return Pillow.open(beginning_with(stream, places[page - 1]), formats=("TIFF",))
    except BROKEN as error:
        why = "its directory cannot be read" if isinstance(error, UnidentifiedImageError) else _one_line(error)
        raise PageError(f"{path}: page {page} is broken ({why})") from None


def moving_pictures(image: Image) -> int:
    """Return how many pictures an open image holds if they are frames of an animation, else 1."""
    try:
        return int(getattr(image, "n_frames", 1)) if image.format in _MOVING else 1
    except BROKEN:
        return 1


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
    return image if image.width * image.height <= max_pixels() else None


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


def is_see_through(image: Image) -> bool:
    """Return whether a decoder of this image finds pixels that are not opaque. Decodes it if it may have any."""
    if not image.has_transparency_data:
        return False
    alpha = (image if image.mode == "RGBA" else image.convert("RGBA")).getchannel("A")
    return bool(alpha.histogram()[255] < alpha.width * alpha.height)


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


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
