"""Recognise what is not the text of a page: JSON of services and pipelines, hOCR, ALTO, PAGE XML, tables of words.

By content, never by name; every look is bounded. JSON whose text an engine of Loupe takes is no foreign format: the
step `service_json` takes it. Source: docs/scoring-rules.md#formats-of-answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loupe.engines.adapters.service_json import json_in, service_json, without_fence
from loupe.engines.services.paths import look
from loupe.engines.shared.error_replies import error_reply

#: Characters in which the outermost element of XML begins.
_BEGINNING = 20_000
_ROOT = re.compile(r"<(?:[\w.-]{1,100}:)?([A-Za-z][\w.-]{0,100})[\s/>]")
_HOCR = re.compile(r"""\bclass\s*=\s*["']?\s*ocrx?_[a-z]""", re.IGNORECASE)
#: A key of a service, where the JSON around it cannot be read.
_KNOWN_KEY = re.compile(r'[{,]\s{0,9}"(?:analyzeResult|BlockType|\w{0,4}TextAnnotation)"\s{0,9}:|: ?"DoclingDocument"')
_TSV = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\t"


@dataclass(frozen=True, slots=True)
class ForeignFormat:
    """A format that Loupe does not read as an answer, and what to do about it."""

    name: str
    advice: str


_EXPORT = (
    "export text or Markdown from the program that wrote it, one file per page, then: loupe score BENCHMARK FOLDER"
)
_XML: Mapping[str, ForeignFormat] = {
    "alto": ForeignFormat("ALTO XML", _EXPORT),
    "PcGts": ForeignFormat("PAGE XML", _EXPORT),
    "mets": ForeignFormat("METS XML", _EXPORT),
    "TEI": ForeignFormat("TEI XML", _EXPORT),
    "DjVuXML": ForeignFormat("DjVu XML", "write text: djvutxt FILE.djvu PAGE.txt"),
    "pdf2xml": ForeignFormat("XML of pdftohtml", "write text: pdftotext -layout FILE.pdf PAGE.txt"),
}
_ABBYY = ForeignFormat("ABBYY XML", _EXPORT)
_OF_ERROR = ForeignFormat(
    "an error of a service", "read the page again; if the page shows this JSON, put it between ``` and ```"
)
_OF_HOCR = ForeignFormat("hOCR", "write text: tesseract PAGE.png PAGE txt")
_OF_TSV = ForeignFormat("a TSV table of Tesseract", "write text: tesseract PAGE.png PAGE txt")
_OF_BBOX = ForeignFormat("words with boxes of pdftotext -bbox", "write text: pdftotext -layout FILE.pdf PAGE.txt")
_JSON: tuple[tuple[str, ForeignFormat], ...] = (
    (
        "schema_name == 'DoclingDocument' || type(\"main-text\") == 'array'",
        ForeignFormat("JSON of Docling", "write Markdown: docling --to md FILE"),
    ),
    (
        "type((responses[0] || @).[fullTextAnnotation.text, full_text_annotation.text] | [?@] | [0]) == 'string'"
        " || type((responses[0] || @).[textAnnotations, text_annotations] | [?@] | [0]) == 'array'",
        ForeignFormat(
            "JSON of Google Vision",
            "take the text out: jq -r '(.responses[0] // .) | .fullTextAnnotation.text // empty' PAGE.json > PAGE.txt",
        ),
    ),
    (
        "type(responses[0]) == 'object' && keys(@) == [`\"responses\"`] && !(responses[].keys(@)[] | [?"
        "!(ends_with(@, 'nnotation') || ends_with(@, 'nnotations') || contains(['error', 'context'], @))])",
        ForeignFormat(
            "JSON of Google Vision without text",
            "read a page with an error again; for a blank page write an empty file: : > PAGE.txt",
        ),
    ),
    (
        "type(error.message) == 'string' && type(error.code) != 'null' && !(keys(@)[?!contains(['error', 'status', "
        "'createdDateTime', 'lastUpdatedDateTime', 'resultId', 'operationId', 'id'], @)])"
        " || contains(['failed', 'canceled', 'running', 'notStarted'], status) && type(createdDateTime) == 'string'"
        " || JobStatus == 'FAILED' && type(StatusMessage) == 'string'"
        " || IsErroredOnProcessing == `true` && type(OCRExitCode) == 'number'"
        " || type(errorMsg) == 'string' && type(logId) == 'string' && errorCode != `0`",
        ForeignFormat("a failed reply of a service", "read the page again, then: loupe score BENCHMARK FOLDER"),
    ),
    (
        "type(Blocks[0].BlockType) == 'string'",
        ForeignFormat("JSON of Amazon Textract that is broken or too large", _EXPORT),
    ),
    (
        "type((document || @).text) == 'string' && type((document || @).pages[0].layout) == 'object'"
        " || type((document || @).[documentLayout, document_layout] | [?@] | [0].blocks) == 'array'",
        ForeignFormat(
            "JSON of Google Document AI",
            "take the text out: jq -r '(.document // .).text // empty' PAGE.json > PAGE.txt",
        ),
    ),
    (
        "type((analyzeResult.readResults || recognitionResults || analyzeResult.pages)) == 'array'"
        " || type(readResult.blocks) == 'array'",
        ForeignFormat(
            "JSON of Azure Read",
            "take the text out: jq -r '[.. | .lines? // empty | .[] | .text // .content] | join(\"\\n\")' "
            "PAGE.json > PAGE.txt",
        ),
    ),
    (
        "type((res || @).rec_texts) == 'array' || type((res || @).parsing_res_list) == 'array'"
        " || type(result.ocrResults) == 'array'",
        ForeignFormat("JSON of PaddleOCR", "write Markdown: result.save_to_markdown(FOLDER) in its Python package"),
    ),
    (
        "type(pdf_info) == 'array' || (type([0].page_idx) == 'number' && type([0].type) == 'string')",
        ForeignFormat("JSON of MinerU", "score the .md files that it writes, too: mineru -p FILE -o FOLDER"),
    ),
    (
        "block_type == 'Document' && type(children) == 'array'",
        ForeignFormat("JSON of Marker", "write Markdown: marker_single --output_format markdown FILE"),
    ),
    (
        "type(values(@)[0][0].text_lines) == 'array' || type(text_lines) == 'array'",
        ForeignFormat("JSON of Surya", "take the text out: jq -r '.. | .text_lines? // empty | .[].text' PAGE.json"),
    ),
)
#: Words of which one is in all of these, so that other JSON is not read for nothing.
_MARKS = (
    *('"DoclingDocument"', '"main-text"', "TextAnnotation", "text_annotation", "textAnnotations", '"layout"'),
    *('"documentLayout"', '"document_layout"', '"readResult', '"recognitionResults"', '"analyzeResult"', '"rec_texts"'),
    *(
        '"parsing_res_list"',
        '"responses"',
        '"error"',
        '"createdDateTime"',
        '"ocrResults"',
        '"pdf_info"',
        '"page_idx"',
        '"block_type"',
        '"text_lines"',
        '"Blocks"',
    ),
    *('"JobStatus"', '"OCRExitCode"', '"errorMsg"'),
)


