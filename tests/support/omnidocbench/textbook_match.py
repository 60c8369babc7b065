"""The main match of OmniDocBench 1.5 written down plainly, with no regard for speed.

Protocol: docs/protocols/omnidocbench.md#main-match.
It measures every window and grows a run from every prediction, as the official evaluator does. Slow, and plainly right:
the fast one is compared with it.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment


class Found(NamedTuple):
    """Blocks, and the predictions that they are matched with."""

    blocks: tuple[int, ...]
    key: tuple[int, ...]
    edit: float


def edits(first: str, second: str) -> int:
    """Levenshtein distance, row by row."""
    row = list(range(len(second) + 1))
    for index, character in enumerate(first, start=1):
        before, row[0] = row[0], index
        for column, other in enumerate(second, start=1):
            before, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, before + (character != other))
    return row[-1]


def distance(first: str, second: str) -> float:
    return edits(first, second) / max(len(first), len(second), 1)


def window(needle: str, text: str) -> float | None:
    """None where there is no window."""
    offsets = range(len(text) - len(needle) + 1)
    if not needle or not offsets:
        return None
    return min(edits(text[offset : offset + len(needle)], needle) / len(needle) for offset in offsets)


def matrix(rows: list[str], columns: list[str]) -> np.ndarray:
    return np.array([[distance(row, column) for column in columns] for row in rows]).reshape(len(rows), len(columns))


def quick_match(truth: list[str], predicted: list[str]) -> list[Found]:
    costs = matrix(truth, predicted)
    runs, columns = merged(truth, predicted, costs)
    pairs = zip(*linear_sum_assignment(columns), strict=True)
    matched = {int(row): tuple(runs[column]) for row, column in pairs if columns[row, column] <= 0.7}
    return groups(truth, predicted, keys(truth, predicted, matched), costs)


def merged(truth: list[str], predicted: list[str], costs: np.ndarray) -> tuple[list[list[int]], np.ndarray]:
    """a and b: what the blocks are assigned to."""
    masked = set(np.argwhere(costs < 0.25)[:, 1].tolist())
    candidates = []
    for row, block in enumerate(truth):
        if (costs[row] < 0.25).any():
            continue
        grown = [grow(block, predicted, start, masked) for start in range(len(predicted)) if start not in masked]
        if grown:
            candidates.append(min(grown, key=lambda candidate: candidate[1]))
    runs = [[index] for index in range(len(predicted))]
    for kept in resolve(candidates):
        runs = [run for run in runs if run[0] not in kept[1:]]
        runs[[run[0] for run in runs].index(kept[0])] = kept
    return runs, matrix(truth, [" ".join(predicted[index] for index in run) for run in runs])


def grow(block: str, predicted: list[str], start: int, masked: set[int]) -> tuple[list[int], float]:
    run = [start]
    while (new := run[-1] + 1) not in masked and new < len(predicted):
        lines = [predicted[index] for index in run]
        now, longer = " ".join(lines), " ".join([*lines, predicted[new]])
        fits = [window(line, block) for line in lines]
        fit = window(predicted[new], block)
        if distance(longer, block) > distance(now, block) or any(each is None or each > 0.6 for each in fits):
            break
        if fit is None or fit >= 0.6:
            break
        run.append(new)
        if len(longer) > len(block):
            break
    return run, distance(" ".join(predicted[index] for index in run), block)


def resolve(candidates: list[tuple[list[int], float]]) -> list[list[int]]:
    """b: of candidates that overlap, the path with the least mean cost."""
    open_groups: list[list[tuple[list[int], float]]] = []
    for candidate in sorted(candidates, key=lambda candidate: candidate[0][0]):
        if open_groups and any(set(member[0]) & set(candidate[0]) for member in open_groups[-1]):
            open_groups[-1].append(candidate)
        else:
            open_groups.append([candidate])
    kept: list[list[int]] = []
    for group in open_groups:
        best = min(paths_of(group), key=lambda path: sum(cost for _, cost in path) / len(path))
        kept += [run for run, _ in best]
    return kept


def paths_of(group: list[tuple[list[int], float]]) -> list[list[tuple[list[int], float]]]:
    paths = [[group[0]]]
    for candidate in group[1:]:
        is_new = True
        for path in paths:
            same = [member for member in path if member[0] == candidate[0]]
            overlaps = any(set(member[0]) & set(candidate[0]) for member in path)
            if same and same[0][1] > candidate[1]:
                path.remove(same[0])
                path.append(candidate)
            if not overlaps:
                path.append(candidate)
            if same or not overlaps:
                is_new = False
        if is_new:
            paths.append([candidate])
    return paths


def keys(
    truth: list[str], predicted: list[str], matched: dict[int, tuple[int, ...]]
) -> dict[tuple[int, ...], list[int]]:
    """d and e: blocks by what they are matched with."""
    found: dict[tuple[int, ...], list[int]] = {}
    used = set(matched)
    for block in sorted(matched):
        found.setdefault(matched[block], []).append(block)
    for index, line in enumerate(predicted):
        fits = {block: window(truth[block], line) for block in range(len(truth)) if block not in matched}
        inside = [block for block, fit in fits.items() if fit is not None and fit < 0.4]
        if inside:
            new = [block for block in inside if block not in used]
            found.setdefault((index,), []).extend(new)
            used.update(new)
    return found


def groups(
    truth: list[str], predicted: list[str], found: dict[tuple[int, ...], list[int]], costs: np.ndarray
) -> list[Found]:
    """f, g and h: what upstream reports, in its order."""
    result = []
    for key, members in found.items():
        blocks = sorted(members)
        several = distance("".join(truth[block] for block in blocks), predicted[key[0]])
        one = distance(truth[blocks[0]], " ".join(predicted[index] for index in key)) if blocks else 1.0
        if blocks:
            result.append(Found(tuple(blocks), key, several if len(blocks) > 1 else one))
    rows = set(range(len(truth))) - {block for members in found.values() for block in members}
    columns = set(range(len(predicted))) - {index for key in found for index in key}
    if rows and columns:
        left = costs[np.ix_(list(rows), list(columns))]
        for row, column in zip(*linear_sum_assignment(left), strict=True):
            result.append(Found((list(rows)[row],), (list(columns)[column],), 1.0))
    covered = {block for each in result for block in each.blocks}
    return result + [Found((block,), (), 1.0) for block in range(len(truth)) if block not in covered]


def is_partition(found: list[Found], blocks: int) -> bool:
    """Every block is in exactly one group."""
    disjoint = all(not set(one.blocks) & set(other.blocks) for one, other in combinations(found, 2))
    return disjoint and {block for each in found for block in each.blocks} == set(range(blocks))
