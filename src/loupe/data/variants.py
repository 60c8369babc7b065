"""Page images turned or made worse on purpose, the same way every time: for measuring what that costs an engine.

Nothing official: olmOCR-Bench names no such variants. What is random (an angle, noise) is seeded by variant, file name
and page, so that every engine on every machine gets the same picture.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from loupe.types import PdfPage

if TYPE_CHECKING:
    from numpy.random import Generator
    from PIL.Image import Image

#: Quarter turns clockwise; `skew` by 1 to 3 degrees to either side; `blur`, `jpeg`, `noise`; `scan`: all four, mildly.
PageVariant: TypeAlias = Literal["none", "rotate90", "rotate180", "rotate270", "skew", "blur", "jpeg", "noise", "scan"]

#: Clockwise quarter turns: members of PIL.Image.Transpose.
_TURNS: Final = {"rotate90": 4, "rotate180": 3, "rotate270": 2}
#: Pages are made worse at this longer side, whatever size an engine then asks for: all read the same scan.
SCAN_LONGEST: Final = 2_048


def is_turned(variant: str) -> bool:
    """True if width and height change places."""
    return variant in ("rotate90", "rotate270")


def is_quarter_turn(variant: str) -> bool:
    """True if no pixel is changed, only moved."""
    return variant in _TURNS


def turned(page: Image, variant: str) -> Image:
    """The page after a quarter turn or two."""
    from PIL import Image as Pillow

    return page.transpose(Pillow.Transpose(_TURNS[variant]))


def made_worse(page: Image, source: PdfPage) -> Image:
    """The page, in RGB and of SCAN_LONGEST, as its variant has it. Raises ValueError for an unknown variant."""
    step = _STEPS.get(source.variant)
    if step is None:
        raise ValueError(f"no variant {source.variant!r} of pages; there are {', '.join((*_TURNS, *_STEPS))}")
    return step(page, _dice(source))


def _dice(source: PdfPage) -> Generator:
    import numpy as np

    seed = hashlib.sha256(f"{source.variant}\0{source.path.name}\0{source.page}".encode("utf-8", "surrogatepass"))
    return np.random.default_rng(int.from_bytes(seed.digest()[:8], "big"))


def _skewed(page: Image, dice: Generator, least: float = 1.0, most: float = 3.0) -> Image:
    from PIL import Image as Pillow

    angle = dice.uniform(least, most) * dice.choice((-1, 1))
    return page.rotate(angle, Pillow.Resampling.BICUBIC, fillcolor="white")


def _blurred(page: Image, dice: Generator, radius: float = 1.6) -> Image:
    from PIL import ImageFilter

    return page.filter(ImageFilter.GaussianBlur(radius))


def _squeezed(page: Image, dice: Generator, quality: int = 12) -> Image:
    from PIL.JpegImagePlugin import JpegImageFile

    buffer = io.BytesIO()
    page.save(buffer, "JPEG", quality=quality, subsampling=2)
    buffer.seek(0)
    buffer.seek(0)
    with JpegImageFile(buffer) as squeezed:
        return squeezed.convert("RGB")


def _noisy(page: Image, dice: Generator, deviation: float = 36.0) -> Image:
    """Grey noise with this standard deviation, of 255 levels."""
    import numpy as np
    from PIL import Image as Pillow

    noise = dice.standard_normal((page.height, page.width), dtype=np.float32) * np.float32(deviation)
    levels = np.asarray(page, dtype=np.float32) + noise[:, :, None]
    return Pillow.fromarray(np.clip(np.rint(levels), 0, 255).astype(np.uint8))


def _scanned(page: Image, dice: Generator) -> Image:
    page = _blurred(_skewed(page, dice, 0.5, 1.5), dice, 0.8)
    return _squeezed(_noisy(page, dice, 14.0), dice, 40)


_STEPS: Final[dict[str, Callable[[Image, Generator], Image]]] = {
    "skew": _skewed,
    "blur": _blurred,
    "jpeg": _squeezed,
    "noise": _noisy,
    "scan": _scanned,
}
