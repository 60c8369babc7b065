"""Define what KaTeX makes of an equation, and keep it on disk, so that an equation is drawn once on a machine.

A drawing has its MathML, the texts of its innermost spans, and where these are. Failures of KaTeX are kept too.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from loupe.metrics.blob_cache import BlobCache
from loupe.typed import msgpack_decoder

#: Longest equation that is drawn, in characters; a longer one counts as one that KaTeX refuses. Upstream has no limit,
#: but KaTeX needs quadratic time: 3 s for the longest that is drawn here, hours for a megabyte.
LONGEST_EQUATION = 20_000


class Box(msgspec.Struct, frozen=True, array_like=True):
    """The border box of a span, in CSS pixels of a page of 800 x 400."""

    x: float
    y: float
    width: float
    height: float


class PicturedGlyph(msgspec.Struct, frozen=True, array_like=True):
    """The place where the text of a span begins, on which baseline, and in which type."""

    x: float
    baseline: float
    width: float
    size: float
    italic: bool
    bold: bool


class PicturedShape(msgspec.Struct, frozen=True, array_like=True):
    """An SVG path, the matrix that places it and the box that it is cut off at."""

    path: str
    matrix: tuple[float, float, float, float, float, float]
    clip: tuple[float, float, float, float]
    stroke: bool


class Picture(msgspec.Struct, frozen=True):
    """An equation for people to see, in pixels from its upper left corner. `glyphs` belong to the texts."""

    width: float
    height: float
    glyphs: list[PicturedGlyph]
    rules: list[tuple[float, float, float, float]]
    shapes: list[PicturedShape]


class Drawing(msgspec.Struct, frozen=True):
    """An equation as drawn. With `error` (KaTeX refuses it) or `lost` (it cost the browser) there is no rest.

    `texts` are those of the spans with something to see, trimmed, in document order; `boxes` belong to them, and are
    None where nobody has asked for them. `picture` is there where one was asked for and is not too large.
    """

    mathml: str = ""
    texts: list[str] = []
    boxes: list[Box] | None = None
    picture: Picture | None = None
    error: str = ""
    lost: str = ""


def refused_unseen(equation: str) -> str:
    """Explain why an equation is not even shown to KaTeX; empty if it is."""
    if len(equation) > LONGEST_EQUATION:
        return f"{len(equation)} characters, more than {LONGEST_EQUATION}"
    try:
        equation.encode("utf-8")
    except UnicodeEncodeError:
        return "no valid Unicode (a lone surrogate)"
    return ""


_LARGEST_DRAWING = 64 << 20


class DrawingCache:
    """Drawings by renderer, equation and whether they are measured. Any thread may ask; processes share the file."""

    def __init__(self, path: Path, renderer: str) -> None:
        self._blobs = BlobCache(path)
        self._renderer = renderer

    def find(self, equations: Iterable[str], *, measured: bool) -> dict[str, Drawing]:
        """Those of the equations that were drawn before."""
        keys = {self._key(equation, measured): equation for equation in equations}
        drawings = ((keys[key], _unpacked(packed)) for key, packed in self._blobs.find(list(keys)).items())
        return {equation: drawing for equation, drawing in drawings if drawing is not None}

    def keep(self, drawings: Mapping[str, Drawing], *, measured: bool) -> None:
        """Remember drawings, also of equations that KaTeX refuses; not what the browser was lost over."""
        kept = {self._key(each, measured): _packed(drawing) for each, drawing in drawings.items() if not drawing.lost}
        self._blobs.keep(kept)

    def close(self) -> None:
        """Let go of the file."""
        self._blobs.close()

    def _key(self, equation: str, measured: bool) -> bytes:
        text = f"{self._renderer}\0{'measured' if measured else 'looked at'}\0{equation}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _packed(drawing: Drawing) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(drawing), 1)


def _unpacked(packed: bytes) -> Drawing | None:
    """The drawing, or None for bytes that are none."""
    try:
        return msgpack_decoder(Drawing).decode(zlib.decompressobj().decompress(packed, _LARGEST_DRAWING))
    except (zlib.error, msgspec.DecodeError):
        return None
