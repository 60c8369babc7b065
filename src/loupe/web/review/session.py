"""One review: the file, its entries, changes, who else looks at it, and the documents that may be shown.

Nothing here knows of HTTP.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from loupe.data.pages import IMAGE_SUFFIXES, document_page, has_pages
from loupe.errors import DatasetError, PageError, WriteError
from loupe.files.foreign import is_inside, real_path
from loupe.types import PageSource
from loupe.web.review.entries import Change, Entry, Truth
from loupe.web.review.line_file import ConflictError

_LONGEST_NAME = 1000


@dataclass(slots=True)
class Documents:
    """The folder, and the pages named so far; the number of a page stays as long as the program runs."""

    folder: Path
    _pages: dict[tuple[str, int], int] = field(default_factory=dict)
    _by_number: list[tuple[str, int]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def number(self, document: str, page: int) -> int:
        """The number under which a browser may ask for the page."""
        with self._lock:
            if (document, page) not in self._pages:
                self._pages[document, page] = len(self._by_number)
                self._by_number.append((document, page))
            return self._pages[document, page]

    def source(self, number: int) -> PageSource:
        """The page as a file. Raises PageError if there is none, or not below the folder."""
        if not 0 <= number < len(self._by_number):
            raise PageError(f"there is no page {number}")
        document, page = self._by_number[number]
        path = self._inside(document)
        if has_pages(path):
            return document_page(path, max(page, 1))
        if path.suffix.lower() in IMAGE_SUFFIXES:
            return path
        raise PageError(f"{document}: neither a PDF nor an image")

    def _inside(self, document: str) -> Path:
        """The file that is meant. Links are followed first, so that none leads out either."""
        if not document:
            raise PageError("this entry does not name a document")
        if len(document) > _LONGEST_NAME or any(ord(char) < 32 for char in document) or "\\" in document:
            raise PageError(f"{document[:100]!r} is not a file name")
        outside = PageError(f"{document}: outside {self.folder}, so it is not shown")
        if Path(document).is_absolute() or ".." in Path(document).parts:
            raise outside
        if not is_inside(self.folder / document, self.folder):
            raise outside
        path = real_path(self.folder / document)
        if not path.is_file():
            raise PageError(f"{document}: not in {self.folder}", hint="use --data DIR")
        return path


def documents_folder(file: Path, data: Path | None) -> Path:
    """The folder of documents: `pdfs` in the data folder or beside the file, as upstream has it, else there."""
    base = data if data is not None else real_path(file).parent
    return base / "pdfs" if (base / "pdfs").is_dir() else base


#: Seconds after which a tab that said nothing is taken to be closed; browsers let hidden tabs speak once a minute.
_TAB_IS_GONE, _HIDDEN_TAB_IS_GONE = 10.0, 150.0
_MOST_TABS = 50
_LONGEST_HISTORY = 1000


class Records(Protocol):
    """Lines that can be replaced one by one: a file, or many small ones."""

    path: Path
    revision: int
    lines: tuple[bytes, ...]

    def where(self, number: int) -> str:
        """The name of a line in messages."""

    def locked(self) -> str:
        """The reason that nothing can be written, "" if it can."""

    def refresh(self) -> bool:
        """Read again what others have changed; whether anything was. Raises DatasetError."""

    def replace(self, number: int, before: bytes, after: bytes) -> int:
        """Put `after` in place of `before`; its number now. Raises ConflictError, DatasetError."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An entry at its line; `seen` identifies what stands there, byte for byte."""

    number: int
    seen: str
    entry: Entry


@dataclass(frozen=True, slots=True)
class Done:
    """A change that was made, with all it takes to make it undone."""

    number: int
    before: bytes
    after: bytes
    says: str
    going: str = ""


