"""Read ALTO 1 to 4: strings, hyphens, blocks, reading order, several pages in a file.

Rules of Loupe and of dinglehopper: docs/protocols/archives.md#alto.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from lxml import etree

from loupe.transcripts.page import Box, Hyphens, Line, PageText, Region, page_text
from loupe.transcripts.xml_source import elements


def read_alto(root: etree._Element, *, hyphens: Hyphens = "keep") -> list[PageText]:
    """One page for each `Page`, by the rules of Loupe. Raises DatasetError beyond the limits of a page."""
    return [_read_page(page, root, hyphens) for page in root.iter("Page")]


def dinglehopper_segments(root: etree._Element) -> list[list[str]]:
    """The text of a file as dinglehopper takes it: one region, a segment for every `TextLine`."""
    return [
        [" ".join(string.get("CONTENT", "") for string in elements(line, "String")) for line in root.iter("TextLine")]
    ]


def _read_page(page: etree._Element, root: etree._Element, hyphens: Hyphens) -> PageText:
    size = _number(page, "WIDTH"), _number(page, "HEIGHT")
    blocks: dict[etree._Element, etree._Element | None] = {}
    found: dict[etree._Element, tuple[etree._Element | None, Line]] = {}
    for element in page.iter("TextLine"):
        text = _line_text(element, hyphens)
        if text:
            parent = element.getparent()
            if parent not in blocks:
                blocks[parent] = next(element.iterancestors("TextBlock"), None)
            found[element] = blocks[parent], Line(text, element.get("ID", ""), _box(element, size))
    order, notes = list(found), []
    mentioned = dict.fromkeys(line for line in _mentioned_lines(root, page) if line in found)
    if mentioned:
        rest = [line for line in found if line not in mentioned]
        order = [*mentioned, *rest]
        notes += [f"{len(rest)} of {len(found)} lines are not in the reading order"] if rest else []
    regions: list[tuple[etree._Element | None, list[Line]]] = []
    for element in order:
        block, line = found[element]
        if not regions or regions[-1][0] is not block:
            regions.append((block, []))
        regions[-1][1].append(line)
    return page_text(
        (
            Region(
                tuple(lines), "" if block is None else block.get("ID", ""), None if block is None else _box(block, size)
            )
            for block, lines in regions
        ),
        notes,
    )


def _line_text(line: etree._Element, hyphens: Hyphens) -> str:
    """The strings of a line, joined by blanks; a hyphen stands at the string before it."""
    words: list[str] = []
    divided = False  # the last string was the first part of a word that stands whole in it
    for element in elements(line, "String", "HYP"):
        if element.tag == "HYP":
            if not divided:
                hyphen = element.get("CONTENT", "-")
                words[-1:] = [words[-1] + hyphen] if words else [hyphen]
            continue
        part = element.get("SUBS_TYPE", "") if hyphens == "join" else ""
        divided = part == "HypPart1"
        text = element.get("SUBS_CONTENT", "") if divided else element.get("CONTENT", "")
        if part != "HypPart2" and text:
            words.append(text)
    return " ".join(words).strip()


def _mentioned_lines(root: etree._Element, page: etree._Element) -> Iterator[etree._Element]:
    """The lines that the reading order names: a block stands for its lines, a string for the line around it."""
    order = next(root.iter("ReadingOrder"), None)
    if order is None:
        return
    named: dict[str, etree._Element] = {}
    for element in page.iter(etree.Element):
        if name := element.get("ID"):
            named.setdefault(name, element)
    for reference in order.iter("ElementRef"):
        for name in reference.get("REF", "").split():
            if (element := named.pop(name, None)) is not None:  # only its first mention counts
                line = element if element.tag == "TextLine" else next(element.iterancestors("TextLine"), None)
                yield from element.iter("TextLine") if line is None else (line,)


def _number(element: etree._Element, name: str) -> float | None:
    try:
        number = float(element.get(name, ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _box(element: etree._Element, size: tuple[float | None, float | None]) -> Box | None:
    width, height = size
    left, top, across, down = (_number(element, name) for name in ("HPOS", "VPOS", "WIDTH", "HEIGHT"))
    if not width or not height or left is None or top is None or across is None or down is None:
        return None
    return left / width, top / height, (left + across) / width, (top + down) / height
