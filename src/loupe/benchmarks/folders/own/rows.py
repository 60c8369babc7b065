"""Read and check one line of `samples.jsonl`, with its `truth`: whether a person has verified the reference."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from loupe.benchmarks.folders.own.config import FolderConfig, Problem, Task, is_readable
from loupe.benchmarks.folders.own.tables import read_table
from loupe.data.pages import document_page, has_pages
from loupe.errors import did_you_mean
from loupe.files.file_names import safe_name
from loupe.files.folder import Folder
from loupe.files.foreign import stored_file
from loupe.files.json_lines import bounded_lines
from loupe.typed import convert
from loupe.types import PageSource

#: Keys of a line, with what each must be.
KEYS = {
    "id": "a string",
    "image": "a path",
    "images": "a list of paths",
    "text": "a string",
    "task": "a task",
    "reference": "the right answer",
    "prompt": "a string",
    "tags": "an object of strings",
    "group": "a string",
    "truth": "whether the reference is verified",
}
TASK_NAMES: tuple[str, ...] = get_args(Task)
_NUMBERED = re.compile(r"\A(.+)#page=([1-9][0-9]{0,5})\Z")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Row:
    """A line that was read; `wrong` says what is not right with it, in the order in which it should be mended."""

    number: int
    values: dict[str, Any]
    wrong: tuple[tuple[str, str], ...] = ()

    @property
    def ident(self) -> str:
        """The sample id, "" if there is none."""
        found = self.values.get("id")
        return found if isinstance(found, str) else ""

    def problems(self, file: Path) -> Iterator[Problem]:
        """The same with file and line."""
        for message, hint in self.wrong:
            yield Problem(file=str(file), line=self.number, message=message, hint=hint)


def read_rows(path: Path, config: FolderConfig) -> Iterator[Row]:
    """Every line that is not empty, checked by itself; nothing but this file is touched."""
    with Folder(path.parent).open(path.name) as file:
        for number, line in enumerate(bounded_lines(file, path), 1):
            if line.strip():
                yield read_row(line, number, config)


def read_row(line: bytes, number: int, config: FolderConfig) -> Row:
    """One line as a Row."""
    values, wrong = _decode(line, number)
    if wrong:
        return Row(number, values, (wrong,))
    try:
        return Row(number, values, (*_half_characters(line, values), *_mistakes(values, config)))
    except RecursionError:
        return Row(number, values, (("nested too deeply", "one JSON object per line"),))


def _decode(line: bytes, number: int) -> tuple[dict[str, Any], tuple[str, str] | None]:
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        return {}, (f"not UTF-8 (byte {error.start + 1} of the line)", "save the file as UTF-8")
    try:
        values = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        return {}, (f"not JSON: {error.msg} at column {error.colno}", "one JSON object per line")
    except _RepeatedKeyError as error:
        return {}, (f"key {error.args[0]!r} appears twice in one object", "keep one of them")
    except RecursionError:
        return {}, ("not JSON that can be read: nested too deeply", "one JSON object per line")
    except ValueError:
        return {}, ("not JSON that can be read: a number with too many digits", "write it as a text, in quotes")
    if not isinstance(values, dict):
        return {}, (f"a {_kind(values)} where an object should be", 'write {"id": ..., "image": ..., "reference": ...}')
    return values, None


class _RepeatedKeyError(ValueError):
    """JSON readers keep the last of two equal keys and say nothing: a field would be lost."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise _RepeatedKeyError(next(name for name, count in counts.items() if count > 1))
    return values


