"""What a server wrote before it died, and what that means for the person who started it.

Source: protocols/engines.md A3 (markers after which nothing helps), C2 (hints).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from loupe.engines.shared.http_failures import FATAL_MARKERS
from loupe.servers.templates import Template

#: Lines that are shown of a server that ended without a message that we know.
LAST_LINES = 50
#: Bytes at the end of a log that are looked at.
_TAIL = 256 << 10
_FATAL = re.compile("|".join([*map(re.escape, FATAL_MARKERS), "detected errors during sampling"]), re.I)
#: What stands in a log → what to do; the first that is found counts.
_KNOWN = (
    (r"address already in use", "the port is taken: --server-port auto"),
    (r"trust[_-]remote[_-]code", "--server-arg=--trust-remote-code, if you trust the model's own code"),
    (r"gated repo|401 client error|access to model .{1,200} is restricted", "export HF_TOKEN=TOKEN"),
    (r"unrecognized arguments?:|invalid argument:|unknown option|no such option", "see the server's own --help"),
    (
        r"no such file or directory|repository not found|does not appear to have a file|is not a local folder",
        "check the name of the model",
    ),
)


def size(log: Path) -> int:
    """How long the log is now."""
    return log.stat().st_size if log.exists() else 0


def fatal_line(log: Path, start: int = 0) -> str:
    """The line after which the server answers nothing sensible (out of GPU memory), "" if there is none.

    Only what was written after the first `start` bytes counts.
    """
    return next((line for line in _lines(log, start) if _FATAL.search(line)), "")


def last_lines(log: Path, start: int = 0) -> str:
    """The end of the log, indented."""
    return "\n".join(f"  {line}" for line in _lines(log, start)[-LAST_LINES:] if line.strip())


def explain(log: Path, start: int, template: Template) -> tuple[str, str]:
    """The line of the log that says why the server ended, and what to do; both "" where we know none."""
    if fatal := fatal_line(log, start):
        return fatal, memory_hint(template)
    lines = _lines(log, start)
    for pattern, hint in _KNOWN:
        for line in reversed(lines):
            if re.search(pattern, line, re.I):
                return line, hint
    return "", ""


def memory_hint(template: Template) -> str:
    """What helps where memory ran out."""
    return f"less memory: {template.memory}"


def _lines(log: Path, start: int) -> list[str]:
    """The last lines of the log, each bounded: progress bars are one line without an end."""
    try:
        with log.open("rb") as file:
            end = file.seek(0, os.SEEK_END)
            # A log that became shorter was written anew.
            file.seek(max(start if start <= end else 0, end - _TAIL))
            text = file.read(_TAIL).decode(errors="replace")
    except OSError:
        return []
    return [line.strip()[:300] for line in re.split(r"[\r\n]+", text)]
