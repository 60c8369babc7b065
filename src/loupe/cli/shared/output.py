"""What all commands share when they speak: data on standard output, chatter on standard error, JSON on request.

Nothing else in Loupe prints (`tests/untrusted/test_terminal.py` walks the source).
What is foreign is made printable here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeVar

import click

from loupe.cli.shared.text_only import guarded, unguarded
from loupe.files.default_places import RUNS
from loupe.results.control_characters import on_one_line, one_paragraph, printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console

    from loupe.results.tables.record import Table

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

#: Tables keep this width where output is not a terminal, so that a file or a pipe gets the same lines everywhere.
FILE_WIDTH = 140


def json_option(function: F) -> F:
    """`--json`."""
    return click.option("--json", is_flag=True, help="One JSON document on standard output.")(function)


def json_file_option(function: F) -> F:
    """`--json` of a command that runs for hours: also into a file. The value is a path, `-` where none is named."""
    text = "One JSON document on standard output, or in FILE in addition to the tables."
    kind = click.Path(path_type=Path, allow_dash=True)
    return click.option("--json", type=kind, is_flag=False, flag_value="-", metavar="[FILE]", help=text)(function)


def runs_option(function: F, name: str = "runs") -> F:
    """`--runs`, known before the runs that are named below it."""
    kind: Any = click.Path(path_type=Path)
    text = "Root of the runs. Default: ./runs."
    return click.option("--runs", name, type=kind, default=RUNS, metavar="DIR", is_eager=True, help=text)(function)


def shared_option(function: F) -> F:
    """`--shared`."""
    text = "Let other users of this machine read the run folder. Default: only you."
    return click.option("--shared", is_flag=True, help=text)(function)


def fresh_option(function: F) -> F:
    """`--fresh`, and `--resume` for people who expect to need it."""
    text = "Start over; the old folder is moved aside. Default: continue, so --resume is never needed."
    return click.option("--fresh/--resume", callback=_say_resume, help=text)(function)


def resume_option(function: F) -> F:
    """`--resume` of a command that continues and cannot start over."""
    settings: dict[str, Any] = {"is_flag": True, "expose_value": False, "hidden": True}
    return click.option("--resume", callback=_say_resume, help="Never needed.", **settings)(function)


def _say_resume(context: click.Context, option: click.Parameter, value: bool) -> bool:
    source = context.get_parameter_source(option.name or "")
    if source is click.core.ParameterSource.COMMANDLINE and value == (option.name == "resume"):
        say("--resume changes nothing: the same command always continues where it stopped")
    return value


def plain_option(function: F) -> F:
    """`--plain`, for a command with tables."""
    text = "No colour, no live display; tables are tab-separated."
    return click.option("--plain", is_flag=True, is_eager=True, callback=_without_colour, help=text)(function)


def take_plain(command: click.Command) -> click.Command:
    """The command, or all of a group, with `--plain` also where there is no table to show."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            take_plain(each)
    elif not any("--plain" in parameter.opts for parameter in command.params):
        settings: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
        command.params.append(click.Option(["--plain"], help="No colour.", callback=_without_colour, **settings))
    return command


def _without_colour(_: click.Context, __: click.Parameter, plain: bool) -> bool:
    if plain:
        os.environ["NO_COLOR"] = "1"  # errors and worker processes follow it, too
    return plain


