"""What all commands share when they speak: data on standard output, chatter on standard error, JSON on request."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from loupe.report.control_characters import printable

if TYPE_CHECKING:
    from rich.console import Console

    from loupe.report.terminal import Section

F = TypeVar("F", bound=Callable[..., Any])

#: Tables keep this width where output is not a terminal, so that a file or a pipe gets the same lines everywhere.
FILE_WIDTH = 140


def json_option(function: F) -> F:
    """`--json`."""
    return click.option("--json", is_flag=True, help="One JSON document on standard output.")(function)


def shared_option(function: F) -> F:
    """`--shared`."""
    text = "Others on this machine may read a new run folder, too; without it only you."
    return click.option("--shared", is_flag=True, help=text)(function)


def plain_option(function: F) -> F:
    """`--plain`."""

    def chosen(_: click.Context, __: click.Parameter, plain: bool) -> bool:
        if plain:
            os.environ["NO_COLOR"] = "1"  # errors and worker processes follow it, too
        return plain

    text = "No colour, no live display; tables are tab-separated."
    return click.option("--plain", is_flag=True, is_eager=True, callback=chosen, help=text)(function)


def console(*, stderr: bool = False) -> Console:
    """A rich console that respects NO_COLOR and keeps one width where it does not write to a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else FILE_WIDTH
    return Console(file=stream, width=width, no_color=bool(os.environ.get("NO_COLOR")), highlight=False)


def as_json(value: object) -> None:
    """Write one JSON document and a line end to standard output."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2))


def say(message: str) -> None:
    """Write one line of chatter to standard error."""
    click.echo(printable(message), err=True)


def tables(sections: Iterable[Section], *, plain: bool) -> None:
    """Write tables to standard output: aligned for people, tab-separated with `plain`."""
    from loupe.report.terminal import rich_tables, tab_separated

    if plain:
        for line in tab_separated(sections):
            click.echo(line)
        return
    writer = console()
    for renderable in rich_tables(sections, writer.width):
        writer.print(renderable, crop=False)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, plain: bool) -> None:
    """Write one table without a title."""
    from loupe.report.terminal import Section

    tables([Section(title="", header=header, rows=list(rows))], plain=plain)
