"""Ground truth of `loupe select` in a review: one JSON file beside each document, as records and entries."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loupe.errors import DatasetError, LoupeError, WriteError, cannot_write
from loupe.features.select.documents import (
    LARGEST,
    Document,
    check_stems,
    decode_truth,
    documents_in,
    file_form,
    now,
    truth_problem,
)
from loupe.features.select.questions import FIELDS, USUAL_FIELDS
from loupe.files.folder import Folder
from loupe.files.foreign import real_path
from loupe.metrics.dates import normalize_date
from loupe.web.review.entries import Change, Entry, Field, FieldError, Truth, Words, hint_by
from loupe.web.review.line_file import READ_ONLY, ConflictError, identity_of, only_one_process, why_locked

if TYPE_CHECKING:
    from loupe.features.select.documents import Document


SORTED = ("positive", "negative")


class SelectionFiles:
    """The files of all documents, read again where they were changed. Documents that are put in later are not seen."""

    def __init__(self, folder: Path, documents: Sequence[Document]) -> None:
        self.path = real_path(folder)
        self.revision = 0
        self.documents = documents
        self._lock = threading.RLock()
        self._files = [document.truth_file for document in documents]
        self._folders = sorted({document.truth_file.parent for document in documents})
        #: What a file was when it was read; of some thousands only those that are another by now are opened.
        self._identities: list[tuple[int, ...] | None] = [None] * len(documents)
        self._read_only: set[int] = set()
        self.lines: tuple[bytes, ...] = ()
        self.refresh()

    def where(self, number: int) -> str:
        """The file, as seen from the folder."""
        return self.documents[number - 1].truth_file.relative_to(self.path).as_posix()

    def locked(self) -> str:
        """The reason why some file cannot be written, as of the last look at them; "" if all can be."""
        with self._lock:
            for folder in self._folders:
                if not os.access(folder, os.W_OK):
                    name = folder.relative_to(self.path).as_posix()
                    return "its folder is read-only" if name == "." else f"{name}: the folder is read-only"
            return f"{self.where(min(self._read_only))}: the file is read-only" if self._read_only else ""

    def refresh(self) -> bool:
        """Read again the files that others have changed; whether one is another than before."""
        with self._lock:
            # A file that cannot be read ends the look: what was read before it is to be read again then.
            lines, identities = list(self.lines) or [b""] * len(self._files), list(self._identities)
            for place, file in enumerate(self._files):
                identity = _identity(file)
                if identity != identities[place]:
                    lines[place] = self._record(self.documents[place])
                    identities[place] = identity
                    self._note_lock(place)
            self._identities = identities
            return self._take(tuple(lines))

    def replace(self, number: int, before: bytes, after: bytes) -> int:
        """Write a file anew, whole or not at all; one that was not there before is taken away by undoing."""
        document = self.documents[number - 1]
        file = document.truth_file
        folder = Folder(file.parent)
        with self._lock, only_one_process(file.parent):
            if self._record(document) != before:
                self._identities[number - 1] = None
                raise ConflictError(f"{self.where(number)}: not what it was when you opened it")
            content = after.partition(b"\n")[2]
            try:
                if locked := why_locked(file):
                    raise WriteError(
                        f"{file} cannot be written: {locked}", hint="nothing was changed; make it writable"
                    )
                if content:
                    mode = file.stat().st_mode & 0o777 if file.exists() else None
                    folder.write(file.name, content, mode=mode)
                else:
                    folder.remove(file.name)
            except OSError as error:
                raise cannot_write(file, error) from None
            self._identities[number - 1] = None  # The next look at the files notes what it is now.
            self._take((*self.lines[: number - 1], after, *self.lines[number:]))
        return number

    def _note_lock(self, place: int) -> None:
        file = self._files[place]
        if file.exists() and why_locked(file) == READ_ONLY:
            self._read_only.add(place + 1)
        else:
            self._read_only.discard(place + 1)

    def _take(self, lines: tuple[bytes, ...]) -> bool:
        changed = lines != self.lines
        self.lines = lines if changed else self.lines
        self.revision += changed
        return changed

    def _record(self, document: Document) -> bytes:
        name = document.path.relative_to(self.path).as_posix().encode("utf-8", "replace")
        try:
            with Folder(document.truth_file.parent).open(document.truth_file.name) as file:
                return name + b"\n" + file.read(LARGEST + 1)
        except FileNotFoundError:
            return name + b"\n"
        except OSError as error:
            raise DatasetError(f"{document.truth_file}: cannot be read: {error.strerror}") from None


def _identity(file: Path) -> tuple[int, ...]:
    """Of a file through its link, permissions included; of none: empty."""
    try:
        return identity_of(file.stat())
    except OSError:
        return ()


def find_selection(folder: Path, *, negative: bool = False) -> list[Document]:
    """The documents of `positive` and `negative`, else those right in the folder; none: an empty list.

    In one folder they are what most of its files say; without any, what the folder is called, else positive.
    `negative`: they are of no such type, whatever is said. Raises DatasetError where two documents would share a file.
    """
    folder = real_path(folder)
    found: list[Document] = []
    for name in SORTED:
        found += _documents(folder / name, positive=name == "positive")
    if not found:
        found = _documents(folder, positive=True)
        says = [written.get("isMatch") for each in found if (written := _written(each)) is not None]
        is_negative = says.count(False) > says.count(True) or (not says and folder.name == "negative")
        if negative or is_negative:
            found = _documents(folder, positive=False)
    check_stems(found)
    return found


def folders_with_documents(folder: Path) -> list[str]:
    """The names of the folders right in this one that hold documents."""
    return sorted(each.name for each in folder.iterdir() if each.is_dir() and _documents(each, positive=True))


def document_types(documents: Sequence[Document]) -> list[str]:
    """The types that ground-truth files name, most frequent first."""
    found = [written.get("documentType") for each in documents if (written := _written(each)) is not None]
    texts = [name for name in found if isinstance(name, str)]
    return sorted(dict.fromkeys(texts), key=lambda name: -texts.count(name))


def _documents(folder: Path, *, positive: bool) -> list[Document]:
    """Return the documents that a record can name; no documents are no mistake here."""
    try:
        found = documents_in(folder, positive=positive)
    except DatasetError:
        return []
    return [each for each in found if each.path.name.isprintable()]


def _written(document: Document) -> dict[str, object] | None:
    """The ground truth beside a document, if it is such a file at all."""
    try:
        file = document.truth_file
        written, _ = decode_truth(Folder(file.parent).read(file.name, limit=LARGEST))
    except (OSError, LoupeError):
        return None
    return written if written is not None and {"documentType", "isMatch"} <= written.keys() else None


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
        """Say what accepting means."""
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
        """Return what was typed, as the file has it: a day as `YYYY-MM-DD`."""
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
