"""Click classes: a group that imports a command only when it is used, and a command whose help comes in groups."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from loupe.cli.shared.output import print_data, take_plain
from loupe.cli.shared.signals import heed_interrupts
from loupe.errors import did_you_mean
from loupe.hooks import Hook, feature_table, found, summary_of

#: Section of the help → command → its summary. The command `x` is the function `command` of `loupe.cli.x`.
Sections = Mapping[str, Mapping[str, str]]

#: The section for commands that name none.
_OTHERS = "From other packages"
#: Key of a context whose help shows every option.
ALL_OPTIONS = "loupe.all_options"

F = TypeVar("F", bound=Callable[..., Any])


def in_group(group: str, *options: Callable[[F], F]) -> Callable[[F], F]:
    """Return a decorator that adds these options; those without a group get this one in the help."""

    def decorate(function: F) -> F:
        known = len(_options_of(function))
        for option in reversed(options):
            function = option(function)
        for parameter in _options_of(function)[known:]:
            parameter.__dict__.setdefault("group", group)
        return function

    return decorate


def _options_of(function: Callable[..., Any]) -> list[click.Parameter]:
    """Return the options that decorators added so far, the last one first."""
    return getattr(function, "__click_params__", [])


class GroupedCommand(click.Command):
    """A command with many options: `--help` shows the common ones, `--help-all` all of them, by group."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        settings: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False}
        self._all = click.Option(["--help-all"], help="Show every option, and exit.", callback=_show_all, **settings)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return those of the command, `--help-all`, and `--help`."""
        *own, usual = super().get_params(ctx)
        return [*own, self._all, usual]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options without a group, then those of each group: all of it, or only their names."""
        groups: dict[str, list[tuple[str, str]]] = {"": []}
        for each in self.get_params(ctx):
            if isinstance(each, click.Option) and (row := each.get_help_record(ctx)):
                groups.setdefault(getattr(each, "group", ""), []).append(row)
        with formatter.section("Options"):
            formatter.write_dl(groups.pop(""))
        if ctx.meta.get(ALL_OPTIONS):
            for group, rows in groups.items():
                with formatter.section(group):
                    formatter.write_dl(rows)
            return
        width = max(map(len, groups)) + 4
        wrap = functools.partial(textwrap.fill, width=formatter.width, break_on_hyphens=False)
        with formatter.section("More options, explained by --help-all"):
            for group, rows in groups.items():
                names = " ".join(row[0].split(", ")[-1].split()[0] for row in rows)
                start = f"  {group}".ljust(width)
                formatter.write(wrap(names, initial_indent=start, subsequent_indent=" " * width) + "\n")


def _show_all(ctx: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked and not ctx.resilient_parsing:
        ctx.meta[ALL_OPTIONS] = True
        print_data(ctx.get_help())
        ctx.exit()


class SuggestingGroup(click.Group):
    """A group whose error for an unknown command names the nearest one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, but no command is imported to find the nearest name."""
        if args and not self.has(args[0], ctx) and not args[0].startswith("-"):
            raise click.UsageError(f"no command {args[0]!r}{did_you_mean(args[0], self.list_commands(ctx))}", ctx)
        return super().resolve_command(ctx, args)

    def has(self, name: str, ctx: click.Context) -> bool:
        """Return whether there is a command of this name."""
        return name in self.list_commands(ctx)


class LazyGroup(SuggestingGroup):
    """A group that knows names and summaries, and imports the module of a command when it is called."""

    def __init__(self, *args: Any, sections: Sections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._own = sections
        self._hooks = {name: Hook(name, f"loupe.cli.{name}:command") for rows in sections.values() for name in rows}

    @functools.cached_property
    def _added(self) -> Mapping[str, Hook]:
        """The commands of features and of other distributions."""
        return found("commands", self._hooks)

    def has(self, name: str, ctx: click.Context) -> bool:
        """Return whether there is a command of this name; the core's own are known without a look at the others."""
        return name in self._hooks or name in self._added

    def sections(self) -> Sections:
        """Return all commands by section: the core's first, then those of features and of other distributions."""
        sections = {section: dict(rows) for section, rows in self._own.items()}
        places = feature_table("help")
        for name, hook in self._added.items():
            section, _, summary = places[name].partition(": ") if name in places else (_OTHERS, "", summary_of(hook))
            sections.setdefault(section, {})[name] = summary
        return sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        return [name for rows in self.sections().values() for name in rows]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command. Raises HookError for that of another distribution that cannot be used."""
        hook = self._hooks.get(cmd_name) or self._added.get(cmd_name)
        if hook is None:
            return None
        command = hook.load()
        if not isinstance(command, click.Command):
            raise hook.broken(f"{type(command).__name__} is no click command")
        heed_interrupts()  # from here on a command may have begun something
        return take_plain(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections of the help."""
        sections = self.sections()
        width = max(len(name) for rows in sections.values() for name in rows)
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(width), summary) for name, summary in rows.items()])
