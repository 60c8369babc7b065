"""Long runs of combining characters, put in order, so that Unicode's normal forms take linear time."""

from __future__ import annotations

import re
import unicodedata
from itertools import groupby

#: Combining characters all lie at or above U+0300; shorter runs of them cost Python little to sort.
_LONG_RUN = re.compile("[\u0300-\U0010ffff]{64,}")


def with_sorted_marks(text: str) -> str:
    """Canonically equivalent text: Python sorts long runs of marks in quadratic time unless they are sorted."""
    return _LONG_RUN.sub(lambda run: _sorted(run[0]), text)


def _sorted(run: str) -> str:
    # Characters of class 0 may decompose into combining ones, so these are taken apart one by one.
    parts = "".join(unicodedata.normalize("NFD", char) for char in run)
    grouped = groupby(parts, key=lambda char: unicodedata.combining(char) > 0)
    return "".join("".join(sorted(chars, key=unicodedata.combining) if marks else chars) for marks, chars in grouped)
