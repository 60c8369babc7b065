"""Every error that Loupe raises on purpose: what happened, on what, and a hint that can be pasted into a shell.

Library code raises; only `cli/` prints. `exit_code` is what the command ends with when the error reaches it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Literal


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'run'?` where one known name is near, else nothing: the end of a message about a wrong name."""
    import difflib  # not needed unless something is wrong

    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.65)
    return f"; did you mean {close[0]!r}?" if close else ""


class LoupeError(Exception):
    """Root of the family. `message` says what is wrong and where, `hint` what to do about it."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(LoupeError):
    """The user asked for something that does not exist or does not fit together."""


class ProfileError(UsageError):
    """An engine profile has an unknown key or a value of the wrong type."""


class UntrustedError(UsageError):
    """A file of a folder would run something or send pages somewhere, and the user has not trusted it: `file`."""

    def __init__(self, file: Path, effects: str) -> None:
        target = file if file.suffix == ".py" else file.parent
        super().__init__(
            f"{file} is not trusted as it is now, so it is not used: {effects}",
            hint=f"read it; if you trust it: loupe trust {shlex.quote(str(target))}",
        )
        self.file = file


class DatasetError(LoupeError):
    """Data is missing, broken or not in the layout that the benchmark expects."""


class PageError(DatasetError):
    """One page image or PDF page cannot be read (broken, encrypted, empty, too large)."""


class RunError(LoupeError):
    """A run folder is missing, damaged, locked, or belongs to other settings."""


class UnsafeFileError(RunError, DatasetError):
    """A link, a pipe, a device or a file without bounds stands where a folder should hold a plain file of its own.

    Whoever copes with a damaged run or broken data copes with this.
    """


class MissingToolError(LoupeError):
    """A program or an extra that this needs is not installed; the hint installs it."""

    exit_code = 4


class EngineError(LoupeError):
    """An engine failed on one sample (class `error`)."""


class TransientEngineError(EngineError):
    """A failure that may pass (connection, 5xx): retried. `rate` marks 429 and 503 with Retry-After."""

    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None, rate: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after
        self.rate = rate


class EngineTimeoutError(EngineError):
    """No full answer within the time limit of the request (class `timeout`)."""


class RejectedError(EngineError):
    """The engine refused this request for good: 400, 404, 413, 422 (class `rejected`)."""


def outcome_of(error: LoupeError) -> Literal["timeout", "rejected", "error"]:
    """The class of a sample that ended with this error (engines.md A3)."""
    if isinstance(error, EngineTimeoutError):
        return "timeout"
    return "rejected" if isinstance(error, RejectedError) else "error"


class EngineUnavailableError(EngineError):
    """The engine as a whole cannot go on (401/403, GPU out of memory, dead server): the run stops, resumable."""

    exit_code = 4


class AccountError(EngineUnavailableError):
    """The server refuses the key, or its quota is used up: nothing more is asked, what is in flight may be answered."""
