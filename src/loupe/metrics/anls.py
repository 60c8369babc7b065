"""Similarity of short answers and form fields: ANLS and its variants.

Paper: Biten et al., "Scene Text Visual Question Answering", ICCV 2019. Protocol: docs/benchmarks/nanonets_kie.md, with
the official programs that each variant follows. Range 0..1, higher is better, unit: Unicode code point, no NFC.
"""

from __future__ import annotations

from collections.abc import Sequence

from loupe.metrics.edit import levenshtein_distance, normalized_edit_similarity


def docext_similarity(prediction: str, reference: str) -> float:
    """The field similarity of docext: 1 − distance / longer length, as written (no stripping, no case folding).

    Two empty strings: 1.0, so a missing answer is right where nothing was to be found.
    """
    return normalized_edit_similarity(prediction, reference)


def max_normalized_similarity(prediction: str, reference: str) -> float:
    """As docext's, after stripping: the field similarity of the variant `strict_json`.

    Emptiness is tested before stripping, as there: " " against "" is 0.0, " " against " " is 1.0.
    """
    if not prediction or not reference:
        return float(prediction == reference)
    return normalized_edit_similarity(prediction.strip(), reference.strip())


def vlmevalkit_distance(prediction: str, reference: str) -> float:
    """The normalised distance of VLMEvalKit's `anls_compute`: lower is better, two empty strings 0.0.

    The texts are lower-cased and their white space collapsed, but the distance is divided by the length of the longer
    *raw* text after upper-casing (so "ß" counts 2), as in the official programs. Letters whose lower case is longer
    (U+0130) can therefore bring it above 1.
    """
    longest = max(len(prediction.upper()), len(reference.upper()))
    distance = levenshtein_distance(_folded(prediction), _folded(reference))
    return distance / longest if longest else 0.0


def vlmevalkit_similarity(prediction: str, reference: str) -> float:
    """1 − `vlmevalkit_distance`, without a threshold."""
    return 1.0 - vlmevalkit_distance(prediction, reference)


def anls(prediction: str, references: str | Sequence[str], *, threshold: float = 0.5) -> float:
    """Classic ANLS (DocVQA; lmms-eval): the best similarity over the references, 0.0 if it is below the threshold.

    Exactly the threshold counts. Raises ValueError if there is no reference.

    >>> anls("hello wurld", ["Hello World", "goodbye"])
    0.9090909090909091
    """
    options = (references,) if isinstance(references, str) else references
    if not options:
        raise ValueError("ANLS needs at least one reference")
    similarity = 1.0 - min(vlmevalkit_distance(prediction, reference) for reference in options)
    return similarity if similarity >= threshold else 0.0


def _folded(text: str) -> str:
    return " ".join(text.lower().split())
