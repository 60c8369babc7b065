"""Storing predictions as they come: many waiting writers share one fsync, and nobody goes on before it."""

from __future__ import annotations

import asyncio
from types import TracebackType

import msgspec

from loupe.errors import RunError
from loupe.runs.files import RecordLog
from loupe.types import Prediction


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
    """An async front of a RecordLog: `keep` returns once the record is on the disk."""

    def __init__(self, log: RecordLog) -> None:
        self._log = log
        self._waiting: list[tuple[bytes, asyncio.Future[None]]] = []
        self._wake = asyncio.Event()
        self._closing = False

    async def __aenter__(self) -> Journal:
        self._task = asyncio.create_task(self._write())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        self._wake.set()
        await self._task
        self._log.close()

    async def keep(self, prediction: Prediction) -> None:
        """Store one prediction; what this returned from survives `kill -9`. Cancelling it does not lose the record."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((encode(prediction), written))
        self._wake.set()
        await asyncio.shield(written)

    async def _write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            batch, self._waiting = self._waiting, []
            if batch:
                try:
                    await asyncio.to_thread(self._log.append, [line for line, _ in batch])
                except OSError as error:
                    reason = f"{self._log.path}: cannot be written: {error.strerror}"
                    _settle(batch, RunError(reason, hint="make room, then repeat the same command"))
                    continue
                _settle(batch, None)
            elif self._closing:
                return
            if self._closing or self._waiting:
                self._wake.set()


def _settle(batch: list[tuple[bytes, asyncio.Future[None]]], error: RunError | None) -> None:
    for _, written in batch:
        if written.done():
            continue
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)
