"""Parts of an answer that no score covers (flag unmatched-prediction, docs/protocols/omnidocbench.md#modes)."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from loupe.benchmarks.omnidocbench.match.line_match import LineMatch
from loupe.benchmarks.omnidocbench.match.lines import PredictedLine, TruthLine
from loupe.benchmarks.omnidocbench.records import PredictedItem, Unscored, UnscoredPiece, piece_of


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
