"""How `loupe select` talks with the person: questions and progress on standard error, answers from standard input."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from loupe.cli.shared.output import ask, on_terminal, overwrite, say
from loupe.results.control_characters import on_one_line
from loupe.studies.select.checked_truth import QuitError
from loupe.studies.select.limits import TIMEOUTS, USUAL_TIMEOUT


class Terminal:
    """The person at the command line; with a pipe for input, its lines are the answers.

    `review` is the command that opens the ground-truth files beside their pages.
    """

    def __init__(self, review: str = "") -> None:
        self._review = review

    def answer(self, question: str) -> str | None:
        """Ask, and wait for a line; None at the end of input."""
        return ask(question)

    def tell(self, line: str) -> None:
        """One line of chatter, whatever a file is called."""
        say(line)

    def show(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """The ground-truth files, as a list that can be read beside an editor."""
        longest = max(len(path) for path, _, _ in rows)
        for path, day, name in rows:
            self.tell(f"  {path:<{longest}}  {day or '(no date)':<10}  {name or '(no name)'}")
        if self._review:
            say(f"to review them beside their pages: {self._review}")


class Progress:
    """One line on standard error that follows what is going on; nothing where that is no terminal."""

    def __init__(self, *, plain: bool) -> None:
        self._live = on_terminal() and not plain
        self._shown = False

    def show(self, line: str) -> None:
        """Put this line in the place of the one before."""
        if self._live:
            width = max(20, (click.get_current_context().terminal_width or _width()) - 1)
            overwrite(on_one_line(line)[:width])
            self._shown = True

    def clear(self) -> None:
        """Take the line away, so that something that stays can be written."""
        if self._shown:
            overwrite("")
            self._shown = False


def _width() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except OSError:
        return 80


def ask_timeout(terminal: Terminal) -> int:
    """The seconds for each call, as the person chooses. Raises QuitError at the end of input."""
    choices = "/".join(map(str, TIMEOUTS))
    while True:
        answer = terminal.answer(f"Time-out in seconds for each call [{choices}], {USUAL_TIMEOUT} on Enter?")
        if answer is None:
            raise QuitError("quit: no model was asked")
        if not answer.strip():
            return USUAL_TIMEOUT
        if answer.strip() in map(str, TIMEOUTS):
            return int(answer)
