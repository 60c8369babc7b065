"""Read hOCR as any program writes it, well-formed or not.

Rules: docs/protocols/archives.md#hocr.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lxml import etree, html

from loupe.errors import DatasetError
from loupe.transcripts.page import Box, Hyphens, Line, PageText, Region, page_text
from loupe.transcripts.xml_source import MOST_DEPTH

_LINES: Final = frozenset(("ocr_line", "ocrx_line", "ocr_header", "ocr_footer", "ocr_caption", "ocr_textfloat"))
_PARAGRAPHS: Final = frozenset(("ocr_par", "ocr_carea"))
_BLOCKS: Final = frozenset(("ocr_par", "ocrx_block", "ocr_carea"))
_BOX: Final = re.compile(r"\bbbox\s+(-?\d+)\s+(-?\d+)\s+(-?\d+)\s+(-?\d+)")


def read_hocr(text: str, *, hyphens: Hyphens = "keep") -> list[PageText]:
    """One page for each `ocr_page`, or one for the file. Raises DatasetError if nothing has a class of hOCR."""
    root = _parse(text)
    if not any(name.startswith("ocr") for element in root.iter(etree.Element) for name in _classes(element)):
        raise DatasetError("HTML without hOCR classes", hint="export hOCR, ALTO or PAGE XML, or text as .txt")
    pages = [element for element in root.iter(etree.Element) if "ocr_page" in _classes(element)]
    return [page_text(_regions(page), hyphens=hyphens) for page in pages or [root]]


def _parse(text: str) -> etree._Element:
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text.lstrip("\ufeff"), count=1)
    parser = html.HTMLParser(encoding="utf-8", no_network=True, huge_tree=True, remove_comments=True, remove_pis=True)
    try:
        root = html.document_fromstring(text.encode("utf-8", "surrogatepass"), parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        raise DatasetError("HTML without content", hint="export the page again") from None
    level, depth = [root], 0
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            raise DatasetError(f"depth of HTML beyond {MOST_DEPTH:,} elements", hint="export the page again")
        level = [child for element in level for child in element]
    return root


def _classes(element: etree._Element) -> list[str]:
    return (element.get("class") or "").split()


def _regions(page: etree._Element) -> list[Region]:
    size = _bbox(page)
    lines = [element for element in page.iter(etree.Element) if not _LINES.isdisjoint(_classes(element))]
    outer = set(lines)
    lines = [line for line in lines if not any(parent in outer for parent in line.iterancestors())]
    regions: list[tuple[etree._Element, list[Line]]] = []
    for element in lines:
        if text := _text(element):
            around = _around(element, page)
            if not regions or regions[-1][0] is not around:
                regions.append((around, []))
            regions[-1][1].append(Line(text, element.get("id", ""), _box(element, size)))
    if not lines:
        regions = list(_without_lines(page))
    return [Region(tuple(lines), around.get("id", ""), _box(around, size)) for around, lines in regions]


def _without_lines(page: etree._Element) -> Iterator[tuple[etree._Element, list[Line]]]:
    """Words joined by blanks, of each innermost paragraph or area; else the text of these."""
    words: dict[etree._Element, list[str]] = {}
    for element in page.iter(etree.Element):
        if "ocrx_word" in _classes(element) and (text := _text(element)):
            words.setdefault(_around(element, page), []).append(text)
    for around, texts in words.items():
        yield around, [Line(" ".join(texts))]
    if words:
        return
    blocks = [element for element in page.iter(etree.Element) if not _BLOCKS.isdisjoint(_classes(element))]
    outer = {parent for block in blocks for parent in block.iterancestors()}
    for block in blocks:
        if block not in outer and (text := _text(block)):
            yield block, [Line(text)]


def _around(element: etree._Element, page: etree._Element) -> etree._Element:
    """The nearest area, else the nearest paragraph, else the page."""
    parents = list(element.iterancestors())
    for name in ("ocr_carea", "ocr_par"):
        for parent in parents:
            if name in _classes(parent):
                return parent
    return page


def _text(element: etree._Element) -> str:
    parts: list[str] = []
    for event, each in etree.iterwalk(element, events=("start", "end")):
        if event == "start":
            parts += [" " if each.tag == "br" else "", each.text or ""]
        elif each is not element:
            parts.append(each.tail or "")
    return " ".join("".join(parts).split())


def _bbox(element: etree._Element) -> Box | None:
    found = _BOX.search(element.get("title") or "")
    if not found:
        return None
    left, top, right, bottom = (float(found[place][:12]) for place in range(1, 5))
    return left, top, right, bottom


def _box(element: etree._Element, size: Box | None) -> Box | None:
    found = _bbox(element)
    if found is None or size is None or size[2] <= size[0] or size[3] <= size[1]:
        return None
    across, down = size[2] - size[0], size[3] - size[1]
    left, top, right, bottom = found
    return (left - size[0]) / across, (top - size[1]) / down, (right - size[0]) / across, (bottom - size[1]) / down
