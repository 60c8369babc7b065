"""Decide which files may run code here or say what runs: those that the user has trusted, as they are now and where
they are.

A folder may come from somebody else. What a user names on the command line is their decision; what a file names is not.
Trust is for one file with one content at one place: a copy elsewhere is not trusted, as the same words may mean other
files there. What a trusted file itself names or imports is not looked at.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

from loupe.data.user_folders import config_folder, why_not_in_config
from loupe.errors import cannot_write
from loupe.files.folder import Folder
from loupe.files.foreign import read_data, real_path

_SEEN: set[str] = set()
#: The folder of decisions among the user's settings.
_TRUSTED = "trusted"


def remember(path: Path, content: bytes | None = None) -> str:
    """The user trusts this file with its present content, or with the one that they were shown.

    Return why the decision lasts only as long as the process, "" if it is kept.
    """
    digest = _digest(path, content)
    _SEEN.add(digest)
    folder = Folder(_folder())
    try:
        folder.create(private=True)
        folder.write(digest, str(real_path(path)).encode("utf-8", "surrogateescape"))
    except OSError as error:
        closed = why_not_in_config(_TRUSTED)
        private = f"no private folder can be made in {tempfile.gettempdir()}"
        return f"{closed}, and {private}" if closed else cannot_write(folder.path, error).message
    return ""


def stand_in() -> str:
    """Return why decisions are kept elsewhere than in the user's own folder, and where; "" if they are not."""
    closed = why_not_in_config(_TRUSTED)
    return f"{closed}; trust is kept in {_folder()}" if closed else ""


def is_trusted(path: Path, content: bytes | None = None) -> bool:
    """True if the user trusts this file with the content that it has now, or with the one that was read."""
    digest = _digest(path, content)
    return digest in _SEEN or os.path.isfile(_folder() / digest)  # noqa: PTH113  False if it may not be read


def was_trusted(path: Path) -> bool:
    """True if the user has trusted the file with another content, or this one."""
    return any(place == str(real_path(path)) for _, place in _marks())


def forget(path: Path) -> int:
    """Trust the file no more, whatever its content; how many contents of it were trusted."""
    return sum(_removed(mark) for mark, place in _marks() if place == str(real_path(path)))


def trusted_files() -> list[Path]:
    """Every file that is trusted with the content that it has now, or was with another."""
    return sorted({Path(place) for _, place in _marks()})


def _removed(mark: Path) -> bool:
    Folder(mark.parent).remove(mark.name)
    _SEEN.discard(mark.name)
    return True


def _marks() -> list[tuple[Path, str]]:
    """Return what is remembered, with the place of its file."""
    with contextlib.suppress(OSError):
        return [(mark, mark.read_text("utf-8", errors="surrogateescape")) for mark in _folder().iterdir()]
    return []


def _folder() -> Path:
    return config_folder(_TRUSTED)


def _digest(path: Path, content: bytes | None) -> str:
    """Of place and content: the same command in another folder may run another file."""
    place = str(real_path(path)).encode("utf-8", "surrogateescape")
    return hashlib.sha256(place + b"\0" + (read_data(path) if content is None else content)).hexdigest()
