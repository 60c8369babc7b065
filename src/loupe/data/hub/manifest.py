"""The manifest of a data set on disk, `loupe-data.json`: every file with its size and sha256, and where it came from.

What is written here was checked against the hub's own digests; `check` proves later that nothing has changed since.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import msgspec

from loupe.errors import DatasetError
from loupe.files.folder import Folder
from loupe.files.foreign import is_inside, open_data, real_path
from loupe.typed import encode_json, json_decoder
from loupe.types import UNDECODABLE

NAME = "loupe-data.json"
#: Folder of unfinished files, below the one that is being filled.
PARTS = ".parts"
#: The note of where the data came from (loupe.data.hub.origin).
NOTE = ".loupe-origin"
_CHUNK = 1 << 20
_LONGEST_NAME, _LONGEST_PATH = 255, 1024
_DRIVE_OR_BACKSLASH = frozenset(":\\\0")


class FileEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file: its path below the data set's folder, with `/`. `archive` names the zip that it was unpacked from."""

    path: str
    size: int
    sha256: str
    archive: str = ""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a data set. `revision` is the commit, `requested` the name that it was resolved from.

    `archives` are zips that were unpacked and are gone; `patterns` are what was asked for, all of which is here. All of
    `repo`, `revision`, `requested`, `patterns` are empty for a folder that did not come from the hub.
    """

    format: int = 1
    id: str = ""
    repo: str = ""
    requested: str = ""
    revision: str = ""
    licence: str = ""
    fetched: str = ""
    patterns: list[str] = []
    files: list[FileEntry] = []
    archives: list[FileEntry] = []

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.files)


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One file that is not as the manifest says: `missing`, `size`, `changed`, or `extra` (not in the manifest)."""

    path: str
    problem: str
    detail: str = ""


def has_manifest(root: Path) -> bool:
    """True if the folder is a data set that Loupe fetched or unpacked."""
    return (root / NAME).is_file()


def read_manifest(root: Path) -> Manifest:
    """The manifest of a folder. Raises DatasetError if there is none, or it is damaged."""
    path = root / NAME
    try:
        data = Folder(root).read(NAME)
    except FileNotFoundError:
        raise DatasetError(
            f"{path} not found: not a data set made by Loupe", hint="list the datasets: loupe data list"
        ) from None
    return parse_manifest(data, str(path))


def parse_manifest(data: bytes, place: str) -> Manifest:
    """A manifest from JSON. Raises DatasetError, also for paths that would leave the folder or stand there twice."""
    try:
        manifest = json_decoder(Manifest).decode(data)
    except UNDECODABLE as error:
        raise DatasetError(f"{place}: not a manifest ({error})") from None
    if manifest.format != 1:
        raise DatasetError(f"{place}: format {manifest.format}, and this version of loupe reads 1")
    seen: set[str] = set()
    for entry in manifest.files:
        if safe_path(entry.path, place) in seen:
            raise DatasetError(f"{place}: {shown_path(entry.path)} is listed twice")
        seen.add(entry.path)
    for entry in (*manifest.files, *manifest.archives):
        if safe_path(entry.path, place) and entry.size < 0:
            raise DatasetError(f"{place}: {shown_path(entry.path)} has {entry.size} bytes")
        if any(parent.as_posix() in seen for parent in PurePosixPath(entry.path).parents):
            raise DatasetError(f"{place}: {shown_path(entry.path)} lies below a file")
    return manifest


def write_manifest(folder: Folder, manifest: Manifest) -> None:
    """Replace the manifest whole: a crash leaves the old one or the new one."""
    folder.write(NAME, manifest_bytes(manifest))


def manifest_bytes(manifest: Manifest) -> bytes:
    """The manifest as JSON, one file per line or so; the same manifest always gives the same bytes."""
    return msgspec.json.format(encode_json(manifest), indent=1) + b"\n"