def _half_characters(line: bytes, values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """UTF-8 has no half characters: only an escape can make one."""
    if b"\\u" in line and _SURROGATE.search(json.dumps(values, ensure_ascii=False)):
        yield "half of a surrogate pair (\\ud800 to \\udfff)", "write the character itself, or both halves"


def _mistakes(values: dict[str, Any], config: FolderConfig) -> Iterator[tuple[str, str]]:
    for key in values:
        if key not in KEYS:
            yield f"unknown key {key!r}{did_you_mean(key, KEYS)}", f"known keys: {', '.join(KEYS)}"
    yield from _id_mistakes(values)
    yield from _plain_mistakes(values)
    yield from _source_mistakes(values)
    yield from _task_mistakes(values, config)
    yield from truth_mistakes(values)
    yield from _value_mistakes(values, config)


def _id_mistakes(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    ident = values.get("id")
    if not isinstance(ident, str) or not ident:
        yield ("no id" if ident in (None, "") else f"id is a {_kind(ident)}"), 'every sample needs one: "id": "page-1"'
        return
    if _SURROGATE.search(ident):
        return
    if ident != safe_name(ident) or ident != ident.strip():
        yield (
            f"id {ident[:80]!r} cannot be the name of a file",
            "use letters, digits, blanks, '-', '_', '.', '/'; no '..', no dot at the start or end, 180 bytes at most",
        )


def _plain_mistakes(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for key in ("text", "prompt", "group"):
        if not isinstance(values.get(key, ""), str):
            yield f"{key} is a {_kind(values[key])}", f"{key} must be {KEYS[key]}"
    tags = values.get("tags", {})
    if not isinstance(tags, dict):
        yield f"tags is a {_kind(tags)}", 'write "tags": {"language": "en"}'
        return
    for name, value in tags.items():
        if not isinstance(value, str):
            yield f"tag {name!r} is a {_kind(value)}", f'write "{name}": "{_json(value)}"'


def _source_mistakes(values: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if "image" in values and "images" in values:
        yield "both image and images", "keep one of them"
    found = paths_of(values)
    if found is None:
        yield "image must be a path, images a list of paths", '"image": "scans/1.png" or "images": ["1.png", "2.png"]'
    elif not found and not values.get("text"):
        yield "neither image nor text", '"image": "scans/1.png", or "text": "..." for a sample without a page'
    elif found and values.get("text"):
        yield "both a page and text", "text is the input of a sample without a page; the right answer is its reference"
    for path in found or ():
        yield from _path_mistakes(path)


def _path_mistakes(path: str) -> Iterator[tuple[str, str]]:
    name = file_name(path)
    if "\\" in name:
        yield f"path {path!r} has backslashes", "write / between folders"
    elif "\0" in name or not name:
        yield f"path {path!r} is not the name of a file", "a path relative to the folder"
    elif PurePosixPath(name).is_absolute() or re.match(r"[A-Za-z]:", name):
        yield f"path {path!r} is absolute", "paths are relative to the folder"
    elif ".." in PurePosixPath(name).parts:
        yield f"path {path!r} leaves the folder", "put the file inside, and write the path without '..'"
    yield from _page_mistakes(path)


def _page_mistakes(path: str) -> Iterator[tuple[str, str]]:
    """Yield the mistakes in the page behind the name of a file."""
    file, mark, page = path.partition("#")
    if mark and has_pages(file) and not _NUMBERED.match(path):
        reason = "pages count from 1" if re.fullmatch("page=0+", page) else "this does not name a page"
        yield f"{path!r}: {reason}", "write scan.pdf#page=3 for the third page"
    elif mark and not has_pages(file) and re.fullmatch("page=[0-9]+", page):
        stem = PurePosixPath(file).stem
        hint = f'write "{file}"; if it is a PDF or TIFF file, rename it to {stem}.pdf or {stem}.tif'
        yield f"{path!r}: only files named .pdf, .tif or .tiff have pages", hint


def _task_mistakes(values: dict[str, Any], config: FolderConfig) -> Iterator[tuple[str, str]]:
    task = values.get("task", config.task)
    if not isinstance(task, str) or task not in TASK_NAMES:
        meant = did_you_mean(task, TASK_NAMES) if isinstance(task, str) else ""
        yield f"unknown task {_json(task)}{meant}", f"tasks: {', '.join(TASK_NAMES)}"
        return
    if task == "question" and not values.get("prompt") and not config.prompt:
        yield "a question without a prompt", '"prompt": "What is the total?"'
    if "reference" not in values:
        yield "no reference", f"task {task}: {_REFERENCE_HINTS[task]}"
    elif values["reference"] is not None or not (may_lack_reference(values) or task == "facts"):
        yield from _reference_mistakes(task, values["reference"], config)


_REFERENCE_HINTS = {
    "text": 'a string, "" for a blank page',
    "markdown": "a string",
    "table": "a string with an HTML or Markdown table",
    "formula": "a string with LaTeX",
    "fields": 'an object of strings: {"total": "12.50"}, "" for a field that the page does not have',
    "question": 'a list of accepted answers: ["12.50", "12,50"]',
    "class": "a label",
    "facts": "a string, the transcript that facts are drafted from, or null",
}


def _reference_mistakes(task: str, reference: object, config: FolderConfig) -> Iterator[tuple[str, str]]:
    hint = f"task {task}: {_REFERENCE_HINTS[task]}"
    if task == "fields":
        if not isinstance(reference, dict) or not reference:
            yield f"reference is {_article(reference)}", hint
            return
        for name, value in reference.items():
            if not isinstance(value, str):
                yield f"field {name!r} is a {_kind(value)}", f'write "{name}": "{_json(value)}"'
        yield from _typed_mistakes(reference, config)
    elif task == "question":
        answers = reference if isinstance(reference, list) else []
        if not answers or not all(isinstance(answer, str) and answer.strip() for answer in answers):
            yield f"reference is {_article(reference)}", hint
    elif not isinstance(reference, str):
        yield f"reference is {_article(reference)}", hint
    elif task == "class" and not reference.strip():
        yield "reference is empty", hint
    elif task == "table" and not read_table(reference):
        yield "reference holds no table that can be read", hint
    elif task == "class" and config.labels and reference not in config.labels:
        yield (
            f"label {reference!r} is not one of labels{did_you_mean(reference, config.labels)}",
            f"labels in loupe.toml: {listed(config.labels)}",
        )


def _typed_mistakes(reference: dict[str, object], config: FolderConfig) -> Iterator[tuple[str, str]]:
    """Fields that `[fields]` does not have: nobody would be asked for them."""
    for name in reference if config.fields else ():
        if name not in config.fields:
            known = listed(config.fields)
            yield f"field {name!r} is not in [fields]{did_you_mean(name, config.fields)}", f"fields: {known}"


def _value_mistakes(values: dict[str, Any], config: FolderConfig) -> Iterator[tuple[str, str]]:
    """Verified values that are not what their type says: no answer could equal them by value. Drafts may be wrong."""
    reference = values.get("reference")
    if may_lack_reference(values) or not isinstance(reference, dict) or values.get("task", config.task) != "fields":
        return
    for name, value in reference.items():
        kind = config.fields.get(name, "text")
        if isinstance(value, str) and not is_readable(kind, value, config.date_order):
            example = '"2024-05-11"' if kind == "date" else '"1234.50"'
            yield f"field {name!r}: {value[:60]!r} is no {kind}", f'write it as on the page, or {example}; "" for none'


def paths_of(values: dict[str, Any]) -> tuple[str, ...] | None:
    """The pages of a line as written; None if they are not strings."""
    found = [values["image"]] if "image" in values else values.get("images", [])
    if not isinstance(found, list) or not all(isinstance(path, str) for path in found):
        return None
    return tuple(found)


def file_name(path: str) -> str:
    """The file of a path as written, without the page."""
    found = _NUMBERED.match(path)
    return found[1] if found and has_pages(found[1]) else path


def page_source(folder: Path, path: str) -> PageSource:
    """An image, or a page of a PDF or TIFF file: `scan.pdf#page=3`; a document without a page means its first."""
    name = file_name(path)
    if name == path and not path.lower().endswith(".pdf"):
        return stored_file(folder, path)
    found = _NUMBERED.match(path)
    return document_page(stored_file(folder, name), int(found[2]) if found else 1)


def _kind(value: object) -> str:
    names = {dict: "object", list: "list", str: "string", bool: "truth value", type(None): "null"}
    return names.get(type(value), "number")


def _article(value: object) -> str:
    if not value and isinstance(value, str | list | dict):
        return "empty"
    return "null" if value is None else f"{'an' if isinstance(value, dict) else 'a'} {_kind(value)}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def listed(names: Iterable[str]) -> str:
    """Names for a hint: the first twenty, each cut to what a line shows."""
    found = list(names)
    more = f", and {len(found) - 20:,} more" if len(found) > 20 else ""
    return ", ".join(name if len(name) <= 60 else name[:59] + "…" for name in found[:20]) + more


Status: TypeAlias = Literal["draft", "verified", "skipped"]

STATUSES: tuple[str, ...] = get_args(Status)
#: What `differs` names for tasks without fields.
WHOLE = "reference"


class TruthState(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, omit_defaults=True):
    """The key `truth`. `engines` drafted, in the order asked; `drafts` is what each of them has as reference.

    None in `drafts`: that engine failed on this sample. `differs` names the fields in which the drafts do not agree,
    `reference` for tasks without fields; nothing: they agree, or there is one. `by` and `at` (UTC, ISO 8601) say who
    verified or skipped the sample, and when.
    """

    status: Status
    engines: list[str] = []
    differs: list[str] = []
    drafts: dict[str, Any] = {}
    by: str = ""
    at: str = ""


def truth_state(values: Mapping[str, Any]) -> TruthState:
    """The state of a line that `truth_mistakes` finds nothing wrong with."""
    return convert(values["truth"], TruthState) if "truth" in values else TruthState(status="verified")


def is_skipped(values: Mapping[str, Any]) -> bool:
    """Return whether a person has skipped the sample: no command that runs or checks needs its pages."""
    truth = values.get("truth")
    return isinstance(truth, dict) and truth.get("status") == "skipped"


def may_lack_reference(values: Mapping[str, Any]) -> bool:
    """True if `reference` may be null: nobody has verified this line yet, or it was skipped."""
    truth = values.get("truth")
    return isinstance(truth, dict) and truth.get("status") in ("draft", "skipped")


def truth_mistakes(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the mistakes in the key `truth` of a line, as (message, hint)."""
    if "truth" not in values:
        return
    truth = values["truth"]
    example = 'write "truth": {"status": "draft"}, or leave it out for truth that you wrote yourself'
    if not isinstance(truth, dict):
        yield "truth is no object", example
        return
    known = TruthState.__struct_fields__
    for key in truth:
        if key not in known:
            yield f"truth: unknown key {key!r}{did_you_mean(key, known)}", f"known keys: {', '.join(known)}"
    status = truth.get("status")
    if status not in STATUSES:
        meant = did_you_mean(status, STATUSES) if isinstance(status, str) else ""
        yield f"truth: no status {status!r}{meant}", f"one of {', '.join(STATUSES)}"
    try:
        convert({"status": "draft", **{key: truth[key] for key in known[1:] if key in truth}}, TruthState)
    except msgspec.ValidationError as error:
        yield f"truth: {str(error).replace(' - at `$', ' at `truth')}", example
