"""Pages on their way to a node: as bytes, for no node has the data set; there they are files again while they are read.

An image goes with its request. A document goes once into Ray's object store, and each worker takes it from there once.
Messages of engines that name the file of the node name the driver's again.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from loupe.data.packed import packed_name, read_packed
from loupe.files.foreign import read_data
from loupe.types import DocumentPage, PackedImage, PageSource, Request

#: How folders for pages on a node are called.
NODE_FOLDER = "loupe-node-"
#: Documents of the driver that stay in the object store, and bytes of files that a node keeps for the next page.
_DOCUMENTS = 64
_KEPT = 512 << 20
#: Bytes of a piece: Ray sends arguments below 100 KB with the call. A file larger than the other goes by reference.
_PIECE, _MOST_SENT = 90_000, 4 << 20


@dataclass(frozen=True, slots=True)
class Shipped:
    """One file of a request: a key for the same content, and what the driver calls it.

    Its bytes travel beside it, in so many `pieces`, each bytes or `Stored`; 0: it cannot be read, as the engine says
    in its own words.
    """

    key: str
    shown: str
    pieces: int


@dataclass(frozen=True, slots=True)
class Stored:
    """A document in the object store. Ray leaves what stands in an object alone, so nobody fetches it for nothing."""

    reference: Any


@dataclass(slots=True)
class Packing:
    """The driver's side. `shared`: the nodes see the same files, so nothing is sent. May be used by several threads."""

    ray: Any
    shared: bool = False
    _documents: OrderedDict[str, Stored] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pack(self, request: Request) -> tuple[Request, list[Shipped], list[Any]]:
        """The request as it travels, its files, one for each of its pages, and the pieces of all of them.

        Blocks while files are read. Raises PageError for an image in a data file that cannot be read, DatasetError
        for what is no plain file.
        """
        if self.shared:
            return replace(request, images=tuple(map(_absolute, request.images))), [], []
        packed = [self._shipped(page) for page in request.images]
        return request, [file for file, _ in packed], [piece for _, pieces in packed for piece in pieces]

    def _shipped(self, page: PageSource) -> tuple[Shipped, list[Any]]:
        if isinstance(page, PackedImage):
            content = read_packed(page)
            pieces = self._cut(content)
            return Shipped(_digest(content), str(packed_name(page)), len(pieces)), pieces
        path = page.path if isinstance(page, DocumentPage) else page
        try:
            facts = path.stat()
            key = _digest(f"{path.absolute()}\0{facts.st_size}\0{facts.st_mtime_ns}".encode())
            if not isinstance(page, DocumentPage):
                pieces = self._cut(read_data(path))
                return Shipped(key, str(path), len(pieces)), pieces
            return Shipped(key, str(path), 1), [self._document(key, path)]
        except OSError:
            return Shipped(_digest(os.fsencode(path)), str(path), 0), []

    def _document(self, key: str, path: Path) -> Stored:
        with self._lock:  # Its pages are packed at the same time.
            if key not in self._documents:
                self._documents[key] = Stored(self.ray.put(read_data(path)))
            self._documents.move_to_end(key)
            while len(self._documents) > _DOCUMENTS:
                self._documents.popitem(last=False)
            return self._documents[key]

    def _cut(self, content: bytes) -> list[Any]:
        """Cut what Ray sends with a call: that costs a third of what goes through the store, but must be small."""
        if len(content) > _MOST_SENT:
            return [Stored(self.ray.put(content))]
        return [content[start : start + _PIECE] for start in range(0, len(content), _PIECE)] or [b""]


async def _fetched(reference: Any) -> bytes:
    """Return what is in Ray's object store."""
    found: bytes = await reference
    return found


@dataclass(slots=True)
class Spool:
    """The node's side: files in `folder`, those that nobody reads just now up to a limit."""

    folder: Path
    fetch: Callable[[Any], Awaitable[bytes]] = _fetched
    _laying: asyncio.Lock = field(default_factory=asyncio.Lock)
    _idle: OrderedDict[Path, int] = field(default_factory=OrderedDict)
    _used: dict[Path, int] = field(default_factory=dict)

    def hold(self, files: Sequence[Shipped]) -> dict[str, str]:
        """What the driver calls the files of a request, by their names here, where they stay until `release`."""
        names = {str(self._path(file)): file.shown for file in files}
        for path in map(Path, names):
            self._used[path] = self._used.get(path, 0) + 1
            self._idle.pop(path, None)
        return names

    async def unpack(self, request: Request, files: Sequence[Shipped], pieces: Sequence[bytes | Stored]) -> Request:
        """The request with pages of this node, whose files are held. Raises OSError where it has no room for them."""
        if not files:
            return request
        left = iter(pieces)
        for file in files:
            await self._lay_down(file, list(islice(left, file.pieces)))
        pages = map(_moved, request.images, map(self._path, files))
        return replace(request, images=tuple(pages))

    def release(self, names: Mapping[str, str]) -> None:
        """Nobody reads these files any more."""
        for path in map(Path, names):
            self._used[path] -= 1
            if not self._used[path]:
                del self._used[path]
                self._idle[path] = path.stat().st_size if path.is_file() else 0
        while sum(self._idle.values()) > _KEPT:
            oldest, _ = self._idle.popitem(last=False)
            oldest.unlink(missing_ok=True)
            with suppress(OSError):  # The same content by another name is there, too.
                oldest.parent.rmdir()

    def _path(self, file: Shipped) -> Path:
        return self.folder / file.key / Path(file.shown).name

    async def _lay_down(self, file: Shipped, pieces: Sequence[bytes | Stored]) -> None:
        path = self._path(file)
        if not pieces or path.is_file():
            return
        async with self._laying:
            if path.is_file():  # Another page of it came at the same time.
                return
            content = [await self.fetch(each.reference) if isinstance(each, Stored) else each for each in pieces]
            path.parent.mkdir(exist_ok=True)
            # Under its own name it is whole: a document that is cut off might be read without complaint.
            aside = path.parent.with_name(f"{file.key}.new")
            aside.write_bytes(b"".join(content))
            aside.rename(path)


def named_again(text: str, names: Mapping[str, str]) -> str:
    """A message with the driver's names for the files of the node."""
    for here, shown in names.items():
        text = text.replace(here, shown)
    return text


def _moved(page: PageSource, path: Path) -> PageSource:
    return replace(page, path=path) if isinstance(page, DocumentPage) else path


def _absolute(page: PageSource) -> PageSource:
    return page.absolute() if isinstance(page, Path) else replace(page, path=page.path.absolute())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:24]
