"""Metrics: pure functions of (prediction, reference).

Of Loupe, they import only `errors` and `helpers`.
"""

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
from loupe.metrics.bleu import bleu_counts, bleu_of_sums, corpus_bleu, sentence_bleu, tokenize_13a
from loupe.metrics.cdm.pairs import CdmCharacter, CdmResult, cdm, cdm_pairs
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
from loupe.metrics.latex_text import normalize_latex_like_unimernet, strip_formula_wrapping
from loupe.metrics.meteor import installed_wordnet, meteor
from loupe.metrics.nid import nid
from loupe.metrics.repetition import Loop, find_loop
from loupe.metrics.short_answers import (
    contains_answer,
    evalai_text,
    exact_match,
    relaxed_accuracy,
    vqa_accuracy,
    vqa_text,
)
from loupe.metrics.teds import teds, teds_struct
from loupe.metrics.vision_tokens import VisionTokens, compression_ratio, vision_tokens

__all__ = [
    "CdmCharacter",
    "CdmResult",
    "EditCounts",
    "Loop",
    "Run",
    "VisionTokens",
    "anls",
    "bleu_counts",
    "bleu_of_sums",
    "cdm",
    "cdm_pairs",
    "cer",
    "character_errors",
    "character_runs",
    "compression_ratio",
    "contains_answer",
    "corpus_bleu",
    "count_edits",
    "docext_similarity",
    "evalai_text",
    "exact_match",
    "find_loop",
    "indel_distance",
    "insertion_counts",
    "installed_wordnet",
    "levenshtein_distance",
    "max_normalized_similarity",
    "mean_cer",
    "mean_wer",
    "meteor",
    "nid",
    "normalize_latex_like_unimernet",
    "normalized_edit_distance",
    "normalized_edit_similarity",
    "normalized_indel_similarity",
    "prepare_iam_punct",
    "rate",
    "rate_of_sums",
    "relaxed_accuracy",
    "sentence_bleu",
    "split_words",
    "strip_formula_wrapping",
    "teds",
    "teds_struct",
    "tokenize_13a",
    "vision_tokens",
    "vlmevalkit_distance",
    "vlmevalkit_similarity",
    "vqa_accuracy",
    "vqa_text",
    "wer",
    "word_errors",
    "word_runs",
]
