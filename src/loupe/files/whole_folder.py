"""A folder of many files that is written under another name, and then given its own: whole or absent."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from loupe.errors import LoupeError, UsageError
from loupe.files.folder import Folder
from loupe.files.left_behind import new_folder
from loupe.files.plain import writing
from loupe.files.written_aside import synced

_TAKEN = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR, errno.EBUSY)


@contextlib.contextmanager
def whole_folder(target: Folder, *, private: bool = False) -> Iterator[Folder]:
    """Yield a folder beside `target` that takes its name if the block ends without an error; else it is gone.

    It stays this folder, also if another process swaps one above it: write by its methods, never by its path.
    `target` must be missing or empty. `private`: nobody else may enter it. Raises UsageError if another process makes
    the same folder, if something lies there at the end, or for a folder that no other can replace.
    """
    place = target if target.inside else Folder(Path(os.path.realpath(target.root)))
    _check_place(place.path, target.path)
    with place.parent() as (parent, name):
        with writing(target.path):
            mark = hashlib.sha256(os.fsencode(name)).hexdigest()[:8]
            made = new_folder(parent, mark, 0o700 if private else 0o777)
        if made is None:
            raise UsageError(
                f"{target.path}: another process is writing this folder", hint="wait for it, or name another folder"
            )
        own, descriptor = made
        aside = Folder(place.sibling(own).path, held=descriptor)
        try:
            yield aside
            _give_name(parent, own, descriptor, name, target.path)
        except BaseException as error:
            shutil.rmtree(own, ignore_errors=True, dir_fd=parent)
            if isinstance(error, LoupeError):  # The name that counts is the one that the user knows.
                error.rewrite(lambda text: text.replace(str(aside.path), str(target.path)))
            raise
        finally:
            os.close(descriptor)


def _check_place(path: Path, shown: Path) -> None:
    """Raise UsageError for a folder whose name cannot be given to another one."""
    if os.path.ismount(path) or (path.is_dir() and path.samefile(Path())):
        kind = "the working folder" if path.is_dir() and path.samefile(Path()) else "a mount point"
        raise UsageError(f"{shown} is {kind}, which cannot be replaced", hint=f"name a new folder in it: {shown}/NAME")


def _give_name(parent: int, own: str, descriptor: int, name: str, shown: Path) -> None:
    try:
        with writing(shown):
            with contextlib.suppress(FileNotFoundError):  # An empty folder that is there keeps its permissions.
                there = os.stat(name, dir_fd=parent, follow_symlinks=False)
                os.fchmod(descriptor, stat.S_IMODE(there.st_mode))
            os.rename(own, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        raise UsageError(
            f"{shown}: the folder is no longer empty; nothing was changed", hint="name another folder"
        ) from None
    synced(parent)
