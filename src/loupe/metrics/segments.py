"""Cut text into grapheme clusters and words: Unicode Standard Annex 29 of Unicode 16, and of Unicode 8 for ISRI.

Each character becomes a letter for its class, so that the rules of the annex are regular expressions. The classes are
those of uniseg's database; its own segmentation takes a hundred times as long.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Final

#: Classes of grapheme clusters; besides, in texts with conjuncts and pictographs: C consonant of a conjunct, k mark
#: within one, l linker, x pictograph.
_CLUSTER_LETTERS: Final = {
    "CR": "r",
    "LF": "n",
    "Control": "c",
    "Extend": "e",
    "ZWJ": "z",
    "Regional_Indicator": "R",
    "Prepend": "p",
    "SpacingMark": "s",
    "L": "L",
    "V": "V",
    "T": "T",
    "LV": "v",
    "LVT": "t",
    "Other": "o",
}
#: Table 1c of the annex.
_CLUSTER: Final = re.compile(
    r"rn|[rnc]"
    r"|p*(?:L*(?:[Vv]V*|t)T*|L+|T+|RR|x(?:[ekl]*zx)*|C(?:[klz]*l[klz]*C)+|[^rnc])[eklzs]*"
)
#: Classes of words. Letters: a letter, h Hebrew letter, d digit, k Katakana, _ joins both; m, n, q, Q may stand within.
_WORD_LETTERS: Final = {
    "CR": "r",
    "LF": "n",
    "Newline": "N",
    "Extend": "e",
    "ZWJ": "z",
    "Format": "e",
    "Regional_Indicator": "R",
    "Katakana": "k",
    "Hebrew_Letter": "h",
    "ALetter": "a",
    "Single_Quote": "q",
    "Double_Quote": "Q",
    "MidNumLet": "m",
    "MidLetter": "l",
    "MidNum": "i",
    "Numeric": "d",
    "ExtendNumLet": "_",
    "WSegSpace": "w",
    "Other": "o",
}
#: What follows a character and belongs to it.
_MARK: Final = "[ez]*+"
#: A letter or digit, with what stands between it and the next: `3.14`, `can't`, Hebrew with quotation marks.
_STEP: Final = f"(?:h{_MARK}Q{_MARK}(?=h)|[ah]{_MARK}(?:[lmq]{_MARK}(?=[ah]))?|d{_MARK}(?:[imq]{_MARK}(?=d))?)"
_RUN: Final = f"(?>{_STEP}+|(?:k{_MARK})+)"
_JOINT: Final = f"(?:_{_MARK})"
_JOINED: Final = f"{_JOINT}*{_RUN}(?:{_JOINT}+{_RUN})*{_JOINT}*|{_JOINT}+"
#: A Hebrew word keeps a single quote at its end (WB7a).
_GERESH: Final = f"{_JOINT}*(?:{_RUN}{_JOINT}+)*{_STEP}*h{_MARK}q{_MARK}(?![ah])"
_WORD: Final = re.compile(f"rn|[rnN]|{_JOINED}|w+{_MARK}|R{_MARK}(?:R{_MARK})?|.{_MARK}", re.DOTALL)
_HEBREW_WORD: Final = re.compile(f"{_GERESH}|{_WORD.pattern}", re.DOTALL)
_WORD_8: Final = re.compile(rf"(?:\A[ez]+)?(?:rn{_MARK}|{_GERESH}|{_JOINED}|(?:R{_MARK})+|.{_MARK})|\A[ez]+", re.DOTALL)


def graphemes(text: str) -> list[str]:
    """Extended grapheme clusters, with conjuncts (GB9c). Together they are the text.

    >>> graphemes("Wu\\u0364rde")
    ['W', 'uͤ', 'r', 'd', 'e']
    """
    if text.isascii() and "\r" not in text:
        return list(text)
    return [text[found.start() : found.end()] for found in _CLUSTER.finditer(text.translate(_cluster_classes()))]


def word_pieces(text: str) -> list[str]:
    """Pieces between word boundaries, blanks and punctuation among them. Together they are the text.

    >>> word_pieces("can't, 3.14")
    ["can't", ',', ' ', '3.14']
    """
    classes = text.translate(_word_classes())
    if "zx" in classes or "zX" in classes:  # WB3c: a joiner and a pictograph; rare, and it changes what follows
        from uniseg.wordbreak import words

        return list(words(text))
    classes = classes.replace("X", "a")
    pattern = _HEBREW_WORD if "h" in classes else _WORD
    return [text[found.start() : found.end()] for found in pattern.finditer(classes)]


def word_pieces_unicode_8(text: str) -> list[str]:
    """The same by the rules of Unicode 8: none for joiners and pictographs, marks after a line break belong to it."""
    classes = text.translate(_word_classes()).replace("X", "a")
    return [text[found.start() : found.end()] for found in _WORD_8.finditer(classes)]


def is_word(piece: str) -> bool:
    """Tell a word from blanks, punctuation and signs: letters, digits, private and unassigned characters make one."""
    return not all(_is_no_word(character) for character in piece)


@cache
def _is_no_word(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "OMPZS" or category in ("Cc", "Cf")


@cache
def _cluster_classes() -> dict[int, str]:
    from uniseg.derived import indic_conjunct_break
    from uniseg.emoji import extended_pictographic
    from uniseg.graphemecluster import grapheme_cluster_break

    class Classes(dict[int, str]):
        def __missing__(self, code: int) -> str:
            character = chr(code)
            letter = _CLUSTER_LETTERS[grapheme_cluster_break(character).value]
            conjunct = indic_conjunct_break(character).value
            if letter == "o" and extended_pictographic(character):
                letter = "x"
            elif letter == "o" and conjunct == "Consonant":
                letter = "C"
            elif letter == "e" and conjunct in ("Extend", "Linker"):
                letter = conjunct[0].lower().replace("e", "k")
            self[code] = letter
            return letter

    return Classes()


@cache
def _word_classes() -> dict[int, str]:
    from uniseg.emoji import extended_pictographic
    from uniseg.wordbreak import word_break

    class Classes(dict[int, str]):
        def __missing__(self, code: int) -> str:
            letter = _WORD_LETTERS[word_break(chr(code)).value]
            if letter in "oa" and extended_pictographic(chr(code)):
                letter = "x" if letter == "o" else "X"
            self[code] = letter
            return letter

    return Classes()
