"""Bytes kept on disk by key, for what is slow to draw and may be drawn again: a SQLite file that processes share.

A cache may fail: whatever SQLite says (no room, no locks, a damaged file), nothing is found and nothing is kept.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

#: A file that has grown beyond this many bytes is begun anew.
_LARGEST_FILE: Final = 2 << 30
_PATIENCE_SECONDS: Final = 60.0
#: Keys that one statement asks for.
_ASKED: Final = 500


class BlobCache:
    """Blobs by key. Any thread may ask; each process opens the file for itself."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    def find(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Those of the keys that have a blob."""
        found: dict[bytes, bytes] = {}
        with self._lock, contextlib.suppress(sqlite3.Error, OSError):
            connection = self._open()
            for start in range(0, len(keys), _ASKED):
                some = keys[start : start + _ASKED]
                marks = ",".join("?" * len(some))
                found |= dict(connection.execute(f"SELECT key, blob FROM blobs WHERE key IN ({marks})", some))
        return found

    def keep(self, blobs: Mapping[bytes, bytes]) -> None:
        """Remember these."""
        with self._lock, contextlib.suppress(sqlite3.Error, OSError):
            connection = self._open()
            with connection:
                connection.executemany("INSERT OR REPLACE INTO blobs VALUES (?, ?)", blobs.items())

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        # Python 3.13 warns of a connection that is dropped open; `os` may be gone when Python itself ends.
        if os is not None:
            self.close()

    def _open(self) -> sqlite3.Connection:
        """The connection of this process. The lock is held."""
        if self._connection is None or self._process != os.getpid():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.is_file() and self._path.stat().st_size > _LARGEST_FILE:
                self._path.unlink()
            try:
                self._connection = self._connected()
            except sqlite3.DatabaseError as error:
                if isinstance(error, sqlite3.OperationalError):
                    raise
                self._path.unlink(missing_ok=True)
                self._connection = self._connected()
            self._process = os.getpid()
        return self._connection

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_PATIENCE_SECONDS, check_same_thread=False)
        try:
            # What is lost with a power cut is drawn again: not worth waiting for the disk.
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS blobs (key BLOB PRIMARY KEY, blob BLOB NOT NULL) WITHOUT ROWID"
            )
            connection.commit()
        except sqlite3.Error:
            connection.close()
            raise
        return connection
