"""Quantities as people read them: shares in percent, sizes, durations, counted things."""

from __future__ import annotations


def points(share: float, decimals: int = 1) -> str:
    """A share in points of a hundred; what rounds to nothing has no sign.

    >>> points(0.12345), points(-0.00001, 2)
    ('12.3', '0.00')
    """
    return f"{round(100 * share, decimals) + 0.0:.{decimals}f}"


def percent(share: float, decimals: int = 1) -> str:
    """A share in percent, as `12.3 %`."""
    return f"{points(share, decimals)} %"


def size(count: float) -> str:
    """Bytes in the largest unit that they fill.

    >>> size(3_404_000_000), size(85_000_000), size(12)
    ('3.4 GB', '85 MB', '12 bytes')
    """
    for unit, bytes_of_it in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= bytes_of_it:
            return f"{count / bytes_of_it:,.1f}".removesuffix(".0") + f" {unit}"
    return f"{count:.0f} bytes"


def duration(seconds: float) -> str:
    """`42 s`, `2 min 05 s` or `1 h 12 min`.

    >>> duration(42), duration(125), duration(4320)
    ('42 s', '2 min 05 s', '1 h 12 min')
    """
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    if whole < 100 * 60:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def counted(count: int, noun: str) -> str:
    """A number of things whose plural ends with an s.

    >>> counted(1, "page"), counted(1200, "page")
    ('1 page', '1,200 pages')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
