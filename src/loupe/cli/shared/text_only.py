"""Standard output and standard error as everything here sees them: nothing but text passes, and no text crashes them.

Whatever writes to `sys.stdout` or `sys.stderr` (click's help and prompts, warnings, tracebacks, logging, packages) goes
through `printable`. Our own colours and cursor movements take the only way around it, `unguarded`; `output.py` does so.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, TextIO, cast

from loupe.results.control_characters import printable

#: Only `output.py` begins a line with one of our labels; it goes around the guard.
_LABEL = re.compile(r"^(?=(?:error|hint):)", re.MULTILINE)
#: What happens to characters that the encoding of a stream does not have.
_OUTLIVE = "loupe.outlive"


class Guarded:
    """A stream that writes printable text only."""

    def __init__(self, stream: TextIO) -> None:
        self.unguarded = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)

    def write(self, text: str) -> int:
        """Write the text, without what steers a terminal, and no line of it like one of our errors or hints."""
        self.unguarded.write(_LABEL.sub("  ", printable(text)))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write the lines, without what steers a terminal."""
        for line in lines:
            self.write(line)


@contextmanager
def guarded() -> Iterator[None]:
    """Guard both streams in this block; standard output only where it is a terminal: data in a pipe stays exact."""
    before = sys.stdout, sys.stderr
    for stream in before:
        _never_fails(stream)
    if sys.stdout.isatty():
        sys.stdout = cast(TextIO, Guarded(sys.stdout))
    sys.stderr = cast(TextIO, Guarded(sys.stderr))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def unguarded(stream: TextIO) -> TextIO:
    """The stream without its guard: for text that is printable already, and what we put around it."""
    return stream.unguarded if isinstance(stream, Guarded) else stream


def _never_fails(stream: TextIO) -> None:
    """Names of files keep their bytes, whatever they are; other characters that cannot be encoded become `?`."""
    codecs.register_error(_OUTLIVE, _outlive)
    if isinstance(stream, TextIOWrapper):
        # A locale that has only ASCII is one that nobody has set.
        encoding = "utf-8" if codecs.lookup(stream.encoding).name == "ascii" else None
        stream.reconfigure(encoding=encoding, errors=_OUTLIVE)


def _outlive(error: UnicodeError) -> tuple[bytes, int]:
    assert isinstance(error, UnicodeEncodeError)
    codes = map(ord, error.object[error.start : error.end])
    return b"".join(bytes([code - 0xDC00]) if 0xDC80 <= code <= 0xDCFF else b"?" for code in codes), error.end
