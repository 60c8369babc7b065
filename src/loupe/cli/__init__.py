"""The `loupe` command: the only place that prints, exits, or reads the environment.

Every expected error ends as two lines on standard error, `error: …` and `hint: …`; a traceback is a bug, and says so.
Nothing heavy is imported here: `loupe --help` must answer at once.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

import click

from loupe.cli.shared.errors import BROKEN_PIPE, INTERRUPTED, report_error
from loupe.cli.shared.output import print_data, say
from loupe.cli.shared.signals import as_interrupts, exit_code, outlive_terminal
from loupe.cli.shared.text_only import guarded
from loupe.cli.shared.top import root
from loupe.errors import UntrustedError
from loupe.hooks import HookWarning


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; `arguments` default to those of the process."""
    if "_LOUPE_COMPLETE" in os.environ:
        root.main(prog_name="loupe")  # the shell asks for completions
    outlive_terminal()
    with guarded(), as_interrupts(), _said_warnings():
        return exit_code(_code_of(list(sys.argv[1:] if arguments is None else arguments)))


def _code_of(arguments: list[str]) -> int:
    """Run one command; whatever is raised becomes lines for a person and a code."""
    try:
        code = _invoke(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        code = _close_output()
    except (click.Abort, KeyboardInterrupt):
        say("interrupted")
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001  the border where every error becomes lines for a person
        _, code = report_error(error)
    return code


@contextmanager
def _said_warnings() -> Iterator[None]:
    """Show a warning about a package that adds to Loupe as one line; others as Python does."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", HookWarning)
        shown = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if issubclass(category, HookWarning):
                say(f"warning: {message}")
            else:
                shown(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        yield


def _invoke(arguments: list[str]) -> int:
    """Do what click's own `main` does, which would end a broken pipe with 1, a code that has a meaning here.

    Where a file has to be trusted first, that is asked once, and the command begins again.
    """
    try:
        with root.make_context("loupe", arguments) as context:
            root.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as group:
        print_data(group.message)
    except UntrustedError as error:
        from loupe.cli.trust import is_allowed

        if not is_allowed(error):
            raise
        return _invoke(arguments)
    return 0


def _close_output() -> int:
    """The reader of our output went away (`loupe runs | head`): end quietly, and keep Python from saying so at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return BROKEN_PIPE
