"""A ground-truth file of `loupe select` as an entry: the day, the name, and whether a person has confirmed them.

Form and rules of the files: `loupe.benchmarks.folders.selection.truth_files`. Other keys stay as
they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from loupe.benchmarks.folders.selection.prompts import FIELDS, USUAL_FIELDS
from loupe.benchmarks.folders.selection.truth_files import (
    LARGEST,
    decode_truth,
    file_form,
    now,
    truth_problem,
)
from loupe.errors import DatasetError
from loupe.metrics.dates import normalize_date
from loupe.web.review.entries import Change, Entry, Field, FieldError, Truth, Words
from loupe.web.review.typed_values import hint_by

_KEYS = frozenset({"date", "documentType", "isMatch", "metadata", "secondaryField"})
_METADATA = frozenset({"generatedAt", "textModel", "vlmModel", "verified"})


def selection_truth(document_type: str, positive: Mapping[str, bool]) -> Truth:
    """The truth of documents (name → whether it is of the type) for a type."""
    files = _Files(document_type, positive)
    return Truth(
        title=f"Ground truth: {document_type}",
        noun="document",
        kinds=(),
        read=files.read,
        changed=files.changed,
        words=Words(accept="Accept", refuse="", refused=""),
        hint=hint_by("dmy"),
        by_id=True,
        saves_typing=True,
        in_lines=False,
    )


@dataclass(frozen=True, slots=True)
class _Files:
    document_type: str
    positive: Mapping[str, bool]

    def read(self, record: str) -> Entry:
        """The document with its file. Raises DatasetError for a file that holds no JSON object."""
        name, _, content = record.partition("\n")
        written = _decode(content) or {}
        is_positive = self.positive[name]
        date, other = _text(written.get("date")), _text(written.get("secondaryField"))
        fields = tuple(self._fields(written, is_positive))
        return Entry(
            id=name,
            kind=self.document_type,
            document=name,
            page=1 if name.lower().endswith(".pdf") else 0,
            status="verified" if _metadata(written).get("verified") is True else "unreviewed",
            says=self._says(is_positive),
            summary=" · ".join(" ".join(each.split()) for each in (date, other) if each)[:200],
            fields=fields,
            phrases=tuple(_phrases(date, other)),
            kept=tuple(_kept(written)),
            problem=self._problem(written, is_positive) if content else "",
            remark=_made_by(written),
            section="positive" if is_positive else "negative",
            turn=0 if is_positive else 1,
        )

    def changed(self, record: str, change: Change) -> str:
        """The record after the change, in the form of these files. Raises FieldError."""
        name, _, content = record.partition("\n")
        before = _decode(content) or {}
        if change.status == "rejected":
            raise FieldError("a ground-truth file is either verified or not; it cannot be skipped")
        values = {key: self._value(key, value) for key, value in change.fields.items()}
        metadata = {"generatedAt": now(), "textModel": "", "vlmModel": "", "verified": False, **_metadata(before)}
        if change.status is not None:
            metadata["verified"] = change.status == "verified"
        usual = {"date": "", "documentType": self.document_type, "isMatch": self.positive[name], "secondaryField": ""}
        after = {**usual, **before, **values, "metadata": metadata}
        if content and not values and metadata.get("verified") is (_metadata(before).get("verified") is True):
            return record
        problem = self._problem(after, self.positive[name])
        if problem and (change.status == "verified" or problem != self._problem(before, self.positive[name])):
            raise FieldError(problem, field=next((key for key in usual if problem.startswith(key)), ""))
        empty = not (after["date"] or after["secondaryField"])
        if change.status == "verified" and self.positive[name] and empty and not change.confirmed:
            raise FieldError("all fields are empty; accept again if the document has none of them", ask=True)
        return f"{name}\n{file_form(after).decode()}"

    def _says(self, is_positive: bool) -> str:
        """What accepting means."""
        if is_positive:
            return f"Filed as {self.document_type}: accept to confirm that."
        return f"Filed as not {self.document_type}: accept to confirm that. Leave the fields empty."

    def _fields(self, written: Mapping[str, Any], is_positive: bool) -> Iterator[Field]:
        key = FIELDS[USUAL_FIELDS.get(self.document_type, "date")].key
        kind = "date"
        yield Field(name="date", label="Date", control="line", value=_text(written.get("date")), kind=kind)
        label = key.capitalize() or "Name"
        yield Field(
            name="secondaryField", label=label, control="line", value=_text(written.get("secondaryField")), kind="text"
        )
        if written.get("isMatch", is_positive) is not is_positive:
            switch = written["isMatch"] is True
            yield Field(
                name="isMatch",
                label=f"is of the type {self.document_type}",
                control="switch",
                value=switch,
                part="detail",
            )

    def _value(self, key: str, value: Any) -> Any:
        """What was typed, as the file has it: a day as `YYYY-MM-DD`."""
        if key == "isMatch" and isinstance(value, bool):
            return value
        if key not in ("date", "secondaryField"):
            raise FieldError(f"a ground-truth file has no field {key!r} to edit")
        if not isinstance(value, str):
            raise FieldError("a text", field=key)
        if key == "secondaryField":
            return value.strip()
        day = normalize_date(value) if value.strip() else ""
        if day is None:
            raise FieldError("cannot be read as a date; write 2025-11-26", field=key)
        return day

    def _problem(self, written: Mapping[str, Any], is_positive: bool) -> str:
        problem = truth_problem(written, self.document_type)
        if not problem and written["isMatch"] is not is_positive:
            return "isMatch does not agree with the folder: move the document, or correct isMatch"
        return problem


def _decode(content: str) -> dict[str, Any] | None:
    if not content:
        return None
    if len(content) > LARGEST:
        raise DatasetError(f"larger than {LARGEST // 10**6} MB")
    written, problem = decode_truth(content.encode())
    if written is None:
        raise DatasetError(problem)
    return written


def _metadata(written: Mapping[str, Any]) -> dict[str, Any]:
    found = written.get("metadata")
    return found if isinstance(found, dict) else {}


def _phrases(date: str, name: str) -> Iterator[tuple[str, str]]:
    if date:
        yield "date", date
    if name:
        yield "secondaryField", name.replace("_", " ")


def _kept(written: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in written.items():
        if key not in _KEYS:
            yield key, json.dumps(value, ensure_ascii=False)[:2000]
    for key, value in _metadata(written).items():
        if key not in _METADATA:
            yield f"metadata.{key}", json.dumps(value, ensure_ascii=False)[:2000]


def _made_by(written: Mapping[str, Any]) -> str:
    metadata = _metadata(written)
    models = [name for key in ("textModel", "vlmModel") if isinstance(name := metadata.get(key), str) and name]
    return f"drafted by {' and '.join(models)}" if models else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
