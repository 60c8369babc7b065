"""Character and word errors by named profiles: each gives exactly the numbers of one tool, or Loupe's own.

Rules: docs/protocols/archives.md#profiles.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, TypeAlias

from rapidfuzz.distance import Levenshtein

from loupe.metrics.dinglehopper import LIGATURES, numbered, page_units, unit_errors
from loupe.metrics.edit import split_words
from loupe.metrics.isri import isri_character_errors, isri_text, isri_words, missed_words

Counts: TypeAlias = tuple[int, int]
#: A page as a profile reads it: the text by the rules of Loupe, or regions of segments by dinglehopper's.
Reading: TypeAlias = Literal["loupe", "dinglehopper-region", "dinglehopper-line"]

# Scripts written without spaces: a line break inside a sentence must not count as a character.
_CJK: Final = "\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
_CJK_CHARACTER: Final = re.compile(rf"([{_CJK}])")
_SPACE_AT_CJK: Final = re.compile(rf"(?<=[{_CJK}])[ ]|[ ](?=[{_CJK}])")
#: A single space is left alone: most are, and replacing each by itself takes time.
_NO_SINGLE_SPACE: Final = re.compile(r" \s+|[^\S ]\s*")


def collapse_white_space(text: str) -> str:
    """Every run of white space as one blank, none at the ends and none beside a CJK character."""
    text = _NO_SINGLE_SPACE.sub(" ", text).strip()
    return text if text.isascii() else _SPACE_AT_CJK.sub("", text)


def separate_words(text: str) -> str:
    """Spaces around every CJK character, which counts as a word of its own: these scripts do not mark words.

    >>> separate_words("ab 渡口")
    'ab  渡  口 '
    """
    return text if text.isascii() else _CJK_CHARACTER.sub(r" \1 ", text)


#: Characters that show nothing: byte order mark, soft hyphen, zero width and direction marks.
_UNSEEN: Final = dict.fromkeys((0xFEFF, 0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A)))
_MORE_LIGATURES: Final = (
    *(("\ufb04", "ffl"), ("\ufb05", "ſt"), ("\ueba3", "ſl"), ("\uf4ff", "ſſt"), ("\uf52c", "ſp"), ("\uf4fc", "ſk")),
    *(("\ue42c", "ä"), ("\ue644", "ö"), ("\ue72b", "ü")),
    *((f"{base}\u0364", umlaut) for base, umlaut in zip("aouAOU", "äöüÄÖÜ", strict=True)),
)
_SIGNS: Final = str.maketrans(
    {"ſ": "s", "ꝛ": "r"} | dict.fromkeys("⸗¬‐‑–—−", "-") | dict.fromkeys("„“”‟»«", '"') | dict.fromkeys("’‘‚‛′›‹", "'")
)


def modernize(text: str) -> str:
    """Early modern print in today's spelling: long s, ligatures, letters above letters, hyphens, quotation marks.

    u and v, i and j, abbreviations and macrons stay.

    >>> modernize("Wu\\u0364rde, deſſen")
    'Würde, dessen'
    """
    text = unicodedata.normalize("NFC", text).translate(_UNSEEN)
    for old, new in (*LIGATURES, *_MORE_LIGATURES):
        text = text.replace(old, new)
    return unicodedata.normalize("NFC", text.translate(_SIGNS))


#: A page as read: its text, or dinglehopper's regions of segments.
Page: TypeAlias = str | Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Units:
    """A page in the units of a profile: what edits and confusions are counted in, one after the other."""

    characters: Sequence[str]
    words: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextProfile:
    """Reading, normalisation and formula together. `version` is that of the rules, and part of the signature."""

    name: str
    version: str
    reading: Reading
    units: Callable[[Page], Units]
    #: Edits and units of the reference, of characters and of words, from the units of prediction and reference.
    errors: Callable[[Units, Units], tuple[Counts, Counts]]
    #: True if a rate without a unit in the reference is infinite; else each insertion counts 1.
    endless: bool = False


def _spelled_units(normalize: Callable[[str], str]) -> Callable[[Page], Units]:
    def units(page: Page) -> Units:
        text = collapse_white_space(normalize(_text(page)))
        return Units(text, split_words(separate_words(text)))

    return units


def _text(page: Page) -> str:
    return page if isinstance(page, str) else "\n".join("\n".join(region) for region in page)


def _jiwer_units(page: Page) -> Units:
    text = _text(page).strip()
    return Units(text, split_words(text))


def _isri_units(page: Page) -> Units:
    text = isri_text(_text(page))
    return Units(text, isri_words(text))


def _dinglehopper_units(page: Page) -> Units:
    return Units(*page_units([page.split("\n")] if isinstance(page, str) else page))


def _unit_errors(prediction: Units, reference: Units) -> tuple[Counts, Counts]:
    return (
        unit_errors(prediction.characters, reference.characters),
        unit_errors(prediction.words, reference.words),
    )


def _isri_errors(prediction: Units, reference: Units) -> tuple[Counts, Counts]:
    return (
        isri_character_errors("".join(prediction.characters), "".join(reference.characters)),
        missed_words(prediction.words, reference.words),
    )


def _loupe_profile(name: str, normalize: Callable[[str], str]) -> TextProfile:
    return TextProfile(name=name, version="1", reading="loupe", units=_spelled_units(normalize), errors=_unit_errors)


def _dinglehopper_profile(name: str, reading: Reading) -> TextProfile:
    return TextProfile(
        name=name, version="0.11.0", reading=reading, units=_dinglehopper_units, errors=_unit_errors, endless=True
    )


#: By name; the first is the default.
PROFILES: Final = {
    profile.name: profile
    for profile in (
        _loupe_profile("nfc", partial(unicodedata.normalize, "NFC")),
        _loupe_profile("nfkc", partial(unicodedata.normalize, "NFKC")),
        _loupe_profile("historical", modernize),
        _dinglehopper_profile("dinglehopper", "dinglehopper-region"),
        _dinglehopper_profile("dinglehopper-line", "dinglehopper-line"),
        TextProfile(name="isri", version="ocreval 873a0de", reading="loupe", units=_isri_units, errors=_isri_errors),
        TextProfile(name="jiwer", version="4.0.0", reading="loupe", units=_jiwer_units, errors=_unit_errors),
    )
}


@dataclass(frozen=True, slots=True)
class Confusions:
    """Counts of units of the reference and what each was read as; "" is a gap.

    `pairs`: single units, aligned one by one. `runs`: each stretch of edits without a hit between, whole.
    """

    pairs: Counter[tuple[str, str]]
    runs: Counter[tuple[str, str]]


def confusions(prediction: Sequence[str], reference: Sequence[str]) -> Confusions:
    """Count what was read as what, in the units of a profile.

    The alignment is rapidfuzz's shortest; where several are shortest, the counts depend on it.
    """
    pairs: Counter[tuple[str, str]] = Counter()
    runs: Counter[tuple[str, str]] = Counter()
    start: tuple[int, int] | None = None
    end = (0, 0)
    for place in edited_places(prediction, reference):
        wanted, found = reference[place[0] : place[2]], prediction[place[1] : place[3]]
        pairs["".join(wanted), "".join(found)] += 1
        if start is None or (place[0], place[1]) != end:
            if start is not None:
                runs[_run(reference, prediction, start, end)] += 1
            start = place[0], place[1]
        end = place[2], place[3]
    if start is not None:
        runs[_run(reference, prediction, start, end)] += 1
    return Confusions(pairs, runs)


def _run(
    reference: Sequence[str], prediction: Sequence[str], start: tuple[int, int], end: tuple[int, int]
) -> tuple[str, str]:
    return "".join(reference[start[0] : end[0]]), "".join(prediction[start[1] : end[1]])


def edited_places(prediction: Sequence[str], reference: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Each edit of one unit: its start in the reference and the prediction, and its end in both."""
    for edit in Levenshtein.editops(*numbered(reference, prediction)):
        here, there = edit.src_pos, edit.dest_pos
        yield here, there, here + (edit.tag != "insert"), there + (edit.tag != "delete")
