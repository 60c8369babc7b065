"""`loupe data get`: a data set from the hub into the store, pinned to a commit, checked, whole or not there at all.

Files arrive in `<folder>.partial`, which becomes the folder when every file is there with the digest that the hub
lists. Its manifest holds the commit from the first moment, so a later call continues with the same one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from loupe.data.hub.api import Listing, RemoteFile, list_files
from loupe.data.hub.archives import unzip
from loupe.data.hub.fetch import Fetcher, Tally
from loupe.data.hub.manifest import (
    NAME,
    PARTS,
    FileEntry,
    Manifest,
    has_manifest,
    parse_manifest,
    read_manifest,
    write_manifest,
)
from loupe.data.hub.origin import HUB, is_download, note_download, note_origin, origin_of
from loupe.data.hub.patience import Patience
from loupe.errors import DatasetError, NoSpaceError, cannot_write, word
from loupe.files.folder import Folder
from loupe.quantities import size
from loupe.types import DataSet

#: Free space that is left alone.
SPARE = 256 * 1024**2
_SAVE_SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The files to fetch, and the way. Empty `revision`: what the manifest pins, else the data set's own branch."""

    dataset: DataSet
    root: Path
    revision: str = ""
    include: tuple[str, ...] = ()
    jobs: int = 8
    patience: Patience = field(default_factory=Patience)

    @property
    def partial(self) -> Path:
        """The folder where files arrive."""
        return self.arriving.path

    @property
    def arriving(self) -> Folder:
        """The same, to be written to."""
        return Folder(self.root.parent) / f"{self.root.name}.partial"


def survey(order: Order) -> Listing:
    """List what a `get` would have to fetch now, and nothing else; asks the hub."""
    manifest = _present(order)
    listing = _list(order, manifest)
    return Listing(listing.repo, listing.revision, tuple(_missing(order, manifest, listing)))


def get(order: Order, tally: Tally | None = None) -> Manifest:
    """Make the data set be there, whole and checked; the manifest says what it is. Asks the hub only if need be.

    Raises DatasetError; what was fetched until then stays for the next call.
    """
    tally = tally or Tally()
    present = _present(order)
    if present and is_fetched(order, present) and not _damaged(order.root, present):
        return present
    if order.root.exists() and not present and any(order.root.iterdir()):
        raise DatasetError(
            f"{order.root} exists and was not made by Loupe",
            hint=f"mv {word(order.root)} {word(order.root)}.old, or --to DIR",
        )
    with _claim(order):
        tally.note = "asking the hub"
        listing = _list(order, present)
        tally.note = ""
        missing = _missing(order, present, listing)
        manifest = _start(order, listing)
        tally.files, tally.bytes = len(missing), sum(file.size for file in missing)
        _check_space(order, missing)
        manifest = _fetch(order, manifest, missing, tally)
        tally.note = "unpacking" if _zips(order, manifest) else ""
        manifest = _unpack(order, manifest)
        return _settle(order, manifest, present)


def is_fetched(order: Order, present: Manifest) -> bool:
    """True if all that is asked for was fetched. A manifest that does not say what was asked for is of the usual files.

    Files by `--include` are asked for at the hub each time: it knows whether there are more of them.
    """
    return not order.include and (not present.patterns or set(order.dataset.patterns) <= set(present.patterns))


def is_begun(order: Order) -> bool:
    """True if only other files of the data set are there (`--include`), and none of another source."""
    if not has_manifest(order.root):
        return False
    present = read_manifest(order.root)
    return present.repo == order.dataset.repo and not is_fetched(order, present)


def _present(order: Order) -> Manifest | None:
    """The manifest of a data set that is there, if it is the one asked for."""
    if not has_manifest(order.root):
        return None
    manifest = read_manifest(order.root)
    other = manifest.repo != order.dataset.repo
    if other or order.revision not in ("", manifest.revision, manifest.requested):
        there = f"{manifest.repo or 'a folder'} at {manifest.requested or manifest.revision[:12] or 'no revision'}"
        raise DatasetError(
            f"{order.root} holds {there}", hint=f"mv {word(order.root)} {word(order.root)}.old, or --to DIR"
        )
    return manifest


