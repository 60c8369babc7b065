"""Digests of the files that an engine answers from: a run is not continued with other answers or another program."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from loupe.data.digests import file_digest


def short_digest(files: Iterable[Path], *, below: Path | None = None) -> str:
    """Sixteen hex digits over the content of files in this order, and over their names `below` a folder."""
    digest = hashlib.sha256()
    for file in files:
        name = file.relative_to(below).as_posix() if below else ""
        digest.update(f"{name}\0{file_digest(file)}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:16]
