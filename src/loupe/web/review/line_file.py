"""A file of lines that others may change too: one line is replaced at a time, whole or not at all, never blindly.

In a line of JSON only values change: order, blanks, escapes and unknown members stay as they are. What was read is
compared with the disk before every write, under a lock between processes of Loupe; the new content goes to a temporary
file, is synced, and takes the place of the old one.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loupe.errors import DatasetError, LoupeError, WriteError, cannot_write
from loupe.files.folder import Folder

_BLANKS = re.compile(r"[ \t\r\n]*")
_ESCAPED = re.compile(r"\\u[0-9a-fA-F]{4}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object, and where it stands in the text."""

    key_start: int
    key_end: int
    start: int
    end: int
    value: Any


def read_object(line: str) -> dict[str, Any]:
    """The object that the line holds. Raises DatasetError with the reason if there is none."""
    try:
        value = json.loads(line.rstrip())
    except json.JSONDecodeError as error:
        raise DatasetError(f"not JSON ({error.msg} at character {error.pos + 1})") from None
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"not JSON ({error})") from None
    if not isinstance(value, dict):
        raise DatasetError("not an object")
    return value


def with_values(line: str, changes: Mapping[str, Any]) -> str:
    """The line with these members set; what is new comes last, in the line's own manner of blanks and escapes.

    >>> with_values('{"a": 1,  "b":[2], "c" : "ü"}', {"b": None, "d": "é"})
    '{"a": 1,  "b":null, "c" : "ü", "d": "é"}'
    """
    read_object(line)
    found, close = _members(line)
    escape = bool(_ESCAPED.search(line))
    colon, comma = _manners(line, found)
    text = line
    new = [_text(name, escape) + colon + _text(value, escape) for name, value in changes.items() if name not in found]
    if new:
        end = max((member.end for member in found.values()), default=close)
        text = text[:end] + (comma if found else "") + comma.join(new) + text[end:]
    for name in sorted(found.keys() & changes.keys(), key=lambda name: -found[name].start):
        member = found[name]
        text = text[: member.start] + _text(changes[name], escape) + text[member.end :]
    return text


def _members(line: str) -> tuple[dict[str, Member], int]:
    """The members by name, of equal names the last, which is the one that counts; and where the object ends."""
    found: dict[str, Member] = {}
    place = _skip(line, _skip(line, 0) + 1)
    while line[place] != "}":
        place = _skip(line, place + 1) if line[place] == "," else place
        key, key_end = _DECODER.raw_decode(line, place)
        start = _skip(line, _skip(line, key_end) + 1)
        value, end = _DECODER.raw_decode(line, start)
        found[key] = Member(place, key_end, start, end, value)
        place = _skip(line, end)
    return found, place


def _skip(line: str, place: int) -> int:
    match = _BLANKS.match(line, place)
    assert match is not None
    return match.end()


def _manners(line: str, found: Mapping[str, Member]) -> tuple[str, str]:
    """The blanks between a name and its value, and between two members."""
    members = sorted(found.values(), key=lambda member: member.start)
    colon = line[members[0].key_end : members[0].start] if members else ": "
    comma = line[members[0].end : members[1].key_start] if len(members) > 1 else ", "
    return colon, comma


def _text(value: Any, escape: bool) -> str:
    """The value as JSON. Half a surrogate pair exists only escaped."""
    plain = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if escape or _SURROGATE.search(plain) else plain


READ_ONLY = "the file is read-only"


class ConflictError(LoupeError):
    """The line that was to be changed is no longer what the person saw."""


