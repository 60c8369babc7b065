"""Find the script of a text, from the blocks of the Unicode standard (version 16), without property files."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections import Counter

_BLOCKS: tuple[tuple[int, int, str], ...] = (
    (0x0041, 0x005A, "latin"), (0x0061, 0x007A, "latin"), (0x00AA, 0x024F, "latin"), (0x0250, 0x02AF, "latin"),
    (0x0370, 0x03FF, "greek"), (0x0400, 0x052F, "cyrillic"), (0x0530, 0x058F, "armenian"), (0x0590, 0x05FF, "hebrew"),
    (0x0600, 0x06FF, "arabic"), (0x0750, 0x077F, "arabic"), (0x0870, 0x08FF, "arabic"),
    (0x0900, 0x097F, "devanagari"), (0x0980, 0x09FF, "bengali"), (0x0A00, 0x0A7F, "gurmukhi"),
    (0x0A80, 0x0AFF, "gujarati"), (0x0B00, 0x0B7F, "odia"), (0x0B80, 0x0BFF, "tamil"), (0x0C00, 0x0C7F, "telugu"),
    (0x0C80, 0x0CFF, "kannada"), (0x0D00, 0x0D7F, "malayalam"), (0x0D80, 0x0DFF, "sinhala"), (0x0E00, 0x0E7F, "thai"),
    (0x0E80, 0x0EFF, "lao"), (0x0F00, 0x0FFF, "tibetan"), (0x1000, 0x109F, "myanmar"), (0x10A0, 0x10FF, "georgian"),
    (0x1100, 0x11FF, "hangul"), (0x1200, 0x139F, "ethiopic"), (0x1780, 0x17FF, "khmer"), (0x1800, 0x18AF, "mongolian"),
    (0x1C80, 0x1C8F, "cyrillic"), (0x1E00, 0x1EFF, "latin"), (0x1F00, 0x1FFF, "greek"), (0x2C60, 0x2C7F, "latin"),
    (0x2DE0, 0x2DFF, "cyrillic"), (0x2E80, 0x2FDF, "han"), (0x3040, 0x30FF, "kana"), (0x3130, 0x318F, "hangul"),
    (0x31F0, 0x31FF, "kana"), (0x3400, 0x4DBF, "han"), (0x4E00, 0x9FFF, "han"), (0xA640, 0xA69F, "cyrillic"),
    (0xA720, 0xA7FF, "latin"), (0xA8E0, 0xA8FF, "devanagari"), (0xA960, 0xA97F, "hangul"), (0xAC00, 0xD7FF, "hangul"),
    (0xF900, 0xFAFF, "han"), (0xFB00, 0xFB06, "latin"), (0xFB1D, 0xFB4F, "hebrew"), (0xFB50, 0xFDFF, "arabic"),
    (0xFE70, 0xFEFF, "arabic"), (0xFF21, 0xFF3A, "latin"), (0xFF41, 0xFF5A, "latin"), (0xFF66, 0xFF9D, "kana"),
    (0x20000, 0x3FFFF, "han"),
)  # fmt: skip
_STARTS = [start for start, _, _ in _BLOCKS]
#: Markup is written in Latin letters whatever the page is written in.
_MARKUP = re.compile(r"<[a-zA-Z/!][^<>]{0,300}>|\\[a-zA-Z]+")
_NO_ASCII_LETTERS = {code: None for code in range(128) if not chr(code).isalpha()}
#: With fewer letters than this, a script says nothing.
MIN_LETTERS = 4
#: A script that makes up at least this share of the reference is no surprise in the prediction.
_PRESENT = 0.1


@functools.lru_cache(maxsize=4096)  # a page holds few different characters, each of which is asked about
def script_of(char: str) -> str:
    """The script of one letter, "" for anything else.

    >>> script_of("д"), script_of("漢"), script_of("7")
    ('cyrillic', 'han', '')
    """
    index = bisect_right(_STARTS, ord(char)) - 1
    if index < 0 or not char.isalpha():
        return ""
    _, end, script = _BLOCKS[index]
    return script if ord(char) <= end else ""


def count_scripts(text: str) -> Counter[str]:
    """Letters of each script, markup (tags, LaTeX commands) left out."""
    counts: Counter[str] = Counter()
    if "<" in text or "\\" in text:
        text = _MARKUP.sub(" ", text)
    if text.isascii():
        letters = len(text.translate(_NO_ASCII_LETTERS))
        return Counter(latin=letters) if letters else counts
    for char, count in Counter(text).items():
        if script := script_of(char):
            counts[script] += count
    return counts


def script_mismatch(prediction: str, reference: str) -> bool | None:
    """True if the prediction is mainly in a script that the reference hardly uses; None with too few letters.

    Texts in two scripts (Japanese: kanji and kana) may tip either way, so the most frequent script of the prediction is
    a mismatch only where it makes up less than a tenth of the reference's letters.
    """
    predicted, expected = count_scripts(prediction), count_scripts(reference)
    if predicted.total() < MIN_LETTERS or expected.total() < MIN_LETTERS:
        return None
    main = predicted.most_common(1)[0][0]
    return expected[main] < _PRESENT * expected.total()
