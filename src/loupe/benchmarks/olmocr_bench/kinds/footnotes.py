"""Footnote tests: a marker must be there, between the right texts (docs/protocols/olmocr_bench.md#footnotes)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from rapidfuzz import fuzz

from loupe.benchmarks.olmocr_bench.data.records import FootnoteRule
from loupe.benchmarks.olmocr_bench.kinds.outcomes import PASSED, Outcome, failed, threshold_of
from loupe.benchmarks.olmocr_bench.text.normalization import normalize

#: Characters of the answer looked at on either side of a marker.
_WINDOW = 200
_SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_DIGITS = frozenset("0123456789")
_SUP = re.compile("<sup", re.IGNORECASE)


def check_footnote(markdown: str, rule: FootnoteRule, max_diffs: int) -> Outcome:
    """Pass if the marker occurs, some occurrence has the text before it, and some (maybe another) the text after it."""
    places = list(marker_places(markdown, rule.marker))
    if not places:
        return failed("footnote_marker_missing")
    missing: list[str] = []
    figures: dict[str, float | int | str] = {"markers": len(places)}
    sides = (
        ("before", rule.before, dict.fromkeys(markdown[max(0, start - _WINDOW) : start] for start, _ in places)),
        ("after", rule.after, dict.fromkeys(markdown[end : end + _WINDOW] for _, end in places)),
    )
    for side, text, windows in sides:
        if not text:
            continue
        threshold = threshold_of(text, max_diffs)
        best, nearest = _best_match(text, windows, side=side, enough=threshold)
        if best is None or best < threshold:
            missing.append(side)
            figures |= {f"{side}_threshold": threshold, f"{side}_ratio": best or 0.0, f"{side}_nearest": nearest}
    return failed(f"footnote_{'_and_'.join(missing)}_missing", **figures) if missing else PASSED


def marker_places(markdown: str, marker: str) -> Iterator[tuple[int, int]]:
    """Start and end of `[^M]` (no definition), `<sup>M</sup>`, and M in superscript digits, also within longer ones."""
    yield from (match.span() for match in re.finditer(rf"\[\^{re.escape(marker)}\](?!:)", markdown))
    yield from _superscript_tags(markdown, marker)
    if _DIGITS.issuperset(marker):
        digits = re.escape(marker.translate(_SUPERSCRIPT))
        yield from (match.span() for match in re.finditer(digits, markdown))


def _superscript_tags(markdown: str, marker: str) -> Iterator[tuple[int, int]]:
    content = re.compile(re.escape(marker) + "</sup>", re.IGNORECASE)
    position = inside = 0
    while (start := _SUP.search(markdown, position)) is not None:
        if inside <= start.end():
            inside = markdown.find(">", start.end()) + 1
            if not inside:
                return
        match = content.match(markdown, inside)
        if match:
            yield start.start(), match.end()
        position = match.end() if match else start.end()


def _best_match(text: str, windows: dict[str, None], *, side: str, enough: float) -> tuple[float | None, str]:
    """The best similarity of the text to the near end of a window, and that end; stops at the first good one."""
    wanted = clean(text)
    best: float | None = None
    nearest = ""
    for window in windows:
        cleaned = clean(window)
        if not cleaned:
            continue
        length = min(len(cleaned), 2 * len(wanted))
        part = _near_end(cleaned, length, side)
        ratio = fuzz.partial_ratio(wanted, part) / 100.0
        if best is None or ratio > best:
            best, nearest = ratio, part
        if ratio >= enough:
            break
    return best, nearest


def _near_end(cleaned: str, length: int, side: str) -> str:
    """The characters next to the marker; with nothing to compare, upstream takes them all."""
    if length == 0:
        return cleaned
    return cleaned[-length:] if side == "before" else cleaned[:length]


@lru_cache(maxsize=4096)
def clean(text: str) -> str:
    """Letters and digits only, normalised, in lower case."""
    return "".join(char for char in normalize(text) if char.isalnum()).lower()
