"""Recognise what is not the text of a page: JSON of services, their errors, hOCR, ALTO, PAGE XML, word tables.

By content, never by name; every look is bounded. JSON whose text an engine of Loupe takes is no foreign format: the
step `service_json` takes it. Source: docs/scoring-rules.md#formats-of-answers.

An error is an answer that is nothing else: `{"error": "rate limit exceeded"}`. Only a whole answer counts, of which no
key says anything else, and which stands in no code fence: a model that reads such JSON from a page usually fences it.
Fields of a document may be called `detail`, `code` or `error`, too, so these count only beside a sign that something
failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from loupe.engines.adapters.service_json import json_in, service_json, without_fence
from loupe.engines.services.paths import look

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


#: Errors are short. Longer JSON is read by nobody.
_LONGEST, _LONGEST_SAID = 20_000, 500
#: Keys of an error, in lower case without separators; the first that says something is quoted.
_ERRORS = ("error", "errors", "errormessage", "errormsg")
#: Words about a failure that fields of a document may have, too.
_WORDS = ("message", "msg", "detail", "reason", "title")
#: Keys that say nothing about a page. Those of the first line are no names of fields.
_OF_SERVICES = frozenset({"requestid", "traceid", "param", "errortype", "type", "retryafter"})
_TECHNICAL = _OF_SERVICES | {"code", "status", "statuscode", "httpstatus", "errorcode", "success", "ok", "id"}
_KNOWN = _TECHNICAL.union(_ERRORS, _WORDS, ("timestamp", "time", "path", "instance", "object", "created", "model"))
_FAILED = frozenset({"error", "failed", "failure"})
_PHRASES = frozenset(status.phrase.lower() for status in HTTPStatus if status >= 400)
#: What an error that is an object has.
_OF_OBJECTS = ("message", "msg", "detail", "reason", "description", "type", "code", "status")


def error_reply(text: str) -> str:
    """Return what an answer says that is an error and nothing else; "" for any other answer.

    >>> error_reply('{"error": {"message": "overloaded", "code": 503}}'), error_reply('{"error": null, "total": "5"}')
    ('overloaded', '')
    """
    if len(text) > _LONGEST or not text.lstrip("\ufeff \t\r\n").startswith("{"):
        return ""
    data = json_in(text.lstrip("\ufeff"))
    if not isinstance(data, dict):
        return ""
    said = {"".join(filter(str.isalnum, str(key))).lower(): value for key, value in data.items()}
    if not said.keys() <= _KNOWN:
        return ""
    return next((found for key in _error_keys(said) if (found := _said(said.get(key)))), "")


def _error_keys(said: Mapping[str, Any]) -> list[str]:
    """Return the keys that hold an error: unlike those of a document, or beside a sign of failure."""
    flagged = (
        said.get("error") is True or said.get("object") == "error" or False in (said.get("success"), said.get("ok"))
    )
    status = any(_is_failing(said.get(name)) for name in ("status", "statuscode", "httpstatus"))
    failed = flagged or status or str(said.get("status")).lower() in _FAILED
    code = any(_is_failing(said.get(name)) for name in ("code", "errorcode"))
    alone = said.keys() - _OF_SERVICES
    keys = [key for key in _ERRORS if failed or code or _is_object(said.get(key)) or alone == {key} != {"errors"}]
    if failed:
        return [*keys, *(key for key in _WORDS if key != "title" or flagged or status)]
    if code:
        return [*keys, "message", "msg"]
    # FastAPI says no more than `detail`.
    detail = said.get("detail")
    of_fastapi = _is_object(detail) or (isinstance(detail, str) and detail.strip().lower() in _PHRASES)
    return [*keys, *(["detail"] if of_fastapi and len(said) == 1 else [])]


def _is_failing(status: Any) -> bool:
    return isinstance(status, int) and 400 <= status < 600


def _is_object(value: Any) -> bool:
    """Return whether this is an error as an object, or a list with one; `_said` knows what such an object has."""
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value))


def _said(value: Any) -> str:
    """Return the words of an error, "" if it is none."""
    if isinstance(value, str):
        return " ".join(value.split())[:_LONGEST_SAID]
    if isinstance(value, list):
        found = [_said(each) for each in value]
        return "; ".join(found)[:_LONGEST_SAID] if all(found) else ""
    texts = [value.get(key) for key in _OF_OBJECTS] if isinstance(value, dict) else []
    return next((_said(str(each)) for each in texts if each and isinstance(each, str | int)), "")
