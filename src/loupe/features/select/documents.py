"""The documents of a selection, image and PDF files of two folders, with one file of ground truth beside each.

Form and rules of both: docs/select.md.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loupe.benchmarks.folders.own.folder_files import reasons
from loupe.data.foreign_kinds import SYSTEM_FILES, why_not_a_page
from loupe.data.pages import IMAGE_SUFFIXES
from loupe.errors import DatasetError, LoupeError
from loupe.files.folder import Folder, write_file
from loupe.files.foreign import open_data
from loupe.metrics.dates import normalize_date
from loupe.types import PageSource, PdfPage

SUFFIXES = IMAGE_SUFFIXES | {".pdf"}
_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One document; `positive`: it is of the type that is looked for."""

    path: Path
    positive: bool

    @property
    def id(self) -> str:
        """`positive/NAME` or `negative/NAME`."""
        return f"{self.folder}/{self.path.name}"

    @property
    def folder(self) -> str:
        """The one of the two folders that it is in."""
        return "positive" if self.positive else "negative"

    @property
    def page(self) -> PageSource:
        """Its first page."""
        return PdfPage(self.path) if is_pdf(self.path) else self.path

    @property
    def truth_file(self) -> Path:
        """The file of its ground truth."""
        return self.path.with_suffix(".json")


def is_pdf(path: Path) -> bool:
    """True if a file is called a PDF."""
    return path.suffix.lower() == ".pdf"


def find_documents(positive: Path, negative: Path, tell: Callable[[str], None] = lambda _: None) -> list[Document]:
    """The documents of both folders, positives first, each in the byte order of their names.

    `tell` hears of copies, which count twice, of links, which do not, and of files that are left out. Raises
    DatasetError for a folder without documents, and for a document that is in both.
    """
    found = [*documents_in(positive, positive=True), *documents_in(negative, positive=False)]
    for folder in (positive, negative):
        for line in reasons(_left_out(folder)):
            tell(f"{folder}: left out {line}")
    links: list[Document] = []
    by_digest: dict[str, Document] = {}
    for document in found:
        digest = _digest(document.path)
        first = by_digest.setdefault(digest, document)
        if first.positive != document.positive:
            raise DatasetError(
                f"{first.path} and {document.path} are the same document in both folders",
                hint="remove one copy: a document belongs in one folder",
            )
        if first is not document and first.path.samefile(document.path):
            links.append(document)
            tell(f"{document.path} is a link to {first.path.name}: it counts once")
        elif first is not document:
            tell(f"{document.path} is a copy of {first.path.name}: it counts twice")
    return [document for document in found if document not in links]


def check_stems(documents: Sequence[Document]) -> None:
    """Raise DatasetError where two documents would share a ground-truth file."""
    by_file = defaultdict(list)
    for document in documents:
        by_file[document.truth_file].append(document.path.name)
    for file, names in by_file.items():
        if len(names) > 1:
            raise DatasetError(
                f"{file.parent}: {' and '.join(names[:_NAMED])} would share the ground truth {file.name}",
                hint="rename one of them",
            )


def documents_in(folder: Path, *, positive: bool) -> list[Document]:
    """The documents right in a folder, in the byte order of their names. Raises DatasetError where there are none."""
    if not folder.is_dir():
        raise DatasetError(f"{folder} is no folder", hint="use --positive DIR --negative DIR")
    files = [
        path
        for path in folder.iterdir()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()
    ]
    if not files:
        raise DatasetError(
            f"{folder} holds no documents", hint="put images or PDF files in it, not in folders below it"
        )
    files.sort(key=lambda path: os.fsencode(path.name))
    return [Document(path=path, positive=positive) for path in files]


def _left_out(folder: Path) -> dict[str, str]:
    """Files that are no documents, with why; ground truth and hidden files are not meant to be any."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    others = (name for name in names if Path(name).suffix.lower() not in SUFFIXES | {".json"})
    return {name: why_not_a_page(Path(name)) for name in others if name.lower() not in SYSTEM_FILES}


def _digest(path: Path) -> str:
    try:
        with open_data(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DatasetError(f"{path}: {error.strerror}") from None


#: A larger file is no ground truth.
LARGEST = 1_000_000
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """The ground truth of a document: the day as `YYYY-MM-DD` and the name, "" where there is none or nobody looked.

    `text_model` and `vlm_model` made it, if anybody but a person did; `verified`: a person confirmed it.
    """

    date: str = ""
    name: str = ""
    verified: bool = False
    text_model: str = ""
    vlm_model: str = ""
    generated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The ground-truth file of a document: `truth` if it can be used, else `problem`, or neither if there is none.

    `wrong_folder`: it says that the document is in the wrong one. `other_type`: it is the ground truth of another type
    of documents, and so the work of another selection.
    """

    truth: Truth | None = None
    problem: str = ""
    wrong_folder: bool = False
    other_type: bool = False

    @property
    def missing(self) -> bool:
        """True if there is no file at all."""
        return self.truth is None and not self.problem