def _list(order: Order, present: Manifest | None) -> Listing:
    pinned = present or _arrived(order)
    same = pinned and pinned.repo == order.dataset.repo and order.revision in ("", pinned.requested, pinned.revision)
    revision = pinned.revision if pinned and same else order.revision
    patterns = order.include
    if present and not patterns:  # a repair: whatever the manifest names
        patterns = tuple(_escaped(entry.path) for entry in (*present.files, *present.archives) if not entry.archive)
        patterns += () if is_fetched(order, present) else order.dataset.patterns
    return list_files(order.dataset, revision=revision, patterns=patterns, patience=order.patience)


def _escaped(path: str) -> str:
    import glob

    return glob.escape(path)


def _missing(order: Order, present: Manifest | None, listing: Listing) -> list[RemoteFile]:
    """Files that are not there yet, neither in the folder nor whole in the partial one."""
    there = {entry.path for entry in present.files} - set(_damaged(order.root, present)) if present else set()
    if present:
        broken = {entry.archive for entry in present.files if entry.path not in there}
        there |= {entry.path for entry in present.archives} - broken
    arrived = _arrived(order)
    if arrived and arrived.revision == listing.revision:
        there |= {entry.path for entry in arrived.files} - set(_damaged(order.partial, arrived))
        there |= {entry.path for entry in arrived.archives}
    return [file for file in listing.files if file.path not in there]


def _arrived(order: Order) -> Manifest | None:
    """Return what arrived before; None for a folder that this user's Loupe did not fill: its files were never checked.

    Raises UnsafeFileError if there is a link in its place.
    """
    try:
        manifest = parse_manifest(order.arriving.read(NAME), str(order.partial / NAME))
    except (OSError, DatasetError):
        return None
    return manifest if is_download(order.arriving, manifest.repo, manifest.revision) else None


def _damaged(root: Path, manifest: Manifest) -> list[str]:
    """Files that are missing or of another size: a look at the folder, not into the files (`verify` does that)."""
    found = []
    for entry in manifest.files:
        try:
            right = (root / entry.path).stat().st_size == entry.size
        except OSError:
            right = False
        if not right:
            found.append(entry.path)
    return found


