"""Fetching files of the hub: several at a time, resumed where they were cut, and checked before they get their name.

Why not `hf_hub_download`: observed with huggingface_hub 2.4.0 (docs/data.md), it accepts wrong content of
the right size, gives up at once on 503, and throws away what it has when a call fails. A part stays here under the
digest of its file, so that the next call, or the next process, continues it.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from loupe.data.certificates import check_tls, open_client
from loupe.data.hub.api import RemoteFile, file_url, refused, request_headers
from loupe.data.hub.manifest import PARTS, FileEntry
from loupe.data.hub.patience import PASSING, Patience, retry_after_seconds
from loupe.errors import DownloadError, cannot_write
from loupe.files.folder import Folder
from loupe.types import DataSet

if TYPE_CHECKING:
    import aiohttp

_PIECE = 1 << 20


@dataclass(slots=True)
class Tally:
    """The progress of a download: plain counters that a display polls."""

    files: int = 0
    bytes: int = 0
    files_done: int = 0
    bytes_done: int = 0
    resumed: int = 0
    retries: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetcher:
    """Everything that fetching the files of one data set at one commit needs. `keep` hears of every finished file."""

    dataset: DataSet
    revision: str
    folder: Folder
    patience: Patience
    tally: Tally
    jobs: int
    keep: Callable[[FileEntry], None]

    async def run(self, files: Iterable[RemoteFile]) -> None:
        """Fetch all of them. Raises DatasetError or WriteError at the first that cannot be had or kept; parts stay."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self.patience.connect, sock_read=self.patience.silence)
        waiting = iter(files)
        (self.folder / PARTS).create()
        async with open_client(
            headers=request_headers(), timeout=timeout, trust_env=True, auto_decompress=False
        ) as session:
            try:
                async with asyncio.TaskGroup() as group:
                    for _ in range(self.jobs):
                        group.create_task(self._work(session, waiting))
            except BaseExceptionGroup as errors:
                # Not `except*`: what is raised in there comes out in a group again before Python 3.11.4.
                raise first_leaf(errors) from None

    async def _work(self, session: aiohttp.ClientSession, waiting: Iterator[RemoteFile]) -> None:
        for file in waiting:
            sha256 = await self._one(session, file)
            self.keep(FileEntry(path=file.path, size=file.size, sha256=sha256))
            self.tally.files_done += 1

    async def _one(self, session: aiohttp.ClientSession, file: RemoteFile) -> str:
        """Fetch one file, whatever passes in between; its sha256."""
        part = f"{PARTS}/{file.sha256 or file.sha1}-{hashlib.sha1(file.path.encode()).hexdigest()[:8]}"
        attempt, furthest = 0, -1
        while True:
            try:
                return await self._attempt(session, file, part)
            except _PassingError as error:
                # Only what was never reached before counts as progress; wrong content that comes again does not.
                reached = max(error.reached, furthest)
                attempt, furthest = (1 if reached > furthest >= 0 else attempt + 1), reached
                pause = self.patience.pause(attempt, error.retry_after)
                if pause is None:
                    raise DownloadError(
                        f"{self.dataset.repo}: {file.path}: {error} ({attempt} attempts)",
                        hint="the same command continues where this one stopped",
                    ) from None
                self.tally.retries += 1
                self.tally.note = f"{file.path}: {error}; again in {pause:.0f} s"
                await asyncio.sleep(pause)
                self.tally.note = ""

    async def _attempt(self, session: aiohttp.ClientSession, file: RemoteFile, part: str) -> str:
        import aiohttp

        download = _Part(self.folder, part, file, self.tally)
        whole = False
        try:
            with download.open() as stream:
                if download.length < file.size:
                    await self._stream(session, download, stream)
            sha256 = download.finish()
            whole = True
            return sha256
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            check_tls(error, "the hub", DownloadError)
            why = "the server fell silent" if isinstance(error, TimeoutError) else "the connection broke"
            raise _PassingError(why, reached=download.length) from None
        except OSError as error:
            raise cannot_write(self.folder.path / part, error) from None
        finally:
            # The next attempt counts again what it finds on disk.
            self.tally.bytes_done -= 0 if whole else download.length

    async def _stream(self, session: aiohttp.ClientSession, download: _Part, stream: BinaryIO) -> None:
        """One GET, of all of the file or of what is missing of it."""
        url = file_url(self.dataset.repo, self.revision, download.file.path)
        offset = download.length
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        # Interim answers (HTTP 100) are not silence, but no answer either.
        async with asyncio.timeout(self.patience.connect + self.patience.silence):
            response = await session.get(url, headers=headers)
        async with response:
            if response.status == 416:
                download.discard(stream)
                raise _PassingError("the server has less than is here already", reached=offset)
            if response.status in PASSING:
                wait = retry_after_seconds(response.headers.get("Retry-After"))
                raise _PassingError(f"HTTP {response.status}", reached=offset, retry_after=wait)
            if response.status not in (200, 206):
                raise refused(self.dataset, response.status)
            if response.status == 206 and _start_of(response.headers.get("Content-Range")) != offset:
                raise _PassingError("the server answered with another part of the file", reached=offset)
            if response.status == 200 and offset:
                download.discard(stream)
            elif offset:
                self.tally.resumed += 1
            async for piece in response.content.iter_chunked(_PIECE):
                download.write(stream, piece)


