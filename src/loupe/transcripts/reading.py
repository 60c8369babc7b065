"""Recognise the format of a file by its content and read its pages.

Rules: docs/protocols/archives.md#recognising.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Literal, TypeAlias

from loupe.errors import DatasetError
from loupe.transcripts import alto, page_xml
from loupe.transcripts.hocr import read_hocr
from loupe.transcripts.page import Hyphens, Level, PageText, Region, check_size, lines_of_text, page_text
from loupe.transcripts.xml_source import byte_order_encoding, decoded_xml, parse_xml, unpacked

Format: TypeAlias = Literal["page", "alto", "hocr", "text", "mets"]

_ABBYY_HINT = "export ALTO"
#: Formats that are known and not read, by the local name of their root.
_NOT_READ = {"TEI": "TEI", "TEI.2": "TEI", "svg": "svg"}
_JSON_KEYS = {"fullTextAnnotation": "Google Vision JSON", "analyzeResult": "Azure JSON"}


def read_transcript(
    data: bytes, name: str = "", *, level: Level = "line", hyphens: Hyphens = "keep", encoding: str = ""
) -> tuple[Format, list[PageText]]:
    """The format of a file and its pages, by the rules of Loupe.

    `name` matters only if it ends in `.txt` or `.md`, which is plain text whatever it holds. `encoding` is that of
    plain text without a byte order mark. Raises DatasetError, naming what is wrong and where, for what cannot be read.
    """
    data = unpacked(data)
    if data.startswith(b"PK\x03\x04"):
        raise DatasetError("a zip archive", hint="unpack it first: unzip FILE")
    if not is_xml(data, name):
        return "text", [_plain_page(_decoded_text(data, encoding), hyphens)]
    return _read_xml(decoded_xml(data), level, hyphens)


def as_text(data: bytes, name: str = "", encoding: str = "") -> str:
    """A file as a text that `read_page_text` and `dinglehopper_page` read: decoded, not parsed. Raises DatasetError."""
    data = unpacked(data)
    return decoded_xml(data) if is_xml(data, name) else _decoded_text(data, encoding, keep_mark=True)


def is_xml(data: bytes, name: str) -> bool:
    """True for what begins with `<`, whatever the encoding, and is not named `.txt` or `.md`."""
    if name.lower().removesuffix(".gz").endswith((".txt", ".md")):
        return False
    return data[:4096].lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n\0")[:1] == b"<"


def read_page_text(text: str, *, level: Level = "line", hyphens: Hyphens = "keep") -> str:
    """The text of all pages in what an engine or program gave: PAGE, ALTO or hOCR, else the text itself.

    An answer that only begins like XML is text: a page may begin with `<`.
    """
    if text.lstrip().startswith("<"):
        with suppress(DatasetError):
            return "\n".join(page.text for page in _read_xml(text, level, hyphens)[1])
    return _plain_page(text.removeprefix("\ufeff"), hyphens).text


def dinglehopper_page(text: str, reading: str) -> list[list[str]]:
    """The same as dinglehopper 0.11 reads it, not normalised: regions of segments.

    `reading`: dinglehopper-region or dinglehopper-line. hOCR, which that tool does not read, gives its lines by the
    rules of Loupe.
    """
    if text.lstrip().startswith("<"):
        with suppress(DatasetError):
            format_name, pages = _read_xml(text, "line", "keep")
            if format_name == "page":
                return page_xml.dinglehopper_segments(parse_xml(text), level=reading.rpartition("-")[2])
            if format_name == "alto":
                return alto.dinglehopper_segments(parse_xml(text))
            return [[line.text for page in pages for line in page.lines]]
    lines = re.split(r"\r\n|\r|\n", text)
    return [[line.strip() for line in (lines[:-1] if lines[-1] == "" else lines)]]


def _read_xml(text: str, level: Level, hyphens: Hyphens) -> tuple[Format, list[PageText]]:
    if _is_html(text):
        return "hocr", read_hocr(text, hyphens=hyphens)
    root = parse_xml(text)
    if root.tag == "PcGts":
        return "page", [page_xml.read_page_xml(root, level=level, hyphens=hyphens)]
    if root.tag == "alto":
        return "alto", alto.read_alto(root, hyphens=hyphens)
    raise _refused(root.tag, text)


def _is_html(text: str) -> bool:
    head = text[:20_000].lower()
    place = head.find("<html")
    of_other = "<pcgts" in head[:place] or "<alto" in head[:place]
    return (place >= 0 and not of_other) or "<!doctype html" in head


def _refused(tag: str, text: str) -> DatasetError:
    if tag == "document" and "abbyy" in text[:4096].lower():
        return DatasetError("ABBYY XML is not read", hint=_ABBYY_HINT)
    if tag == "mets":
        return DatasetError("METS without a usable file group", hint="name the groups: --gt-group, --ocr-group")
    known = _NOT_READ.get(tag, f"XML with the root {tag[:40]}")
    return DatasetError(f"{known} is not read yet", hint="export PAGE XML, ALTO, hOCR or text")


def _decoded_text(data: bytes, encoding: str, *, keep_mark: bool = False) -> str:
    named, mark = byte_order_encoding(data)
    chosen = named or encoding or "utf-8"
    try:
        text = data[0 if keep_mark and named == "utf-8" else mark :].decode(chosen)
    except (UnicodeDecodeError, LookupError):
        raise DatasetError(f"not text in the encoding {chosen}", hint="name the encoding: --encoding latin-1") from None
    check_size(len(text), 0)
    if text.lstrip().startswith("{") and (key := next((key for key in _JSON_KEYS if f'"{key}"' in text), "")):
        raise DatasetError(f"{_JSON_KEYS[key]} is not read yet", hint="export PAGE XML, ALTO, hOCR or text")
    return text


def _plain_page(text: str, hyphens: Hyphens) -> PageText:
    return page_text([Region(lines_of_text(text))], hyphens=hyphens)
