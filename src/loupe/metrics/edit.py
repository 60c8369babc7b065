"""Edit distances between strings.

Sources: V. Levenshtein, Soviet Physics Doklady 10 (1966); Indel is the same without substitution (2 · longest common
subsequence = len + len − Indel). The unit is the Unicode code point: callers normalise first. Lone surrogates and NUL
are code points like any other.
Bounds: time grows with len · len / 64, memory with len. Equal ends cost nothing. Two unlike texts of 10,000 characters
take 6 ms, of 100,000 half a second, of 1,000,000 about a minute.
"""

from __future__ import annotations

from rapidfuzz.distance import Indel, Levenshtein


def levenshtein_distance(prediction: str, reference: str) -> int:
    """Fewest insertions, deletions and substitutions of one character that turn one string into the other.

    Range 0..length of the longer string, lower is better, symmetric.

    >>> levenshtein_distance("kitten", "sitting")
    3
    """
    return Levenshtein.distance(prediction, reference)


def indel_distance(prediction: str, reference: str) -> int:
    """Fewest insertions and deletions that turn one string into the other (a substitution costs 2).

    Range 0..sum of both lengths, lower is better, symmetric.

    >>> indel_distance("kitten", "sitting")
    5
    """
    return Indel.distance(prediction, reference)


def normalized_edit_distance(prediction: str, reference: str) -> float:
    """Levenshtein distance divided by the length of the longer string.

    Range 0..1, lower is better, symmetric. Two empty strings are equal: 0.0.

    >>> normalized_edit_distance("kitten", "sitting")
    0.42857142857142855
    """
    longest = max(len(prediction), len(reference))
    return levenshtein_distance(prediction, reference) / longest if longest else 0.0


def normalized_edit_similarity(prediction: str, reference: str) -> float:
    """1 − `normalized_edit_distance`: range 0..1, higher is better; two empty strings: 1.0."""
    return 1.0 - normalized_edit_distance(prediction, reference)


def normalized_indel_similarity(prediction: str, reference: str) -> float:
    """1 − Indel distance divided by the sum of both lengths.

    Range 0..1, higher is better, symmetric. Two empty strings are equal: 1.0.
    """
    total = len(prediction) + len(reference)
    return 1.0 - indel_distance(prediction, reference) / total if total else 1.0
