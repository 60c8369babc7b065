"""The ground-truth files of `loupe select` as records: one JSON file beside each document, changed one at a time.

A record is the name of the document, a line end, and the file as it stands; nothing after the line end: no file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from loupe.benchmarks.folders.selection.documents import Document, check_stems, documents_in
from loupe.benchmarks.folders.selection.truth_files import LARGEST, decode_truth
from loupe.errors import DatasetError, LoupeError, WriteError, cannot_write
from loupe.files.folder import Folder
from loupe.files.foreign import real_path
from loupe.web.review.line_file import READ_ONLY, ConflictError, identity_of, only_one_process, why_locked

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
        """Why some file cannot be written, as of the last look at them; "" if all can be."""
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
    """What can be named in a record; no documents are no mistake here."""
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
