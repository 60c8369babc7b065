"""HunyuanOCR: what an answer repeats at its end is cut down to one copy, as its own scripts do.

Source: `clean_repeated_substrings` of Tencent-Hunyuan/HunyuanOCR, README of model 1.0 (from 8,000 characters) and
inference/utils/output_utils.py @ 4e70513 of model 1.5 (from 2,000); docs/adapters.md.
"""

from __future__ import annotations

from loupe.engines.adapters.paddle_text import common_beginnings

#: Answers shorter than this are left alone: model 1.0, model 1.5.
_LEAST, _LEAST_15 = 8000, 2000
_SHORTEST_UNIT, _TIMES = 2, 10


def hunyuan_repeats(text: str) -> str:
    """An answer of at least 8,000 characters, with one copy of a unit that its end repeats ten times or more."""
    return _with_one_copy(text, _LEAST)


def hunyuan15_repeats(text: str) -> str:
    """The same for answers of at least 2,000 characters.

    >>> len(hunyuan15_repeats("The harbour. " * 200))
    13
    """
    return _with_one_copy(text, _LEAST_15)


def _with_one_copy(text: str, least: int) -> str:
    """Of all units the shortest counts, from 2 characters to a tenth of the text."""
    if len(text) < least:
        return text
    longest = len(text) // _TIMES
    same = common_beginnings(text[::-1], longest)
    for length in range(_SHORTEST_UNIT, longest + 1):
        if same[length] >= (_TIMES - 1) * length:
            return text[: len(text) - same[length] // length * length]
    return text
