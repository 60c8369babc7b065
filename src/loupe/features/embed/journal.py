"""Vectors that came back: checked, and on the disk before they count; what is stored here is never requested again.

Checked: as many vectors as requested, finite, of one dimension, not all zero. Protocol: docs/embedding.md; OpenAI's
`/v1/embeddings` (`embedding`, numbers or Base64) and vLLM's `/pooling` (`data`).

The journal is an append-only file of JSON lines: the settings first, then one vector or one refusal for each item,
found again by the digest of what was requested. `kill -9` loses what was in flight and nothing else.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from loupe.errors import EngineError, RunError
from loupe.files.folder import Folder
from loupe.files.json_lines import RecordLog, read_lines
from loupe.typed import encode_json, json_decoder
from loupe.types import UNDECODABLE

Vector: TypeAlias = npt.NDArray[np.float32]
_MOST_DIMENSIONS = 1_000_000


class MalformedAnswerError(EngineError):
    """An answer that is no list of one vector for each item asked: nothing of it can be trusted."""


@dataclass(frozen=True, slots=True)
class BadVector:
    """The reason why the vector of one item cannot be used."""

    reason: str


class _Row(msgspec.Struct):
    index: int | None = None
    embedding: list[float | None] | str | None = None
    data: list[float | list[float | None] | None] | str | None = None


class _Answer(msgspec.Struct):
    data: list[_Row]


def read_vectors(body: bytes, asked: int, dimension: int | None) -> list[Vector | BadVector]:
    """One normalised vector for each item asked, in their order, or what is wrong with it.

    Raises MalformedAnswerError where vectors cannot be told apart: too few, too many, an index that comes twice.
    """
    try:
        rows = json_decoder(_Answer).decode(body).data
    except (msgspec.DecodeError, RecursionError) as error:
        raise MalformedAnswerError(f"the answer is no list of embeddings: {error}") from None
    if len(rows) != asked:
        raise MalformedAnswerError(f"{asked} items were sent, {len(rows)} vectors came back")
    places = [number if row.index is None else row.index for number, row in enumerate(rows)]
    if sorted(places) != list(range(asked)):
        raise MalformedAnswerError("the indices of the vectors are not those of the items")
    ordered = dict(zip(places, rows, strict=True))
    return [_vector(ordered[place], dimension) for place in range(asked)]


def _vector(row: _Row, dimension: int | None) -> Vector | BadVector:
    """The vector of one row with length 1."""
    written = row.data if row.embedding is None else row.embedding
    if isinstance(written, str):
        values = _from_base64(written)
    elif any(isinstance(value, list) for value in written or []):
        return BadVector("several vectors for one item: late-interaction models are not supported")
    else:
        values = np.array([np.nan if value is None else value for value in written or []], dtype=np.float64)
    if values.size == 0 or values.size > _MOST_DIMENSIONS:
        return BadVector(f"a vector of {values.size:,} numbers")
    if dimension is not None and values.size != dimension:
        return BadVector(f"a vector of {values.size:,} numbers, where {dimension:,} were expected")
    if not np.isfinite(values).all():
        return BadVector("a vector with NaN or infinite numbers")
    longest = float(np.abs(values).max())
    if longest == 0.0:
        return BadVector("a vector of zeros, which has no direction")
    # Scaled first, so that squares neither overflow nor vanish.
    scaled = values / longest
    return np.asarray(scaled / np.sqrt(np.square(scaled).sum()), dtype=np.float32)


def _from_base64(text: str) -> npt.NDArray[np.float64]:
    try:
        raw = binascii.a2b_base64(text, strict_mode=True)
    except (binascii.Error, ValueError):
        return np.zeros(0)
    return np.frombuffer(raw, dtype="<f4").astype(np.float64) if len(raw) % 4 == 0 else np.zeros(0)


NAME = "vectors.jsonl"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that a vector depends on besides its item. Vectors of other settings never share its file."""

    model: str
    endpoint: str
    query_format: str
    instruction: str
    max_model_len: int
    image_rule: str


