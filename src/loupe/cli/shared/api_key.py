"""The options of a key: from a file, from standard input, or on the command line, where others can see it.

The key goes into the environment of this process and nowhere else; the engines take it from there
(`loupe.engines.chat.endpoints`), and processes that Loupe starts do not inherit it (`child_environment.py`).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from loupe.cli.shared.output import prompt, say
from loupe.engines.chat.endpoints import GIVEN_KEY
from loupe.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])
Option = Callable[[F], F]

#: Longer than any key: such a file is another one.
_MOST_BYTES = 100_000
#: Keys that were read, by variable and place.
_read: dict[tuple[str, str], str] = {}


def key_options(variable: str, meaning: str, *, kept_as: str = "") -> tuple[Option[Any], Option[Any]]:
    """`--api-key-file` and `--api-key`, which leave the key in the environment as `kept_as`, or as this `variable`."""

    def keep(context: click.Context, option: click.Parameter, given: str | None) -> None:
        if given is None or context.resilient_parsing:
            return
        if context.meta.setdefault(__name__, option.name) != option.name:
            raise UsageError("--api-key and --api-key-file cannot be combined", hint="leave --api-key out")
        # A command that first asks for trust begins again: a pipe would be empty then, and a person asked twice.
        if (variable, given) not in _read:
            read = _from_file(given) if option.name == "api_key_file" else _from_command_line(given, variable)
            _read[variable, given] = read
        os.environ[kept_as or variable] = _read[variable, given]

    return (
        click.option(
            "--api-key-file",
            metavar="FILE",
            expose_value=False,
            callback=keep,
            help=f"{meaning}; - for standard input. Never stored.",
        ),
        click.option(
            "--api-key",
            metavar="KEY",
            expose_value=False,
            callback=keep,
            help=f"The key on the command line, visible to other users. Or {variable}.",
        ),
    )


API_KEY_FILE, API_KEY = key_options("LOUPE_API_KEY", "File with the key of the server", kept_as=GIVEN_KEY)


def _from_command_line(given: str, variable: str) -> str:
    if given == "-":
        raise UsageError("--api-key -: standard input is a file here", hint="use --api-key-file -")
    key = _checked(given, "--api-key")
    say(f"--api-key shows the key to other users of this machine (ps); --api-key-file FILE and {variable} do not")
    return key


def _from_file(place: str) -> str:
    """The key in a file, or in the next line of standard input. Raises UsageError where there is none."""
    if place == "-":
        people = sys.stdin.isatty()
        return _checked(prompt("API key", hidden=True) if people else sys.stdin.readline(), "standard input")
    try:
        with Path(place).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_MOST_BYTES)
    except OSError as error:
        raise UsageError(f"--api-key-file {place}: {(error.strerror or str(error)).lower()}") from None
    if stat.S_ISREG(mode) and mode & (stat.S_IRWXG | stat.S_IRWXO):
        say(f"{place} can be read by other users of this machine; chmod 600 keeps the key to you")
    return _checked(data.decode("utf-8-sig", "replace"), place)


def _checked(text: str, where: str) -> str:
    """The key without blanks and line ends around it. The message never repeats it."""
    key = text.strip()
    if not key:
        raise UsageError(f"{where}: no API key there", hint="one line with the key")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise UsageError(f"{where}: not an API key", hint="one line with the key, and nothing else")
    return key
