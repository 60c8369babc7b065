"""How an error reaches the person: two lines, and an exit code that a script can read (docs/cli.md lists them)."""

from __future__ import annotations

import re
from dataclasses import dataclass

import click

from loupe.cli.output import complain
from loupe.errors import LoupeError

BELOW = 1
USAGE = 2
SOME_FAILED = 3
MISSING = 4
INTERRUPTED = 130
#: 128 + SIGPIPE: what shells report for a program whose reader closed the pipe.
BROKEN_PIPE = 141


@dataclass(frozen=True)
class Described:
    """An expected error in the form in which it is shown."""

    message: str
    hint: str
    exit_code: int


def describe(error: Exception) -> Described | None:
    """The two lines and the exit code of an expected error; None for a bug."""
    if isinstance(error, LoupeError):
        return Described(error.message, error.hint, error.exit_code)
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "loupe"
        message = re.sub(r"\. Did you mean ", "; did you mean ", error.format_message().strip().rstrip("."))
        return Described(message[:1].lower() + message[1:], f"{path} --help", USAGE)
    if isinstance(error, click.ClickException):
        return Described(error.format_message(), "", error.exit_code)
    if isinstance(error, OSError) and error.filename is not None:
        reason = (error.strerror or type(error).__name__).lower()
        return Described(f"{error.filename}: {reason}", "check the path, its permissions and the free space", USAGE)
    return None


def show_error(message: str, hint: str = "") -> None:
    """Write `error: …` and, if there is one, `hint: …` to standard error."""
    complain("error:", "red", message)
    if hint:
        complain("hint:", "cyan", hint)
