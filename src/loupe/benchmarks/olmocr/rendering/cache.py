"""Drawings on disk, so that an equation is drawn once on a machine, whoever asks: a SQLite file in the user's cache.

A cache may fail: whatever SQLite says (no room, no locks, a damaged file), equations are then drawn again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from loupe.benchmarks.olmocr.rendering.drawing import Drawing

#: A file that has grown beyond this is begun anew.
_LARGEST_FILE = 2 << 30
_LARGEST_DRAWING = 64 << 20
_PATIENCE_SECONDS = 20.0
#: Keys that one statement asks for.
_ASKED = 500


class DrawingCache:
    """Drawings by renderer, equation and whether they are measured. Any thread may ask; processes share the file."""

    def __init__(self, path: Path, renderer: str) -> None:
        self._path = path
        self._renderer = renderer
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._process = 0

    def find(self, equations: Iterable[str], *, measured: bool) -> dict[str, Drawing]:
        """Those of the equations that were drawn before."""
        keys = {self._key(equation, measured): equation for equation in equations}
        found: dict[str, Drawing] = {}
        with self._lock, contextlib.suppress(sqlite3.Error, OSError):
            connection = self._open()
            asked = list(keys)
            for start in range(0, len(asked), _ASKED):
                some = asked[start : start + _ASKED]
                marks = ",".join("?" * len(some))
                for key, packed in connection.execute(
                    f"SELECT key, drawing FROM drawings WHERE key IN ({marks})", some
                ):
                    drawing = _unpacked(packed)
                    if drawing is not None:
                        found[keys[key]] = drawing
        return found

    def keep(self, drawings: Mapping[str, Drawing], *, measured: bool) -> None:
        """Remember drawings, also of equations that KaTeX refuses; not what the browser was lost over."""
        rows = [(self._key(each, measured), _packed(drawing)) for each, drawing in drawings.items() if not drawing.lost]
        with self._lock, contextlib.suppress(sqlite3.Error, OSError):
            connection = self._open()
            with connection:
                connection.executemany("INSERT OR REPLACE INTO drawings VALUES (?, ?)", rows)

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _key(self, equation: str, measured: bool) -> bytes:
        text = f"{self._renderer}\0{'measured' if measured else 'looked at'}\0{equation}"
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

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
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS drawings (key BLOB PRIMARY KEY, drawing BLOB NOT NULL) WITHOUT ROWID"
            )
            connection.commit()
        except sqlite3.Error:
            connection.close()
            raise
        return connection


def _packed(drawing: Drawing) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(drawing), 1)


def _unpacked(packed: bytes) -> Drawing | None:
    """The drawing, or None for bytes that are none."""
    try:
        return msgspec.msgpack.decode(zlib.decompressobj().decompress(packed, _LARGEST_DRAWING), type=Drawing)
    except (zlib.error, msgspec.DecodeError):
        return None