class Review:
    """Truth under review. Every change is on the disk when the call returns; every call is safe from any thread."""

    def __init__(
        self,
        records: Records,
        truth: Truth,
        *,
        name: str = "",
        then: Callable[[Sequence[Entry]], str] | None = None,
        remark: str = "",
    ) -> None:
        """`then`: from the entries the command that comes next, when all are reviewed; "" if there is none.
        `remark`: what to know of this review."""
        self.truth = truth
        self.name = name or records.path.name
        self.remark = remark
        self._then = then
        self._file = records
        self._parsed: dict[bytes, Entry] = {}
        self._placed: tuple[tuple[bytes, ...], list[Placed]] | None = None
        self._history: list[Done] = []
        self._tabs: dict[str, float] = {}
        self._lock = threading.RLock()

    @property
    def path(self) -> Path:
        """The file or folder, with links resolved."""
        return self._file.path

    def next_command(self) -> str:
        """The command to type when all is reviewed, "" if none is known to come next."""
        return self._then([placed.entry for placed in self.entries()]) if self._then else ""

    @property
    def locked(self) -> str:
        """The reason that nothing can be saved, "" if it can."""
        return self._file.locked()

    @property
    def revision(self) -> int:
        """Grows whenever the content changes, whoever did it."""
        return self._file.revision

    def refresh(self) -> None:
        """Take in what others have changed. Raises DatasetError if the file cannot be read any more."""
        self._file.refresh()

    def entries(self) -> list[Placed]:
        """All lines that are not blank, by turn; those that hold no entry are there, broken, with the reason."""
        with self._lock:
            lines = self._file.lines
            if self._placed is None or self._placed[0] is not lines:
                self._placed = lines, sorted(self._entries(lines), key=lambda placed: placed.entry.turn)
            return list(self._placed[1])

    def _entries(self, lines: Sequence[bytes]) -> Iterator[Placed]:
        kept: dict[bytes, Entry] = {}
        first: dict[str, int] = {}
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            entry = kept[line] = self._parsed.get(line) or self._read(line)
            if entry.id and not entry.broken:
                earlier = first.setdefault(entry.id, number)
                if earlier != number and not entry.problem:
                    entry = replace(entry, problem=f"the id is that of line {earlier}")
            if entry.problem:
                entry = replace(entry, problem=f"{self._file.where(number)}: {entry.problem}")
            yield Placed(number, fingerprint(line), entry)
        self._parsed = kept

    def _read(self, line: bytes) -> Entry:
        try:
            return self.truth.read(line.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            why = f"no UTF-8 ({error.reason} at byte {error.start})"
        except DatasetError as error:
            why = error.message
        text = line.decode("utf-8", "replace")
        shown = text.strip()[:200]
        return Entry(id="", kind="", document="", page=0, status="unreviewed", summary=shown, problem=why, broken=True)

    def counts(self) -> Counter[str]:
        """Counts of entries by status, and of broken lines."""
        return Counter("broken" if placed.entry.broken else placed.entry.status for placed in self.entries())

    def change(self, number: int, seen: str, change: Change) -> int:
        """Make a change to the line that was seen; its number now.

        Raises ConflictError if it is another one now, FieldError for what would break it, WriteError where nothing can
        be written.
        """
        with self._lock:
            before = self._line(number, seen)
            after = self._changed(number, before, change)
            if after == before:
                return number
            number = self._file.replace(number, before, after)
            self._remember(number, before, after, going="" if change.status else change.going)
            return number

    def _remember(self, number: int, before: bytes, after: bytes, *, going: str) -> None:
        """For `undo`; what is typed in one go is taken back in one go, and nothing else is."""
        last = self._history[-1] if self._history else None
        if last is not None and going and last.going == going and last.after == before:
            before = self._history.pop().before
            if before == after:
                return
        self._history.append(Done(number, before, after, self._says(before, after), going))
        del self._history[:-_LONGEST_HISTORY]

    def _line(self, number: int, seen: str) -> bytes:
        """The line that somebody saw, from the disk as it is now."""
        self._file.refresh()
        lines = self._file.lines
        if 1 <= number <= len(lines) and fingerprint(lines[number - 1]) == seen:
            return lines[number - 1]
        found = [line for line in lines if fingerprint(line) == seen]
        if len(found) != 1:
            raise ConflictError(
                f"{self._file.where(number)} was changed by another tab or program since you opened it",
                hint="nothing was overwritten",
            )
        return found[0]

    def _changed(self, number: int, before: bytes, change: Change) -> bytes:
        entry = self._read(before)
        if entry.broken:
            raise DatasetError(f"{self._file.where(number)}: {entry.problem}", hint="fix the line in an editor")
        return self.truth.changed(before.decode("utf-8-sig"), change).encode("utf-8")

    def _says(self, before: bytes, after: bytes) -> str:
        old, new = self._read(before), self._read(after)
        edited = [field.label for field, was in zip(new.fields, old.fields, strict=False) if field.value != was.value]
        words = [f"{', '.join(edited)} edited"] if edited else []
        words += [self.truth.said(new.status)] if new.status != old.status else []
        return f"{new.id}: {', '.join(words) or 'changed'}"

    def undo(self) -> Done | None:
        """Take back the last change; None if there is none. Raises ConflictError if the line is another one by now."""
        with self._lock:
            if not self._history:
                return None
            last = self._history.pop()
            try:
                number = self._file.replace(last.number, last.after, last.before)
            except ConflictError:
                raise ConflictError(
                    f"{last.says} cannot be undone: another program has changed the line since",
                    hint="nothing was overwritten",
                ) from None
            except (DatasetError, WriteError):
                self._history.append(last)
                raise
            return replace(last, number=number)

    def can_undo(self) -> str:
        """The change that `undo` would take back, in words; "" if there is none."""
        return self._history[-1].says if self._history else ""

    def others(self, tab: str, *, hidden: bool = False) -> int:
        """Count the other tabs that have this file open, and remember that this one does."""
        now = time.monotonic()
        with self._lock:
            self._tabs = {name: until for name, until in self._tabs.items() if now < until}
            if tab and (tab in self._tabs or len(self._tabs) < _MOST_TABS):
                self._tabs[tab] = now + (_HIDDEN_TAB_IS_GONE if hidden else _TAB_IS_GONE)
            return len(self._tabs.keys() - {tab})

    def leave(self, tab: str) -> None:
        """A tab was closed."""
        with self._lock:
            self._tabs.pop(tab, None)


def fingerprint(line: bytes) -> str:
    """A digest of the content of a line."""
    return hashlib.sha256(line).hexdigest()[:24]
