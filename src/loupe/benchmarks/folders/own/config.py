"""Read `loupe.toml` of a folder of one's own: its name, its task, and how answers are compared (docs/own-data.md).

`[fields]` gives fields a type, and a type says when two values are the same. Labels are classes of documents.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from loupe.benchmarks.folders.own.normalization import Comparison, prepare_text
from loupe.benchmarks.shared.answer_texts import remove_fence
from loupe.data.toml import parse_toml
from loupe.errors import DatasetError, did_you_mean, word
from loupe.files.folder import Folder
from loupe.files.foreign import decode_text
from loupe.hooks import found
from loupe.metrics import anls
from loupe.metrics.dates import DateOrder, dates_match, normalize_date
from loupe.metrics.field_values import NameRule, amounts_match, is_absent, names_match, read_amount
from loupe.quantities import percent
from loupe.typed import convert, encode_json

CONFIG = "loupe.toml"
SAMPLES = "samples.jsonl"

#: Larger settings were written by nobody.
_LARGEST = 16 * 10**6

_TABLES = ("benchmark", "fields")
#: Those of others, which are passed over here. Features have some, too.
_OTHERS = ("engines", "suites")

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
    """Yield the mistakes in `[fields]`; two names that differ only in case or punctuation would be one field."""
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
    known = (*_TABLES, *_OTHERS, *found("local_tables"))
    return [
        Problem(
            file=str(path),
            line=_line_of(text, name),
            message=f"unknown key or table {name!r}{did_you_mean(name, known)}",
            hint="tables: [benchmark] for its keys, [fields] for types of fields, [engines.NAME] for profiles, "
            "[suites.NAME] for suites",
        )
        for name in tables
        if name not in known
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
    """Suggest how to write a value of the wrong type, with the value itself if it only lacks its quotes."""
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
    """Return the line of a key or table; TOML readers do not say. 0: not found."""
    pattern = re.compile(rf"""^\s*\[*\s*["']?{re.escape(key)}["']?\s*[\].=]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if pattern.match(line)), 0)


FieldType: TypeAlias = Literal["text", "date", "amount", "id", "company", "person"]
FIELD_TYPES: tuple[FieldType, ...] = get_args(FieldType)

_AS_WRITTEN = Comparison()
_NAME_RULES: Mapping[NameRule, str] = {
    "exact": "the same name",
    "nospace": "the same name without spaces",
    "tokens": "the same person",
    "fuzzy": "the same name except for a typo",
}

#: Field name → its type.
Fields: TypeAlias = Mapping[str, FieldType]


def judge_field(
    kind: FieldType, prediction: str, reference: str, *, comparison: Comparison, order: DateOrder = "dmy"
) -> tuple[float, str]:
    """Score a field, 0 or 1, for a text its ANLS; and name the rule that says so. Nothing against nothing is right.

    A reference that is no date (no amount) is compared as a text: a draft may hold one. `comparison` says when texts
    are equal; a type looks at the value as it was written, for it needs the spaces between words.
    """
    found, wanted = prepare_text(prediction, comparison), prepare_text(reference, comparison)
    if found == wanted:
        return 1.0, same_text(prediction, reference)
    if is_absent(prediction) or is_absent(reference):
        return absent_or_not(prediction, reference)
    if kind == "text":
        return (similarity := anls(found, wanted)), alike(similarity, found, wanted, threshold=0.5)
    found, wanted = prepare_text(prediction, _AS_WRITTEN), prepare_text(reference, _AS_WRITTEN)
    if kind == "date":
        return _decided(dates_match(found, wanted, order), "the same date", found, wanted, "another date")
    if kind == "amount":
        return _decided(amounts_match(found, wanted), "the same amount", found, wanted, "another amount")
    if kind == "id":
        same = bare_id(found) == bare_id(wanted)
        return _decided(same, "the same without spaces and case", found, wanted, "another number")
    rule = names_match(found, wanted, kind)
    return _decided(rule is not None, _NAME_RULES.get(rule or "exact", ""), found, wanted, "another name")


def absent_or_not(prediction: str, reference: str) -> tuple[float, str]:
    """Score a field if one side says that there is no value: right if both do."""
    if is_absent(prediction) and is_absent(reference):
        return 1.0, same_text(prediction, reference)
    return 0.0, _one_is_empty(prediction if is_absent(reference) else "")


def same_text(prediction: str, reference: str) -> str:
    """Explain why two texts that compare as equal are equal."""
    if is_absent(reference) and (prediction != reference or not reference):
        return "empty, as in the ground truth"
    if prediction == reference:
        return "as written"
    return "the same without case and spacing"


def alike(similarity: float, found: str, wanted: str, *, threshold: float = 0.0) -> str:
    """Explain the score of a text; below the threshold it earns nothing."""
    if similarity == 1.0:
        return same_text(found, wanted)
    if not (found and wanted):
        return _one_is_empty(found)
    if similarity < threshold or not similarity:
        return f"less than {percent(threshold, 0)} alike" if threshold else "nothing in common"
    return f"{percent(similarity)} alike"


def _decided(same: bool, rule: str, found: str, wanted: str, other: str) -> tuple[float, str]:
    if same:
        return 1.0, rule
    return 0.0, other if found and wanted else _one_is_empty(found)


def _one_is_empty(found: str) -> str:
    return "the ground truth is empty" if found else "nothing given"


def canonical_key(name: str) -> str:
    """A field name without case, spaces and punctuation: "Total amount" and "total_amount" are the same field."""
    return re.sub(r"[\W_]+", "_", name.casefold()).strip("_") or name


def bare_id(text: str) -> str:
    """A number of an invoice, customer or the like, without spaces and case.

    >>> bare_id("DE 12-34 a")
    'de12-34a'
    """
    return "".join(unicodedata.normalize("NFC", text).casefold().split())


def is_readable(kind: FieldType, reference: str, order: DateOrder = "dmy") -> bool:
    """True if a reference is what its type says: only then can an answer that is written differently equal it."""
    if kind == "date":
        return normalize_date(reference, order) is not None
    return kind != "amount" or is_absent(reference) or read_amount(reference) is not None


#: Labels of one folder: every question names all of them.
MOST_CLASSES = 10_000
_STOPS = frozenset(".,;:!?…。，、；：！？")
_QUOTES = "\"'“”„‟‘’‚«»‹›「」『』"
#: What may stand before a label, and what behind it then.
_PAIRS = (
    dict.fromkeys(_QUOTES, _QUOTES)
    | {mark: mark for mark in "*_`"}
    | {"(": ")", "[": "]", "{": "}", "<": ">", "（": "）", "【": "】"}
)
#: A list or a heading of Markdown that begins with the label.
_BULLET = re.compile(r"(?:[-*+•]|#{1,6}) ")


def label_of(answer: str, labels: Collection[str]) -> str | None:
    """The label that an answer names, None for none of them.

    A fence, case and white space never count. Then stops behind the answer, pairs of quotes, brackets and emphasis
    around it and the mark of a list or heading before it are taken off one by one, until a label is left. Labels lose
    theirs only where the answer is none so far, and what is left is that of one label alone.

    >>> label_of("**c++**.", ["C++", "C#"]), label_of("C", ["C++", "C#"]), label_of("form", ["(Form)", "letter"])
    ('C++', None, '(Form)')
    >>> label_of("c#", ["C"]), label_of("A-", ["A", "B"]), label_of("C", ["C++", "Java"])
    (None, None, None)
    """
    folded, cores, longest = _known(tuple(labels))
    bare = ""
    for bare in _taken_off(fold_label(remove_fence(answer)), longest):
        if bare and bare in folded:
            return folded[bare]
    return cores.get(bare) if bare else None


@lru_cache(maxsize=8)
def _known(labels: tuple[str, ...]) -> tuple[Mapping[str, str], Mapping[str, str | None], int]:
    """Return labels as they are compared, those that have lost what can be taken off, and the longest length.

    Of the second, what is left of several labels is None.
    """
    folded: dict[str, str] = {}
    for label in labels:
        folded.setdefault(fold_label(label), label)
    cores: dict[str, str | None] = {}
    for same, label in folded.items():
        core = _core(same)
        cores[core] = None if core in cores else label
    return folded, cores, max(map(len, folded), default=0)


def _taken_off(text: str, longest: int) -> Iterator[str]:
    """The text with ever fewer marks at its ends, as far as no mark or to ""; only forms of at most so many letters."""
    start, end = 0, len(text)
    while start < end:
        if end - start <= longest:
            yield text[start:end]
        first, last = text[start], text[end - 1]
        if bullet := _BULLET.match(text, start, end):
            start = bullet.end()
        elif start + 1 < end and last in _PAIRS.get(first, ""):
            start, end = start + 1, end - 1
        elif last in _STOPS:
            end -= 1
        else:
            return
        while start < end and text[start] == " ":
            start += 1
        while start < end and text[end - 1] == " ":
            end -= 1
    yield ""


def _core(label: str) -> str:
    """A label without all that can be taken off."""
    return list(_taken_off(label, len(label)))[-1]


def fold_label(text: str) -> str:
    """A label as it is compared: NFC, without regard to case, needless white space dropped."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def label_mistakes(labels: Collection[str]) -> Iterator[str]:
    """Labels that no answer could be, or that no answer could tell apart."""
    if len(labels) > MOST_CLASSES:
        yield f"{len(labels):,} labels, more than {MOST_CLASSES:,}"
        return
    seen: dict[str, str] = {}
    for label in labels:
        same = fold_label(label)
        if not same:
            yield f"label {label!r} is empty"
        elif same in seen:
            yield f"labels {seen[same]!r} and {label!r} are one label, as case and spaces do not count"
        seen.setdefault(same, label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One mistake in one file; `line` counts from 1, 0 means the file as a whole."""

    file: str
    message: str
    line: int = 0
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" + (f" ({self.hint})" if self.hint else "")

    @property
    def place(self) -> str:
        """`file:line`, as editors and terminals link it."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def error(self) -> DatasetError:
        """The same as an exception."""
        return DatasetError(f"{self.place}: {self.message}", hint=self.hint)
