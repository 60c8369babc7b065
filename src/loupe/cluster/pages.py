"""Pages on their way to a node: as bytes, for no node has the data set; there they are files again while they are read.

An image goes with its request, a document once through Ray's object store. Messages of engines that name the file of
the node name the driver's again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from loupe.data.packed import packed_name, read_packed
from loupe.files.foreign import read_data
from loupe.types import PackedImage, PageSource, PdfPage, Request

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

    Its bytes travel beside it, in so many `pieces`; 0: the file cannot be read, as the engine says in its own words.
    """

    key: str
    shown: str
    pieces: int


@dataclass(slots=True)
class Packing:
    """The driver's side. `shared`: the nodes see the same files, so nothing is sent."""

    ray: Any
    shared: bool = False
    _documents: OrderedDict[str, Any] = field(default_factory=OrderedDict)

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
        path = page.path if isinstance(page, PdfPage) else page
        try:
            facts = path.stat()
            key = _digest(f"{path.absolute()}\0{facts.st_size}\0{facts.st_mtime_ns}".encode())
            if not isinstance(page, PdfPage):
                pieces = self._cut(read_data(path))
                return Shipped(key, str(path), len(pieces)), pieces
            if key not in self._documents:
                self._documents[key] = self.ray.put(read_data(path))
        except OSError:
            return Shipped(_digest(os.fsencode(path)), str(path), 0), []
        self._documents.move_to_end(key)
        while len(self._documents) > _DOCUMENTS:
            self._documents.popitem(last=False)
        return Shipped(key, str(path), 1), [self._documents[key]]

    def _cut(self, content: bytes) -> list[Any]:
        """What Ray sends with a call costs the driver a third of what goes through the store, but must be small."""
        if len(content) > _MOST_SENT:
            return [self.ray.put(content)]
        return [content[start : start + _PIECE] for start in range(0, len(content), _PIECE)] or [b""]


@dataclass(slots=True)
class Spool:
    """The node's side: files in `folder`, those that nobody reads just now up to a limit."""

    folder: Path
    _idle: OrderedDict[Path, int] = field(default_factory=OrderedDict)
    _used: dict[Path, int] = field(default_factory=dict)

    def unpack(
        self, request: Request, files: Sequence[Shipped], pieces: Sequence[bytes]
    ) -> tuple[Request, dict[str, str]]:
        """The request with pages of this node, and what the driver calls their files. `release` ends their use."""
        if not files:
            return request, {}
        left = iter(pieces)
        paths = [self._file(file, list(islice(left, file.pieces))) for file in files]
        for path in set(paths):
            self._used[path] = self._used.get(path, 0) + 1
            self._idle.pop(path, None)
        pages = tuple(_moved(page, path) for page, path in zip(request.images, paths, strict=True))
        return replace(request, images=pages), {str(path): each.shown for path, each in zip(paths, files, strict=True)}

    def release(self, names: Mapping[str, str]) -> None:
        """Nobody reads these files any more."""
        for path in map(Path, names):
            self._used[path] -= 1
            if not self._used[path]:
                del self._used[path]
                self._idle[path] = path.stat().st_size if path.is_file() else 0
        while sum(self._idle.values()) > _KEPT:
            oldest, _ = self._idle.popitem(last=False)
            shutil.rmtree(oldest.parent, ignore_errors=True)

    def _file(self, file: Shipped, pieces: list[bytes]) -> Path:
        path = self.folder / file.key / Path(file.shown).name
        if pieces and not path.is_file():
            path.parent.mkdir(exist_ok=True)
            # Under its own name it is whole: a document that is cut off might be read without complaint.
            aside = path.parent.with_name(f"{file.key}.new")
            aside.write_bytes(b"".join(pieces))
            aside.rename(path)
        return path


def named_again(text: str, names: Mapping[str, str]) -> str:
    """A message with the driver's names for the files of the node."""
    for here, shown in names.items():
        text = text.replace(here, shown)
    return text


def _moved(page: PageSource, path: Path) -> PageSource:
    return replace(page, path=path) if isinstance(page, PdfPage) else path


def _absolute(page: PageSource) -> PageSource:
    return page.absolute() if isinstance(page, Path) else replace(page, path=page.path.absolute())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:24]
