"""Character and word error rates as dinglehopper 0.11 computes them: grapheme clusters, 32 substitutions, UAX 29 words.

Rules and sources: docs/protocols/archives.md#dinglehopper.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from rapidfuzz.distance import Levenshtein

from loupe.metrics.segments import graphemes, is_word, word_pieces

#: In this order, each everywhere before the next.
LIGATURES: Final = (
    *(("\ueba6", "ſſ"), ("\ueba7", "ſſi"), ("\uf502", "ch"), ("\ueec4", "ck"), ("\uf4f9", "ll"), ("\ueba2", "ſi")),
    *(("\ueada", "ſt"), ("\ufb01", "fi"), ("\ufb00", "ff"), ("\ufb02", "fl"), ("\ufb03", "ffi"), ("\ueec5", "ct")),
    *(("\ueedc", "tz"), ("\uf532", "as"), ("\uf533", "is"), ("\uf534", "us"), ("\uf535", "Qu"), ("\u0133", "ij")),
    *(("\ue8bf", "q&"), ("\ueba5", "ſp"), ("\ufb06", "st")),
)
_SPELLINGS: Final = (
    *(("\ue72b", "ü"), ("\ue42c", "ä"), ("==", "–"), ("—", "–"), ("\ue644", "ö"), ("’", "'"), ("⸗", "-")),
    *(("a\u0364", "ä"), ("o\u0364", "ö"), ("u\u0364", "ü"), ("\uf50e", "q\u0301")),
)


def normalize_segment(text: str) -> tuple[str, bool]:
    """A region or line in dinglehopper's spelling, and True if the tool itself would stop at it: no longer NFC."""
    text = unicodedata.normalize("NFC", text)
    if not text.isascii() or "==" in text:
        for old, new in (*LIGATURES, *_SPELLINGS):
            text = text.replace(old, new)
    normal = unicodedata.normalize("NFC", text)
    return normal, normal != text


def page_units(segments: Iterable[Iterable[str]]) -> tuple[list[str], list[str]]:
    """Clusters and words of a page: regions of segments, as read. Empty regions are left out.

    Between segments stands one cluster, the line break.
    """
    regions = [[normalize_segment(segment)[0] for segment in region] for region in segments]
    flat = [segment for region in regions if any(region) or len(region) > 1 for segment in region]
    clusters: list[str] = []
    for place, segment in enumerate(flat):
        if place:
            clusters.append("\n")
        clusters += graphemes(segment)
    return clusters, [piece for piece in word_pieces(unicodedata.normalize("NFC", "\n".join(flat))) if is_word(piece)]


def unit_errors(prediction: Sequence[str], reference: Sequence[str]) -> tuple[int, int]:
    """Edits and length of the reference, in units. The rate is infinite for an empty reference with edits."""
    if isinstance(prediction, str) and isinstance(reference, str):
        return Levenshtein.distance(prediction, reference), len(reference)
    return Levenshtein.distance(*numbered(prediction, reference)), len(reference)


def differences(prediction: Sequence[str], reference: Sequence[str]) -> Counter[tuple[str, str]]:
    """Counts of units of the reference and what each was read as; "" on one side is a gap.

    The alignment is rapidfuzz's; where several are shortest, the counts depend on it.
    """
    found, wanted = numbered(prediction, reference)
    return Counter(
        (
            reference[edit.src_pos] if edit.tag != "insert" else "",
            prediction[edit.dest_pos] if edit.tag != "delete" else "",
        )
        for edit in Levenshtein.editops(wanted, found)
    )


def numbered(*sides: Sequence[str]) -> list[list[int]]:
    """Numbers instead of strings: rapidfuzz compares hash values, and those of small integers cannot collide."""
    numbers: dict[str, int] = {}
    return [[numbers.setdefault(unit, len(numbers)) for unit in side] for side in sides]