def foreign_format(text: str) -> ForeignFormat | None:
    """Return the format of an answer that is not text, None for any other answer.

    >>> foreign_format('<alto xmlns="x"><Layout/></alto>').name, foreign_format("<p>A page</p>")
    ('ALTO XML', None)
    """
    whole, text = text, without_fence(text)
    start = text[:_BEGINNING].lstrip("\ufeff \t\r\n")
    if start.startswith("<"):
        return _of_xml(start, text)
    if start.startswith(_TSV):
        return _OF_TSV
    if start[:1] not in ("{", "["):
        return None
    of_service = any(mark in text for mark in _MARKS) and service_json(text) == text
    return (_of_json(text) if of_service else None) or (_OF_ERROR if error_reply(whole) else None)


def _of_xml(start: str, text: str) -> ForeignFormat | None:
    place = 0
    while start.startswith(("<?", "<!"), place):  # declarations and comments
        end = start.find("-->" if start.startswith("<!--", place) else ">", place)
        place = len(start) - len(start[end:].lstrip(">- \t\r\n")) if end >= 0 else len(start)
    root = _ROOT.match(start, place)
    if root is None:
        return None
    if root[1] == "document" and "abbyy" in start[place : place + 2_000].lower():
        return _ABBYY
    if root[1] in _XML:
        return _XML[root[1]]
    if _HOCR.search(text):
        return _OF_HOCR
    return _OF_BBOX if '<word xMin="' in text else None


def _of_json(text: str) -> ForeignFormat | None:
    data: Any = json_in(text)
    if data is None:
        is_known = _KNOWN_KEY.search(text[:_BEGINNING])
        advice = "send the page again, or take the text out of it by hand, then: loupe score BENCHMARK FOLDER"
        return ForeignFormat("JSON of a service that is cut off or too large", advice) if is_known else None
    if isinstance(data, list) and data and isinstance(data[0], list):
        data = data[0]
    return next((each for path, each in _JSON if look(path, data) is True), None)
