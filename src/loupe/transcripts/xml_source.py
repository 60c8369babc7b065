"""Parse the XML of a stranger: bounded, without entities, without a connection.

Rules: docs/protocols/archives.md#safety.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import Final
from xml.parsers import expat

from lxml import etree

from loupe.errors import DatasetError

MOST_BYTES: Final = 64 * 2**20
MOST_DEPTH: Final = 1_000

_GZIP: Final = b"\x1f\x8b"
_UNPACK: Final = "copy the file again, or unpack it with gunzip"
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_DECLARATION: Final = re.compile(r"<\?xml\s[^>]*?\?>")
_ENCODING: Final = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")
#: What libxml2 and Python read alike; an exotic encoding could hide a declaration from one of them.
_KNOWN_ENCODING: Final = re.compile(r"utf-?8|(us-)?ascii|utf-?16(-?[lb]e)?|iso-?8859-?\d{1,2}|latin-?1|windows-?125\d")
#: The first tag that opens an element, and what declares its namespace.
_ROOT_TAG: Final = re.compile(r"<[A-Za-z_][^<>]*>")
_DEFAULT_NAMESPACE: Final = re.compile(r"""\sxmlns\s*=\s*(?:"[^"]*"|'[^']*')""")


def unpacked(data: bytes) -> bytes:
    """The bytes inside of gzip, else the bytes themselves. Raises DatasetError beyond 64 MB and for broken gzip."""
    found, packed = b"", data
    while packed.startswith(_GZIP):  # a file may have several members, one behind the other
        stream = zlib.decompressobj(wbits=31)
        try:
            found += stream.decompress(packed, MOST_BYTES - len(found) + 1)
        except zlib.error as error:
            raise DatasetError(f"broken gzip: {error}", hint=_UNPACK) from None
        if len(found) > MOST_BYTES:
            break
        if not stream.eof:
            raise DatasetError("broken gzip: it ends too early", hint=_UNPACK)
        packed = stream.unused_data
    found = found if data.startswith(_GZIP) else data
    if len(found) > MOST_BYTES:
        raise DatasetError("more than 64 MB of text or XML", hint="split the file by page")
    return found


def byte_order_encoding(data: bytes) -> tuple[str, int]:
    """The encoding that a byte order mark names, and how many bytes the mark has; ("", 0) without one."""
    return next(((name, len(mark)) for mark, name in _BOMS if data.startswith(mark)), ("", 0))


def decoded_xml(data: bytes) -> str:
    """XML as text, by its byte order mark or declaration, else UTF-8. Raises DatasetError naming the bad byte."""
    encoding, mark = byte_order_encoding(data)
    if not encoding:
        declared = _ENCODING.match(data.lstrip())
        encoding = declared[1].decode().lower() if declared else "utf-8"
    if not _KNOWN_ENCODING.fullmatch(encoding):
        raise DatasetError(f"encoding {encoding} is not read", hint="save the file as UTF-8")
    try:
        return data[mark:].decode(encoding)
    except (UnicodeDecodeError, LookupError) as error:
        place = f" at byte {error.start + mark + 1:,}" if isinstance(error, UnicodeDecodeError) else ""
        raise DatasetError(f"not in the encoding {encoding}{place}", hint="save the file as UTF-8") from None


def parse_xml(text: str) -> etree._Element:
    """The root of a document, tags and attributes by local name.

    Raises DatasetError, with line and column, for XML that is broken, declares entities, or is nested too deeply.
    """
    text = text.lstrip("\ufeff")
    if declared := _DECLARATION.match(text):
        text = re.sub(r"[^\n]", " ", declared[0]) + text[declared.end() :]
    if "<!ENTITY" in text:
        _refuse_entities(text)
    # Most files have one namespace, declared at the root: without it, no name has to be changed afterwards.
    text = _ROOT_TAG.sub(lambda found: _DEFAULT_NAMESPACE.sub("", found[0]), text, count=1)
    data = text.encode("utf-8", "surrogatepass")
    try:
        root = etree.fromstring(data, _parser(huge=False))
    except etree.XMLSyntaxError:
        root = _parse_large(data)
    if "<!DOCTYPE" in text or root.xpath("boolean(//*[namespace-uri()])"):
        for element in root.iter():
            _use_local_name(element)
    return root


def _parser(*, huge: bool) -> etree.XMLParser:
    return etree.XMLParser(
        encoding="utf-8", resolve_entities=False, load_dtd=False, no_network=True, huge_tree=huge, recover=False
    )


def _parse_large(data: bytes) -> etree._Element:
    """Parse a document that libxml2 refuses by default: deep, large or broken."""
    try:
        root = etree.fromstring(data, _parser(huge=True))
    except etree.XMLSyntaxError as error:
        if "depth" in str(error):
            raise _too_deep() from None
        line, column = error.position
        raise DatasetError(
            f"broken XML at line {line}, column {column}: {error.msg}", hint="export the page again"
        ) from None
    level, depth = [root], 0
    while level:
        depth += 1
        if depth > MOST_DEPTH:
            raise _too_deep()
        level = [child for element in level for child in element]
    return root


def _use_local_name(element: etree._Element) -> None:
    if element.tag is etree.Entity:
        raise DatasetError(
            f"broken XML at line {element.sourceline}: {element.text} is not declared", hint="export the page again"
        )
    if isinstance(element.tag, str) and element.tag[0] == "{":
        element.tag = element.tag.rpartition("}")[2]


def _too_deep() -> DatasetError:
    return DatasetError(f"depth of XML beyond {MOST_DEPTH:,} elements", hint="export the page again")


def _refuse_entities(text: str) -> None:
    def refuse(*_: object) -> None:
        raise DatasetError(
            f"line {parser.CurrentLineNumber} declares entities, which a page does not need",
            hint="export the page without a DTD",
        )

    parser = expat.ParserCreate("utf-8")
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        raise DatasetError(
            f"broken XML at line {error.lineno}, column {error.offset + 1}: {expat.ErrorString(error.code)}",
            hint="export the page again",
        ) from None


def elements(parent: etree._Element, *names: str) -> Iterator[etree._Element]:
    """The direct children of these names, in document order."""
    return (child for child in parent if child.tag in names)


def content(element: etree._Element) -> str:
    """The whole character content: comments and processing instructions skipped, CDATA and references resolved."""
    if not len(element):
        return element.text or ""
    return "".join(element.xpath(".//text()"))