class _PassingError(Exception):
    """A failure that may pass; `reached` is how many bytes were there when it happened."""

    def __init__(self, message: str, *, reached: int, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.reached = reached
        self.retry_after = retry_after


@dataclass(slots=True)
class _Part:
    """An unfinished file on disk and the digest of what is there."""

    folder: Folder
    name: str
    file: RemoteFile
    tally: Tally
    length: int = 0
    sha256: hashlib._Hash = field(init=False)
    sha1: hashlib._Hash = field(init=False)

    def __post_init__(self) -> None:
        self._reset()

    def open(self) -> BinaryIO:
        """The file, at its end; what is there already is hashed."""
        stream, _ = self.folder.open_appending(self.name)
        stream.seek(0)
        while piece := stream.read(_PIECE):
            self._take(piece)
        if self.length > self.file.size:
            self.discard(stream)
        return stream

    def write(self, stream: BinaryIO, piece: bytes) -> None:
        """Append a piece; more than the file should have is a wrong answer."""
        if self.length + len(piece) > self.file.size:
            reached = self.length
            self.discard(stream)
            raise _PassingError("the server sent too much", reached=reached)
        rest = memoryview(piece)
        while rest:
            rest = rest[stream.write(rest) :]
        self._take(piece)

    def discard(self, stream: BinaryIO) -> None:
        """Start over."""
        stream.seek(0)
        stream.truncate()
        self.tally.bytes_done -= self.length
        self._reset()

    def finish(self) -> str:
        """Give the whole file its name, if its content is what the hub promised; its sha256."""
        if self.length < self.file.size:
            raise _PassingError("the connection broke", reached=self.length)
        right = self.sha256.hexdigest() == self.file.sha256 if self.file.sha256 else self._is_blob()
        if not right:
            self.folder.remove(self.name)
            raise _PassingError("its content is not what the hub lists", reached=self.length)
        self.folder.move(self.name, self.folder, self.file.path)
        return self.sha256.hexdigest()

    def _is_blob(self) -> bool:
        return not self.file.sha1 or self.sha1.hexdigest() == self.file.sha1

    def _reset(self) -> None:
        self.length = 0
        self.sha256 = hashlib.sha256()
        self.sha1 = hashlib.sha1(b"blob %d\0" % self.file.size, usedforsecurity=False)

    def _take(self, piece: bytes) -> None:
        self.length += len(piece)
        self.tally.bytes_done += len(piece)
        self.sha256.update(piece)
        if not self.file.sha256:
            self.sha1.update(piece)


def first_leaf(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error that stopped a group of tasks."""
    error = group.exceptions[0]
    return first_leaf(error) if isinstance(error, BaseExceptionGroup) else error


def _start_of(content_range: str | None) -> int | None:
    found = re.match(r"bytes (\d{1,18})-", content_range or "")
    return int(found[1]) if found else None
