"""Opening what lies in a folder from a stranger: plain files and real folders only, one name at a time.

Each name is opened relative to the descriptor of the folder that holds it, and a link is never followed. So it does not
matter what else changes the folder meanwhile. Without this a link `predictions/page.txt -> ~/.profile` would let an
answer of a model become a shell start-up file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from loupe.errors import UnsafeFileError, WriteError, cannot_write, word

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
#: A pipe that nobody writes to is opened at once with O_NONBLOCK, and refused; plain files ignore the flag.
_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
}


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a relative name. Raises UnsafeFileError if it leads out of its folder, or can be no name."""
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts or "\0" in name:
        raise UnsafeFileError(
            f"{name!r} leads out of its folder", hint="use names without `..` and without a `/` in front"
        )
    return parts


def open_folder(path: Path) -> int:
    """A descriptor of the folder that the user named, or that we made; a link to it is followed. Raises OSError."""
    return os.open(path, _FOLDER)


def open_inside(folder: int, name: str, place: Path, *, create: bool = False, option: str = "") -> int:
    """A descriptor of a folder in a folder; `create` makes it. Raises UnsafeFileError for a link, else OSError.

    `option` names a default place on purpose.
    """
    with naming(place):
        try:
            return _real_folder(folder, name, place, option)
        except FileNotFoundError:
            if not create:
                raise
        with suppress(FileExistsError), writing(place):
            os.mkdir(name, dir_fd=folder)
        return _real_folder(folder, name, place, option)


def _real_folder(folder: int, name: str, place: Path, option: str) -> int:
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError:
        refuse_link(folder, name, place, option)
        raise


def open_plain(folder: int, name: str, place: Path, flags: int) -> int:
    """A descriptor of a plain file in a folder. Raises UnsafeFileError for a link, a pipe or a device, else OSError.

    A file with a second name elsewhere is refused for writing: its other name may stand outside of the folder.
    """
    with naming(place):
        try:
            descriptor = os.open(name, flags | _PLAIN, 0o666, dir_fd=folder)
        except OSError as error:
            refuse_link(folder, name, place)
            if error.errno == errno.ENXIO:  # A pipe or a socket, opened for writing.
                raise not_a_file(place, os.stat(name, dir_fd=folder, follow_symlinks=False)) from None
            raise
        try:
            _check_plain(os.fstat(descriptor), place, writing=flags & os.O_ACCMODE != os.O_RDONLY)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor


def refuse_link(folder: int, name: str, place: Path, option: str = "") -> None:
    """Raise UnsafeFileError if the name is a link; `option` names it on purpose."""
    try:
        target = os.readlink(name, dir_fd=folder)
    except OSError:
        return
    raise link_error(place, target, option)


def link_error(place: Path, target: str, option: str = "") -> UnsafeFileError:
    """Return the error for a link that is not followed; `option` names it on purpose."""
    if option:
        return UnsafeFileError(
            f"{place} is a link to {target}; Loupe follows no link that you did not name",
            hint=f"remove the link (rm {word(place)}), or name it: the same command with {option}",
        )
    return UnsafeFileError(
        f"{place} is a link to {target}; Loupe follows no links inside a folder",
        hint=f"remove the link (rm {word(place)}), or replace it with its target",
    )


def check_replaceable(folder: int, name: str, place: Path) -> None:
    """Raise UnsafeFileError unless the name is free or that of a plain file; IsADirectoryError for a folder."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    refuse_link(folder, name, place)
    _check_plain(found, place, writing=False)


def _check_plain(found: os.stat_result, place: Path, *, writing: bool) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place))
    if not stat.S_ISREG(found.st_mode):
        raise not_a_file(place, found)
    if writing and found.st_nlink > 1:
        name = word(place)
        raise UnsafeFileError(
            f"{place}: the same file has another name, too (a hard link); writing would change it there",
            hint=f"make it a file of its own: cp {name} {name}.copy && mv {name}.copy {name}",
        )


def not_a_file(place: Path, found: os.stat_result) -> UnsafeFileError:
    """Return the error for a pipe, a device, a socket or a folder in the place of a file."""
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
    return UnsafeFileError(f"{place}: is {kind}, not a file", hint="move it away")


@contextmanager
def naming(place: Path) -> Iterator[None]:
    """Give an OSError the whole path; a call relative to a descriptor knows only the last name."""
    try:
        yield
    except OSError as error:
        if isinstance(error, WriteError) or (isinstance(error.filename, str) and "/" in error.filename):
            raise  # It says enough, or is about another file, which it names.
        raise OSError(error.errno or errno.EIO, error.strerror or str(error), str(place)) from None


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Raise a WriteError about `place` for what the system refuses in here; what is said about another file stays.

    That something else has the name stays what it is: FileExistsError, NotADirectoryError, IsADirectoryError.
    """
    try:
        with naming(place):
            yield
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise
    except OSError as error:
        if error.filename != str(place):
            raise
        raise cannot_write(place, error) from None
