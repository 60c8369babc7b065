"""Match the lines of a page in groups of blocks and predictions: `quick_match`, stage by stage.

Ignored blocks take their predictions first; then blocks and predictions are paired at the least total distance; what is
left is paired all the same. Protocol: docs/protocols/omnidocbench.md#quick-match.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from loupe.benchmarks.omnidocbench.ground_truth import FORMULA
from loupe.benchmarks.omnidocbench.lines import PredictedLine, TruthLine
from loupe.benchmarks.omnidocbench.neighbours import (
    Columns,
    Distances,
    distance_matrix,
    merge_neighbours,
    window_distance,
)
from loupe.benchmarks.omnidocbench.records import (
    MatchedSample,
    PredictedItem,
    Step,
    StolenLine,
    TooMuchWorkError,
    Unscored,
    UnscoredPiece,
    Work,
    piece_of,
)
from loupe.benchmarks.omnidocbench.text_normalization import clean
from loupe.metrics import normalized_edit_distance
from loupe.metrics.assignment import assign

if TYPE_CHECKING:
    from loupe.benchmarks.omnidocbench.rules import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class LineMatch:
    """Groups in upstream's order, by indices of lines; those of ignored blocks are left out unless they stand alone."""

    groups: Sequence[Group]
    #: How long upstream would take for it, estimated by counting; None for a plain match.
    upstream_seconds: float | None = 0.0
    #: Whether it was beyond all measure, and assigned plainly. No official match is the same: upstream's own plain
    #: assignment (#time-limit) neither splits arrays nor sorts.
    plain: bool = False
    #: Predictions that an ignored category took, and the nearest block of such a category.
    taken: Mapping[int, int] = field(default_factory=dict)
    stolen: tuple[StolenLine, ...] = ()
    #: The groups of the ignored blocks, matched with the predictions that were taken.
    ignored: Sequence[Group] = ()


def match_lines(truth: Sequence[TruthLine], predicted: Sequence[PredictedLine], work: Work, rules: Rules) -> LineMatch:
    """Every counted block is in one group. Predictions that are in none are never scored."""
    if not truth or not predicted:
        return LineMatch(groups=[Group(blocks=(index,)) for index in range(len(truth))])
    distances = distance_matrix([line.norm for line in truth], [line.norm for line in predicted])
    if distances.shape == (1, 1):
        return LineMatch(groups=[_only_pair(float(distances[0, 0]))])
    try:
        return _match_fully(truth, predicted, distances, work, rules)
    except TooMuchWorkError:
        return LineMatch(groups=plain_groups(distances), upstream_seconds=None, plain=True)


def _only_pair(distance: float) -> Group:
    """One block and one prediction are a pair, however unlike, and even if the block is a header (#short-cuts)."""
    return Group(blocks=(0,), key=(0,), edit=distance, step="short cut", distance=distance)


