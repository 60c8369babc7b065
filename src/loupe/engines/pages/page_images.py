"""Image rules: how a page is resized and encoded before a server sees it.

Source: docs/protocols/engines.md#images and #exact-rules. `smart_resize` is that of GLM-OCR @ cef4d0ea and dots.ocr @
36d72488. A JPEG or PNG that needs no change travels byte for byte; everything else is decoded, resized with Lanczos and
encoded as JPEG (quality 95, 4:4:4), or as PNG where the source is TIFF or GIF.
"""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from loupe.data.packed import packed_name, read_packed
from loupe.data.pages import DEFAULT_DPI, load_page
from loupe.data.rasters import BROKEN, MAX_BYTES, header, is_see_through, is_upright, open_image, shrink, to_rgb
from loupe.errors import PageError, UnsafeFileError
from loupe.files.foreign import read_data
from loupe.types import DocumentPage, PackedImage, PageSource, PdfPage, TiffPage

if TYPE_CHECKING:
    from PIL.Image import Image

RuleKind: TypeAlias = Literal["none", "jpeg", "fit", "longest", "smart", "glm"]

#: MIME type by file suffix; anything else is called a PNG.
MIME_TYPES = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".tif": "image/tiff",
    ".tiff": "image/tiff",
}
#: MIME type by the first bytes of a file; names of the types as Pillow has them.
_MAGIC = (
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"II[*+]\0|MM\0[*+]"), "image/tiff"),
    (re.compile(rb"BM"), "image/bmp"),
    (re.compile(rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51"), "image/jpeg2000"),
)
#: Formats that travel byte for byte when no pixel has to change.
_PASSED_ON = {"JPEG": "image/jpeg", "PNG": "image/png"}
#: Rules of vendors who leave the quality of JPEG to Pillow; their images never travel as they are.
_AS_PILLOW = frozenset({"glm", "jpeg"})
#: Formats without loss that not every server decodes.
_LOSSLESS = {"TIFF", "GIF"}
_RULE = re.compile(r"(none|glm|jpeg)|(fit)(\d+)|(longest|smart)\(([\d\s,]*)\)")
#: Numbers that each rule takes.
_COUNTS = {"none": 0, "glm": 0, "jpeg": 0, "fit": 1, "longest": 1, "smart": 3}


@dataclass(frozen=True, slots=True)
class ImageRule:
    """A parsed rule: its kind and its numbers."""

    kind: RuleKind
    numbers: tuple[int, ...] = ()

    def target(self, width: int, height: int) -> tuple[int, int]:
        """The size that an image of this size is given. Raises ValueError where `smart` or `glm` has no answer."""
        if self.kind == "glm":
            new_height, new_width = glm_resize(height, width)
            if 0 in (new_height, new_width):
                raise ValueError("glm leaves nothing of a shape that long")
            return new_width, new_height
        if self.kind == "smart":
            factor, least, most = self.numbers
            new_height, new_width = smart_resize(height, width, factor=factor, min_pixels=least, max_pixels=most)
            return new_width, new_height
        if self.kind in ("none", "jpeg") or (self.kind == "fit" and max(width, height) <= self.numbers[0]):
            return width, height
        scale = self.numbers[0] / max(width, height)
        return max(1, round(width * scale)), max(1, round(height * scale))


@dataclass(frozen=True, slots=True)
class EncodedImage:
    """An image file in memory, ready to be sent."""

    mime: str
    data: bytes


def parse_rule(text: str) -> ImageRule:
    """The rule that `text` names. Raises ValueError that says what is allowed.

    >>> parse_rule("fit2048")
    ImageRule(kind='fit', numbers=(2048,))
    """
    found = _RULE.fullmatch(text.strip())
    if not found:
        raise ValueError(
            f"image rule {text!r}: use none, fit2048, longest(1288) or smart(28, 3136, 11289600), for crops jpeg or glm"
        )
    kind = cast(RuleKind, found[1] or found[2] or found[4])
    written = [found[3]] if found[3] else [number for number in (found[5] or "").split(",") if number.strip()]
    numbers = tuple(int(number) for number in written)
    if len(numbers) != _COUNTS[kind] or 0 in numbers:
        wanted = "one size" if _COUNTS[kind] == 1 else "factor, min_pixels, max_pixels"
        raise ValueError(f"image rule {text!r}: {kind} takes {wanted}, each above 0")
    if kind == "smart" and numbers[1] > numbers[2]:
        raise ValueError(f"image rule {text!r}: min_pixels is above max_pixels")
    return ImageRule(kind, numbers)


def smart_resize(
    height: int, width: int, *, factor: int, min_pixels: int, max_pixels: int, max_ratio: float = 200
) -> tuple[int, int]:
    """Height and width as multiples of `factor` with an area between `min_pixels` and `max_pixels` (dots.ocr, Qwen).

    Rounding is half to even. Raises ValueError for images longer than `max_ratio` times their width (dots.ocr: 200).
    """
    if max(height, width) / min(height, width) > max_ratio:
        raise ValueError(f"the image is more than {max_ratio:g} times as long as wide")
    new_height, new_width = max(factor, round(height / factor) * factor), max(factor, round(width / factor) * factor)
    if new_height * new_width > max_pixels:
        scale = math.sqrt(height * width / max_pixels)
        new_height = max(factor, math.floor(height / scale / factor) * factor)
        new_width = max(factor, math.floor(width / scale / factor) * factor)
    elif new_height * new_width < min_pixels:
        scale = math.sqrt(min_pixels / (height * width))
        new_height = math.ceil(height * scale / factor) * factor
        new_width = math.ceil(width * scale / factor) * factor
    return new_height, new_width


def glm_resize(
    height: int, width: int, *, factor: int = 28, min_pixels: int = 12_544, max_pixels: int = 71_372_800
) -> tuple[int, int]:
    """The same for GLM-OCR, which counts an image as two frames and knows no longest shape.

    Kept from its SDK: a side below half a factor is 0 at first, so such an image is always enlarged; and a side of a
    very long, very large image stays 0, which no image can have.
    """
    new_height, new_width = round(height / factor) * factor, round(width / factor) * factor
    if 2 * new_height * new_width > max_pixels:
        scale = math.sqrt(2 * height * width / max_pixels)
        return math.floor(height / scale / factor) * factor, math.floor(width / scale / factor) * factor
    if 2 * new_height * new_width < min_pixels:
        scale = math.sqrt(min_pixels / (2 * height * width))
        return math.ceil(height * scale / factor) * factor, math.ceil(width * scale / factor) * factor
    return new_height, new_width


def encode(source: PageSource, rule: ImageRule) -> EncodedImage:
    """The image as it is sent. Raises PageError if it cannot be read."""
    if isinstance(source, PdfPage):
        return encode_image(_render(source, rule), rule, source.path)
    if isinstance(source, TiffPage):
        return encode_image(load_page(source), rule, source.path, lossless=rule.kind not in _AS_PILLOW)
    name, data = _bytes_of(source)
    untouched = _untouched(source, name, data, rule)
    if untouched is not None:
        return untouched
    if rule.kind == "none" and not _is_see_through(data, name):
        return EncodedImage(_mime(source, name, data), data)
    with open_image(data, name) as image:
        lossless = (image.format in _LOSSLESS and rule.kind not in _AS_PILLOW) or rule.kind == "none"
        return _encode_pixels(_resize(to_rgb(image, name), rule, name), rule, lossless=lossless)


def _is_see_through(data: bytes, name: Path) -> bool:
    """True if a page would look different on another ground than white; what cannot be read is sent as it is."""
    try:
        with open_image(data, name) as image:
            return is_see_through(image)
    except (PageError, *BROKEN):
        return False


def encode_image(image: Image, rule: ImageRule, name: Path, *, lossless: bool = False) -> EncodedImage:
    """An upright RGB image in memory as it is sent. Raises PageError where the rule has no size for it."""
    return _encode_pixels(_resize(image, rule, name), rule, lossless=lossless)


def encode_untouched(source: PageSource, rule: ImageRule) -> EncodedImage | None:
    """The bytes of the image, if they may travel as they are; a look at the header. None: `encode` has work to do."""
    return None if isinstance(source, DocumentPage) else _untouched(source, *_bytes_of(source), rule)


def _bytes_of(source: Path | PackedImage) -> tuple[Path, bytes]:
    """The name of an image, as far as it has one, and its bytes."""
    if isinstance(source, PackedImage):
        return packed_name(source), read_packed(source)
    return source, _read(source)


def _untouched(source: PageSource, name: Path, data: bytes, rule: ImageRule) -> EncodedImage | None:
    image = header(data)
    if rule.kind == "none":
        # What may be transparent is looked at where it can do no harm.
        opaque = data.startswith(b"\xff\xd8\xff") or (image is not None and not image.has_transparency_data)
        return EncodedImage(_mime(source, name, data), data) if opaque else None
    if image is None or not _needs_no_change(image, data, rule, name):
        return None
    return EncodedImage(_PASSED_ON[str(image.format)], data)


def _mime(source: PageSource, name: Path, data: bytes) -> str:
    """The type by the suffix; columns of parquet have none, so there the image's first bytes say what it is."""
    known = MIME_TYPES.get(name.suffix.lower())
    if known or not isinstance(source, PackedImage):
        return known or "image/png"
    return next((mime for magic, mime in _MAGIC if magic.match(data)), "image/png")


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise PageError(f"{path}: the file is larger than the limit of {MAX_BYTES // 10**6} MB for an image")
        data = read_data(path)
    except FileNotFoundError:
        raise PageError(f"{path}: no such file") from None
    except UnsafeFileError as error:
        raise PageError(error.message) from None
    except (OSError, ValueError) as error:
        raise PageError(f"{path}: {error.__class__.__name__}: {error}") from None
    if not data:
        raise PageError(f"{path}: the file is empty (0 bytes)")
    return data


def _needs_no_change(image: Image, data: bytes, rule: ImageRule, path: Path) -> bool:
    """True if the bytes may travel as they are; looks at the header only."""
    if image.format not in _PASSED_ON or image.mode not in ("RGB", "L") or "transparency" in image.info:
        return False
    if rule.kind in _AS_PILLOW:
        return False
    # Pillow sees an EXIF block behind the pixels of a PNG only after decoding them.
    if not is_upright(image) or (image.format == "PNG" and b"eXIf" in data):
        return False
    return _target(rule, image.size, path) == image.size


def _render(source: PdfPage, rule: ImageRule) -> Image:
    """A PDF page, for `fit` and `longest` at its final size, so that it is not scaled twice."""
    if rule.kind == "fit":
        return load_page(source, longest=rule.numbers[0], dpi=DEFAULT_DPI)
    return load_page(source, longest=rule.numbers[0] if rule.kind == "longest" else None)


def _resize(image: Image, rule: ImageRule, path: Path) -> Image:
    from PIL import Image as Pillow

    size = _target(rule, image.size, path)
    if rule.kind == "glm":
        return _twice_encoded(image).resize(size, Pillow.Resampling.BICUBIC)
    if rule.kind == "fit":
        return shrink(image, rule.numbers[0])
    return image if size == image.size else image.resize(size, Pillow.Resampling.LANCZOS)


def _target(rule: ImageRule, size: tuple[int, int], path: Path) -> tuple[int, int]:
    try:
        return rule.target(*size)
    except ValueError as error:
        raise PageError(f"{path}: {error}") from None


def _twice_encoded(image: Image) -> Image:
    """Kept from GLM-OCR's SDK: a crop goes through JPEG once before it is resized and becomes one for good."""
    from PIL.JpegImagePlugin import JpegImageFile

    buffer = io.BytesIO()
    image.save(buffer, "JPEG")
    buffer.seek(0)
    return JpegImageFile(buffer).convert("RGB")


def _encode_pixels(image: Image, rule: ImageRule, *, lossless: bool = False) -> EncodedImage:
    buffer = io.BytesIO()
    if rule.kind in _AS_PILLOW:
        # With Pillow's own quality (75), as the vendors have it.
        image.save(buffer, "JPEG")
        return EncodedImage("image/jpeg", buffer.getvalue())
    if lossless:
        # Higher levels cost seconds per page and save a few percent.
        image.save(buffer, "PNG", compress_level=1)
        return EncodedImage("image/png", buffer.getvalue())
    image.save(buffer, "JPEG", quality=95, subsampling=0)
    return EncodedImage("image/jpeg", buffer.getvalue())
