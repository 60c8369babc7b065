"""Find formatting faults around short answers that cost points.

Reasoning before an answer is found besides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from loupe.types import Edit, FormatFault

#: Longer answers are no short ones: nothing is looked for in them.
_LONGEST = 20_000
_LEAD_IN = re.compile(r"(?:the )?(?:final )?answer(?: is)?(?: *: *| +)(?=\S)", re.IGNORECASE)
_BOXED = "\\boxed{"
_PAIRS = (("**", "**"), ('"', '"'), ("'", "'"), ("`", "`"), ("$", "$"))
_GROUPED = re.compile(r"(?<![\d,])\d{1,3}(?>(?:,\d{3})+)(?![\d,])")
_CURRENCY = re.compile(r"[$€£¥] ?(?=[\d.])")


def _within(find: Callable[[str], Sequence[Edit]]) -> Callable[[str], Sequence[Edit]]:
    return lambda text: find(text) if len(text) <= _LONGEST else ()


def _kept(text: str, start: int, end: int) -> Sequence[Edit]:
    """Only what lies between two places stays."""
    edits = (Edit(0, start, ""), Edit(end, len(text), ""))
    return [edit for edit in edits if edit.start < edit.end]


def _lead_in(text: str) -> Sequence[Edit]:
    """Return what comes before the answer that the last line names ("The answer is", "ANSWER:")."""
    stripped = text.rstrip()
    start = stripped.rfind("\n") + 1
    line = stripped[start:]
    found = _LEAD_IN.match(line.lstrip())
    return _kept(text, start + len(line) - len(line.lstrip()) + found.end(), len(stripped)) if found else ()


def _boxed(text: str) -> Sequence[Edit]:
    r"""All but what the last `\boxed{…}` holds."""
    start = text.rfind(_BOXED)
    if start < 0:
        return ()
    start, depth = start + len(_BOXED), 1
    for place in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if not depth:
            return _kept(text, start, place)
    return ()


def _wrapped(text: str) -> Sequence[Edit]:
    """Marks of emphasis or quotation around the whole answer."""
    start, end = len(text) - len(text.lstrip()), len(text.rstrip())
    for opening, closing in _PAIRS:
        inside = text[start + len(opening) : end - len(closing)]
        whole = end - start > len(opening) + len(closing)
        if whole and text.startswith(opening, start) and text.endswith(closing, 0, end) and opening not in inside:
            return _kept(text, start + len(opening), end - len(closing))
    return ()


def _final_stop(text: str) -> Sequence[Edit]:
    end = len(text.rstrip())
    return [Edit(end - 1, end, "")] if end > 1 and text[end - 1] == "." and text[end - 2] != "." else ()


def _number_signs(text: str) -> Sequence[Edit]:
    """Commas that group digits, and currency signs."""
    edits = [Edit(found.start(), found.end(), "") for found in _CURRENCY.finditer(text)]
    edits += [Edit(found.start(), found.end(), found[0].replace(",", "")) for found in _GROUPED.finditer(text)]
    return sorted(edits)


FAULTS = (
    FormatFault(name="boxed", meaning="the answer in a LaTeX box, with words around it", edits=_within(_boxed)),
    FormatFault(name="lead-in", meaning='words before the answer ("The answer is")', edits=_within(_lead_in)),
    FormatFault(name="wrapped", meaning="quotes or emphasis around the answer", edits=_within(_wrapped)),
    FormatFault(name="final-stop", meaning="a full stop behind the answer", edits=_within(_final_stop)),
)
#: What keeps a number from being read as one.
NUMBER_FAULTS = (
    FormatFault(name="number-signs", meaning="commas and currency signs in numbers", edits=_within(_number_signs)),
)
