"""The tests of olmOCR-Bench as entries: which fields a type has, what it says in plain words, what may be changed.

Protocol: docs/protocols/olmocr_bench.md#tests and #loading. The status is the field `checked`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from loupe.benchmarks.olmocr_bench.records import FORMATS, KINDS, TestRecordError, read_test
from loupe.errors import DatasetError
from loupe.web.review.entries import Change, Control, Entry, Field, FieldError, Part, Status, Truth
from loupe.web.review.line_file import read_object, with_values

_STATUS: dict[Status, str | None] = {"unreviewed": None, "verified": "verified", "rejected": "rejected"}
_SAYS = {
    "present": "The page must contain this text.",
    "absent": "The page must not contain this text, such as a header, a footer or a page number.",
    "order": "One text must come before the other.",
    "table": "A table has this cell, with these neighbours and headings.",
    "math": "The page must contain this equation; it is compared as rendered.",
    "baseline": "The answer must not be empty, must not loop, and must use plausible characters.",
    "format": "This text must be a heading, in bold or in italics.",
    "footnote": "The footnote marker must appear next to these texts.",
}
_BLANK_PAGE = "The page is blank: the answer may have at most this many characters."
#: Fields by type: (name, label, control, default, note). The first ones are the fact, those after None settle details.
_Row = tuple[str, str, Control, Any, str]
_CASE: _Row = ("case_sensitive", "Case matters", "switch", True, "")
_FIRST: _Row = ("first_n", "Only in the first", "number", None, "characters")
_LAST: _Row = ("last_n", "Only in the last", "number", None, "characters")
_TEXT: _Row = ("text", "Text", "text", "", "")
_DIFFS: _Row = ("max_diffs", "Differences allowed", "number", 0, "characters")
_UNUSED_DIFFS: _Row = ("max_diffs", "Differences allowed", "number", 0, "not used by this type")
_FACTS: dict[str, tuple[_Row, ...]] = {
    "present": (_TEXT,),
    "absent": (_TEXT,),
    "order": (("before", "Comes first", "text", "", ""), ("after", "Comes later", "text", "", "")),
    "table": (
        ("top_heading", "Heading above", "text", "", ""),
        ("up", "Above", "text", "", ""),
        ("left_heading", "Heading on the left", "text", "", ""),
        ("left", "Left", "text", "", ""),
        ("cell", "Cell", "text", "", ""),
        ("right", "Right", "text", "", ""),
        ("down", "Below", "text", "", ""),
    ),
    "math": (("math", "LaTeX", "math", "", ""),),
    "baseline": (),
    "format": (_TEXT, ("format", "Set as", "choice", "", "")),
    "footnote": (
        ("appears_before_marker", "Text before the marker", "text", None, ""),
        ("marker", "Marker", "text", "", ""),
        ("appears_after_marker", "Text after the marker", "text", None, ""),
    ),
}
_DETAILS: dict[str, tuple[_Row, ...]] = {
    "present": (_DIFFS, _CASE, _FIRST, _LAST),
    "absent": (_DIFFS, _CASE, _FIRST, _LAST),
    "order": (_DIFFS,),
    "table": (_DIFFS, ("ignore_markdown_tables", "HTML tables only", "switch", False, "")),
    "math": (("ignore_dollar_delimited", "Not between dollar signs", "switch", False, ""),),
    "baseline": (
        ("max_length", "Blank page: at most", "number", None, "characters"),
        ("max_length_skips_image_alt_tags", "Alt texts of images do not count", "switch", False, ""),
        ("max_repeats", "Repeats allowed at the end", "number", 30, ""),
        ("check_disallowed_characters", "No Chinese, Japanese, emoji", "switch", True, ""),
    ),
    "format": (_DIFFS, _CASE),
    "footnote": (_DIFFS,),
}
#: Null is a value of its own here; elsewhere an empty number is refused.
_MAY_BE_NULL = frozenset({"first_n", "last_n", "max_length"})
_PAGE: tuple[_Row, ...] = (
    ("pdf", "Document", "text", "", ""),
    ("page", "Page", "number", 1, ""),
    ("id", "Id", "text", "", ""),
    ("url", "Source", "text", None, ""),
)
_OWN = frozenset({"type", "checked", *(row[0] for row in _PAGE)})
#: Texts that can be looked for on the page; a cell first, then what stands around it.
_PHRASES = ("text", "before", "after", "cell", "up", "down", "left", "right", "top_heading", "left_heading", "marker")
_AROUND = ("appears_before_marker", "appears_after_marker")
_LARGEST = 2**53
#: Longer texts are not looked for on the page.
_LONGEST_PHRASE = 5_000


def read(line: str) -> Entry:
    """The test in the line. Raises DatasetError if it is no JSON object."""
    record = read_object(line)
    kind = record.get("type")
    kind = kind if isinstance(kind, str) else ""
    page = record.get("page")
    return Entry(
        id=_shown(record.get("id", "")),
        kind=kind,
        document=record["pdf"] if isinstance(record.get("pdf"), str) else "",
        page=page if isinstance(page, int) and not isinstance(page, bool) else 0,
        status=_status(record),
        says=_BLANK_PAGE if kind == "baseline" and record.get("max_length") is not None else _SAYS.get(kind, ""),
        summary=_summary(record, kind),
        layout="cross" if kind == "table" else "plain",
        fields=tuple(_fields(record, kind)),
        phrases=tuple(_phrases(record)),
        kept=tuple(_kept(record, kind)),
        problem=_problem(record, kind),
        remark=_remark(record, kind),
    )


def changed(line: str, change: Change) -> str:
    """The line after the change: only members whose value is another one are touched. Raises FieldError."""
    record = read_object(line)
    controls = {field.name: field for field in read(line).fields}
    values: dict[str, Any] = {}
    for name, value in change.fields.items():
        if name not in controls:
            raise FieldError(f"a {record.get('type')} test has no field {name!r} to edit")
        values[name] = _checked(controls[name], value)
    defaults = {field.name: field.value for field in controls.values() if field.name not in record}
    if change.status is not None and change.status != _status(record):
        values["checked"] = _STATUS[change.status]
    values = {name: value for name, value in values.items() if value != record.get(name, defaults.get(name))}
    after = record | values
    problem = _problem(after, str(record.get("type")))
    if problem and (set(values) - {"checked"} or change.status == "verified"):
        raise FieldError(problem, field=next((name for name in controls if f"`{name}`" in problem), ""))
    return with_values(line, values) if values else line


TESTS = Truth(title="olmOCR-Bench tests", noun="test", kinds=KINDS, read=read, changed=changed)


def _status(record: Mapping[str, Any]) -> Status:
    """`checked`, which nobody validates: anything else than the two words is unreviewed."""
    found = record.get("checked")
    return found if found in ("verified", "rejected") else "unreviewed"


def _problem(record: Mapping[str, Any], kind: str) -> str:
    """The official evaluator's reason to refuse the test, unknown fields apart: those are nobody's mistake here."""
    known = _known(kind)
    try:
        test = read_test({name: value for name, value in record.items() if name in known or kind not in _FACTS})
    except TestRecordError as error:
        return error.message
    except DatasetError as error:
        return str(error)
    if not isinstance(test.id, str):
        return "`id` is not a text"
    if not isinstance(test.pdf, str):
        return "`pdf` is not a text"
    if isinstance(test.page, bool) or not isinstance(test.page, int) or test.page < 1:
        return f"`page` is {test.page!r}; pages count from 1"
    return ""


def _remark(record: Mapping[str, Any], kind: str) -> str:
    unknown = [name for name in record if name not in _known(kind)] if kind in _FACTS else []
    if not unknown:
        return ""
    return f"the official evaluator rejects unknown fields: {', '.join(unknown)[:300]}; kept as they are"


def _known(kind: str) -> frozenset[str]:
    """The fields of a type."""
    return _OWN | {row[0] for row in (*_FACTS.get(kind, ()), *_DETAILS.get(kind, ()), *_more(kind))}


def _fields(record: Mapping[str, Any], kind: str) -> Iterator[Field]:
    for row in _FACTS.get(kind, ()):
        yield _field(record, row, "fact")
    for row in _DETAILS.get(kind, ()):
        yield _field(record, row, "detail")
    for row in _more(kind):
        yield _field(record, row, "more")


def _more(kind: str) -> tuple[_Row, ...]:
    """The subject of the test; and the differences allowed if the type ignores them."""
    if kind not in _FACTS:
        return ()
    return (*_PAGE, *(() if _DIFFS in _DETAILS[kind] else (_UNUSED_DIFFS,)))


def _field(record: Mapping[str, Any], row: _Row, part: Part) -> Field:
    name, label, control, default, note = row
    return Field(
        name=name,
        label=label,
        control=control,
        value=record.get(name, default),
        choices=FORMATS if control == "choice" else (),
        note=note,
        optional=name in _MAY_BE_NULL if control == "number" else default is None,
        part=part,
    )


def _checked(field: Field, value: Any) -> Any:
    """The value in the type that the field has. An empty text is null where null was or is the default."""
    if field.control == "switch":
        if not isinstance(value, bool):
            raise FieldError(f"{field.label}: yes or no", field=field.name)
    elif field.control == "number":
        if value is None and field.optional:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST:
            raise FieldError(f"{field.label}: a whole number of at least 0", field=field.name)
    elif not isinstance(value, str):
        raise FieldError(f"{field.label}: a text", field=field.name)
    elif value == "" and field.value is None:
        return None
    elif field.name in ("pdf", "id") and not value.strip():
        raise FieldError(f"{field.label}: not empty", field=field.name)
    return value


def _summary(record: Mapping[str, Any], kind: str) -> str:
    """One line for the list."""
    if kind == "order":
        return f"{_shown(record.get('before', ''))} → {_shown(record.get('after', ''))}"
    if kind == "baseline":
        length = record.get("max_length")
        return "not empty, no loops" if length is None else f"blank: at most {_shown(length)} characters"
    name = next((row[0] for row in _FACTS.get(kind, ()) if row[0] in ("text", "cell", "math", "marker")), "id")
    return " ".join(_shown(record.get(name, ""))[:200].split())


def _phrases(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in (*_PHRASES, *_AROUND):
        value = record.get(name)
        if isinstance(value, str) and value.strip() and len(value) <= _LONGEST_PHRASE:
            yield name, value


def _kept(record: Mapping[str, Any], kind: str) -> Iterator[tuple[str, str]]:
    """Members that no form knows, as JSON; they are never touched."""
    known = _known(kind)
    for name, value in record.items():
        if name not in known or (name in _OWN and kind not in _FACTS):
            yield name, json.dumps(value, ensure_ascii=False)[:2000]
    if record.get("checked") not in (None, "verified", "rejected"):
        yield "checked", json.dumps(record["checked"], ensure_ascii=False)[:2000]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
