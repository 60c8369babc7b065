"""Answers that exist already, by name; beyond some megabytes their texts wait in a temporary file, not in memory."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Iterator, MutableMapping
from tempfile import SpooledTemporaryFile

import msgspec

from loupe.typed import encode_json, json_decoder
from loupe.types import Prediction

#: Bytes of answers that stay in memory.
_HELD = 32 << 20


class StoredAnswers(MutableMapping[str, Prediction]):
    """Predictions by name. The file has no name and goes with this object; what is replaced stays in it till then."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=_HELD)  # noqa: SIM115  it is closed with this object
        weakref.finalize(self, self._file.close)
        self._starts = array("q", [0])
        self._numbers: dict[str, int] = {}

    def store(self, prediction: Prediction) -> int:
        """Keep an answer that has no name yet; returns its number, for `name`."""
        data = encode_json(prediction)
        self._file.seek(self._starts[-1])
        self._file.write(data)
        self._starts.append(self._starts[-1] + len(data))
        return len(self._starts) - 2

    def name(self, name: str, number: int) -> None:
        """Let an answer be that of this name, in place of the one before."""
        self._numbers[name] = number

    def __setitem__(self, name: str, prediction: Prediction) -> None:
        self.name(name, self.store(prediction))

    def __getitem__(self, name: str) -> Prediction:
        number = self._numbers[name]
        start, end = self._starts[number], self._starts[number + 1]
        self._file.seek(start)
        found = json_decoder(Prediction).decode(self._file.read(end - start))
        return msgspec.structs.replace(found, sample=name)

    def __delitem__(self, name: str) -> None:
        del self._numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, name: object) -> bool:
        return name in self._numbers
