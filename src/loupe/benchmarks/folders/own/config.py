"""`loupe.toml` of a folder with documents of one's own: what it is called, what is asked, how answers are compared.

Format: docs/own-data.md. Unknown keys are refused with their line.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from loupe.benchmarks.folders.own.class_labels import label_mistakes
from loupe.benchmarks.folders.own.field_types import FIELD_TYPES, FieldType, canonical_key
from loupe.benchmarks.folders.own.problems import Problem
from loupe.data.toml import parse_toml
from loupe.errors import did_you_mean, word
from loupe.files.folder import Folder
from loupe.files.foreign import decode_text
from loupe.metrics.dates import DateOrder
from loupe.typed import convert, encode_json

CONFIG = "loupe.toml"
SAMPLES = "samples.jsonl"

#: Larger settings were written by nobody.
_LARGEST = 16 * 10**6

#: Those of others, which are passed over here, come last.
_TABLES = ("benchmark", "fields", "engines", "select", "suites")

#: How answers to questions are compared.
QuestionRule: TypeAlias = Literal["anls", "relaxed", "exact", "contains"]
Task: TypeAlias = Literal["text", "markdown", "table", "formula", "fields", "question", "class", "facts"]


class Config(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The table `[benchmark]`. `task` is that of samples which name none; `labels` are those that a class may have.

    `whitespace`: "collapse" (runs count as one space, see `prepare_text`), "keep" or "ignore". `headline` is a measure.
    `date_order` says what 05/06/2024 is in fields of the type date, `questions` how answers to questions are compared.
    """

    title: str = ""
    version: str = "1"
    task: Task = "text"
    prompt: str = ""
    headline: str = ""
    labels: list[str] = []
    ignore_case: bool = False
    whitespace: Literal["collapse", "keep", "ignore"] = "collapse"
    date_order: DateOrder = "dmy"
    questions: QuestionRule = "anls"
    max_tokens: int = 4096


class FolderConfig(Config, frozen=True, kw_only=True):
    """All settings of a folder: `[benchmark]`, and with `fields` the table `[fields]`, the type of each field."""

    fields: dict[str, FieldType] = {}

    def protocol(self) -> str:
        """The version with every setting that changes a score, so that unlike numbers are never put side by side."""
        changed = ["ignore_case"] if self.ignore_case else []
        changed += [f"whitespace={self.whitespace}"] if self.whitespace != "collapse" else []
        changed += [f"questions={self.questions}"] if self.questions != "anls" else []
        if self.fields:
            types = encode_json(self.fields, order="sorted")
            changed += [f"types={hashlib.sha256(types).hexdigest()[:6]}"]
            changed += [f"date_order={self.date_order}"] if self.date_order != "dmy" else []
        return "+".join([self.version, *changed])


def how_to_begin(folder: Path) -> str:
    """Return the hint that makes a benchmark of a folder of scans."""
    first = "make a benchmark of its pages" if any(folder.glob("*")) else "put scans or PDF files into it, then"
    return f"{first}: loupe init {word(folder)} --task text"


def read_config(folder: Path) -> tuple[FolderConfig | None, list[Problem]]:
    """The settings in `folder`, or None with what is wrong with them. Tables of others are passed over."""
    path = folder / CONFIG
    try:
        text = decode_text(Folder(folder).read(CONFIG, limit=_LARGEST))
        tables = parse_toml(text)
    except FileNotFoundError:
        advice = f'printf \'[benchmark]\\ntitle = "My documents"\\ntask = "text"\\n\' > {path}'
        # Scans without a word of truth are begun by a command; truth that is there needs only settings.
        advice = advice if (folder / SAMPLES).exists() else how_to_begin(folder)
        return None, [Problem(file=str(path), message="not found", hint=advice)]
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        return None, [Problem(file=str(path), line=line, message="not UTF-8", hint="save the file as UTF-8")]
    except OSError as error:
        return None, [Problem(file=str(path), message=f"cannot be read: {error.strerror}")]
    except tomllib.TOMLDecodeError as error:
        return None, [_syntax_problem(path, str(error))]
    except (ValueError, RecursionError):
        return None, [Problem(file=str(path), message="not TOML that can be read: too deep, or a number too long")]
    settings = tables.get("benchmark", {})
    problems = list(_unknown_tables(path, text, tables))
    # One by one: a reader of a whole table would name only the first key that is wrong.
    for part in [{key: value} for key, value in settings.items()] if isinstance(settings, dict) else [settings]:
        try:
            convert(part, Config)
        except msgspec.ValidationError as error:
            problems.append(_explain(path, text, str(error), part))
    if not problems:
        lines = _line_of(text, "labels")
        for message in label_mistakes(settings.get("labels", [])):
            problems.append(Problem(file=str(path), line=lines, message=message, hint="one label for each kind"))
    fields = tables.get("fields", {})
    problems += _field_problems(path, text, fields)
    return (None if problems else convert({**settings, "fields": fields}, FolderConfig)), problems