def on_terminal() -> bool:
    """True if standard error is a terminal that can draw: only there something may change in place."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def say(message: str) -> None:
    """Write one line of chatter to standard error."""
    _write(on_one_line(message) + "\n", sys.stderr)


def say_lines(text: str) -> None:
    """Write several lines of chatter to standard error, those after the first one indented."""
    _write(one_paragraph(text) + "\n", sys.stderr)


def print_line(text: object = "") -> None:
    """Write one line for people to standard output; printable, wherever it goes."""
    _write(on_one_line(str(text)) + "\n", sys.stdout)


def print_data(text: object) -> None:
    """Write what a script reads (a path, an answer, a command) to standard output; exact but on a terminal."""
    if isinstance(text, Path) and sys.stdout.isatty():
        text = on_one_line(str(text))
    _write(f"{text}\n", sys.stdout)


def as_json(document: object) -> None:
    """Write one JSON document and a line end to standard output."""
    import msgspec

    from loupe.typed import encode_json

    data = encode_json(document, enc_hook=str)
    _write(printable_json(msgspec.json.format(data, indent=2).decode()) + "\n", sys.stdout)


def complain(label: str, colour: Literal["red", "cyan"], message: str) -> None:
    """Write `label: message` to standard error, the label in colour where that is a terminal."""
    plain = os.environ.get("NO_COLOR") or not sys.stderr.isatty()
    shown = label if plain else click.style(label, fg=colour, bold=colour == "red" or None)
    _write(f"{shown} {on_one_line(message)}\n", unguarded(sys.stderr))


def overwrite(text: str) -> None:
    """Put this text in the place of the line before on standard error, which is a terminal."""
    _write(f"\r\x1b[K{on_one_line(text)}", unguarded(sys.stderr))


def ask(question: str) -> str | None:
    """Ask on standard error, and wait for a line of standard input; None at its end."""
    _write(f"{on_one_line(question)} ", sys.stderr)
    answer = sys.stdin.readline()
    if not answer:
        say("")
    return answer.rstrip("\r\n") if answer else None


def can_ask() -> bool:
    """True if a person sits at the terminal who can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def prompt(question: str, *, default: str = "", hidden: bool = False) -> str:
    """Ask a person at the terminal; an empty answer is the default. Raises click.Abort at the end of input."""
    shown = on_one_line(f"{question} [{default}]" if default else question)
    return str(click.prompt(shown, default=default, show_default=False, hide_input=hidden, err=True)).strip()


def _write(text: str, stream: TextIO) -> None:
    stream.write(text)
    stream.flush()


def console(*, stderr: bool = False) -> Console:
    """A rich console that respects NO_COLOR and keeps one width where it does not write to a terminal.

    Text is never read as markup, and what it shows is printable, without links: only styles and movements are ours.
    """
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class Printable(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                if segment.control:
                    yield segment
                else:
                    style = segment.style and segment.style.update_link(None)
                    yield Segment(printable(segment.text), style)

    stream = unguarded(sys.stderr if stderr else sys.stdout)
    width = None if stream.isatty() else FILE_WIDTH
    colourless = bool(os.environ.get("NO_COLOR"))
    return Printable(file=stream, width=width, no_color=colourless, highlight=False, markup=False, emoji=False)


@contextmanager
def drawn(display: AbstractContextManager[T]) -> Iterator[T]:
    """Rich's display; it takes standard error over, so that lines stand above it, and is guarded in turn."""
    with display as shown, guarded():
        yield shown


def tables(sections: Iterable[Table], *, plain: bool) -> None:
    """Write tables to standard output: aligned for people, tab-separated with `plain`."""
    from loupe.results.tables.terminal import rich_tables, tab_separated

    if plain:
        for row in tab_separated(sections):
            print_line(row)
        return
    writer = console()
    for renderable in rich_tables(sections, writer.width):
        writer.print(renderable, crop=False)


def differences(read: str, reference: str) -> None:
    """Write a text to standard output, marked where it differs from its reference ("": nothing is marked)."""
    from rich.text import Text

    from loupe.report.marked_text import bracketed, pieces

    styles = {"missing": "red", "added": "green", "": ""}
    marked = pieces(read, reference) if reference else ()
    shown = [(bracketed(text, kind), styles[kind]) for text, kind in marked] or [(read, "")]
    console().print(Text.assemble(*shown), soft_wrap=True)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, plain: bool) -> None:
    """Write one table without a title."""
    from loupe.results.tables.record import Table

    tables([Table(title="", header=header, rows=list(rows))], plain=plain)
