"""An estimate of the official evaluator's time for a page: whether its limit of 30 s might be reached.

Protocol: docs/protocols/omnidocbench.md#time-limit.
Nearly all of its time goes to windows (#neighbours, #containment), one edit distance each. Of 37 fragmented pages the
official code was run on, 10 took more than a second (2 to 43 s): 1.0 to 1.6 times the estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from loupe.benchmarks.omnidocbench.match.assignment import Key, Match
from loupe.benchmarks.omnidocbench.match.joined_columns import Columns

#: Seconds of one window, and of each character of it per 64 of the other side.
_WINDOW: Final = 7e-7
_CHARACTER: Final = 3e-9


def upstream_seconds(
    truth: Sequence[str], predicted: Sequence[str], columns: Columns, matches: Mapping[Key, Sequence[Match]]
) -> float:
    """The estimated seconds that upstream's merge and containment steps take."""
    lengths = np.array([len(line) for line in predicted])
    merging = sum(_merging(len(truth[row]), run, lengths, columns.is_free) for row, run in columns.best.items())
    assigned = {match.block for found in matches.values() for match in found if match.step != "containment"}
    missing = [len(block) for index, block in enumerate(truth) if index not in assigned]
    return merging + sum(float(_windows(lengths, np.array(length)).sum()) for length in missing)


def _merging(length: int, run: range, lengths: NDArray[np.int64], is_free: Sequence[bool]) -> float:
    """Every prediction is tried with the next; and from each member of the best run all runs to its end are tried,
    for which the windows of all members are measured anew."""
    windows = _windows(np.array(length), lengths) * np.array(is_free)
    tries = float(2 * windows.sum())
    members = len(run)
    if members == 1:
        return tries
    return tries + float(windows[run.start : run.stop].mean()) * members * (members + 1) * (members + 5) / 6


def _windows(text: NDArray[np.int64], needle: NDArray[np.int64]) -> NDArray[np.float64]:
    """Seconds for all windows of texts of these lengths."""
    seconds: NDArray[np.float64] = np.maximum(text - needle + 1, 0) * (
        _WINDOW + _CHARACTER * needle * np.ceil(needle / 64)
    )
    return seconds
