"""Every error that Loupe raises on purpose: what happened, on what, and a hint that can be pasted into a shell.

Library code raises; only `cli/` prints. `exit_code` is what the command ends with when the error reaches it.
"""

from __future__ import annotations

import errno
import shlex
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

_ROOM = "make room there (df -h) and repeat the command; answers already stored are kept"
_ELSEWHERE = "make the folder writable, or write to another one"
_DISK = "check the disk or its mount and repeat the command; answers already stored are kept"
#: What a system says when it does not write: the reason in words, and what to do.
_REFUSALS = {
    errno.ENOSPC: ("the disk is full", _ROOM),
    errno.EDQUOT: ("your quota on this disk is used up", _ROOM),
    errno.EFBIG: ("the file would be larger than the system allows", "a larger limit (ulimit -f) or another disk"),
    errno.EROFS: ("the disk is read-only", _ELSEWHERE),
    errno.EACCES: ("permission denied", _ELSEWHERE),
    errno.EPERM: ("permission denied", _ELSEWHERE),
    errno.EIO: ("the disk reports a fault", _DISK),
    errno.ESTALE: ("the network disk has lost the file", _DISK),
    errno.ENOLCK: ("this disk cannot lock files", "turn on locks in its mount, or write to a local disk"),
    errno.EMFILE: ("too many files are open", "raise the limit (ulimit -n 8192), or ask for less at once"),
    errno.ENFILE: ("too many files are open on this machine", "close other programs and try again"),
}

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE)


#: Names are compared up to this length, and this many: the comparison takes the product of the lengths.
_LONGEST_NAME, _MOST_NAMES = 200, 5000


