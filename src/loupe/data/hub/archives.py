"""Archives of data sets: `pack` for a machine without network, `unpack` there, and zips as they are published.

A pack is a plain tar (images do not get smaller): the manifest first, then its files in order. Nothing in an archive
is trusted: no path leaves the folder, no links or devices, no more bytes than announced, and every digest is checked.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Set
from pathlib import Path, PurePosixPath

from loupe.data.hub.manifest import (
    NAME,
    FileEntry,
    Manifest,
    describe_folder,
    has_manifest,
    manifest_bytes,
    parse_manifest,
    read_manifest,
    safe_path,
    sha256_of,
    shown_path,
    write_manifest,
)
from loupe.data.hub.origin import PACK, note_origin
from loupe.errors import DatasetError, NoSpaceError, word
from loupe.files.folder import Folder
from loupe.files.foreign import open_data, plain_file
from loupe.files.whole_folder import whole_folder
from loupe.quantities import size

#: A manifest of a million files is about this large.
_LARGEST_MANIFEST = 256 * 1024**2

Tell = Callable[[int], None]


def pack(root: Path, target: Path, *, ident: str = "", tell: Tell | None = None) -> tuple[Manifest, str]:
    """Write a folder as one tar file; its manifest and the sha256 of the tar.

    Every file is compared with the manifest on the way. The same data always gives the same bytes. Raises DatasetError
    if a file is missing or has changed; there is no tar then.
    """
    manifest = read_manifest(root) if has_manifest(root) else describe_folder(root, ident or root.name)
    with Folder(target.parent).draft(target.name) as draft:
        with tarfile.open(fileobj=draft.file, mode="w", format=tarfile.PAX_FORMAT) as tar:
            header = manifest_bytes(manifest)
            tar.addfile(_member(NAME, len(header)), io.BytesIO(header))
            for entry in manifest.files:
                _add(tar, root, entry, tell)
        draft.file.seek(0)
        digest = sha256_of(draft.file)
        draft.replace()
    return manifest, digest


def unpack(source: Path, root_of: Callable[[Manifest], Path], *, tell: Tell | None = None) -> tuple[Manifest, Path]:
    """Unpack a tar that `pack` wrote into the folder that `root_of` gives for its manifest; whole or not at all.

    Raises DatasetError if anything in it is not as its manifest says, or the folder is there already.
    """
    try:
        with tarfile.open(plain_file(source), "r:") as tar:
            manifest = _first(tar, source)
            root = root_of(manifest)
            if root.exists():
                raise DatasetError(f"{root} is there already", hint=f"mv {word(root)} {word(root)}.old, or --to DIR")
            with whole_folder(Folder(root)) as folder:
                _check_room(root.parent, manifest)
                _extract(tar, source, manifest, folder, tell)
                write_manifest(folder, manifest)
                note_origin(folder.path, PACK)
    except (tarfile.TarError, EOFError, zlib.error, MemoryError, RecursionError, OverflowError) as error:
        raise DatasetError(f"{source}: not a pack, or a broken one ({error})", hint="copy it again") from None
    return manifest, root


def unzip(source: Path, folder: Folder, *, taken: Set[str] = frozenset()) -> list[FileEntry]:
    """Unpack a published zip below a folder; what was written. Raises DatasetError for anything unsafe or broken.

    No file of `taken` is written over; others are, as the rest of a process that died.
    """
    entries = []
    try:
        with zipfile.ZipFile(plain_file(source)) as archive:
            members = [member for member in archive.infolist() if not member.is_dir()]
            _check_zip(source, folder.path, members, taken)
            for member in members:
                with archive.open(member) as packed, folder.draft(member.filename, sync=False) as draft:
                    shutil.copyfileobj(packed, draft.file, 1 << 20)
                    draft.file.seek(0)
                    digest = sha256_of(draft.file)
                    draft.replace()
                entries.append(FileEntry(path=member.filename, size=member.file_size, sha256=digest))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DatasetError(f"{source}: a broken zip ({error})") from None
    return entries


def _check_zip(source: Path, folder: Path, members: list[zipfile.ZipInfo], taken: Set[str]) -> None:
    seen = set(taken)
    for member in members:
        name = shown_path(member.filename)
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind == stat.S_IFLNK:
            raise DatasetError(f"{source}: {name} is a link, and links are not unpacked")
        if kind not in (0, stat.S_IFREG):
            raise DatasetError(f"{source}: {name} is a device or a pipe, and only files are unpacked")
        if safe_path(member.filename, str(source)) in seen:
            raise DatasetError(f"{source}: {name} is there already")
        seen.add(member.filename)
    for member in members:
        if any(parent.as_posix() in seen for parent in PurePosixPath(member.filename).parents):
            raise DatasetError(f"{source}: {shown_path(member.filename)} lies below a file")
    unpacked = sum(member.file_size for member in members)
    if unpacked > shutil.disk_usage(folder).free:
        raise NoSpaceError(f"{source}: unpacked it has {size(unpacked)}, more than the free space", hint="df -h")


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o644
    return member


def _add(tar: tarfile.TarFile, root: Path, entry: FileEntry, tell: Tell | None) -> None:
    path = root / entry.path
    try:
        with open_data(path) as file:
            if os.fstat(file.fileno()).st_size != entry.size:
                raise DatasetError(
                    f"{path}: its size differs from the manifest",
                    hint=f"check the data: loupe data verify {word(root)}",
                )
            found = sha256_of(file, tell)
            if found != entry.sha256:
                raise DatasetError(
                    f"{path}: has changed since it was checked", hint=f"check the data: loupe data verify {word(root)}"
                )
            file.seek(0)
            tar.addfile(_member(entry.path, entry.size), file)
    except FileNotFoundError:
        raise DatasetError(f"{path}: missing", hint=f"check the data: loupe data verify {word(root)}") from None


def _first(tar: tarfile.TarFile, source: Path) -> Manifest:
    member = tar.next()
    stream = tar.extractfile(member) if member and member.isreg() and member.name == NAME else None
    if member is None or stream is None or member.size > _LARGEST_MANIFEST:
        raise DatasetError(
            f"{source}: not a pack made by Loupe: it does not begin with {NAME}", hint="run: loupe data pack"
        )
    return parse_manifest(stream.read(), f"{source}: {NAME}")


def _check_room(folder: Path, manifest: Manifest) -> None:
    free = shutil.disk_usage(folder).free
    if manifest.size > free:
        raise NoSpaceError(
            f"{manifest.id} needs {size(manifest.size)}, and {folder} has {size(free)} free",
            hint="use --to /a/larger/disk, or set LOUPE_DATA",
        )


def _extract(tar: tarfile.TarFile, source: Path, manifest: Manifest, folder: Folder, tell: Tell | None) -> None:
    waiting = {entry.path: entry for entry in manifest.files}
    while (member := tar.next()) is not None:
        entry = waiting.pop(member.name, None)
        stream = tar.extractfile(member) if entry and member.isreg() and member.size == entry.size else None
        if entry is None or stream is None:
            raise DatasetError(f"{source}: {shown_path(member.name)} differs from the manifest", hint="copy it again")
        with folder.draft(entry.path, sync=False) as draft:
            shutil.copyfileobj(stream, draft.file, 1 << 20)
            draft.file.seek(0)
            if sha256_of(draft.file, tell) != entry.sha256:
                raise DatasetError(f"{source}: {shown_path(member.name)} is damaged", hint="copy it again")
            draft.replace()
    if waiting:
        raise DatasetError(f"{source}: ends before {next(iter(waiting))!r}", hint="copy it again")
