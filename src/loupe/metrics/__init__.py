"""Metrics: pure functions on values. Nothing here imports other parts of Loupe. Arguments: (prediction, reference)."""

from loupe.metrics.alignment import (
    EditCounts,
    Run,
    character_runs,
    count_edits,
    insertion_counts,
    word_runs,
)
from loupe.metrics.anls import (
    anls,
    docext_similarity,
    max_normalized_similarity,
    vlmevalkit_distance,
    vlmevalkit_similarity,
)
from loupe.metrics.edit import (
    indel_distance,
    levenshtein_distance,
    normalized_edit_distance,
    normalized_edit_similarity,
    normalized_indel_similarity,
)
from loupe.metrics.error_rates import (
    cer,
    character_errors,
    mean_cer,
    mean_wer,
    prepare_iam_punct,
    rate,
    rate_of_sums,
    split_words,
    wer,
    word_errors,
)
from loupe.metrics.repetition import Loop, find_loop

__all__ = [
    "EditCounts",
    "Loop",
    "Run",
    "anls",
    "cer",
    "character_errors",
    "character_runs",
    "count_edits",
    "docext_similarity",
    "find_loop",
    "indel_distance",
    "insertion_counts",
    "levenshtein_distance",
    "max_normalized_similarity",
    "mean_cer",
    "mean_wer",
    "normalized_edit_distance",
    "normalized_edit_similarity",
    "normalized_indel_similarity",
    "prepare_iam_punct",
    "rate",
    "rate_of_sums",
    "split_words",
    "vlmevalkit_distance",
    "vlmevalkit_similarity",
    "wer",
    "word_errors",
    "word_runs",
]
