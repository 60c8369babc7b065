"""`loupe trust`: let a file of a folder say what runs here, after a look at what that is.

One door for all of them: tables of a loupe.toml that say what runs, and Python files that a run names.
Whatever command meets such a file asks through it at a terminal.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from json import dumps
from pathlib import Path

import click

from loupe.cli.shared.output import as_json, can_ask, json_option, print_line, prompt, say
from loupe.data import trust
from loupe.engines.shared.local_settings import ENGINES, SUITES, LocalSettings, local_tables, read_settings
from loupe.errors import UntrustedError, UsageError, WriteError, word
from loupe.files.foreign import read_data


def _help() -> str:
    """Return what the command does, with the tables that need trust here."""
    *first, last = (f"[{name}]" for name in local_tables())
    return f"""Show what a loupe.toml or Python file would run or redefine, and trust it.

    DIR stands for the loupe.toml in it: its {", ".join(first)} and {last} are refused until you trust it. FILE is
    such a file, or a Python file that a run uses as its benchmark. Trust is for the file as it is now, where it is
    now: after any change you are asked again. The programs and Python files that it names are not checked. Data
    needs no trust.
    """


@click.command("trust", help=_help())
@click.argument("place", metavar="[DIR | FILE]", required=False, type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Trust without asking, for use without a terminal.")
@click.option("--list", "listing", is_flag=True, help="List the files that are trusted.")
@click.option("--remove", is_flag=True, help="Stop trusting the file.")
@json_option
def command(place: Path | None, yes: bool, listing: bool, remove: bool, json: bool) -> None:
    """Show, list, add or remove what is trusted."""
    if json and not listing:
        raise UsageError("--json goes with --list", hint="run: loupe trust --list --json")
    if listing:
        _list(json=json)
        return
    if place is None:
        raise UsageError("which folder or file?", hint="run: loupe trust .")
    file = place / "loupe.toml" if place.is_dir() else place
    if remove:
        say(f"{file} is no longer trusted" if trust.forget(file) else f"{file} was not trusted")
        return
    if not file.is_file():
        raise UsageError(f"{file}: no such file, so there is nothing to trust", hint="run: loupe trust FILE")
    content, lines = _look(file)
    if not lines:
        say(f"{file} configures data only, which needs no trust")
    elif trust.is_trusted(file, content):
        say(f"{file} is trusted as it is")
    elif _agreed(file, lines, yes=yes):
        if why := trust.remember(file, content):
            hint = f"set HOME to a folder of yours, then: loupe trust {word(place)}"
            raise WriteError(f"{file} stays untrusted: {why}", hint=hint)
        if elsewhere := trust.stand_in():
            say(elsewhere)
        say(f"{file} is trusted in its current form; to revoke: loupe trust --remove {word(place)}")
    else:
        raise UsageError(
            f"{file} stays untrusted", hint=f"trust it without a question: loupe trust {word(place)} --yes"
        )


def _list(*, json: bool) -> None:
    """The trusted files, with what became of them."""
    files = {file: _state(file) for file in trust.trusted_files()}
    if json:
        as_json([{"file": str(file), "state": state or "trusted"} for file, state in files.items()])
        return
    if not files:
        say("no file is trusted yet; to trust one: loupe trust DIR")
    for file, state in files.items():
        print_line(f"{file}  ({state})" if state else file)


def _state(file: Path) -> str:
    return "" if _is_trusted(file) else "changed since" if file.exists() else "no longer exists"


def is_allowed(error: UntrustedError) -> bool:
    """Ask at a terminal whether the file of the error is to be trusted; elsewhere nobody is asked, and it is not.

    Raises UsageError where the answer is no: the error itself was said before the question.
    """
    if not can_ask():
        return False
    say(error.message)
    content, lines = _look(error.file)
    if not _agreed(error.file, lines, yes=False):
        raise UsageError(f"{error.file} stays untrusted, so nothing was done", hint=error.hint)
    if why := trust.remember(error.file, content):
        say(f"{error.file} is trusted by this command only: {why}")
    return True


def _is_trusted(file: Path) -> bool:
    try:
        return trust.is_trusted(file)
    except OSError:
        return False


def _agreed(file: Path, lines: list[str], *, yes: bool) -> bool:
    for line in lines:
        say(line)
    return yes or (can_ask() and prompt(f"Trust {file}? [y/N]").casefold() in ("y", "yes"))


def _look(file: Path) -> tuple[bytes, list[str]]:
    """Return the file's content, and what it would do with every setting that says so; no lines for data alone.

    Raises ProfileError for a suite or an engine that cannot be read: nobody can tell what it would do.
    """
    from loupe.cli.shared.suite_files import checked_suite, lasting_suites
    from loupe.engines.registry import checked_profile, known_names

    if file.suffix == ".py":
        return read_data(file), [f"{file}: its Python code runs when a run that names it is scored or shown"]
    if file.suffix == ".json":
        return read_data(file), [f"{file}: the documents that it names are read and sent to engines"]
    settings = read_settings(file)
    if settings is None:
        return b"", []
    for name, suite in settings.table(SUITES).items():
        checked_suite(suite, f"{file} [{SUITES}.{name}]")
    for name, engine in settings.table(ENGINES).items():
        checked_profile(engine if isinstance(engine, dict) else {}, f"{file} [{ENGINES}.{name}]")
    known: dict[str, Collection[str]] = {ENGINES: known_names(), SUITES: lasting_suites()}
    lines = [line for table in local_tables() for line in settings.effects(table, known.get(table, ()))]
    try:
        return settings.content, [*(f"{file}: {line}" for line in lines), *_written(settings)]
    except RecursionError:
        raise UsageError(f"{file}: nested too deeply to be shown", hint="do not trust it") from None


def _written(settings: LocalSettings) -> Iterator[str]:
    """Every setting to the letter: in JSON, which has no invisible characters."""
    for table in local_tables():
        for name, value in settings.table(table).items():
            yield f"  [{table}] {dumps(name)} = {dumps(value, default=str)}"
