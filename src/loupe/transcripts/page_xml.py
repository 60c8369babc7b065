"""Read PAGE XML of every version: regions, lines, words, glyphs, reading order.

Rules of Loupe and of dinglehopper: docs/protocols/archives.md#page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from lxml import etree

from loupe.transcripts.page import Box, Hyphens, Level, Line, PageText, Region, lines_of_text, page_text
from loupe.transcripts.xml_source import content, elements

_CUSTOM_INDEX: Final = re.compile(r"readingOrder\s*\{[^}]*?index\s*:\s*(-?\d+)")
#: Characters of such an attribute that are looked at.
_LONGEST_CUSTOM: Final = 1_000
_ORDERED: Final = ("OrderedGroup", "OrderedGroupIndexed")
_GROUPS: Final = (*_ORDERED, "UnorderedGroup", "UnorderedGroupIndexed")
_REFERENCES: Final = ("RegionRef", "RegionRefIndexed")


def read_page_xml(root: etree._Element, *, level: Level = "line", hyphens: Hyphens = "keep") -> PageText:
    """The regions of the page by the rules of Loupe. Raises DatasetError beyond the limits of a page."""
    size = _page_size(root)
    found = list(root.iter("TextRegion"))
    order, notes = _reading_order(root, found)
    disagreements, moved = [], 0
    regions = []
    for region in order:
        lines, whole = _lines(region, level, size), _chosen_text(region, content).strip()
        spoken = "\n".join(line.text for line in lines)
        if lines and whole and " ".join(spoken.split()) != " ".join(whole.split()):
            sorted_lines = _in_order_of(lines, [line.text for line in lines_of_text(whole)])
            if sorted_lines:
                lines, moved = sorted_lines, moved + 1
            else:
                disagreements.append(region.get("id", ""))
        own = (Line(whole),) if whole else ()
        regions.append(
            Region(own or lines if level == "region" else lines or own, region.get("id", ""), _box(region, size))
        )
    if moved:
        notes.append(f"{moved} of {len(found)} regions: lines ordered as in the text of the region")
    if disagreements:
        names = ", ".join(name for name in disagreements[:5] if name)
        notes.append(
            f"{len(disagreements)} of {len(found)} regions have lines that differ from the text of the region"
            + (f": {names}" if names else "")
        )
    if not found:
        notes.append("no text region on the page")
    return page_text(regions, notes, hyphens=hyphens)


def dinglehopper_segments(root: etree._Element, *, level: str) -> list[list[str]]:
    """The text of the page as dinglehopper takes it: regions of segments, not normalised. `level`: region or line."""
    regions = {region.get("id", ""): region for region in reversed(list(root.iter("TextRegion")))}
    orders = root.iter("ReadingOrder")
    order = next(orders, None)
    chosen: Iterable[etree._Element]
    if order is None:
        chosen = root.iter("TextRegion")
    else:
        mentioned = (name for group in elements(order, *_GROUPS) for name in _mentions(group, with_own=False))
        chosen = (regions[name] for name in mentioned if name in regions)
    segments = []
    for region in chosen:
        if level == "line":
            segments.append([_chosen_text(line, _before_comments) for line in elements(region, "TextLine")])
        else:
            segments.append([_chosen_text(region, _before_comments)])
    return segments


def _before_comments(element: etree._Element) -> str:
    return element.text or ""


def _chosen_text(element: etree._Element, read: Callable[[etree._Element], str]) -> str:
    """The text of the TextEquiv that counts: lowest index, else highest conf, else the first."""
    equivalents = list(elements(element, "TextEquiv"))
    if not equivalents:
        return ""
    chosen = equivalents[0]
    if len(equivalents) > 1:
        indexed = [(number, each) for each in equivalents if (number := _number(each.get("index"))) is not None]
        trusted = [(-number, each) for each in equivalents if (number := _number(each.get("conf"))) is not None]
        for rated in (indexed, trusted):
            if rated:
                chosen = min(rated, key=lambda pair: pair[0])[1]
                break
    unicode = next(elements(chosen, "Unicode"), None)
    return "" if unicode is None else read(unicode)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _lines(region: etree._Element, level: Level, size: tuple[float, float] | None) -> tuple[Line, ...]:
    found = list(elements(region, "TextLine"))
    indices = [_custom_index(line) for line in found]
    if all(index is not None for index in indices):
        found = [line for _, line in sorted(zip(indices, found, strict=True), key=lambda pair: pair[0] or 0)]
    texts = ((line, _line_text(line, level)) for line in found)
    return tuple(Line(text, line.get("id", ""), _box(line, size)) for line, text in texts if text)


def _line_text(line: etree._Element, level: Level) -> str:
    own = _chosen_text(line, content).strip()
    if own and level in ("line", "region"):
        return own
    words = " ".join(text for word in elements(line, "Word") if (text := _word_text(word, level)))
    return words or own


def _word_text(word: etree._Element, level: Level) -> str:
    own = _chosen_text(word, content).strip()
    if own and level != "glyph":
        return own
    return "".join(_chosen_text(glyph, content).strip() for glyph in elements(word, "Glyph")) or own


def _in_order_of(lines: Sequence[Line], texts: Sequence[str]) -> tuple[Line, ...]:
    """The same lines in the order of these texts, equal lines first to first; empty if they are not the same."""
    waiting: dict[str, list[Line]] = {}
    for line in reversed(lines):
        waiting.setdefault(line.text, []).append(line)
    if sorted(texts) != sorted(line.text for line in lines):
        return ()
    return tuple(waiting[text].pop() for text in texts)


def _reading_order(root: etree._Element, found: Sequence[etree._Element]) -> tuple[list[etree._Element], list[str]]:
    """Every region once: at its first mention, the rest in document order, and a note about the rest."""
    named: dict[str, etree._Element] = {}
    for region in found:
        named.setdefault(region.get("id", ""), region)
    named.pop("", None)
    order = next(root.iter("ReadingOrder"), None)
    mentioned: dict[str, etree._Element] = {}
    if order is not None:
        for group in elements(order, *_GROUPS):
            for name in _mentions(group, with_own=True):
                if name in named:
                    mentioned.setdefault(name, named[name])
    if not mentioned:
        indices = [_custom_index(region) for region in found]
        if found and all(index is not None for index in indices):
            pairs = sorted(zip(indices, found, strict=True), key=lambda pair: pair[0] or 0)
            return [region for _, region in pairs], []
        return list(found), []
    first = list(mentioned.values())
    rest = [region for region in found if mentioned.get(region.get("id", "")) is not region]
    notes = [f"{len(rest)} of {len(found)} regions are not in the reading order"] if rest else []
    return first + rest, notes


def _mentions(group: etree._Element, *, with_own: bool) -> Iterator[str]:
    """The ids that a group mentions, in its order; `with_own`: its own region before its children.

    A stack instead of recursion: a stranger may nest a thousand groups.
    """
    waiting = [group]
    while waiting:
        element = waiting.pop()
        if element.tag in _REFERENCES:
            yield element.get("regionRef", "")
            continue
        if with_own and element.get("regionRef"):
            yield element.get("regionRef", "")
        children = list(elements(element, *_GROUPS, *_REFERENCES))
        if element.tag in _ORDERED:
            numbered = [(number, child) for child in children if (number := _number(child.get("index"))) is not None]
            children = [child for _, child in sorted(numbered, key=lambda pair: pair[0])]
        waiting.extend(reversed(children))


def _custom_index(element: etree._Element) -> int | None:
    found = _CUSTOM_INDEX.search(element.get("custom", "")[:_LONGEST_CUSTOM])
    return int(found[1][:18]) if found else None


def _page_size(root: etree._Element) -> tuple[float, float] | None:
    page = next(root.iter("Page"), None)
    if page is None:
        return None
    width, height = _number(page.get("imageWidth")), _number(page.get("imageHeight"))
    return (width, height) if width and height and width > 0 and height > 0 else None


def _box(element: etree._Element, size: tuple[float, float] | None) -> Box | None:
    coords = next(elements(element, "Coords"), None)
    if coords is None or size is None:
        return None
    if points := coords.get("points"):
        pairs = [pair.split(",") for pair in points.split()]
        numbers = [tuple(_number(part) for part in pair) for pair in pairs]
    else:
        numbers = [(_number(point.get("x")), _number(point.get("y"))) for point in elements(coords, "Point")]
    if not numbers or any(len(pair) != 2 or None in pair for pair in numbers):
        return None
    across, down = ([float(pair[axis] or 0) / size[axis] for pair in numbers] for axis in (0, 1))
    return min(across), min(down), max(across), max(down)