def _match_fully(
    truth: Sequence[TruthLine],
    predicted: Sequence[PredictedLine],
    every_distance: Distances,
    work: Work,
    rules: Rules,
) -> LineMatch:
    sides = set_ignored_aside(truth, every_distance)
    part = _Part(truth, predicted, every_distance, sides.truth, sides.predicted)
    ignored = [row for row, line in enumerate(truth) if line.ignored]
    groups, seconds = _matched(part, work, rules)
    return LineMatch(
        groups=groups,
        upstream_seconds=seconds,
        taken=takers(truth, every_distance, sides),
        stolen=stolen_lines(truth, predicted, every_distance, sides),
        ignored=_matched(replace(part, blocks=ignored, lines=sides.taken), work, rules)[0] if sides.taken else (),
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """The lines of a page, and which of both sides are matched."""

    truth: Sequence[TruthLine]
    predicted: Sequence[PredictedLine]
    every_distance: Distances
    blocks: Sequence[int]
    lines: Sequence[int]

    def of_page(self, group: Group) -> Group:
        """A group of the part by the indices of all lines."""
        return replace(
            group,
            blocks=tuple(self.blocks[index] for index in group.blocks),
            key=tuple(self.lines[index] for index in group.key),
        )


def _matched(part: _Part, work: Work, rules: Rules) -> tuple[list[Group], float]:
    """The groups of a part, and how long upstream would take for them."""
    blocks = [part.truth[index].norm for index in part.blocks]
    lines = [part.predicted[index].norm for index in part.lines]
    distances = part.every_distance[part.blocks][:, part.lines]
    columns = merge_neighbours(blocks, lines, distances, work, longest_run=rules.longest_run)
    containable = [rules.formulas_are_contained or part.truth[index].category != FORMULA for index in part.blocks]
    matches = match_blocks(blocks, lines, columns, work, containable)
    groups = [part.of_page(group) for group in groups_of(matches, blocks, lines, distances)]
    return groups, upstream_seconds(blocks, lines, columns, matches)


#: A prediction closer than this to a block of an ignored category is taken out of the match.
TAKES = 0.25


class Sides(NamedTuple):
    """The indices of the lines that go on into the match, and of the predictions that do not."""

    truth: list[int]
    predicted: list[int]
    taken: list[int]


def set_ignored_aside(truth: Sequence[TruthLine], distances: Distances) -> Sides:
    """Part the lines: `distances` are those of all lines of the ground truth (rows) and all predicted ones (columns).

    A prediction goes to an ignored category even if it fits a counted block as well or better, as upstream.
    """
    counted = [row for row, line in enumerate(truth) if not line.ignored]
    ignored = [row for row, line in enumerate(truth) if line.ignored]
    takes = (distances[ignored] < TAKES).any(axis=0)
    return Sides(
        truth=counted,
        predicted=np.flatnonzero(~takes).tolist(),
        taken=np.flatnonzero(takes).tolist(),
    )


def takers(truth: Sequence[TruthLine], distances: Distances, sides: Sides) -> dict[int, int]:
    """For each prediction that was taken the nearest block of an ignored category; of equal ones, each takes one."""
    ignored = [row for row, line in enumerate(truth) if line.ignored]
    found: dict[int, int] = {}
    free = np.ones(len(ignored), dtype=bool)
    for column in sides.taken:
        nearest = distances[ignored, column] == distances[ignored, column].min()
        place = int((nearest & free if (nearest & free).any() else nearest).argmax())
        free[place] = False
        found[column] = ignored[place]
    return found


def stolen_lines(
    truth: Sequence[TruthLine], predicted: Sequence[PredictedLine], distances: Distances, sides: Sides
) -> tuple[StolenLine, ...]:
    """Counted blocks whose best prediction was taken, and by what.

    Flag `header-steals-line`: docs/protocols/omnidocbench.md#modes.
    One that is too far from the block for a match (#assignment) is no loss.
    """
    if not sides.taken or not sides.truth:
        return ()
    ignored = [row for row, line in enumerate(truth) if line.ignored]
    left = distances[:, sides.predicted].min(axis=1, initial=math.inf)
    found = []
    for row in sides.truth:
        column = sides.taken[int(distances[row, sides.taken].argmin())]
        if distances[row, column] <= MATCHES and distances[row, column] < left[row]:
            thief = ignored[int(distances[ignored, column].argmin())]
            found.append(
                StolenLine(
                    piece=piece_of(predicted[column].source),
                    anno_ids=truth[row].block.parts,
                    distance=float(distances[row, column]),
                    ignored_category=truth[thief].category,
                    ignored_distance=float(distances[thief, column]),
                )
            )
    return tuple(found)


#: A pair farther apart than this is no match.
MATCHES = 0.7
#: A block nearer than this to some part of a prediction is contained in it.
CONTAINED = 0.4

#: The predictions that blocks are matched with: their indices, ascending.
Key: TypeAlias = tuple[int, ...]


class Match(NamedTuple):
    """One block and what it is matched with; `distance` is what the bound of the step was held against."""

    block: int
    key: Key
    step: Step
    distance: float


def match_blocks(
    truth: Sequence[str], predicted: Sequence[str], columns: Columns, work: Work, containable: Sequence[bool]
) -> dict[Key, list[Match]]:
    """The blocks of each key; a key may have none, and still marks its predictions as used.

    `containable` says of each block whether it may be a part of a prediction.

    Raises TooMuchWorkError.
    """
    assigned = list(_assigned(columns))
    found = {match.block for match in assigned}
    missing = [block for block in range(len(truth)) if block not in found and containable[block]]
    return _by_key(assigned, _contained(truth, predicted, missing, work))


def _assigned(columns: Columns) -> Iterator[Match]:
    for row, column in zip(*assign(columns.distances), strict=True):
        distance = float(columns.distances[row, column])
        if distance <= MATCHES:
            run = columns.runs[column]
            yield Match(int(row), tuple(run), "run merge" if len(run) > 1 else "assignment", distance)


def _contained(truth: Sequence[str], predicted: Sequence[str], blocks: Sequence[int], work: Work) -> Iterator[Match]:
    """Each prediction, those that are matched too, with each of the blocks that it contains."""
    for index, line in enumerate(predicted):
        for block in blocks:
            if len(truth[block]) > len(line):
                continue
            distance = window_distance(truth[block], line, bound=CONTAINED, work=work)
            if distance < CONTAINED:
                yield Match(block, (index,), "containment", distance)


def _by_key(assigned: Iterable[Match], contained: Iterable[Match]) -> dict[Key, list[Match]]:
    """Blocks by what they are matched with, each block once, in the order of upstream.

    A run and one of its members are two keys, so one prediction can serve two groups of blocks.
    """
    matches: dict[Key, list[Match]] = {}
    used: set[int] = set()
    for match in (*assigned, *contained):
        blocks = matches.setdefault(match.key, [])
        if match.block not in used:
            blocks.append(match)
            used.add(match.block)
    return matches


def reported_edit(key: Key, blocks: Sequence[int], truth: Sequence[str], predicted: Sequence[str]) -> float:
    """The distance that the results name and no score uses: several blocks are held against the first line only."""
    if len(blocks) > 1:
        return normalized_edit_distance(predicted[key[0]], "".join(truth[block] for block in blocks))
    return normalized_edit_distance(" ".join(predicted[index] for index in key), truth[blocks[0]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Blocks and the predictions that they are matched with (none: an empty key), as one sample has them."""

    blocks: tuple[int, ...]
    key: Key = ()
    #: What upstream reports; `distance` is what the step has really found.
    edit: float = 1.0
    step: Step = "none"
    distance: float = 1.0


def groups_of(
    matches: Mapping[Key, Sequence[Match]], truth: Sequence[str], predicted: Sequence[str], distances: Distances
) -> list[Group]:
    """All blocks: those matched, in the order of their keys; the leftovers; and at the end those without prediction."""
    groups = [_group(key, found, truth, predicted) for key, found in matches.items() if found]
    groups += _leftovers(matches, distances)
    covered = {block for group in groups for block in group.blocks}
    return groups + [Group(blocks=(block,)) for block in range(len(truth)) if block not in covered]


def plain_groups(distances: Distances) -> list[Group]:
    """Each block with the prediction that one assignment of everything gives it, however far."""
    column_of = dict(zip(*(side.tolist() for side in assign(distances)), strict=True))
    groups = []
    for row in range(len(distances)):
        column = column_of.get(row)
        if column is None:
            groups.append(Group(blocks=(row,)))
        else:
            distance = float(distances[row, column])
            groups.append(
                Group(blocks=(row,), key=(column,), edit=distance, step="plain assignment", distance=distance)
            )
    return groups


def _group(key: Key, found: Sequence[Match], truth: Sequence[str], predicted: Sequence[str]) -> Group:
    blocks = sorted(match.block for match in found)
    last = found[-1].step
    return Group(
        blocks=tuple(blocks),
        key=key,
        edit=reported_edit(key, blocks, truth, predicted),
        step=last,
        distance=max(match.distance for match in found if match.step == last),
    )


def _leftovers(matches: Mapping[Key, Sequence[Match]], distances: Distances) -> Iterator[Group]:
    """Pairs of what is left on both sides, without any bound; predictions beyond that are lost."""
    blocks, predictions = _left_in_set_order(matches, distances)
    if not blocks or not predictions:
        return
    left = distances[blocks][:, predictions]
    for row, column in zip(*assign(left), strict=True):
        yield Group(
            blocks=(blocks[row],), key=(predictions[column],), step="leftover", distance=float(left[row, column])
        )


def _left_in_set_order(matches: Mapping[Key, Sequence[Match]], distances: Distances) -> tuple[list[int], list[int]]:
    """Blocks and predictions in no key, in the order in which CPython walks a set of small integers.

    Upstream takes one set from another, and ties of the assignment as well as the order of samples follow from how the
    result is walked: {2, 5, 9} gives 9, 2, 5. So these must be differences of real sets, made as there.
    """
    rows, columns = distances.shape
    used_blocks = {match.block for found in matches.values() for match in found}
    used_predictions = {index for key in matches for index in key}
    return list(set(range(rows)) - used_blocks), list(set(range(columns)) - used_predictions)


#: What a formula may be matched with and still be scored as a formula; "" stands for nothing.
_FORMULAS = ("equation_inline", "equation_isolated", "")


def in_match_order(sources: Iterable[PredictedItem]) -> list[PredictedItem]:
    """By place, and inline formulas last: all of these are in a text, too (#array-split)."""
    return sorted(sources, key=lambda source: (source.item.fine_category == "equation_inline", source.item.start))


def sample_of(
    group: Group, truth: Sequence[TruthLine], predicted: Sequence[PredictedLine], rules: Rules
) -> MatchedSample:
    """One sample: texts joined without separator, everything else looked up as upstream does it."""
    blocks = [truth[index] for index in group.blocks]
    lines = [predicted[index] for index in group.key]
    category = Counter(line.category for line in blocks).most_common(1)[0][0]
    pred_category = lines[0].category if lines else ""
    joined = _joiner(rules, as_array=category == FORMULA and len(blocks) > 1)
    pred_joined = _joiner(rules, as_array="equation" in pred_category and len(lines) > 1)
    return MatchedSample(
        gt_idx=group.blocks,
        pred_idx=group.key,
        gt=joined([line.raw for line in blocks]),
        pred=pred_joined([line.raw for line in lines]),
        norm_gt="".join(line.norm for line in blocks),
        norm_pred="".join(line.norm for line in lines),
        gt_category_type=category,
        pred_category_type=pred_category,
        gt_position=tuple(line.looked_up.order or None for line in blocks),
        pred_position=lines[0].looked_up.item.start if lines else None,
        gt_attribute=tuple(line.looked_up.attribute for line in blocks),
        edit=group.edit,
        step=group.step,
        distance=group.distance,
        anno_ids=tuple(line.block.parts for line in blocks),
        pieces=tuple(piece_of(line.source) for line in lines),
    )


def _joiner(rules: Rules, *, as_array: bool) -> Callable[[Iterable[str]], str]:
    """Return the function that joins several raw texts: texts without separator, formulas as the rows of one array."""
    return (lambda raws: array_of(map(rules.bare_formula, raws))) if as_array else "".join


def array_of(formulas: Iterable[str]) -> str:
    """Formulas as the rows of one array."""
    rows = " \\\\ ".join(f"{{{formula}}}" for formula in formulas)
    return f"\\begin{{array}}{{l}} {rows} \\end{{array}}"


def is_formula_as_text(sample: MatchedSample) -> bool:
    """True if a formula was matched with text or code: then it is scored with the text (#samples)."""
    return sample.pred_category_type not in _FORMULAS


def as_text(sample: MatchedSample, rules: Rules) -> tuple[MatchedSample, str]:
    """A formula as it is scored among the texts: its ground truth as plain characters, the prediction as it is.

    And what ends upstream when it makes a text of this formula, where it catches nothing; "" where that succeeds.
    """
    found = rules.latex_to_text(sample.gt)
    gt = sample.gt if found.text is None else found.text
    end_of_upstream = "no end" if sample.gt.endswith("\\") else found.error
    return replace(sample, gt=gt, norm_gt=clean(gt)), end_of_upstream


def reading_orders(samples: Iterable[MatchedSample]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The orders of all blocks that have one: sorted, and as the positions of their predictions put them."""
    with_order = [sample for sample in samples if sample.gt_position != (None,)]
    placed = [(sample.pred_position, sample) for sample in with_order if sample.pred_position is not None]
    placed.sort(key=lambda pair: pair[0])
    return (
        tuple(sorted(order for sample in with_order for order in sample.gt_position if order)),
        tuple(order for _, sample in placed for order in sample.gt_position if order),
    )


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


def unscored_items(sources: Sequence[PredictedItem], lines: Sequence[PredictedLine]) -> Iterator[UnscoredPiece]:
    """Items that are no line, because nothing of them is left when they are normalised."""
    kept = {id(line.source) for line in lines}
    for source in sources:
        if id(source) not in kept:
            yield UnscoredPiece(piece=piece_of(source), reason="empty after normalisation")


def unscored_lines(
    truth: Sequence[TruthLine], predicted: Sequence[PredictedLine], match: LineMatch, scored: Container[int]
) -> Iterator[UnscoredPiece]:
    """Lines that are in no sample of an element; `scored` are the indices of those that are."""
    ignored = {index: group.blocks[0] for group in match.groups for index in group.key}
    for index, line in enumerate(predicted):
        reason: Unscored = "unmatched"
        if index in scored:
            continue
        block = match.taken.get(index, ignored.get(index))
        if index in match.taken:
            reason = "taken by an ignored category"
        elif index in ignored:
            reason = "matched to an ignored category"
        elif line.source.item.fine_category == "equation_inline":
            reason = "inline formula"
        parts = () if block is None else truth[block].block.parts
        yield UnscoredPiece(piece=piece_of(line.source), reason=reason, anno_ids=parts)
