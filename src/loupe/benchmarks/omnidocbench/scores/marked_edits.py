"""The edit rate with the marks that the official comparison drops: errors that it does not see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from loupe.benchmarks.omnidocbench.records import MatchedSample
from loupe.benchmarks.omnidocbench.scores.page_scores import scored_texts
from loupe.benchmarks.omnidocbench.text.hidden_marks import has_marks, is_mark, with_marks
from loupe.benchmarks.omnidocbench.text.text_normalization import Convert
from loupe.metrics import levenshtein_distance
from loupe.types import SampleScores

#: The flag of pages whose texts have such marks.
HIDDEN_MARKS: Final = "hidden-marks"


def rate_with_marks(samples: Iterable[MatchedSample], convert: Convert) -> float | None:
    """Edits over lengths of matched texts, the official ones but for the marks; None where all are empty.

    `convert` makes inline formulas characters, as the version of the evaluator does (`Rules.latex_to_text`).
    """
    edits = length = 0
    for sample in samples:
        if not (has_marks(sample.pred) or has_marks(sample.gt)):
            edits, length = edits + sample.edit_num, length + sample.upper_len
            continue
        prediction, reference = scored_texts(sample)
        prediction = with_marks(sample.pred, prediction, convert)
        reference = with_marks(sample.gt, reference, convert)
        edits += levenshtein_distance(prediction, reference)
        length += max(len(prediction), len(reference))
    return edits / length if length else None


def hidden_marks(samples: Iterable[MatchedSample]) -> int:
    """How many marks of the reference texts the official rules do not compare."""
    return sum(sum(map(is_mark, sample.gt)) for sample in samples if has_marks(sample.gt))


def beside_the_score(rows: Sequence[SampleScores]) -> str:
    """The end of the flag's warning: the text edit distance with the marks, and the official one."""
    values: dict[str, list[float]] = {"text_edit_with_marks": [], "text_edit": []}
    for row in rows:
        for score in row.scores:
            if score.measure in values:
                values[score.measure].append(score.counts[0])
    marked, official = (sum(found) / len(found) if found else 0.0 for found in values.values())
    return f"; with them, the text edit distance is {marked:.4f} (official {official:.4f})"
