"""Files that are whole or absent: atomic writes, append-only record files, and names that cannot leave their folder."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType

from loupe.errors import DatasetError, cannot_write, writing

_UNSAFE = frozenset('%\\:*?"<>|')
_LONGEST_NAME = 180


def write_atomically(path: Path, data: bytes) -> None:
    """Replace `path` by `data` (temporary name, fsync, rename); a crash leaves the old file or the new one."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_aside(path, data) as temporary:
            temporary.replace(path)


def write_new(path: Path, data: bytes) -> None:
    """Make a file, whole or not at all. Raises FileExistsError where anything has its name: nothing is overwritten."""
    with written_aside(path, data) as temporary:
        _put_where_nothing_is(temporary, path)


def write_all_or_none(files: Mapping[Path, bytes]) -> None:
    """Make new files; where one cannot be made none is left, and what was there stays.

    Raises DatasetError where one is there already, WriteError.
    """
    made: list[Path] = []
    try:
        with contextlib.ExitStack() as stack:
            aside = {path: stack.enter_context(written_aside(path, data)) for path, data in files.items()}
            for path, temporary in aside.items():
                with writing(path):
                    _put_where_nothing_is(temporary, path)
                made.append(path)
    except BaseException as error:
        for path in made:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        if not isinstance(error, OSError):
            raise
        if not isinstance(error, FileExistsError):
            raise
        names = " and ".join(str(path) for path in files)
        raise DatasetError(f"{names}: file exists; nothing was written", hint="move away what is there") from None


@contextlib.contextmanager
def written_aside(path: Path, data: bytes, *, mode: int | None = None) -> Iterator[Path]:
    """The data under another name, safe on the disk; gone afterwards unless it was given the file's place.

    `mode`: permissions, None for those of any new file. Raises OSError.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with writing(path), temporary.open("wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # The new content is there; not every file system syncs folders.
        sync_folder(path.parent)


def _put_where_nothing_is(temporary: Path, path: Path) -> None:
    """Give a file its place, unless something is there (a rename would overwrite it)."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # Not every file system has links: the name is taken first, then the file put in.
        path.open("xb").close()
        try:
            temporary.replace(path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def write_plainly(path: Path, data: bytes) -> None:
    """Write a file that can be made again, at half the cost of `Path.write_bytes`: there may be thousands."""
    with writing(path):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(descriptor, view) :]
        except OSError:
            with contextlib.suppress(OSError):
                path.unlink()  # half a file must not pass for a whole one
            raise
        finally:
            os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make a created or renamed entry of `folder` survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def safe_name(sample_id: str) -> str:
    """A relative file stem for a sample id: readable, one to one, and never outside its folder.

    Sub-folders of an id are kept. Characters that some file system refuses are percent-encoded, `.` and `..` too;
    a part longer than 180 bytes is cut and gets a digest.

    >>> safe_name("headers/page 1"), safe_name("../x"), safe_name("a:b")
    ('headers/page 1', '%2E%2E/x', 'a%3Ab')
    """
    return "/".join(_safe_part(part) for part in sample_id.split("/"))


def _safe_part(part: str) -> str:
    if part in ("", ".", ".."):
        return "%2E" * len(part) or "%00"
    encoded = "".join(_escape(char) if _is_unsafe(char) else char for char in part)
    if encoded[-1] in ". ":
        encoded = encoded[:-1] + _escape(encoded[-1])
    if encoded[0] == ".":
        encoded = _escape(".") + encoded[1:]
    raw = encoded.encode("utf-8", "surrogatepass")
    if len(raw) <= _LONGEST_NAME:
        return encoded
    digest = hashlib.sha256(raw).hexdigest()[:16]
    return raw[: _LONGEST_NAME - 18].decode("utf-8", "ignore") + "%~" + digest


def _is_unsafe(char: str) -> bool:
    return char in _UNSAFE or ord(char) < 32 or 0xD800 <= ord(char) < 0xE000 or ord(char) == 127


def _escape(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))


def read_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Yield (number from 1, byte offset, line without its end) of every whole line; a torn last line is left out."""
    if not path.exists():
        return
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.endswith(b"\n") and line.strip():
                yield number, offset, line[:-1]
            offset += len(line)


class RecordLog:
    """An append-only file of JSON lines. What `append` returned from is on the disk; opening drops a torn last line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            created = not path.exists()
            self._file = path.open("ab", buffering=0)
            self._drop_torn_line()
            if created:
                sync_folder(path.parent)

    def _drop_torn_line(self) -> None:
        """A record without its line end was never acknowledged to anybody: the process died while writing it."""
        data_end = self._file.seek(0, os.SEEK_END)
        keep = data_end
        with self.path.open("rb") as file:
            while keep > 0:
                start = max(0, keep - 65536)
                file.seek(start)
                cut = file.read(keep - start).rfind(b"\n")
                if cut >= 0:
                    keep = start + cut + 1
                    break
                keep = start
        if keep != data_end:
            self._file.truncate(keep)
            os.fsync(self._file.fileno())

    def append(self, lines: Iterable[bytes], *, sync: bool = True) -> None:
        """Write whole lines (without line ends), and wait until they are on the disk unless they can be made again."""
        data = memoryview(b"".join(line + b"\n" for line in lines))
        end = self._file.seek(0, os.SEEK_END)
        try:
            while data:
                data = data[self._file.write(data) :]
            if sync:
                os.fsync(self._file.fileno())
        except OSError as error:
            # Half a line must not stay: the next record would be glued to it.
            with contextlib.suppress(OSError):
                self._file.truncate(end)
            raise cannot_write(self.path, error) from None

    def close(self) -> None:
        """Close the file; nothing is pending."""
        self._file.close()

    def __enter__(self) -> RecordLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
