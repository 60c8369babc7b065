"""Renderings remembered by content: in memory for the samples at hand, in a file for the next engine and the next run.

The key is the formula, the profile, the renderer, the release of TeX and the code of this package, so nothing stale is
ever found. The file is a cache: where it cannot be read or written, formulas are rendered again.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec.msgpack import Decoder

from loupe.metrics.blob_cache import BlobCache

_IN_MEMORY: Final = 4096

Value = TypeVar("Value", bound=msgspec.Struct)


class RenderCache:
    """Safe for several processes on one folder."""

    def __init__(self, folder: Path | None) -> None:
        self._kept = BlobCache(folder / "cdm.sqlite") if folder else None
        self._memory: OrderedDict[bytes, bytes] = OrderedDict()

    def get(self, kind: str, formulas: Sequence[str], form: Decoder[Value]) -> list[Value | None]:
        """What is remembered of each formula, None where nothing is."""
        keys = [_key(kind, formula) for formula in formulas]
        known = {key: self._memory[key] for key in keys if key in self._memory}
        absent = [key for key in keys if key not in known]
        if absent and self._kept:
            for key, value in self._kept.find(absent).items():
                known[key] = value
                self._remember(key, value)
        return [_decoded(known.get(key), form) for key in keys]

    def put(self, kind: str, values: Mapping[str, msgspec.Struct]) -> None:
        """Remember these, failures too."""
        blobs = {_key(kind, formula): msgspec.msgpack.encode(value) for formula, value in values.items()}
        for key, value in blobs.items():
            self._remember(key, value)
        if blobs and self._kept:
            self._kept.keep(blobs)

    def close(self) -> None:
        """Let go of the file."""
        if self._kept:
            self._kept.close()

    def _remember(self, key: bytes, value: bytes) -> None:
        self._memory[key] = value
        self._memory.move_to_end(key)
        while len(self._memory) > _IN_MEMORY:
            self._memory.popitem(last=False)


def _decoded(value: bytes | None, form: Decoder[Value]) -> Value | None:
    if value is None:
        return None
    try:
        return form.decode(value)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


def _key(kind: str, formula: str) -> bytes:
    text = f"{code_digest()}\n{kind}\n{formula}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Of CDM, and of what it reads LaTeX with: another rule is another rendering."""
    digest = hashlib.sha256()
    drawing = Path(__file__).parent
    cdm = drawing.parent
    for folder in (cdm, drawing, cdm.parent / "latex_nodes"):
        for file in sorted(folder.glob("*.py")):
            digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()
