"""Metrics: pure functions of (prediction, reference), and the records that they return.

The prediction comes first, then the reference. `references` are several accepted answers to one question, or, next to
`predictions`, a list with one for each. Lists may be columns of a data frame. A wrong type raises TypeError.

>>> from loupe.metrics import cer, teds
>>> cer("recieve", "receive")
0.2857142857142857

Of Loupe, they import only `errors` and `helpers`.
"""

from loupe.metrics.bleu_and_meteor import (
    bleu_counts,
    bleu_of_sums,
    corpus_bleu,
    installed_wordnet,
    meteor,
    sentence_bleu,
    tokenize_13a,
)
from loupe.metrics.cdm.pairs import CdmCharacter, CdmResult, cdm, cdm_pairs
from loupe.metrics.edit import (
    AlignedPart,
    EditCounts,
    align,
    cer,
    character_errors,
    count_edits,
    levenshtein_distance,
    mean_cer,
    mean_wer,
    nid,
    normalized_edit_distance,
    normalized_edit_similarity,
    prepare_iam_punct,
    rate_of_sums,
    wer,
    word_errors,
)
from loupe.metrics.latex_text import normalize_latex_like_unimernet, strip_formula_wrapping
from loupe.metrics.repetition import find_loop
from loupe.metrics.short_answers import (
    anls,
    contains_answer,
    docext_similarity,
    evalai_text,
    exact_match,
    max_normalized_similarity,
    relaxed_accuracy,
    vlmevalkit_distance,
    vlmevalkit_similarity,
    vqa_accuracy,
    vqa_text,
)
from loupe.metrics.teds import TableComparison, compare_tables, teds, teds_struct
from loupe.metrics.vision_tokens import VisionTokens, compression_ratio, vision_tokens

__all__ = [
    "AlignedPart",
    "CdmCharacter",
    "CdmResult",
    "EditCounts",
    "TableComparison",
    "VisionTokens",
    "align",
    "anls",
    "bleu_counts",
    "bleu_of_sums",
    "cdm",
    "cdm_pairs",
    "cer",
    "character_errors",
    "compare_tables",
    "compression_ratio",
    "contains_answer",
    "corpus_bleu",
    "count_edits",
    "docext_similarity",
    "evalai_text",
    "exact_match",
    "find_loop",
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
    "prepare_iam_punct",
    "rate_of_sums",
    "relaxed_accuracy",
    "sentence_bleu",
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
]


def __dir__() -> list[str]:
    return __all__
