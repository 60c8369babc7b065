"""Storing predictions as they come: many waiting writers share one fsync, and nobody goes on before it."""

from __future__ import annotations

import asyncio
import threading
from queue import SimpleQueue
from types import TracebackType
from typing import TypeAlias

from loupe.errors import WriteError, in_words
from loupe.files.json_lines import RecordLog
from loupe.typed import encode_json
from loupe.types import Prediction

#: A line, and who waits for it.
Waiting: TypeAlias = "tuple[bytes, asyncio.Future[None]]"


class Journal:
    """An async front of a RecordLog: `keep` returns once the record is on the disk. A thread of its own writes.

    Without `sync`, for what nobody continues, it is on the disk when the system likes, and no thread writes.
    """

    def __init__(self, log: RecordLog, *, sync: bool = True) -> None:
        self._log = log
        self._sync = sync
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

    async def keep(self, prediction: Prediction) -> None:
        """Store one prediction; what this returned from survives `kill -9`. Cancelling it does not lose the record.

        Raises WriteError if it cannot be written.
        """
        if not self._sync:
            self._log.append([encode_json(prediction)], sync=False)
            return
        written: asyncio.Future[None] = self._loop.create_future()
        self._waiting.put((encode_json(prediction), written))
        await written

    def _write(self) -> None:
        """Take all that wait, write them with one fsync, tell those who wait; until None comes.

        The log is closed here: whoever waits for this thread may be cancelled meanwhile.
        """
        self._error: WriteError | None = None
        with self._log:
            while self._write_those_who_wait(self._waiting.get()):
                pass

    def _write_those_who_wait(self, first: Waiting | None) -> bool:
        """Write one batch, of which nothing is held afterwards; False after the last one."""
        batch, item = [], first
        while item is not None:
            batch.append(item)
            if self._waiting.empty():
                break
            item = self._waiting.get()
        # After a failed write nothing more is tried: what the disk holds then is not ours to guess.
        if batch and self._error is None:
            try:
                self._log.append(line for line, _ in batch)
            except Exception as error:  # noqa: BLE001 - the border of a thread: whoever waits would wait for ever
                self._error = self._said(error)
        # The thread of the loop may get to it later than the next batch is written: it needs no lines.
        self._loop.call_soon_threadsafe(_settle, [written for _, written in batch], self._error)
        return item is not None

    def _said(self, error: Exception) -> WriteError:
        if isinstance(error, WriteError):
            return error
        what = in_words(error)
        return WriteError(f"{self._log.path} cannot be written: {what}", hint="finished samples are kept; try again")


def _settle(waiting: list[asyncio.Future[None]], error: WriteError | None) -> None:
    for written in waiting:
        if written.done():
            continue
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)
