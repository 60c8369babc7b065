"""The variant `repair_regex`: JSON in any spelling of the keys, else tables, else lines and patterns field by field.

Contract: docs/protocols/kie.md#plain-text and docs/benchmarks/nanonets_kie.md; there is no public code, so no
parity is claimed. Every pattern takes time linear in the length of the answer.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Mapping, Sequence

from loupe.benchmarks.shared.fields.field_names import canonical, fields_by_label
from loupe.benchmarks.shared.fields.json_answers import (
    Reading,
    is_cut,
    is_dear,
    parse_like_docext,
    repaired,
    text_like_docext,
)
from loupe.benchmarks.shared.fields.patterns import PATTERNS, SEVERAL_LINES
from loupe.benchmarks.shared.table_answers.gfm_tables import cells_of_row

_BLOCK_TAG = re.compile(r"</?(?:br|p|div|tr|li|ul|ol|h[1-6]|table)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)
_ROW = re.compile(r"<tr\b[^<>]*>", re.IGNORECASE)
_CELL = re.compile(r"<t[dh]\b[^<>]*>", re.IGNORECASE)
#: Where JSON with a text in it may begin.
_JSON = re.compile(r'[{\[]\s*["{\[]|\A\s*"')
_IMAGE = re.compile(r"!\[[^\[\]\n]*\](?:\([^()\n]*\))?")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[\w-]*[ \t]*$", re.MULTILINE)
_BEFORE_LINE = re.compile(r"^\s*(?:#+\s*|[-+•]\s+)?")
_LABELLED = re.compile(r"([^:=]{1,60})\s?[:=]\s*(.*)")


def read_with_fallback(answer: str, names: Sequence[str]) -> Reading:
    """Fields of an answer, and per field whether it came from `json`, a `table`, or `regex`."""
    found, cut = parse_like_docext(answer), is_cut(answer)
    source, fields = "json", _from_object(found or {}, names)
    if not fields:
        answer = _text_of_json(answer, names)
        source, fields = "table", _from_tables(answer, names)
    if not fields:
        source, fields = "regex", _from_lines(answer, names)
    return Reading(fields, found is not None, dict.fromkeys(fields, source), cut=cut)


def _from_object(found: dict[str, object], names: Sequence[str]) -> dict[str, str]:
    """The expected keys of an object, in any case and punctuation; an object alone inside another is unwrapped."""
    asked = {canonical(name): name for name in names}
    if len(found) == 1:
        (key, inner), *_ = found.items()
        if isinstance(inner, dict) and canonical(str(key)) not in asked:
            found = inner
    fields: dict[str, str] = {}
    for key, value in found.items():
        name = asked.get(canonical(str(key)))
        if name is not None:
            fields.setdefault(name, text_like_docext(value))
    return fields


def _text_of_json(answer: str, names: Sequence[str]) -> str:
    """The texts in an answer that is JSON without an expected key, line by line; any other answer as it is.

    Texts and numbers under a key that names a field otherwise (`Total`, `invoice no`) stand behind that key.
    """
    begins = _JSON.search(answer)
    if begins is None:
        return answer
    start = begins.start()
    try:
        value, end = json.JSONDecoder().raw_decode(answer, start)
    except (ValueError, RecursionError):
        if is_dear(answer):
            return answer
        value, end = repaired(answer[start:]), 0
    try:
        text = "\n".join(_texts(value, fields_by_label(names)))
    except RecursionError:
        return answer
    # Braces in plain text, which repair would take for JSON, are no answer in JSON: most of it must be read.
    read = _letters(answer[start:end]) if end else _letters(text)
    return text if text and 2 * read >= _letters(answer) else answer


def _texts(value: object, by_label: Mapping[str, str], label: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, by_label, f"{key}: " if canonical(str(key)) in by_label else "")
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, by_label, label)
    elif isinstance(value, str) or (label and value is not None):
        yield label + text_like_docext(value)


def _letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def _from_tables(answer: str, names: Sequence[str]) -> dict[str, str]:
    """Rows of Markdown and HTML tables whose first cell names a field; the second is its value."""
    by_label = fields_by_label(names)
    fields: dict[str, str] = {}
    for label, value in (*_markdown_rows(answer), *_html_rows(answer)):
        name = by_label.get(canonical(label)) or by_label.get(canonical(label.replace("#", " no")))
        if name is not None:
            fields.setdefault(name, value)
    return fields


def _markdown_rows(answer: str) -> Iterator[tuple[str, str]]:
    for line in answer.splitlines():
        line = line.strip()
        if line.startswith("|"):
            cells = [_plain(cell) for cell in cells_of_row(line)]
            if len(cells) >= 2:
                yield cells[0], cells[1]


def _html_rows(answer: str) -> Iterator[tuple[str, str]]:
    for row in _ROW.split(answer)[1:]:
        cells = [_plain(cell.partition("</t")[0]) for cell in _CELL.split(row.partition("</tr")[0])[1:]]
        if len(cells) >= 2:
            yield cells[0], cells[1]


def _plain(cell: str) -> str:
    return html.unescape(_TAG.sub("", cell)).replace("**", "").replace("`", "").strip()


def plain_lines(answer: str) -> list[str]:
    """The lines of an answer without HTML tags, images, fences, heading marks, bullets, emphasis and blank lines."""
    text = _TAG.sub("", _BLOCK_TAG.sub("\n", _IMAGE.sub("", _FENCE.sub("", answer))))
    text = html.unescape(text).replace("*", "").replace("__", "").replace("`", "")
    lines = (_BEFORE_LINE.sub("", line).strip() for line in text.splitlines())
    return [line for line in lines if line]


def _from_lines(answer: str, names: Sequence[str]) -> dict[str, str]:
    """Field by field: a line `field_name: value` as it stands, else the pattern of the field, else its labels."""
    lines = plain_lines(answer)
    by_label = fields_by_label(names)
    named: dict[str, str] = {}
    labelled: dict[str, str] = {}
    for line in lines:
        found = _LABELLED.match(line)
        if found is None:
            continue
        label, value = found[1].strip(), found[2].strip()
        # Nobody prints such a name on a document: the engine wrote it, and the value is all that follows.
        if label in names and "_" in label:
            named.setdefault(label, value)
        elif canonical(label) in by_label:
            labelled.setdefault(by_label[canonical(label)], value)
    fields = {}
    for name in names:
        pattern = PATTERNS.get(name)
        if name in named and name not in SEVERAL_LINES:
            value = named[name]
        else:
            value = pattern(lines) if pattern else labelled.get(name, named.get(name, ""))
        if value:
            fields[name] = value
    return fields
