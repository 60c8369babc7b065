"""The mean of several measures, each counted once: what a benchmark of several tasks or tracks is ranked by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from loupe.types import Values


def mean_of_parts(values: Values, names: Sequence[str]) -> Any | None:
    """The mean of the measures that are there, numbers or draws; None without any.

    A measure that is nan everywhere was not computed (in a slice, say) and is left out, unless all are. Where a draw of
    the bootstrap lacks one of the others, the mean is nan there: it would be the mean of something else.
    """
    arrays = [np.asarray(values[name], float) for name in names if values.get(name) is not None]
    present = [array for array in arrays if not np.isnan(array).all()] or arrays
    return np.mean(np.stack(np.broadcast_arrays(*present)), axis=0)[()] if present else None
