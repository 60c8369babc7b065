"""Text as it is compared, but with the marks that the official rules drop: vowel signs, tones, accents that combine.

The official rules keep what is a letter or a digit to Python. Vowel signs and virama of Hindi, vowels above and below
the line and tones of Thai, short vowels of Arabic and accents that combine are neither
(docs/protocols/mdpbench.md#hidden-marks).
"""

from __future__ import annotations

import sys
import unicodedata
from functools import cache

from loupe.benchmarks.omnidocbench.text.text_normalization import (
    Convert,
    formulas_to_unicode,
    without_written_blanks,
)


def with_marks(raw: str, compared: str, convert: Convert) -> str:
    """The compared form of a text with its marks, composed (NFC), so that two ways to write one letter are equal.

    `raw` is the text before, `compared` its official form: it is given back where the marks have no certain place in
    it, because more happened to it than that characters were dropped. `convert` makes inline formulas characters.
    """
    if raw.isascii():
        return compared
    words = [
        each for each in without_written_blanks(formulas_to_unicode(raw, convert)) if _is_word(each) or is_mark(each)
    ]
    if "".join(each for each in words if not is_mark(each)) != compared:
        return compared
    return unicodedata.normalize("NFC", "".join(words))


@cache
def _marks() -> frozenset[str]:
    return frozenset(filter(is_mark, map(chr, range(sys.maxunicode + 1))))


def has_marks(text: str) -> bool:
    """Whether there is any mark in it."""
    return not (text.isascii() or _marks().isdisjoint(text))


def is_mark(character: str) -> bool:
    """Whether it belongs to the letter before it (general category M), and is no letter itself.

    >>> is_mark("ि"), is_mark("a")
    (True, False)
    """
    return unicodedata.category(character)[0] == "M" and not character.isalnum()


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
