"""The documents of a selection: image and PDF files of two folders. Source: docs/select.md."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from loupe.benchmarks.folders.own.folder_files import reasons
from loupe.data.foreign_kinds import SYSTEM_FILES, why_not_a_page
from loupe.data.pages import IMAGE_SUFFIXES
from loupe.errors import DatasetError
from loupe.files.foreign import open_data
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
        """Which of the two folders it is in."""
        return "positive" if self.positive else "negative"

    @property
    def page(self) -> PageSource:
        """Its first page."""
        return PdfPage(self.path) if is_pdf(self.path) else self.path

    @property
    def truth_file(self) -> Path:
        """Where its ground truth stands."""
        return self.path.with_suffix(".json")


def is_pdf(path: Path) -> bool:
    """Whether a file is called a PDF."""
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
                hint="a document belongs in one folder: remove one copy",
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
        raise DatasetError(f"{folder} is no folder", hint="--positive DIR --negative DIR")
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
