"""A folder, and the files in it: read, written whole or not at all, made new, appended to; never through a link.

The folder itself may be a link if the user named it, but not if it is a default place. Temporary files have names that
nobody can guess and are created exclusively, so that nothing planted in their place is opened.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from loupe.errors import DatasetError, UnsafeFileError
from loupe.files.default_places import DefaultPlace
from loupe.files.left_behind import sweep
from loupe.files.plain import check_replaceable, link_error, open_folder, open_inside, open_plain, parts_of, writing
from loupe.files.written_aside import Draft, new_draft, synced

#: A record is read whole into memory; a larger file is none.
LARGEST_RECORD = 256 * 10**6


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder `root`, or with `inside` one below it. Making one touches nothing.

    A default place becomes `inside`, and `option` what names it on purpose: so a link in it is refused.
    `held` is an open descriptor of `root` that is used in place of its path, which somebody may swap.

    Methods take names relative to the folder. They raise UnsafeFileError where a part of the name is a link or leads
    out of the folder, or where no plain file stands; WriteError where the system does not write; else OSError, with
    the whole path.
    """

    root: Path
    inside: tuple[str, ...] = ()
    option: str = ""
    held: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.root, DefaultPlace) and not self.root.is_absolute():
            changed = {"inside": (*self.root.parts, *self.inside), "option": self.root.option, "root": Path()}
            for name, value in changed.items():
                object.__setattr__(self, name, value)

    def __truediv__(self, name: str) -> Folder:
        return self._below(parts_of(name))

    @property
    def path(self) -> Path:
        """The folder's path, for messages."""
        return self.root.joinpath(*self.inside)

    def create(self, *, private: bool = False) -> None:
        """Make the folder where it is missing, parents included. `private`: if it is new, nobody else may enter it."""
        if self.exists():
            return
        with self.parent() as (parent, name), writing(self.path), contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700 if private else 0o777, dir_fd=parent)
        with self.opened():  # What is there now must be a folder.
            pass

    def refuse_links(self) -> None:
        """Raise UnsafeFileError for the first link in the folder: early, before work that could not be stored."""
        for place, names, files in os.walk(self.path):
            for name in (*names, *files):
                if (path := Path(place) / name).is_symlink():
                    raise link_error(path, str(path.readlink()))

    def open_to_others(self) -> None:
        """Let in whom the umask lets into any new folder."""
        with self.opened() as descriptor:
            umask = os.umask(0o077)
            os.umask(umask)
            mode = stat.S_IMODE(os.fstat(descriptor).st_mode)
            with writing(self.path):
                if mode | 0o777 & ~umask != mode:
                    os.fchmod(descriptor, mode | 0o777 & ~umask)

    def exists(self) -> bool:
        """True if it is there. Raises UnsafeFileError if a link is in its place."""
        try:
            with self.opened():
                return True
        except FileNotFoundError:
            return False

    def refuse_if_linked(self) -> None:
        """Raise UnsafeFileError if a link is in place of the folder, or of one above it that Loupe named."""
        self.exists()

    def names(self) -> list[str]:
        """The names of all that lies in the folder, sorted; none where there is no folder."""
        try:
            with self.opened() as descriptor:
                return sorted(os.listdir(descriptor))  # noqa: PTH208  a descriptor
        except FileNotFoundError:
            return []

    def open(self, name: str) -> BufferedReader:
        """The file, for reading."""
        with self._holder(name) as (folder, last):
            return os.fdopen(open_plain(folder, last, self.path / name, os.O_RDONLY), "rb")

    def read(self, name: str, *, limit: int = LARGEST_RECORD) -> bytes:
        """The file's bytes. Raises UnsafeFileError if they are more than `limit`."""
        with self.open(name) as file:
            # A buffer as large as the limit is not asked for.
            data = file.read(min(os.fstat(file.fileno()).st_size, limit) + 1)
        if len(data) > limit:
            raise UnsafeFileError(f"{self.path / name}: larger than {limit // 10**6:,} MB", hint="move it away")
        return data

    def open_appending(self, name: str) -> tuple[BinaryIO, bool]:
        """The file, for reading and appending without a buffer, and whether it is new."""
        place, flags = self.path / name, os.O_RDWR | os.O_APPEND
        with writing(place), self._holder(name, create=True) as (folder, last):
            try:
                descriptor, is_new = open_plain(folder, last, place, flags), False
            except FileNotFoundError:
                descriptor, is_new = open_plain(folder, last, place, flags | os.O_CREAT), True
                synced(folder)
            return os.fdopen(descriptor, "a+b", buffering=0), is_new

    def open_lock(self, name: str) -> int:
        """A descriptor of the file, made if need be, for locking and a few bytes."""
        place = self.path / name
        with writing(place), self._holder(name, create=True) as (folder, last):
            return open_plain(folder, last, place, os.O_RDWR | os.O_CREAT)

    def write(self, name: str, data: bytes, *, mode: int | None = None, sync: bool = True) -> None:
        """Replace the file, or make it; a crash leaves the old content or the new one.

        `mode`: permissions, None for those of any new file. Without `sync` it may be lost, not torn, in a power cut:
        for files that can be made again.
        """
        with self.draft(name, mode=mode, sync=sync) as draft:
            draft.file.write(data)
            draft.replace()

    def write_new(self, name: str, data: bytes, *, mode: int | None = None) -> None:
        """Make a file, whole or not at all. Raises FileExistsError where anything has its name."""
        with self.draft(name, mode=mode) as draft:
            draft.file.write(data)
            draft.put()

    @contextlib.contextmanager
    def draft(self, name: str, *, mode: int | None = None, sync: bool = True) -> Iterator[Draft]:
        """A file under another name; gone afterwards unless it was given its place."""
        place = self.path / name
        with contextlib.ExitStack() as stack:
            with writing(place):
                folder, last = stack.enter_context(self._holder(name, create=True))
            yield stack.enter_context(new_draft(folder, last, place, mode=mode, sync=sync))

    @contextlib.contextmanager
    def many(self) -> Iterator[Callable[[str, bytes], None]]:
        """Writes many files that can be made again, each as `write` does; the folder of the last one stays open."""
        path = self.path
        above: list[str] | None = None
        descriptor = -1
        with contextlib.ExitStack() as stack:

            def write(name: str, data: bytes) -> None:
                nonlocal above, descriptor
                place = path / name
                with writing(place):
                    *folders, last = self._parts(name)
                    if folders != above:
                        above = None
                        stack.close()
                        descriptor = stack.enter_context(self._below(folders).opened(create=True))
                        above = folders
                with new_draft(descriptor, last, place, sync=False) as draft:
                    draft.file.write(data)
                    draft.replace()

            yield write

    def check(self, name: str) -> None:
        """Raise what `write` would raise for what has the name now: before long work, say."""
        with contextlib.suppress(FileNotFoundError), self._holder(name) as (folder, last):
            check_replaceable(folder, last, self.path / name)

    def move(self, name: str, to: Folder, new: str) -> None:
        """Give a file another name in `to`, in place of the file that has it."""
        with self._holder(name) as (source, last), to._holder(new, create=True) as (target, end):
            check_replaceable(target, end, to.path / new)
            with writing(to.path / new):
                os.rename(last, end, src_dir_fd=source, dst_dir_fd=target)

    def remove(self, name: str) -> None:
        """Take a file away, if it is there. Of a link the link itself goes."""
        gone = contextlib.suppress(FileNotFoundError)
        with gone, self._holder(name) as (folder, last), writing(self.path / name), gone:
            os.unlink(last, dir_fd=folder)

    def remove_empty(self) -> None:
        """Take the folder away. Raises OSError unless it is empty."""
        with self.parent() as (parent, name), writing(self.path):
            os.rmdir(name, dir_fd=parent)

    def move_aside(self) -> None:
        """Give the folder another name beside its own: nothing is deleted, whatever the clock says."""
        with self.parent() as (parent, name), writing(self.path):
            aside = f"{name}.old-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
            taken = frozenset(os.listdir(parent))  # noqa: PTH208  of a descriptor
            names = itertools.chain([aside], (f"{aside}-{number}" for number in itertools.count(2)))
            free = next(each for each in names if each not in taken)
            os.rename(name, free, src_dir_fd=parent, dst_dir_fd=parent)

    def remove_drafts(self) -> None:
        """Take away what processes that were killed left of files that they wrote; who still writes has a lock."""
        with contextlib.suppress(OSError), self.opened() as folder:
            sweep(folder)

    @contextlib.contextmanager
    def opened(self, *, create: bool = False) -> Iterator[int]:
        """A descriptor of the folder; `create` makes what is missing of its path."""
        if create and self.held is None and not self.root.is_dir():
            with writing(self.root):
                self.root.mkdir(parents=True, exist_ok=True)
        descriptor, place = open_folder(self.root) if self.held is None else os.dup(self.held), self.root
        try:
            for part in self.inside:
                place /= part
                option = self.option if place == self.root / self.inside[0] else ""
                deeper = open_inside(descriptor, part, place, create=create, option=option)
                os.close(descriptor)
                descriptor = deeper
            yield descriptor
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _holder(self, name: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """The folder right above a file, and the last part of its name."""
        *folders, last = self._parts(name)
        with self._below(folders).opened(create=create) as descriptor:
            yield descriptor, last

    def _parts(self, name: str) -> tuple[str, ...]:
        if (parts := parts_of(name) or (".",))[-1] == ".":
            raise UnsafeFileError(f"{self.path}: {name!r} is not a file name")
        return parts

    def _below(self, folders: Sequence[str]) -> Folder:
        return replace(self, inside=(*self.inside, *folders))

    def sibling(self, name: str) -> Folder:
        """A folder in the one that holds this one."""
        if self.inside:
            return Folder(self.root, (*self.inside[:-1], *parts_of(name)), self.option)
        return Folder(self.root.parent / name)

    @contextlib.contextmanager
    def parent(self) -> Iterator[tuple[int, str]]:
        """The folder that holds this one, made if need be, and the name of this one in it."""
        if self.inside:
            with replace(self, inside=self.inside[:-1]).opened(create=True) as descriptor:
                yield descriptor, self.inside[-1]
            return
        root = self.root.absolute() if self.root.name else Path(os.path.realpath(self.root))
        with Folder(root.parent).opened(create=True) as descriptor:
            yield descriptor, root.name


def write_file(path: Path, data: bytes) -> None:
    """Replace the file that the user named, or make it with its folder; a crash leaves the old or the new content."""
    Folder(path.parent).write(path.name, data)


def write_all_or_none(folder: Folder, files: Mapping[str, bytes]) -> None:
    """Make new files. If one cannot be made, none is left, and what was there stays.

    If a killed process made some of them, to the byte, the others are added. Raises DatasetError if all or any other
    is there already, and WriteError.
    """
    begun = {name for name, data in files.items() if _holds(folder, name, data)}
    if len(begun) < len(files):
        files = {name: data for name, data in files.items() if name not in begun}
    made: list[str] = []
    try:
        with contextlib.ExitStack() as stack:
            drafts = {name: stack.enter_context(folder.draft(name)) for name in files}
            for name, draft in drafts.items():
                draft.file.write(files[name])
                draft.settle()
            for name, draft in drafts.items():
                draft.put()
                made.append(name)
    except BaseException as error:
        for name in made:
            with contextlib.suppress(OSError):
                folder.remove(name)
        if not isinstance(error, FileExistsError):
            raise
        names = " and ".join(str(folder.path / name) for name in files)
        raise DatasetError(f"{names}: file exists; nothing was written", hint="move away what is there") from None


def _holds(folder: Folder, name: str, data: bytes) -> bool:
    with contextlib.suppress(OSError, UnsafeFileError):
        return folder.read(name, limit=len(data)) == data
    return False


def is_unfinished(folder: Folder, files: Mapping[str, bytes]) -> bool:
    """Return whether not all of these files are there yet, and none with another content."""
    there = [name for name in files if os.path.lexists(folder.path / name)]
    return len(there) < len(files) and all(_holds(folder, name, files[name]) for name in there)
