"""What an embedding endpoint answered, checked: as many vectors as asked for, finite, of one dimension, not all zero.

Protocol: docs/embedding.md; OpenAI's `/v1/embeddings` (`embedding`, numbers or Base64) and vLLM's `/pooling` (`data`).
"""

from __future__ import annotations

import binascii
from dataclasses import dataclass
from typing import TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from loupe.errors import EngineError
from loupe.typed import json_decoder

Vector: TypeAlias = npt.NDArray[np.float32]
_MOST_DIMENSIONS = 1_000_000


class MalformedAnswerError(EngineError):
    """An answer that is no list of one vector for each item asked: nothing of it can be trusted."""


@dataclass(frozen=True, slots=True)
class BadVector:
    """Why the vector of one item cannot be used."""

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
