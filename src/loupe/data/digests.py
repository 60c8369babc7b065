"""Compute digests of what a run reads: pages, and the files that an engine answers from.

So two runs can prove that they read the same pages, and a run is not continued with other answers or another program.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

from loupe.types import DocumentPage, PackedImage, PageSource


def file_digest(path: Path) -> str:
    """sha256 of a file's bytes, or "missing" where there is none (the sample then fails on its own)."""
    if not path.is_file():  # A pipe or a device has no end.
        return "missing"
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return "missing"


def is_there(source: PageSource) -> bool:
    """True if the file that a page is read from is there."""
    return (source if isinstance(source, Path) else source.path).is_file()


def source_digest(source: PageSource) -> str:
    """Identifies what a page is read from. A document or data file is hashed once, however many pages it holds."""
    if isinstance(source, DocumentPage):
        return f"{_container_digest(source.path)}#{source.page}"
    if isinstance(source, PackedImage):
        return f"{_container_digest(source.path)}#{source.member}"
    return file_digest(source)


def drawn_digest(source: PageSource) -> str:
    """The same of a page that its benchmark draws when it is needed: its name is its digest (`Benchmark.draw`)."""
    return (source if isinstance(source, Path) else source.path).name


def _container_digest(path: Path) -> str:
    try:
        facts = path.stat()
    except OSError:
        return "missing"
    return _digest_of_version(path, facts.st_mtime_ns, facts.st_size)


@functools.lru_cache(maxsize=256)
def _digest_of_version(path: Path, modified: int, size: int) -> str:
    return file_digest(path)


def short_digest(files: Iterable[Path], *, below: Path | None = None) -> str:
    """Sixteen hex digits over the content of files in this order, and over their names `below` a folder."""
    digest = hashlib.sha256()
    for file in files:
        name = file.relative_to(below).as_posix() if below else ""
        digest.update(f"{name}\0{file_digest(file)}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]