class LineFile:
    """The lines of a file, with their ends. `revision` grows with every change, by us or by others."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._folder = Folder(self.path.parent)
        self.revision = 0
        self.lines: tuple[bytes, ...] = ()
        self._identity: tuple[int, ...] = ()
        self._lock = threading.RLock()
        self._sweep()
        self._take(*self._read())

    def where(self, number: int) -> str:
        """The name of a line in messages."""
        return f"{self.path.name}, line {number}"

    def locked(self) -> str:
        """The reason that nothing can be written, "" if it can."""
        return why_locked(self.path)

    def refresh(self) -> bool:
        """Read the file again if others have changed it; whether that is so. Raises DatasetError if it is gone."""
        with self._lock:
            if identity_of(self._stat()) == self._identity:
                return False
            return self._take(*self._read())

    def replace(self, number: int, before: bytes, after: bytes) -> int:
        """Put `after` where `before` stands, line `number` unless others moved it; the number that it has now.

        Raises ConflictError if `before` is not there any more, WriteError if nothing can be written.
        """
        with self._lock, only_one_process(self.path.parent):
            for _ in range(5):
                content, identity = self._read()
                self._take(content, identity)
                place = self._find(number, before)
                lines = [*self.lines[: place - 1], after, *self.lines[place:]]
                if self._swap(b"".join(lines), identity):
                    return place
        raise ConflictError(f"{self.path} is being changed by another program again and again; nothing was written")

    def replace_all(self, changes: Mapping[int, tuple[bytes, bytes]]) -> set[int]:
        """Put many lines in place of others (number → before, after) in one write; the numbers of those left alone.

        A line that is not what it was before stays as others have made it. Raises as `replace`.
        """
        if not changes:
            return set()
        with self._lock, only_one_process(self.path.parent):
            for _ in range(5):
                content, identity = self._read()
                self._take(content, identity)
                lines, left = list(self.lines), set()
                for number, (before, after) in changes.items():
                    try:
                        lines[self._find(number, before) - 1] = after
                    except ConflictError:
                        left.add(number)
                if self._swap(b"".join(lines), identity):
                    return left
        raise ConflictError(f"{self.path} is being changed by another program again and again; nothing was written")

    def rewrite(self, change: Callable[[Sequence[bytes]], Sequence[bytes]]) -> None:
        """Put in place of all lines what `change` makes of them as they are now. Raises as `replace`."""
        with self._lock, only_one_process(self.path.parent):
            for _ in range(5):
                content, identity = self._read()
                self._take(content, identity)
                if self._swap(b"".join(change(self.lines)), identity):
                    return
        raise ConflictError(f"{self.path} is being changed by another program again and again; nothing was written")

    def _find(self, number: int, line: bytes) -> int:
        if number <= len(self.lines) and self.lines[number - 1] == line:
            return number
        places = [place for place, found in enumerate(self.lines, 1) if found == line]
        if len(places) != 1:
            raise ConflictError(f"{self.path}, line {number}: not what it was when you opened it")
        return places[0]

    def _swap(self, content: bytes, identity: tuple[int, ...]) -> bool:
        """Write aside, sync, and rename unless the file was changed meanwhile."""
        try:
            mode = stat.S_IMODE(self._stat().st_mode)
            if locked := self.locked():
                raise WriteError(
                    f"{self.path} cannot be written: {locked}", hint="nothing was changed; make it writable"
                )
            with self._folder.draft(self.path.name, mode=mode) as draft:
                draft.file.write(content)
                draft.settle()
                if identity_of(self._stat()) != identity:
                    return False
                draft.replace()
        except OSError as error:
            raise cannot_write(self.path, error) from None
        # What the file is now may be the work of others already: the next look reads it.
        self._take(content, ())
        return True

    def _read(self) -> tuple[bytes, tuple[int, ...]]:
        try:
            with self._folder.open(self.path.name) as file:
                identity = identity_of(os.fstat(file.fileno()))
                return file.read(), identity
        except OSError as error:
            raise DatasetError(f"{self.path}: cannot be read: {error.strerror or error}") from None

    def _take(self, content: bytes, identity: tuple[int, ...]) -> bool:
        lines = tuple(_split(content))
        changed = lines != self.lines
        self.lines, self._identity = lines if changed else self.lines, identity
        self.revision += changed
        return changed

    def _stat(self) -> os.stat_result:
        try:
            return self.path.stat()
        except OSError as error:
            raise DatasetError(f"{self.path}: cannot be read: {error.strerror or error}") from None

    def _sweep(self) -> None:
        """Take away what a process that was killed in the middle of a write left beside the file."""
        with only_one_process(self.path.parent):  # Who writes has this lock, too.
            self._folder.remove_drafts()


def why_locked(path: Path) -> str:
    """The reason that a file cannot be replaced; "" if it can, or is not there."""
    try:
        is_open = path.stat().st_mode & 0o222 and os.access(path, os.W_OK)
    except OSError:
        is_open = True
    if not is_open:
        return READ_ONLY
    return "" if os.access(path.parent, os.W_OK) else "its folder is read-only"


def _split(content: bytes) -> Iterator[bytes]:
    """Lines end with a line feed and nothing else: a carriage return belongs to the line."""
    start = 0
    while start < len(content):
        end = content.find(b"\n", start) + 1 or len(content)
        yield content[start:end]
        start = end


def identity_of(found: os.stat_result) -> tuple[int, ...]:
    """A mark that is another one after a file was changed."""
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@contextlib.contextmanager
def only_one_process(folder: Path) -> Iterator[None]:
    """Keep other processes of Loupe from writing into the folder; where it cannot be locked, go on without."""
    import fcntl

    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