def safe_path(path: str, place: str = "") -> str:
    """The path itself if it is relative, cannot leave its folder, and can be written, on any system.

    Raises DatasetError, which names `place`, where the path stands.
    """
    pure = PurePosixPath(path)
    clean = path and pure.as_posix() == path and not pure.is_absolute() and ".." not in pure.parts and path != "."
    where = f"{place}: unsafe path {shown_path(path)}" if place else f"unsafe path {shown_path(path)}"
    if not clean or _DRIVE_OR_BACKSLASH & set(path) or any(ord(char) < 32 for char in path):
        raise DatasetError(f"{where}: it is absolute, or leaves the folder of the data set")
    if any(0xD800 <= ord(char) < 0xE000 for char in path):
        raise DatasetError(f"{where}: it is not a text")
    if len(path.encode()) > _LONGEST_PATH or max(len(part.encode()) for part in pure.parts) > _LONGEST_NAME:
        limits = f"{_LONGEST_PATH:,} bytes, and {_LONGEST_NAME} between two slashes"
        raise DatasetError(f"{where}: it is too long (the limits are {limits})")
    if pure.parts[0].lower() in (NAME, PARTS, NOTE):
        raise DatasetError(f"{where}: this name is reserved")
    return path


def shown_path(path: str) -> str:
    """A path of a stranger as it stands in a message: on one line, cut in the middle where it is long."""
    return repr(path if len(path) <= 100 else f"{path[:60]}…{path[-30:]}")


def sha256_of(stream: BinaryIO, tell: Callable[[int], None] | None = None) -> str:
    """The digest of what is left in the stream; `tell` hears of every piece read."""
    digest = hashlib.sha256()
    while piece := stream.read(_CHUNK):
        digest.update(piece)
        if tell:
            tell(len(piece))
    return digest.hexdigest()


def files_below(root: Path) -> Iterator[str]:
    """Paths of all plain files below a folder, sorted, without the manifest and hidden ones.

    Links to files count as those files; links to folders are not followed.
    """
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            path = Path(folder, name)
            relative = path.relative_to(root).as_posix()
            if not name.startswith(".") and relative != NAME and path.is_file():
                yield relative


def describe_folder(root: Path, ident: str, tell: Callable[[int], None] | None = None) -> Manifest:
    """A manifest of a folder as it is now, for data that did not come through `loupe data get`."""
    entries = []
    _refuse_stray_links(root)
    for path in files_below(root):
        with open_data(root / path) as file:
            digest = sha256_of(file, tell)
        entries.append(FileEntry(path=safe_path(path), size=(root / path).stat().st_size, sha256=digest))
    if not entries:
        raise DatasetError(f"{root}: no files in this folder")
    return Manifest(id=ident, files=entries)


def _refuse_stray_links(root: Path) -> None:
    """Links whose files would be missing in a manifest without a word, and those that lead to files elsewhere.

    In a folder from a stranger those could be private ones. The hub's own cache keeps its files in `blobs`.
    """
    real = real_path(root)
    places = (real, real.parent.parent / "blobs") if real.parent.name == "snapshots" else (real,)
    for folder, names, files in os.walk(root):
        for name in (*names, *files):
            path = Path(folder, name)
            if path.is_symlink() and not path.is_file() and not name.startswith("."):
                kind = "a folder" if path.is_dir() else "nothing"
                raise DatasetError(f"{path} is a link to {kind}", hint="copy its files there, or remove it")
            if path.is_symlink() and not any(is_inside(path, place) for place in places):
                raise DatasetError(
                    f"{path} is a link to {real_path(path)}, outside of the folder",
                    hint="copy the file there, or remove it",
                )


def check(
    root: Path, manifest: Manifest, *, tell: Callable[[int], None] | None = None, jobs: int = 2
) -> Iterator[Finding]:
    """Read every file of the manifest and yield those that differ; then those that it does not know."""
    with ThreadPoolExecutor(jobs) as pool:
        yield from filter(None, pool.map(lambda entry: _check_one(root, entry, tell), manifest.files))
    known = {entry.path for entry in manifest.files}
    yield from (Finding(path=path, problem="extra") for path in files_below(root) if path not in known)


def total(entries: Iterable[FileEntry]) -> int:
    """Bytes of these files."""
    return sum(entry.size for entry in entries)


def _check_one(root: Path, entry: FileEntry, tell: Callable[[int], None] | None) -> Finding | None:
    path = root / entry.path
    try:
        size = path.stat().st_size
        if size != entry.size:
            return Finding(path=entry.path, problem="size", detail=f"{size:,} bytes instead of {entry.size:,}")
        with open_data(path) as file:
            found = sha256_of(file, tell)
    except FileNotFoundError:
        return Finding(path=entry.path, problem="missing")
    except OSError as error:
        return Finding(path=entry.path, problem="unreadable", detail=str(error.strerror or error))
    if found != entry.sha256:
        return Finding(
            path=entry.path, problem="changed", detail=f"sha256 {found[:12]}… instead of {entry.sha256[:12]}…"
        )
    return None
