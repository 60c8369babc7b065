"""Front matter: the block of YAML that olmOCR and its like write above a page, which nobody printed there."""

from __future__ import annotations

import re

#: A key at the start of a line. Capitals are left to letters that begin with "From:" between two rules.
_KEY = re.compile(r"[a-z][\w-]*:(?:[ \t]|$)")
#: What may stand below a key: more of its value, an item of a list, a remark, or nothing.
_BELOW = re.compile(r"[ \t]+\S|-[ \t]|#|[ \t]*$")
#: No model writes more lines of it.
_MOST_LINES = 100


def front_matter(text: str) -> str:
    """The page without a block of YAML at its start, between `---` and `---` (or `...`); any other text stays.

    >>> front_matter("---\\nprimary_language: en\\nis_table: false\\n---\\nThe harbour")
    'The harbour'
    """
    opening, *lines = text.lstrip().split("\n", _MOST_LINES)
    if opening.rstrip() != "---" or not lines or not _KEY.match(lines[0]):
        return text
    for number, line in enumerate(lines):
        if line.rstrip() in ("---", "..."):
            return "\n".join(lines[number + 1 :]).lstrip("\n")
        if not (_KEY.match(line) or _BELOW.match(line)):
            break
    return text
