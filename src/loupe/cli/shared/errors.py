"""Show an error to the person: two lines, and an exit code that a script can read (docs/cli.md lists them)."""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from loupe.cli.shared.output import complain, say, say_lines
from loupe.errors import LoupeError, cannot_write, is_refusal, word

BELOW = 1
USAGE = 2
SOME_FAILED = 3
MISSING = 4
NOT_WRITTEN = 5
#: Like any program that an uncaught bug ends; never a code that has a meaning of its own.
CRASHED = 70
INTERRUPTED = 130
#: 128 + SIGPIPE: what shells report for a program whose reader closed the pipe.
BROKEN_PIPE = 141
#: What each code means, for `loupe --help` and docs/cli.md: the only table of them.
EXIT_CODES = {
    0: "done",
    BELOW: "done, but below --fail-under, a regression, or a failed check",
    USAGE: "wrong usage or input: an unknown name, a missing file, a conflict",
    SOME_FAILED: "every sample failed (--strict: at least one), or you quit",
    MISSING: "something is missing: a program, an extra, a server, memory, money",
    NOT_WRITTEN: "not written: the disk is full or read-only, or access is denied",
    CRASHED: "a bug in Loupe, with its traceback; never a missing package",
    INTERRUPTED: "interrupted (SIGTERM: 143, SIGHUP: 129); answers are kept",
    BROKEN_PIPE: "the reader of the output went away, as in: loupe runs | head",
}


@dataclass(frozen=True)
class Described:
    """An expected error in the form in which it is shown."""

    message: str
    hint: str
    exit_code: int
    listed: Sequence[str] = ()


def describe(error: Exception) -> Described | None:
    """The two lines and the exit code of an expected error; None for a bug."""
    if isinstance(error, LoupeError):
        return Described(error.summary, _possible(_with_command(error.hint)), error.exit_code, error.listed)
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("loupe"):
        from loupe.data.extras import install_of

        return Described(f"the package {error.name} is not installed", f"install it: {install_of(error.name)}", MISSING)
    if isinstance(error, click.UsageError):
        path = error.ctx.command_path if error.ctx else "loupe"
        message = error.format_message().strip().rstrip(".")
        message = re.sub(r"\. \(?Did you mean ([^)]*)\)?$", r"; did you mean \1", message)
        return Described(message[:1].lower() + message[1:], f"see the options: {path} --help", USAGE)
    if isinstance(error, click.ClickException):
        return Described(error.format_message(), "", error.exit_code)
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "start new thread" in str(error)):
        what = (
            "the system is out of memory" if isinstance(error, MemoryError) else "the system cannot start more threads"
        )
        return Described(
            what, "close other programs, or raise the limit of this shell (ulimit -a) or container", MISSING
        )
    if isinstance(error, OSError) and is_refusal(error):
        return _refused(error)
    if isinstance(error, FileNotFoundError) and "temporary directory" in str(error.strerror):
        what = "no folder for temporary files can be written (/tmp, or what TMPDIR says)"
        return Described(what, "make room there, or set TMPDIR to a folder with room", NOT_WRITTEN)
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        name = max(Path(os.fsdecode(error.filename or "")).parts, key=len, default="the name")
        what = f"{name[:40]}{'…' if len(name) > 40 else ''} is too long for the name of a file or folder"
        return Described(what, "choose a shorter one", USAGE)
    if isinstance(error, FileExistsError | NotADirectoryError | IsADirectoryError) and error.filename is not None:
        return _of_another_kind(error, Path(os.fsdecode(error.filename)))
    if isinstance(error, OSError) and error.filename is not None:
        reason = (error.strerror or type(error).__name__).lower()
        return Described(f"{error.filename}: {reason}", "check the path, its permissions and the free space", USAGE)
    return None


