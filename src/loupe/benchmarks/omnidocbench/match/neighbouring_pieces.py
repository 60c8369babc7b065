"""Which run of neighbouring predictions comes nearest to one block of the ground truth.

Protocol: docs/protocols/omnidocbench.md#neighbours.
Upstream grows a run from every prediction and keeps the best. Here those that the best so far cannot lose to are not
grown: a run never gets worse while it grows, so it ends no better than the best of all runs from its start.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final

import numpy as np
from rapidfuzz.distance import Levenshtein

from loupe.benchmarks.omnidocbench.match.distances import Distances
from loupe.benchmarks.omnidocbench.match.overlaps import RunOfPieces
from loupe.benchmarks.omnidocbench.match.windows import edits_within, short_window_distances, window_distance
from loupe.benchmarks.omnidocbench.work import Work
from loupe.metrics import normalized_edit_distance

#: How well a piece must fit somewhere in the block that it is to be a part of.
FITS: Final = 0.6
#: So many runs are measured sooner than one is grown.
_MEASURED: Final = 16
#: Up to so many characters it is faster to measure all windows at once than to step over some.
_SHORT: Final = 16
#: Characters of a probe, by which it is told whether a prediction may be a part of a block; they follow each other.
_PROBE: Final = 6


class Runs:
    """The predictions, joined by one space: any run of them is a slice."""

    def __init__(self, predicted: Sequence[str], is_free: Sequence[bool], work: Work, longest: int) -> None:
        self.predicted = predicted
        #: A run has no more predictions than this.
        self.longest = longest
        self.work = work
        #: Whether a prediction may be part of a run; those that have their block already may not.
        self.is_free = is_free
        self.joined = " ".join(predicted)
        self.lengths = np.array([len(line) for line in predicted])
        #: Short predictions by length: these are fitted all at once.
        self.short = _by_length(line for line in predicted if len(line) <= _SHORT)
        #: Short pieces of each prediction that share no character.
        self.probes = [_probes(line) for line in predicted]
        #: Where each prediction starts and ends in the joined text.
        ends = np.cumsum(self.lengths + 1) - 1
        self.ends: list[int] = ends.tolist()
        self.starts: list[int] = (ends - self.lengths).tolist()
        #: Behind the last of the predictions from each on that are all the same, as in the loop of a model.
        self.same_until = _same_until(predicted)

    def text(self, start: int, stop: int) -> str:
        """A run as one text."""
        return self.joined[self.starts[start] : self.ends[stop - 1]]

    def repeats(self, start: int, length: int) -> bool:
        """Whether a run from `start` ends no better than one from the prediction before it, which is the same.

        It does not if it meets the same lines up to more characters than `length`, where it ends; or if nothing can
        follow these lines, for then the other is the same and one line longer, and no run gets worse as it grows.
        """
        if not start or not self.is_free[start - 1] or self.same_until[start] != self.same_until[start - 1]:
            return False
        end = self.same_until[start]
        if end == len(self.predicted) or not self.is_free[end]:
            return True
        return self.ends[end - 1] - self.starts[start] > length

    def stops(self, start: int, shortest: float, longest: float) -> range:
        """The stops of all runs from `start` whose texts have between so many characters; with what is not free."""
        offset = self.starts[start]
        first = bisect_left(self.ends, offset + shortest, lo=start)
        last = bisect_right(self.ends, offset + longest, lo=start)
        return range(first + 1, last + 1)


def _by_length(lines: Iterable[str]) -> dict[int, list[str]]:
    """Different lines of each length."""
    found: dict[int, list[str]] = defaultdict(list)
    for line in dict.fromkeys(lines):
        found[len(line)].append(line)
    return found


def _same_until(lines: Sequence[str]) -> list[int]:
    found = list(range(1, len(lines) + 1))
    for index in reversed(range(len(lines) - 1)):
        if lines[index] == lines[index + 1]:
            found[index] = found[index + 1]
    return found


def _probes(line: str) -> tuple[str, ...]:
    return tuple(line[start : start + _PROBE] for start in range(0, len(line) - _PROBE + 1, _PROBE))


class BlockFit:
    """One block, and how predictions and runs of them fit it."""

    def __init__(self, text: str, runs: Runs, distances: Distances) -> None:
        self.text = text
        self.runs = runs
        self.distances = distances
        self._fits: dict[str, float] = {}
        self.runs.work.spend(_PROBE, len(text), times=len(runs.predicted))
        missing = [len(probes) - sum(map(text.__contains__, probes)) for probes in runs.probes]
        #: How many probes of the predictions before each are not in the block.
        self._missing = [0, *accumulate(missing)]

    def fit(self, index: int) -> float:
        """How well one prediction fits somewhere in the block, as far as it matters on which side of `FITS` that is."""
        line = self.runs.predicted[index]
        if line not in self._fits:
            if len(line) <= _SHORT:
                lines = self.runs.short[len(line)]
                self._fits.update(zip(lines, short_window_distances(lines, self.text, self.runs.work), strict=True))
            else:
                work = self.runs.work
                self._fits[line] = window_distance(line, self.text, bound=FITS, enough=FITS, work=work)
        return self._fits[line]

    def promising(self) -> list[int]:
        """The starts of runs, in the order in which it is worth trying them; of no effect on the result.

        A start that only repeats the one before it is left out: of equals the first is taken.
        """
        longer = np.maximum(self.runs.lengths, len(self.text))
        misplaced: list[float] = ((self.distances * longer - longer) / self.runs.lengths).tolist()
        length = len(self.text)
        free = (index for index, is_free in enumerate(self.runs.is_free) if is_free)
        starts = [index for index in free if not self.runs.repeats(index, length)]
        return sorted(starts, key=lambda start: (-self._probes_found(start), misplaced[start]))

    def _probes_found(self, index: int) -> int:
        """How many probes of one prediction are in the block: many only where it is a part of it."""
        return len(self.runs.probes[index]) - self._probes_missing(index, index + 1)

    def _probes_missing(self, start: int, stop: int) -> int:
        """How many probes of a run are not in the block: each takes an edit at least, for they share no character."""
        return self._missing[stop] - self._missing[start]

    def may_reach(self, start: int, cost: float) -> bool:
        """Whether any run from `start` may be as near to the block as `cost`; True if that is not told quickly."""
        if cost >= 1:
            return True
        length = len(self.text)
        longest = length / (1 - cost) + 1
        stops = self.runs.stops(start, length * (1 - cost) - 1, longest)
        if not stops or self._probes_missing(start, stops[0]) > cost * longest:
            return False
        if len(stops) > _MEASURED and len(stops) > len(self.runs.stops(start, 0, length)) // 2:
            return True
        return any(self._is_within(start, stop, cost) for stop in stops)

    def _is_within(self, start: int, stop: int, cost: float) -> bool:
        text = self.runs.text(start, stop)
        bound = edits_within(cost, max(len(text), len(self.text)))
        if self._probes_missing(start, stop) > bound:
            return False
        self.runs.work.spend(len(text), min(2 * bound, len(self.text)))
        return Levenshtein.distance(text, self.text, score_cutoff=bound) <= bound


def best_run(block: BlockFit) -> RunOfPieces:
    """The run nearest to the block; of equals that which starts first. Raises TooMuchWorkError."""
    starts = block.promising()
    best = grow_run(block, starts[0])
    for start in starts[1:]:
        if block.may_reach(start, best.cost):
            candidate = grow_run(block, start)
            if (candidate.cost, candidate.run.start) < (best.cost, best.run.start):
                best = candidate
    return best


def grow_run(block: BlockFit, start: int) -> RunOfPieces:
    """The run from `start` on, longer as long as no prediction that is added makes it worse or fits nowhere."""
    runs = block.runs
    cost = float(block.distances[start])
    stop = start + 1
    if block.fit(start) > FITS:
        return RunOfPieces(range(start, stop), cost)
    end = min(len(runs.predicted), start + runs.longest)
    while stop < end and runs.is_free[stop] and block.fit(stop) < FITS:
        longer = runs.text(start, stop + 1)
        runs.work.spend(len(longer), len(block.text))
        longer_cost = normalized_edit_distance(longer, block.text)
        if longer_cost > cost:
            break
        cost = longer_cost
        stop += 1
        if runs.ends[stop - 1] - runs.starts[start] > len(block.text):
            break
    return RunOfPieces(range(start, stop), cost)
