"""Normalised Indel similarity (NID), how DP-Bench compares the text of a page, reading order included.

Source: upstage/dp-bench, src/layout_evaluation.py (b837da3, 6c2a241), which takes it from rapidfuzz as `fuzz.ratio`.
Unit: the Unicode code point. Callers prepare the texts; docs/benchmarks/dp_bench.md says how.
"""

from __future__ import annotations

from loupe.metrics.edit import normalized_indel_similarity


def nid(prediction: str, reference: str) -> float:
    """1 - (insertions + deletions) / (sum of both lengths).

    Range 0..1, higher is better, symmetric. Two empty strings are equal: 1.0; one empty string: 0.0.

    >>> nid("a b ", "ab ")
    0.8571428571428572
    """
    return normalized_indel_similarity(prediction, reference)


def nid_dp_bench_v1(prediction: str, reference: str) -> float:
    """NID as the official evaluator v1 adds it up: two empty texts earn 0.01 instead of 1.

    Kept for parity: upstream scores them with 1 on a scale that ends at 100 (docs/benchmarks/dp_bench.md).
    """
    if not prediction and not reference:
        return 0.01
    return nid(prediction, reference)
