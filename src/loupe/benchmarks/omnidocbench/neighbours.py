"""Join neighbouring predictions that together are one block of the ground truth.

The distances here, of whole strings and of the best window, also serve the other steps of the match.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from loupe.benchmarks.omnidocbench.records import Work
from loupe.metrics import normalized_edit_distance

#: A block and a prediction closer than this belong together already, and take no part.
SETTLED = 0.25


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns that blocks are assigned to: predictions or runs of them, and the distance of each block and each
    column.
    """

    runs: Sequence[range]
    distances: Distances
    #: Of each block that had no near prediction, the run that comes nearest; overlaps not yet resolved.
    best: Mapping[int, range] = field(default_factory=dict)
    #: Whether a prediction was not near to any block.
    is_free: Sequence[bool] = ()


def merge_neighbours(
    truth: Sequence[str], predicted: Sequence[str], distances: Distances, work: Work, *, longest_run: int
) -> Columns:
    """One column for each prediction, or for the run of predictions that a block was found to consist of.

    Raises TooMuchWorkError.
    """
    settled = distances < SETTLED
    is_free: list[bool] = np.logical_not(np.any(settled, axis=0)).tolist()
    wanting = np.flatnonzero(~settled.any(axis=1)).tolist() if any(is_free) else []
    if not wanting:
        return replace(_with_runs(truth, predicted, distances, []), is_free=is_free)
    runs = Runs(predicted, is_free, work, longest_run)
    best = {row: best_run(BlockFit(truth[row], runs, distances[row])) for row in wanting}
    merged = [run for run in without_overlaps(best.values()) if len(run) > 1]
    columns = _with_runs(truth, predicted, distances, merged)
    return replace(columns, best={row: found.run for row, found in best.items()}, is_free=is_free)


def _with_runs(
    truth: Sequence[str], predicted: Sequence[str], distances: Distances, merged: Sequence[range]
) -> Columns:
    """One column for each run, at the place of its first prediction; the others keep theirs."""
    if not merged:
        return Columns([range(index, index + 1) for index in range(len(predicted))], distances)
    inner = {index for run in merged for index in run[1:]}
    at = {run.start: run for run in merged}
    runs = [at.get(index, range(index, index + 1)) for index in range(len(predicted)) if index not in inner]
    columns = distances[:, [run.start for run in runs]]
    long = [column for column, run in enumerate(runs) if len(run) > 1]
    columns[:, long] = distance_matrix(
        truth, [" ".join(predicted[runs[column].start : runs[column].stop]) for column in long]
    )
    return Columns(runs, columns)


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
        """True if a run from `start` ends no better than one from the prediction before it, which is the same.

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
        """Return how well one prediction fits somewhere in the block, as far as it matters on which side of `FITS` that
        is.
        """
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
        """Count the probes of one prediction in the block: many only where it is a part of it."""
        return len(self.runs.probes[index]) - self._probes_missing(index, index + 1)

    def _probes_missing(self, start: int, stop: int) -> int:
        """Count the probes of a run that are not in the block: each takes an edit at least, for they share no
        character.
        """
        return self._missing[stop] - self._missing[start]

    def may_reach(self, start: int, cost: float) -> bool:
        """True if any run from `start` may be as near to the block as `cost`, or if that is not told quickly."""
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


class RunOfPieces(NamedTuple):
    """A run of predictions that a block may consist of, and its distance to that block."""

    run: range
    cost: float


def without_overlaps(candidates: Iterable[RunOfPieces]) -> list[range]:
    """Runs that share no prediction: of each group that hangs together, the set with the least mean distance."""
    kept: list[range] = []
    for group in _groups(candidates):
        kept += [candidate.run for candidate in min(_paths(group), key=_mean_cost)]
    return kept


def _groups(candidates: Iterable[RunOfPieces]) -> list[list[RunOfPieces]]:
    """By first prediction; a candidate is of the group before if it shares a prediction with any of its members."""
    groups: list[list[RunOfPieces]] = []
    end = 0
    for candidate in sorted(candidates, key=lambda candidate: candidate.run.start):
        if groups and candidate.run.start < end:
            groups[-1].append(candidate)
        else:
            groups.append([candidate])
        end = max(end, candidate.run.stop)
    return groups


def _paths(group: Sequence[RunOfPieces]) -> list[list[RunOfPieces]]:
    """Sets of runs that can stand together; not all there are, but those that upstream comes upon."""
    paths = [[group[0]]]
    for candidate in group[1:]:
        joined = [_join(path, candidate) for path in paths]
        if not any(joined):
            paths.append([candidate])
    return paths


def _join(path: list[RunOfPieces], candidate: RunOfPieces) -> bool:
    """Add the candidate to a set that has room for it; of two with the same run the cheaper stays. False: no room."""
    same = [member for member in path if member.run == candidate.run]
    if same:
        if same[0].cost > candidate.cost:
            path.remove(same[0])
            path.append(candidate)
        return True
    if any(_overlap(member.run, candidate.run) for member in path):
        return False
    path.append(candidate)
    return True


def _overlap(run: range, other: range) -> bool:
    return run.start < other.stop and other.start < run.stop


def _mean_cost(path: Sequence[RunOfPieces]) -> float:
    return sum(candidate.cost for candidate in path) / len(path)


#: How many short distances cost as much as one call from here; and for how many needles there is room at once.
_AT_ONCE: Final = 16
_NEEDLES: Final = 1000


def window_distance(
    needle: str, text: str, *, bound: float = math.inf, enough: float = 0.0, work: Work | None = None
) -> float:
    """Least Levenshtein distance of `needle` and any part of `text` of its length, divided by that length.

    Range 0..1, lower is better. Infinite where it is above `bound`, and where `needle` is empty or longer than `text`.
    Where it is below `enough`, any distance below `enough` may be returned.

    Raises TooMuchWorkError where `work` is given and is used up.

    >>> window_distance("harbor", "the old harbour book")
    0.16666666666666666
    """
    length = len(needle)
    last = len(text) - length
    if not length or last < 0:
        return math.inf
    if needle in text:
        return 0.0
    # Only what has fewer edits than this is of interest: at first, what is within the bound.
    limit = edits_within(bound, length) + 1
    found = math.inf
    offset = measured = 0
    while offset <= last:
        edits = Levenshtein.distance(needle, text[offset : offset + length])
        measured += 1
        if edits < limit:
            limit = edits
            found = edits / length
            if found < enough:
                break
        # A step saves two edits at most: so many steps it takes at least until a window is below the limit.
        offset += 1 + (edits - limit) // 2
    if work:
        work.spend(length, length, times=measured)
    return found


def short_window_distances(needles: Sequence[str], text: str, work: Work) -> list[float]:
    """`window_distance` of needles of one length, with no bound: faster where steps save little, as for short ones."""
    length = len(needles[0])
    windows = sorted({text[offset : offset + length] for offset in range(len(text) - length + 1)})
    if not windows:
        return [math.inf] * len(needles)
    work.spend(length, length, times=len(needles) * len(windows) // _AT_ONCE)
    found: list[float] = []
    for first in range(0, len(needles), _NEEDLES):
        some = needles[first : first + _NEEDLES]
        edits = cdist(some, windows, scorer=Levenshtein.distance, dtype=np.int32)
        found += (edits.min(axis=1) / length).tolist()
    return found


def edits_within(bound: float, length: int) -> int:
    """The most edits that, divided by `length`, are not above `bound`; the division decides, as in upstream."""
    edits = min(length, int(bound * length) + 1) if math.isfinite(bound) else length
    while edits > 0 and edits / length > bound:
        edits -= 1
    return edits


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
