"""Edits of the text with the marks that the official comparison drops: how many errors it does not see."""

from __future__ import annotations

from collections.abc import Iterable

from loupe.benchmarks.omnidocbench.records import MatchedSample
from loupe.benchmarks.omnidocbench.scores.page_scores import scored_texts
from loupe.benchmarks.omnidocbench.text.hidden_marks import is_mark, with_marks
from loupe.benchmarks.omnidocbench.text.text_normalization import Convert
from loupe.metrics import levenshtein_distance


def edits_with_marks(samples: Iterable[MatchedSample], convert: Convert) -> tuple[int, int]:
    """Edits and the length that they are divided by, of matched texts: the official ones, but for the marks.

    `convert` makes inline formulas characters, as the version of the evaluator does (`Rules.latex_to_text`).
    """
    edits = length = 0
    for sample in samples:
        prediction, reference = scored_texts(sample)
        if not any(map(is_mark, sample.pred + sample.gt)):
            edits, length = edits + sample.edit_num, length + sample.upper_len
            continue
        prediction = with_marks(sample.pred, prediction, convert)
        reference = with_marks(sample.gt, reference, convert)
        edits += levenshtein_distance(prediction, reference)
        length += max(len(prediction), len(reference))
    return edits, length
