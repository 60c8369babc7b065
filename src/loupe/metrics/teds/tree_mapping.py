"""A best mapping of two table trees: the way back through the tables of the dynamic programme.

Where several mappings are equally good, one of them is given.
"""

from __future__ import annotations

from loupe.metrics.teds.table_tree import TableTooLargeError, TableTree
from loupe.metrics.teds.tree_certificate import align_rows
from loupe.metrics.teds.tree_distance import finish, peel, weigh
from loupe.metrics.teds.tree_forest import MAX_CELL_PAIRS, Floats, cut_forests
from loupe.metrics.teds.tree_programme import Programme, run

Pair = tuple[int, int]


def best_mapping(first: TableTree, second: TableTree, texts: list[str], *, structure_only: bool = False) -> list[Pair]:
    """The nodes that are mapped to each other, by their numbers; all others are deleted or inserted.

    Needs more memory than the savings alone; raises TableTooLargeError.
    """
    if len(first) > len(second):
        return sorted(pair[::-1] for pair in best_mapping(second, first, texts, structure_only=structure_only))
    peeled = peel(first, second, structure_only=structure_only)
    pairs = [pair for nodes_1, nodes_2 in peeled.matched for pair in zip(nodes_1, nodes_2, strict=True)]
    part_1, part_2 = peeled.parts
    if part_1 and part_2:
        if len(part_1) * len(part_2) > MAX_CELL_PAIRS:
            raise TableTooLargeError(f"{len(part_1):,} against {len(part_2):,} nodes are too many to be mapped")
        forests = cut_forests((first, second), peeled.parts, structure_only=structure_only)
        programme, limits, savings = weigh(*forests, None if structure_only else texts)
        finish(programme, limits, max(savings, align_rows(programme).savings))
        pairs += [(part_1.start + node_1, part_2.start + node_2) for node_1, node_2 in _way_back(programme)]
    return sorted(pairs)


def _way_back(programme: Programme) -> list[Pair]:
    pairs: list[Pair] = []
    waiting = [(range(len(programme.first)), range(len(programme.second)))]
    while waiting:
        nodes_1, nodes_2 = waiting.pop()
        rows: list[Floats] = []
        run(programme, nodes_1, nodes_2, rows)
        i, j = len(nodes_1), len(nodes_2)
        while i and j:
            if rows[i][j] == rows[i - 1][j]:
                i -= 1
            elif rows[i][j] == rows[i][j - 1]:
                j -= 1
            else:
                node_1, node_2 = nodes_1[i - 1], nodes_2[j - 1]
                start_1, start_2 = int(programme.first.first[node_1]), int(programme.second.first[node_2])
                pairs.append((node_1, node_2))
                if start_1 < node_1 and start_2 < node_2:
                    waiting.append((range(start_1, node_1), range(start_2, node_2)))
                i, j = start_1 - nodes_1.start, start_2 - nodes_2.start
    return pairs