def _start(order: Order, listing: Listing) -> Manifest:
    """The manifest in the partial folder, new or continued; from here on the commit is pinned."""
    arrived = _arrived(order)
    if arrived and arrived.revision == listing.revision and arrived.repo == listing.repo:
        gone = set(_damaged(order.partial, arrived))
        return msgspec.structs.replace(arrived, files=[item for item in arrived.files if item.path not in gone])
    # What another revision left behind would look like a part of this one.
    if arrived:
        shutil.rmtree(order.partial)
    elif order.arriving.names():
        order.arriving.move_aside()  # It may be anybody's.
    order.arriving.create()
    note_download(order.arriving, listing.repo, listing.revision)
    manifest = Manifest(
        id=order.dataset.id,
        repo=listing.repo,
        requested=order.revision or order.dataset.revision,
        revision=listing.revision,
        licence=order.dataset.licence,
        fetched=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    write_manifest(order.arriving, manifest)
    return manifest


def _check_space(order: Order, missing: Sequence[RemoteFile]) -> None:
    """Refuse before the first byte what cannot end well. A zip that is unpacked counts twice."""
    need = sum(file.size * (2 if _fits(order.dataset.unpack, file.path) else 1) for file in missing)
    parts = order.partial / PARTS
    need -= sum(path.stat().st_size for path in parts.iterdir()) if parts.is_dir() else 0
    free = shutil.disk_usage(order.partial).free
    if need > free - SPARE:
        raise NoSpaceError(
            f"{order.dataset.id} needs {size(need)} more, and {order.partial.parent} has {size(free)} free",
            hint=f"download it: loupe data get {order.dataset.id} --to /a/larger/disk, or set LOUPE_DATA",
        )


def _fetch(order: Order, manifest: Manifest, missing: Sequence[RemoteFile], tally: Tally) -> Manifest:
    """Fetch what is missing; the manifest is kept up to date meanwhile, whatever ends it."""
    saved = time.monotonic()

    def keep(entry: FileEntry) -> None:
        nonlocal saved
        manifest.files.append(entry)
        if time.monotonic() - saved >= _SAVE_SECONDS:
            write_manifest(order.arriving, manifest)
            saved = time.monotonic()

    fetcher = Fetcher(
        dataset=order.dataset,
        revision=manifest.revision,
        folder=order.arriving,
        patience=order.patience,
        tally=tally,
        jobs=order.jobs,
        keep=keep,
    )
    try:
        asyncio.run(fetcher.run(missing))
    finally:
        write_manifest(order.arriving, manifest)
    return manifest


def _zips(order: Order, manifest: Manifest) -> list[FileEntry]:
    return [entry for entry in manifest.files if _fits(order.dataset.unpack, entry.path)]


def _unpack(order: Order, manifest: Manifest) -> Manifest:
    """Unpack the zips that the data set wants unpacked; the zip itself goes, its digest stays."""
    for archive in _zips(order, manifest):
        path = order.partial / archive.path
        kept = [entry for entry in manifest.files if entry.path != archive.path]
        unpacked = unzip(path, order.arriving, taken={entry.path for entry in manifest.files})
        inside = [msgspec.structs.replace(entry, archive=archive.path) for entry in unpacked]
        path.unlink()
        manifest = msgspec.structs.replace(manifest, files=[*kept, *inside], archives=[*manifest.archives, archive])
        write_manifest(order.arriving, manifest)
    return manifest


def _settle(order: Order, manifest: Manifest, present: Manifest | None) -> Manifest:
    """The partial folder becomes the data set, or what it holds joins the one that is there."""
    asked = order.include or order.dataset.patterns
    manifest = msgspec.structs.replace(
        manifest, patterns=sorted({*asked, *((present.patterns or order.dataset.patterns) if present else ())})
    )
    manifest.files.sort(key=lambda entry: entry.path)
    shutil.rmtree(order.partial / PARTS, ignore_errors=True)
    if present is None:
        write_manifest(order.arriving, manifest)
        note_origin(order.partial, HUB)
        if order.root.exists():
            order.root.rmdir()  # empty, as was checked
        order.partial.rename(order.root)
        return manifest
    for entry in manifest.files:
        order.arriving.move(entry.path, Folder(order.root), entry.path)
    new = {entry.path for entry in (*manifest.files, *manifest.archives)}
    both = msgspec.structs.replace(
        present,
        patterns=manifest.patterns,
        files=sorted(
            [*(entry for entry in present.files if entry.path not in new), *manifest.files],
            key=lambda entry: entry.path,
        ),
        archives=[*(entry for entry in present.archives if entry.path not in new), *manifest.archives],
    )
    was_fetched = origin_of(order.root) == HUB
    write_manifest(Folder(order.root), both)
    if was_fetched:  # New files do not prove where the others came from.
        note_origin(order.root, HUB)
    shutil.rmtree(order.partial)
    return both


@contextmanager
def _claim(order: Order) -> Iterator[None]:
    """Only one process fills a folder at a time; the system drops the lock of one that dies."""
    import fcntl

    lock = Folder(order.root.parent).open_lock(f".{order.root.name}.lock")
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DatasetError(
                f"{order.root}: another process is fetching it", hint="wait for it; both would fetch the same files"
            ) from None
        except OSError as error:
            raise cannot_write(order.root, error) from None
        order.arriving.create()
        try:
            yield
        finally:
            if order.arriving.exists() and not order.arriving.names():
                order.arriving.remove_empty()
    finally:
        os.close(lock)


def _fits(globs: Sequence[str], path: str) -> bool:
    import fnmatch

    return any(fnmatch.fnmatchcase(path, glob) for glob in globs)


def _elsewhere(order: Order) -> str:
    return f"mv {word(order.root)} {word(order.root)}.old, or --to DIR"