class _Line(msgspec.Struct, omit_defaults=True):
    key: str = ""
    vector: str = ""
    truncated: bool = False
    error: str = ""
    settings: Settings | None = None
    facts: dict[str, str] = {}


class _Known(msgspec.Struct):
    offset: int
    length: int
    truncated: bool = False
    error: str = ""


def key_of(*parts: str) -> str:
    """Return the key that an item is found under: its kind and content."""
    digest = hashlib.sha256()
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "big") + raw)
    return digest.hexdigest()


class VectorJournal:
    """The file, open for reading and appending. `dimension` is that of every vector in it."""

    def __init__(self, folder: Folder) -> None:
        self.path = folder.path / NAME
        self._folder = folder
        self._log = RecordLog(folder, NAME)
        self._known: dict[str, _Known] = {}
        self.settings: Settings | None = None
        self.facts: dict[str, str] = {}
        self.dimension: int | None = None
        self._end = 0
        for number, offset, line in read_lines(folder, NAME):
            self._take(_decode(self.path, number, line), offset, len(line))
            self._end = offset + len(line) + 1

    def begin(self, settings: Settings, facts: Mapping[str, str]) -> None:
        """Store the settings of a new file. Raises RunError, with the differences, if an old one has others."""
        if self.settings is None:
            self._append(_Line(settings=settings, facts=dict(facts)))
        elif self.settings != settings:
            raise RunError(
                f"{self.path.parent} holds vectors with other settings:",
                listed=list(differences(self.settings, settings)),
                hint="use --output DIR to keep both, or --fresh to start over (the old folder is moved aside)",
            )

    def keep(self, vectors: Iterable[tuple[str, Vector, bool]]) -> None:
        """Store vectors with their keys, and whether the text was cut; on the disk when this returns."""
        for key, vector, truncated in vectors:
            raw = base64.b64encode(vector.astype("<f4").tobytes()).decode()
            self._append(_Line(key=key, vector=raw, truncated=truncated), sync=False)
        self._log.append([], sync=True)

    def refuse(self, key: str, error: str) -> None:
        """Store that the endpoint refuses an item for good."""
        self._append(_Line(key=key, error=error))

    def has(self, key: str) -> bool:
        """True if this item needs no asking any more."""
        return key in self._known

    def error(self, key: str) -> str:
        """Return the reason why the item has no vector, "" if it has one or was not asked."""
        known = self._known.get(key)
        return known.error if known else ""

    def truncated(self, key: str) -> bool:
        """True if the item's text was cut at the limit of the model."""
        known = self._known.get(key)
        return known.truncated if known else False

    def vector(self, key: str) -> Vector | None:
        """The vector of an item."""
        known = self._known.get(key)
        if known is None or known.error:
            return None
        with self._folder.open(NAME) as file:
            file.seek(known.offset)
            line = json_decoder(_Line).decode(file.read(known.length))
        return np.frombuffer(base64.b64decode(line.vector), dtype="<f4")

    def _append(self, line: _Line, *, sync: bool = True) -> None:
        data = encode_json(line)
        self._log.append([data], sync=sync)
        self._take(line, self._end, len(data))
        self._end += len(data) + 1

    def _take(self, line: _Line, offset: int, length: int) -> None:
        if line.settings is not None:
            self.settings, self.facts = line.settings, line.facts
        elif line.vector or line.error:
            self._known[line.key] = _Known(offset, length, line.truncated, line.error)
            if line.vector and self.dimension is None:
                self.dimension = len(base64.b64decode(line.vector)) // 4

    def __enter__(self) -> VectorJournal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._log.close()


def differences(old: Settings, new: Settings) -> list[str]:
    """Name what differs, in words."""
    return [
        f"{name}: {getattr(old, name)!r} there, {getattr(new, name)!r} asked for"
        for name in Settings.__struct_fields__
        if getattr(old, name) != getattr(new, name)
    ]


def _decode(path: Path, number: int, line: bytes) -> _Line:
    try:
        return json_decoder(_Line).decode(line)
    except UNDECODABLE as error:
        raise RunError(
            f"{path}:{number}: not a vector of this folder: {error}", hint=f"delete line {number}, then go on"
        ) from None
