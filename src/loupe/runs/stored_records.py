"""The records of a file of JSON lines as a sequence, of which only the places are in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

import msgspec

from loupe.files.folder import Folder
from loupe.files.json_lines import read_lines
from loupe.typed import json_decoder

Record = TypeVar("Record", bound=msgspec.Struct)


class StoredRecords(Sequence[Record]):
    """Each whole line of a file, in order, read anew whenever it is looked at; the file must stay as it is.

    Raises msgspec.DecodeError, on looking, for a line that is no such record.
    """

    def __init__(self, folder: Folder, name: str, kind: type[Record]) -> None:
        self._folder, self._name, self._kind = folder, name, kind
        self._offsets = array("q", (offset for _, offset, _ in read_lines(folder, name)))

    def __len__(self) -> int:
        return len(self._offsets)

    def __iter__(self) -> Iterator[Record]:
        decoder = json_decoder(self._kind)
        return (decoder.decode(line) for _, _, line in read_lines(self._folder, self._name))

    @overload
    def __getitem__(self, index: int) -> Record: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Record]: ...

    def __getitem__(self, index: int | slice) -> Record | Sequence[Record]:
        with self._folder.open(self._name) as file:

            def at(offset: int) -> Record:
                file.seek(offset)
                return json_decoder(self._kind).decode(file.readline())

            return list(map(at, self._offsets[index])) if isinstance(index, slice) else at(self._offsets[index])
