r"""Descriptions of pictures in an answer: OmniDocBench 1.6 takes no formulas from them.

Protocol: docs/protocols/omnidocbench_v16.md#extraction.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from loupe.benchmarks.omnidocbench.text.delimiters import Delimiters, pieces, with_replacements
from loupe.benchmarks.omnidocbench.text.formula_delimiters import squeezed

_MAY_BEGIN = re.compile(r"(?:the\s+(?:image|figure|diagram)|qr\s+code)\s|diagram:|\[image:", re.IGNORECASE)
_BEGINNINGS: Final = ("the image ", "the figure ", "the diagram ", "diagram:", "[diagram:", "[image:", "qr code ")
_SHORTEST: Final = 24
_SEPARATOR = re.compile(r"(\n\s*\n)")
_INLINE: Final = (Delimiters(r"\(", r"\)"), Delimiters("$", "$"))


class Described(NamedTuple):
    """A text whose descriptions of pictures have no delimiters of formulas, and how many lost some."""

    text: str
    descriptions: int


def without_formulas_in_descriptions(text: str) -> Described:
    r"""Take the delimiters of inline formulas out of blocks that describe a picture."""
    if not _MAY_BEGIN.search(text):
        return Described(text, 0)
    blocks = _SEPARATOR.split(text)
    changed = [block if index % 2 else _without_delimiters(block) for index, block in enumerate(blocks)]
    return Described("".join(changed), sum(old != new for old, new in zip(blocks, changed, strict=True)))


def is_description(block: str) -> bool:
    """Whether a block of text describes a picture."""
    text = squeezed(block).lower()
    return len(text) >= _SHORTEST and text.startswith(_BEGINNINGS)


def _without_delimiters(block: str) -> str:
    if is_description(block):
        for pair in _INLINE:
            found = list(pieces(block, [pair]))
            block = with_replacements(block, found, [piece.inside for piece in found])
    return block
