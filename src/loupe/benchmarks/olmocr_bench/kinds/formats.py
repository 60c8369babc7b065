"""Format tests: a text must be a heading, bold or italic. All searches are linear.

Protocol: docs/protocols/olmocr_bench.md#format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rapidfuzz import fuzz

from loupe.benchmarks.olmocr_bench.data.records import FormatRule
from loupe.benchmarks.olmocr_bench.kinds.outcomes import PASSED, Outcome, failed, threshold_of
from loupe.benchmarks.olmocr_bench.text.normalization import normalize

_HEADING = re.compile(r"^#{1,6}\s+(.+?)$", re.MULTILINE)
_LONE = {mark: re.compile(rf"(?<!{re.escape(mark)}){re.escape(mark)}(?!{re.escape(mark)})") for mark in "*_"}
#: Opening up to its `>` and closing tag of each style; an opening `<b` also begins `<br>` or `<body>`
#: (docs/protocols/olmocr_bench.md#format).
_TAGS = {
    "heading": (("<h[1-6]", "</h[1-6]>"),),
    "bold": (("<b", "</b>"), ("<strong", "</strong>")),
    "italic": (("<i", "</i>"), ("<em", "</em>")),
}


def check_format(markdown: str, rule: FormatRule, max_diffs: int) -> Outcome:
    """Pass if some text in the style is similar enough to the one looked for, or to a part of it."""
    text = rule.text if rule.case_sensitive else rule.text.lower()
    threshold = threshold_of(text, max_diffs)
    best, nearest = 0.0, ""
    texts = dict.fromkeys(texts_in_format(markdown, rule.format))
    for raw in texts:
        found = normalize(raw)
        found = found if rule.case_sensitive else found.lower()
        ratio = fuzz.partial_ratio(text, found) / 100.0
        if ratio >= threshold:
            return PASSED
        if ratio > best:
            best, nearest = ratio, found
    return failed("format_not_found", threshold=threshold, best_ratio=best, nearest=nearest, formatted_texts=len(texts))


def texts_in_format(markdown: str, style: str) -> Iterator[str]:
    """All texts in a style, as they stand there."""
    if style == "heading":
        yield from _HEADING.findall(markdown)
    elif style == "bold":
        yield from _between(markdown, "**")
        yield from _between(markdown, "__")
    else:
        yield from _between_lone(markdown, "*")
        yield from _between_lone(markdown, "_")
    for opening, closing in _TAGS[style]:
        yield from _between_tags(markdown, opening, closing)


def _between(text: str, mark: str) -> Iterator[str]:
    return iter(text.split(mark)[1:-1:2])


def _between_lone(text: str, mark: str) -> Iterator[str]:
    """Between marks that have no other of their kind beside them, two by two."""
    marks = [match.start() for match in _LONE[mark].finditer(text)]
    for start, end in zip(marks[::2], marks[1::2], strict=False):
        yield text[start + 1 : end]


def _between_tags(text: str, opening: str, closing: str) -> Iterator[str]:
    opens, closes = re.compile(opening, re.IGNORECASE), re.compile(closing, re.IGNORECASE)
    position = 0
    while (start := opens.search(text, position)) is not None:
        inside = text.find(">", start.end()) + 1
        end = closes.search(text, inside) if inside else None
        if end is None:
            return
        yield text[inside : end.start()]
        position = end.end()
