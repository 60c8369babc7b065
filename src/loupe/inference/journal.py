"""Storing predictions as they come: many waiting writers share one fsync, and nobody goes on before it."""

from __future__ import annotations

import asyncio
import threading
from queue import SimpleQueue
from types import TracebackType
from typing import TypeAlias

import msgspec

from loupe.errors import WriteError
from loupe.runs.files import RecordLog
from loupe.types import Prediction

#: A line, and who waits for it.
Waiting: TypeAlias = "tuple[bytes, asyncio.Future[None]]"


def encode(prediction: Prediction) -> bytes:
    """One line of `predictions.jsonl`. Lone surrogates, which no file can hold, become U+FFFD."""
    try:
        return msgspec.json.encode(prediction)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(prediction)
        return msgspec.json.encode({key: _storable(value) for key, value in plain.items()})


def _storable(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {str(_storable(key)): _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list) else value


class Journal:
    """An async front of a RecordLog: `keep` returns once the record is on the disk. A thread of its own writes."""

    def __init__(self, log: RecordLog) -> None:
        self._log = log
        self._waiting: SimpleQueue[Waiting | None] = SimpleQueue()

    async def __aenter__(self) -> Journal:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._write, name="loupe-journal")
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting.put(None)
        await asyncio.to_thread(self._thread.join)
        self._log.close()

    async def keep(self, prediction: Prediction) -> None:
        """Store one prediction; what this returned from survives `kill -9`. Cancelling it does not lose the record.

        Raises WriteError if it cannot be written.
        """
        written: asyncio.Future[None] = self._loop.create_future()
        self._waiting.put((encode(prediction), written))
        await written

    def _write(self) -> None:
        """Take all that wait, write them with one fsync, tell those who wait; until None comes."""
        error: WriteError | None = None
        while (first := self._waiting.get()) is not None:
            batch, last = [first], False
            while not self._waiting.empty() and not last:
                item = self._waiting.get()
                last = item is None
                if item is not None:
                    batch.append(item)
            # After a failed write nothing more is tried: what the disk holds then is not ours to guess.
            if error is None:
                try:
                    self._log.append(line for line, _ in batch)
                except WriteError as refused:
                    error = refused
            self._loop.call_soon_threadsafe(_settle, batch, error)
            if last:
                return


def _settle(batch: list[Waiting], error: WriteError | None) -> None:
    for _, written in batch:
        if written.done():
            continue
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)