def _field_problems(path: Path, text: str, fields: Any) -> Iterator[Problem]:
    """What is wrong with `[fields]`; two names that differ only in case or punctuation would be one field."""
    seen: dict[str, str] = {}
    for name, kind in fields.items() if isinstance(fields, dict) else [("fields", fields)]:
        known = ", ".join(FIELD_TYPES)
        message = ""
        if not isinstance(kind, str) or kind not in FIELD_TYPES:
            meant = did_you_mean(kind, FIELD_TYPES) if isinstance(kind, str) else ""
            message = f"fields: {name}: no type {kind!r}{meant}"
        elif seen.setdefault(canonical_key(name), name) != name:
            message = f"fields: {name!r} and {seen[canonical_key(name)]!r} are one name"
        if message:
            hint = f'[fields] holds names and types: total = "amount"; types: {known}'
            yield Problem(file=str(path), line=_line_of(text, name), message=message, hint=hint)


def _syntax_problem(path: Path, message: str) -> Problem:
    found = re.search(r" \(at line (\d+), column \d+\)", message)
    bare = re.sub(r" \(at (line \d+, column \d+|end of document)\)", "", message)
    return Problem(file=str(path), line=int(found[1]) if found else 0, message=f"not TOML: {bare}")


def _unknown_tables(path: Path, text: str, tables: dict[str, Any]) -> list[Problem]:
    unknown = [name for name in tables if name not in _TABLES]
    return [
        Problem(
            file=str(path),
            line=_line_of(text, name),
            message=f"unknown key or table {name!r}{did_you_mean(name, _TABLES)}",
            hint="tables: [benchmark] for its keys, [fields] for types of fields, [engines.NAME] for profiles, "
            "[suites.NAME] for suites",
        )
        for name in unknown
    ]


def _explain(path: Path, text: str, message: str, part: Any) -> Problem:
    unknown = re.search(r"unknown field `([^`]*)`", message)
    if unknown:
        known = Config.__struct_fields__
        return Problem(
            file=str(path),
            line=_line_of(text, unknown[1]),
            message=f"unknown key {unknown[1]!r}{did_you_mean(unknown[1], known)}",
            hint=f"known keys: {', '.join(known)}",
        )
    place = re.search(r" - at `\$\.(\w+)", message)
    wrong = message.split(" - at ")[0]
    name = place[1] if place else "benchmark"
    value = re.search(r"Invalid enum value (.*)", wrong)
    if value:
        given = value[1].strip("'")
        wrong = f"{given!r} is not known{_choices(name, given)}"
    elif types := re.fullmatch(r"Expected `(\w+)`.*", wrong):
        wrong = _rewritten(name, types[1], part[name] if place else None)
    return Problem(file=str(path), line=_line_of(text, name), message=f"{name}: {wrong}")


def _rewritten(name: str, wanted: str, value: Any) -> str:
    """How a value of the wrong type should be written, with the value itself where it only lacks its quotes."""
    if name == "labels":
        return 'write a list of texts: labels = ["invoice", "letter"]'
    if wanted == "str" and isinstance(value, int | float) and not isinstance(value, bool):
        return f'write it in quotes: {name} = "{value}"'
    examples = {
        "str": f'write a text in quotes: {name} = "..."',
        "int": f"write a whole number without quotes: {name} = 4096",
        "bool": f"write true or false without quotes: {name} = true",
    }
    return examples.get(wanted, f"write it as a table: [{name}]")


_CHOICES = {
    "task": get_args(Task),
    "whitespace": ("collapse", "keep", "ignore"),
    "date_order": get_args(DateOrder),
    "questions": get_args(QuestionRule),
}


def _choices(name: str, value: str) -> str:
    allowed = _CHOICES.get(name, ())
    return did_you_mean(value, allowed) or f"; one of {', '.join(allowed)}"


def _line_of(text: str, key: str) -> int:
    """Where a key or table stands; TOML readers do not say. 0: not found."""
    pattern = re.compile(rf"""^\s*\[*\s*["']?{re.escape(key)}["']?\s*[\].=]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 0)
