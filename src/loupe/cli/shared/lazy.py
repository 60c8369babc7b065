"""A click group whose commands are imported only when they are used; its help needs none of them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from loupe.cli.shared.output import take_plain
from loupe.cli.shared.signals import heed_interrupts
from loupe.errors import did_you_mean

#: Section of the help → command → its summary. The command `x` is the function `command` of `loupe.cli.x`.
Sections = Mapping[str, Mapping[str, str]]


class SuggestingGroup(click.Group):
    """A group whose error for an unknown command names the nearest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, but no command is imported to find the nearest name."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            raise click.UsageError(f"no command {args[0]!r}{did_you_mean(args[0], known)}", ctx)
        return super().resolve_command(ctx, args)


class LazyGroup(SuggestingGroup):
    """A group that knows names and summaries, and imports the module of a command when it is called."""

    def __init__(self, *args: Any, sections: Sections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections
        self.summaries = {name: summary for rows in sections.values() for name, summary in rows.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command."""
        if cmd_name not in self.summaries:
            return None
        command = importlib.import_module(f"loupe.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        heed_interrupts()  # from here on a command may have begun something
        return take_plain(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of the help."""
        width = max(map(len, self.summaries))
        for section, rows in self.sections.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in rows.items()])