def _of_another_kind(error: OSError, path: Path) -> Described:
    """Say which part of a path is a file and should be a folder, or is a folder and should be a file."""
    if isinstance(error, IsADirectoryError):
        return Described(f"{path} is a folder, not a file", f"name a file in it: {word(path / 'NAME')}", USAGE)
    above = [*path.parents, path] if isinstance(error, NotADirectoryError) else path.parents
    for file in above:
        if file.exists() and not file.is_dir():
            hint = f"choose another folder, or rename the file: mv {word(file)} {word(f'{file}.old')}"
            return Described(f"{file} is a file, not a folder", hint, USAGE)
    if isinstance(error, FileExistsError):
        return Described(f"{path} exists already", f"choose another name, or look at it: ls -l {word(path)}", USAGE)
    return Described(f"{path}: not a folder", "check the path", USAGE)


def _possible(hint: str) -> str:
    """The hint; if it fetches data, which needs a package that is not installed, with that before it."""
    from importlib.util import find_spec

    if "loupe data get" in hint and find_spec("huggingface_hub") is None:
        from loupe.data.extras import install_command

        return f"{install_command('data')}; then {hint}"
    return hint


def _with_command(hint: str) -> str:
    """A hint that can be pasted: with the command that was given, where it says the same one."""
    again = "the same command with"
    if again not in hint:
        return hint
    return hint.replace(again, continue_command(), 1)


def continue_command(*, max_cost: str = "") -> str:
    """The command of this process once more, without --fresh, which would start over, and without any key.

    `max_cost` takes the place of the one that was given: with that it would stop at once.
    """
    words, skip = ["loupe"], False
    left_out = ("--api-key", *(["--max-cost"] if max_cost else []))
    for given in sys.argv[1:]:
        kept = not (
            skip or given in ("--fresh", "--resume") or given.startswith(tuple(f"{option}=" for option in left_out))
        )
        skip = given in left_out and not skip
        words += [_without_query(given)] if kept and not skip else []
    return shlex.join([*words, *(["--max-cost", max_cost] if max_cost else [])])


def _without_query(given: str) -> str:
    """A word of the command; of an address, whose query may hold a key, only the names of its parameters."""
    return re.sub(r"([?&][\w.-]+=)[^&\s]*", r"\1...", given)


def _refused(error: OSError) -> Described:
    """A disk or a system that refuses, at a place that nobody has named; what cannot be read is bad input."""
    path = error.filename if error.filename is not None else "a file"
    refused = cannot_write(path, error)
    if error.filename is not None and not _is_about_writing(error):
        return Described(f"{path}: {refused.strerror}", "check the path and its permissions", USAGE)
    return Described(refused.message, refused.hint, refused.exit_code)


def _is_about_writing(error: OSError) -> bool:
    """True if it was writing that failed: a file that is there and can be read was not to be read."""
    if error.errno not in (errno.EACCES, errno.EPERM):
        return True
    path = Path(os.fsdecode(error.filename))
    return os.access(path, os.R_OK) or (not os.path.lexists(path) and os.access(path.parent, os.X_OK))


def show_error(message: str, hint: str = "", listed: Sequence[str] = ()) -> None:
    """Write `error: …`, what is listed below it, and, if there is one, `hint: …` to standard error."""
    complain("error:", "red", message)
    for each in listed:
        say(f"  {each}")
    if hint:
        complain("hint:", "cyan", hint)


def report_error(error: Exception, who: str = "") -> tuple[str, int]:
    """Say what is wrong in two lines, with `who` it went wrong for; return all of it in one line, and the exit code.

    A bug keeps its traceback, and LOUPE_DEBUG=1 shows every traceback.
    """
    expected = describe(error)
    if expected is None or os.environ.get("LOUPE_DEBUG"):
        say_lines("".join(traceback.format_exception(error)).rstrip())
    if expected is None:
        expected = Described(
            f"this is a bug in loupe: {type(error).__name__}: {error}",
            "please report it where you got Loupe, with the lines above and the command",
            CRASHED,
        )
    show_error(f"{who}: {expected.message}" if who else expected.message, expected.hint, expected.listed)
    return " ".join(filter(None, (expected.message, "; ".join(expected.listed)))), expected.exit_code