def read_truth(document: Document, document_type: str) -> Found:
    """Read and check the file beside a document."""
    written, problem = _decode(document.truth_file)
    if written is None:
        return Found(problem=problem)
    metadata = written.get("metadata", {})
    problem = truth_problem(written, document_type)
    if problem:
        named = written.get("documentType")
        return Found(problem=problem, other_type=isinstance(named, str) and not is_same_type(named, document_type))
    truth = Truth(
        date=written.get("date", ""),
        name=written.get("secondaryField", ""),
        verified=metadata.get("verified", False),
        text_model=metadata.get("textModel", ""),
        vlm_model=metadata.get("vlmModel", ""),
        generated=metadata.get("generatedAt", ""),
    )
    return Found(truth=truth, wrong_folder=written.get("isMatch") is not document.positive)


def write_truth(document: Document, document_type: str, truth: Truth) -> None:
    """Write the file beside a document, whole or not at all. Keys that are not ours stay as they are."""
    before, _ = _decode(document.truth_file)
    kept = before or {}
    metadata, named = kept.get("metadata"), kept.get("documentType")
    if isinstance(named, str) and is_same_type(named, document_type):
        document_type = named
    value = kept | {
        "date": truth.date,
        "documentType": document_type,
        "isMatch": document.positive,
        "metadata": (metadata if isinstance(metadata, dict) else {})
        | {
            "generatedAt": truth.generated or now(),
            "textModel": truth.text_model,
            "vlmModel": truth.vlm_model,
            "verified": truth.verified,
        },
        "secondaryField": truth.name,
    }
    write_file(document.truth_file, file_form(value))


def keep_verified(document: Document, document_type: str) -> None:
    """Copy a file that a person has confirmed beside it, before a draft takes its place.

    The first is `NAME.json.old`, then `NAME.json.old-2`, …: no copy takes the place of an earlier one.
    """
    found = read_truth(document, document_type).truth
    if found is None or not found.verified:
        return
    file = document.truth_file
    for number in itertools.count(1):
        copy = file.with_name(f"{file.name}.old{f'-{number}' if number > 1 else ''}")
        if copy.exists():
            continue
        try:
            folder = Folder(file.parent)
            folder.write_new(copy.name, folder.read(file.name))
            return
        except FileExistsError:
            continue


def file_form(value: Mapping[str, Any]) -> bytes:
    """The bytes of a file that holds this: keys sorted, two spaces, a line end at the end."""
    return f"{json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)}\n".encode("utf-8", "replace")


def now() -> str:
    """This moment, as the files have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_same_type(written: str, document_type: str) -> bool:
    """True if both name one type of documents: "Invoice" is an invoice."""
    return written.strip().casefold() == document_type.strip().casefold()


def is_day(text: str) -> bool:
    """True if a text is `YYYY-MM-DD` and names a day of the calendar, from the year 1000 on."""
    return bool(text) and normalize_date(text) == text


def _decode(path: Path) -> tuple[dict[str, Any] | None, str]:
    """The object in a file, or why there is none; neither where there is no file."""
    try:
        return decode_truth(Folder(path.parent).read(path.name, limit=LARGEST))
    except FileNotFoundError:
        return None, ""
    except IsADirectoryError:
        return None, "is no file"
    except LoupeError as error:
        return None, error.message.removeprefix(f"{path}: ")
    except OSError as error:
        return None, f"cannot be read ({error.strerror})"


def decode_truth(data: bytes) -> tuple[dict[str, Any] | None, str]:
    """The object that a file holds, or why there is none."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        return None, f"no valid JSON ({' '.join(str(error).split())[:100]})"
    return (found, "") if isinstance(found, dict) else (None, "no JSON object")


def truth_problem(written: Mapping[str, Any], document_type: str) -> str:
    """Say what is wrong with the values of a file, "" if nothing is."""
    metadata = written.get("metadata", {})
    if not isinstance(metadata, dict):
        return "metadata is no object"
    texts = [(key, written.get(key)) for key in ("date", "documentType", "secondaryField")]
    optional = [(key, metadata.get(key, "")) for key in ("generatedAt", "textModel", "vlmModel")]
    for key, value in (*texts, *optional):
        if not isinstance(value, str):
            return f"{key} is {'missing' if value is None else 'no text'}"
    if not is_same_type(written["documentType"], document_type):
        return f"documentType is {written['documentType'][:40]!r}, not {document_type!r}"
    if written["date"] and not is_day(written["date"]):
        return f"date {written['date'][:40]!r} is no day as YYYY-MM-DD"
    if not isinstance(written.get("isMatch"), bool):
        return "isMatch is neither true nor false"
    if not isinstance(metadata.get("verified", False), bool):
        return "metadata.verified is neither true nor false"
    moment = metadata.get("generatedAt", "")
    return (
        f"generatedAt {moment[:40]!r} is not YYYY-MM-DDTHH:MM:SSZ" if moment and not _MOMENT.fullmatch(moment) else ""
    )
