"""Drawings on disk, so that an equation is drawn once on a machine, whoever asks; failures of KaTeX too."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from loupe.benchmarks.shared.equations.rendering.drawing import Drawing
from loupe.metrics.blob_cache import BlobCache
from loupe.typed import msgpack_decoder

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