def in_words(error: BaseException) -> str:
    """Describe an exception by its type and its own words; by its type alone if it cannot even say them.

    >>> in_words(ValueError("too small")), in_words(MemoryError())
    ('ValueError: too small', 'MemoryError')
    """
    try:
        return f"{type(error).__name__}: {error}".rstrip(": ")
    except Exception:  # noqa: BLE001 - the border to somebody else's __str__
        return type(error).__name__


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'run'?` where one known name is near, else nothing: the end of a message about a wrong name."""
    near = nearest(name, known)
    return f"; did you mean {near!r}?" if near else ""


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like this one; "" where none is near."""
    import difflib  # not needed unless something is wrong

    if len(name) > _LONGEST_NAME:
        return ""
    near = [each for each in islice(known, _MOST_NAMES) if len(each) <= _LONGEST_NAME]
    return next(iter(difflib.get_close_matches(name, near, n=1, cutoff=0.65)), "")


def completed(name: str, known: Iterable[str]) -> str:
    """The one known name that begins as `name` does, whatever the case and the signs between letters; else `name`.

    >>> completed("OmniDoc", ["omnidocbench", "ocrbench"])
    'omnidocbench'
    """
    begin = _letters(name)
    found = beginning(name, known) if len(begin) > 1 else []
    exact = [each for each in found if _letters(each) == begin]
    return next(iter(exact or found)) if len(exact or found) == 1 else name


def beginning(name: str, known: Iterable[str]) -> list[str]:
    """The known names that begin as `name` does, whatever the case and the signs between letters."""
    begin = _letters(name)
    return [each for each in known if _letters(each).startswith(begin)] if begin else []


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name[:_LONGEST_NAME])).casefold()


def word(value: object) -> str:
    """A word of a command in a hint: pasted into a shell it stays one word, whatever a stranger called a file."""
    return shlex.quote(str(value))


class LoupeError(Exception):
    """Root of the family. `message` says what is wrong and where, `hint` what to do about it.

    If there are several single things that are wrong, they are `listed`, and each is shown on a line of its own below
    the `summary`.
    """

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "", listed: Sequence[str] = ()) -> None:
        super().__init__("\n  ".join([message, *listed]))
        self.summary = message
        self.listed = tuple(listed)
        self.hint = hint

    @property
    def message(self) -> str:
        """The fault and its place, with all that is listed, in one line."""
        return f"{self.summary} {'; '.join(self.listed)}" if self.listed else self.summary

    def rewrite(self, change: Callable[[str], str]) -> None:
        """Change every text of the error, such as a path or a key in it."""
        self.summary, self.hint = change(self.summary), change(self.hint)
        self.listed = tuple(map(change, self.listed))
        self.args = ("\n  ".join([self.summary, *self.listed]),)

    @property
    def hint(self) -> str:
        """The hint what to do about it. Python shows it below the message in a traceback."""
        return self._hint

    @hint.setter
    def hint(self, hint: str) -> None:
        self._hint = hint
        self.__notes__ = [f"hint: {hint}"] if hint else []


class UsageError(LoupeError):
    """The user asked for something that does not exist or does not fit together."""


class ProfileError(UsageError):
    """An engine profile has an unknown key or a value of the wrong type."""


class UntrustedError(UsageError):
    """A file of a folder would run something or send pages somewhere, and the user has not trusted it: `file`."""

    def __init__(self, file: Path, effects: str, *, changed: bool = False) -> None:
        target = file.parent if file.name == "loupe.toml" else file
        why = "has changed since you trusted it" if changed else "is not trusted"
        super().__init__(
            f"{file} {why}, so it is not used: {effects}",
            hint=f"read it; if you trust it: loupe trust {word(target)}",
        )
        self.file = file


class DatasetError(LoupeError):
    """Data is missing, broken or not in the layout that the benchmark expects."""


class DownloadError(DatasetError):
    """A hub, registry or index cannot be reached or gives up. The same command may succeed later."""

    exit_code = 4


class NoSpaceError(DatasetError):
    """The disk has less room than data will take, which is known before the first byte is written."""

    exit_code = 5


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


class WriteError(LoupeError, OSError):
    """The system did not write a file. Also an OSError, for whoever is ready for those."""

    exit_code = 5

    def __init__(self, message: str, *, hint: str = "", number: int | None = None, reason: str = "") -> None:
        super().__init__(message, hint=hint)
        self.errno, self.strerror = number, reason or message

    def __str__(self) -> str:
        return self.message


def cannot_write(path: Path | str, error: OSError) -> WriteError:
    """Return the error for what the system said about a file that was to be written, in words."""
    if isinstance(error, WriteError):
        return error
    plain = (error.strerror or str(error) or type(error).__name__).lower()
    reason, hint = _REFUSALS.get(error.errno or 0, (plain, "check the path, its permissions and the free space"))
    return WriteError(f"{path} cannot be written: {reason}", hint=hint, number=error.errno, reason=reason)


def is_refusal(error: OSError) -> bool:
    """True if an error says that the disk or the system refused, and not that the user named a wrong path."""
    return error.errno in _REFUSALS


def no_room(error: BaseException) -> WriteError | None:
    """The error that ends a run where nothing can go on until there is room again, on a disk or for open files."""
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return cannot_write(error.filename or "a temporary file", error)
    return None


class EngineError(LoupeError):
    """An engine failed on one sample (class `error`)."""


def self_cancelled(error: BaseException) -> EngineError:
    """The error of a sample whose engine raised this `CancelledError` though nobody cancels the task that asks.

    Raises it again where somebody does.
    """
    import asyncio  # the errors themselves cost next to nothing to import

    task = asyncio.current_task()
    if task is None or task.cancelling():
        raise error
    return EngineError(f"{type(error).__name__}: {error}")


class TransientEngineError(EngineError):
    """A failure that may pass (connection, 5xx): retried. `rate` marks 429 and 503 with Retry-After."""

    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None, rate: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after
        self.rate = rate


class EngineTimeoutError(EngineError):
    """No full answer within the time limit of the request (class `timeout`)."""


class RejectedError(EngineError):
    """The engine refused this request for good: 400, 404, 413, 422 (outcome `rejected`)."""


class NoAnswerError(EngineError):
    """The engine replied, but the reply is not an answer: a refusal, a tool call, nothing but unfinished thinking.

    `output` is the reply (`loupe.types.Output`), if there is one: its tokens are paid for. It is not asked for again.
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        outcome: Literal["refused", "unfinished", "error"] = "error",
        output: Any = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.outcome = outcome
        self.output = output


def outcome_of(error: LoupeError) -> Literal["timeout", "rejected", "refused", "unfinished", "error"]:
    """Return the outcome of a sample that ended with this error (docs/protocols/engines.md#outcomes)."""
    if isinstance(error, NoAnswerError):
        return error.outcome
    if isinstance(error, EngineTimeoutError):
        return "timeout"
    return "rejected" if isinstance(error, RejectedError) else "error"


class EngineUnavailableError(EngineError):
    """The engine as a whole cannot go on (401/403, GPU out of memory, dead server): the run stops, resumable."""

    exit_code = 4


class AccountError(EngineUnavailableError):
    """The server refuses the key, or its quota is used up: nothing more is asked, what is in flight may be answered."""
