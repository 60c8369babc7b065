"""Numbers as they are printed, and where one stands in a text, digit for digit.

Protocol: docs/protocols/omni_parse_bench.md#numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

#: Blanks and dashes of numbers, in folded texts.
_SIGNS = str.maketrans({"\u00a0": " ", "\u202f": " ", "−": "-", "–": "-", "—": "-"})
_WRITTEN = re.compile(
    r"\(?(?P<sign>[-−–])?[$€£¥]?"
    r"(?P<digits>\d{1,3}(?:[,.\u202f ]\d{3})*(?:[.,]\d+)?|\d+(?:[.,]\d+)?)"
    r"(?P<percent>%)?\)?[.,;:]?"
)
_MARKS = re.compile("[.,]")


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """`digits` with a point before the decimals; `written` as it was, separators included."""

    digits: str
    negative: bool
    percent: bool
    written: str = ""


def read_number(text: str) -> PrintedNumber | None:
    """The number that a text is; None where it is none, or one that may be read in two ways."""
    # `$` of the official pattern also stands before a last newline, which stripping takes away.
    found = _WRITTEN.fullmatch(text.strip())
    if found is None:
        return None
    digits = _with_point(found["digits"].replace(" ", "").replace("\u202f", ""))
    if digits is None:
        return None
    return PrintedNumber(digits, bool(found["sign"]), bool(found["percent"]), found["digits"])


def _with_point(digits: str) -> str | None:
    """Digits with a point before the decimals, without other separators; None if that cannot be told."""
    marks = _MARKS.findall(digits)
    if not marks:
        return digits
    last = max(digits.rfind("."), digits.rfind(","))
    whole, decimals = _MARKS.sub("", digits[:last]), digits[last + 1 :]
    if len(marks) > 1:
        is_point = marks[-1] not in marks[:-1] or len(decimals) in (1, 2)
        return f"{whole}.{decimals}" if is_point else whole + decimals
    if len(decimals) == 3 and whole != "0":
        return None if marks == ["."] else whole + decimals
    if marks == [","] and len(decimals) <= 2:
        return None
    return f"{whole}.{decimals}"


def number_in(number: PrintedNumber, folded: str) -> str:
    """ "" where the number stands in a folded text, else why not: `number_missing`, `sign` or `percent`."""
    hits = list(_pattern(number).finditer(folded.translate(_SIGNS)))
    if not hits:
        return "number_missing"
    signs = [(hit["before"] or "").strip() == "-" for hit in hits]
    same_sign = [hit for hit, negative in zip(hits, signs, strict=True) if negative == number.negative]
    if not same_sign:
        return "number_sign"
    return "" if not number.percent or any(hit["percent"] for hit in same_sign) else "number_percent"


@lru_cache(maxsize=8_192)
def _pattern(number: PrintedNumber) -> re.Pattern[str]:
    """The number with or without marks between thousands, or as it is written; no digit may touch it."""
    whole, _, decimals = number.digits.partition(".")
    first = len(whole) % 3 or 3
    groups = [whole[:first], *(whole[start : start + 3] for start in range(first, len(whole), 3))]
    digits = r"[,\.\u202f ]?".join(map(re.escape, groups))
    if number.written != number.digits:
        digits = f"(?:{digits}|{re.escape(number.written)})"
    end = r"[.,]" + re.escape(decimals) if decimals else r"(?![.,]\d)"
    return re.compile(
        r"(?<!\d)(?<!\d[.,])(?P<before>(?<!\w)-(?=[\d$€£¥])|\(\s?)?(?:[$€£¥]\s?)?"
        rf"{digits}{end}(?P<percent>\s?%)?\)?(?!\d)"
    )
