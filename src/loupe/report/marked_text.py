"""Two texts as one, with what differs between square and curly brackets, for terminals; the report's page has colours.

The marks are those of wdiff, `[-missing-]` and `{+added+}`, word by word; all white space is alike, as in the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

from rapidfuzz.distance import Levenshtein

Kind: TypeAlias = Literal["", "missing", "added"]

#: Han, kana and Thai letters stand alone: there are no blanks between their words.
_ALONE = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"\s+|[{_ALONE}]|[^\W{_ALONE}]+|.", re.DOTALL)
#: Words of either text beyond which nothing is marked: the comparison takes their product.
_MOST = 20_000


def pieces(read: str, reference: str) -> Iterator[tuple[str, Kind]]:
    """The text that was read in pieces, with those of the reference that are missing from it.

    >>> list(pieces("a new sea", "a blue sea"))
    [('a ', ''), ('blue', 'missing'), ('new', 'added'), (' sea', '')]
    """
    ours, theirs = _WORD.findall(read), _WORD.findall(reference)
    if max(len(ours), len(theirs)) > _MOST:
        yield read, ""
        return
    alike = [[" " if word.isspace() else word for word in words] for words in (theirs, ours)]
    for step in Levenshtein.opcodes(*alike):
        mine = "".join(ours[step.dest_start : step.dest_end])
        if step.tag == "equal":
            yield mine, ""
            continue
        if missing := "".join(theirs[step.src_start : step.src_end]):
            yield missing, "missing"
        if mine:
            yield mine, "added"


def bracketed(text: str, kind: Kind) -> str:
    """A piece with its mark.

    >>> bracketed("sea", "missing"), bracketed("sea", "added"), bracketed("sea", "")
    ('[-sea-]', '{+sea+}', 'sea')
    """
    return {"missing": f"[-{text}-]", "added": f"{{+{text}+}}", "": text}[kind]
