"""What all commands share when they speak: data on standard output, chatter on standard error, JSON on request."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from loupe.cli.errors import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

F = TypeVar("F", bound=Callable[..., Any])

#: Tables keep this width where output is not a terminal, so that a file or a pipe gets the same lines everywhere.
FILE_WIDTH = 120


def json_option(function: F) -> F:
    """`--json`."""
    return click.option("--json", is_flag=True, help="One JSON document on standard output.")(function)


def plain_option(function: F) -> F:
    """`--plain`."""
    return click.option("--plain", is_flag=True, help="No colour, no live display; tables are tab-separated.")(function)


def console(*, stderr: bool = False) -> Console:
    """A rich console that respects NO_COLOR and keeps one width where it does not write to a terminal."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else FILE_WIDTH
    return Console(file=stream, width=width, no_color=bool(os.environ.get("NO_COLOR")), highlight=False)


def show(renderable: RenderableType) -> None:
    """Write tables and text to standard output."""
    console().print(renderable)


def as_json(value: object) -> None:
    """Write one JSON document and a line end to standard output."""
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2))


def say(message: str) -> None:
    """Write one line of chatter to standard error."""
    click.echo(printable(message), err=True)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, plain: bool) -> None:
    """Write a simple table: aligned for people, tab-separated with `plain`."""
    if plain:
        for row in (header, *rows):
            click.echo("\t".join(printable(cell).replace("\t", " ").replace("\n", " ") for cell in row))
        return
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=SIMPLE, pad_edge=False, header_style="bold")
    for name in header:
        grid.add_column(name, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(printable(cell)) for cell in row))
    show(grid)
