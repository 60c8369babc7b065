"""Many normalised edit distances at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

Distances: TypeAlias = NDArray[np.float64]


def distance_matrix(rows: Sequence[str], columns: Sequence[str]) -> Distances:
    """`normalized_edit_distance` of every row and column, to the last bit; two empty strings: 0."""
    if not rows or not columns:
        return np.zeros((len(rows), len(columns)))
    edits = cdist(rows, columns, scorer=Levenshtein.distance, dtype=np.int32)
    lengths = np.maximum.outer(_lengths(rows), _lengths(columns))
    return edits / np.maximum(lengths, 1)


def _lengths(strings: Sequence[str]) -> NDArray[np.int64]:
    return np.fromiter(map(len, strings), dtype=np.int64, count=len(strings))
