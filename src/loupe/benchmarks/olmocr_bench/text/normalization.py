"""The text normalisation of olmOCR-Bench, applied to the words of a test and to the page.

Protocol: docs/protocols/olmocr_bench.md#normalisation.
"""

from __future__ import annotations

import re
import unicodedata

from loupe.benchmarks.shared.combining_marks import with_sorted_marks

_BREAK = re.compile(r"<br/?>")
_STARS = re.compile(r"\*\*(.*?)\*\*")
_UNDERSCORES = re.compile(r"__(.*?)__")
_BOLD_TAG = re.compile(r"</?b>")
_ITALIC_TAG = re.compile(r"</?i>")
_DOUBLE_MARK = re.compile(r"(\*\*|__)(.*?)\1")
_SINGLE_MARK = re.compile(r"(\*|_)(.*?)\1")
_BLANKS = re.compile(r"\s+")

_PLAIN = {
    **dict.fromkeys("‘’‚", "'"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("–—‑‒−", "-"),
    "＿": "_",
    "\N{MICRO SIGN}": "\N{GREEK SMALL LETTER MU}",
}
_PLAIN_TABLE = str.maketrans(_PLAIN)


def normalize(text: str) -> str:
    """The text as olmOCR-Bench compares it: marks of emphasis gone, blanks single, a few signs in their plain form.

    Not idempotent, and not trimmed. The order of the steps is the official one.

    >>> normalize("**A** “b”<br>c_d_e")
    'A "b" cde'
    """
    text = _BREAK.sub(" ", text)
    text = _UNDERSCORES.sub(r"\1", _STARS.sub(r"\1", text))
    text = _ITALIC_TAG.sub("", _BOLD_TAG.sub("", text))
    text = remove_single_marks_like_official(_DOUBLE_MARK.sub(r"\2", text))
    text = _BLANKS.sub(" ", text)
    if text.isascii():
        return text
    return compose(text).translate(_PLAIN_TABLE)


def remove_single_marks_like_official(text: str) -> str:
    """Take any two equal `*` or `_` on a line for emphasis, also in `snake_case_name` and `2 * 3 * 4` (#quirks)."""
    return _SINGLE_MARK.sub(r"\2", text)


def compose(text: str) -> str:
    """NFC, in linear time."""
    return unicodedata.normalize("NFC", with_sorted_marks(text))
