"""`loupe review`: ground truth beside the page, in a browser on this machine."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from loupe.cli.shared.lazy import SuggestingGroup
from loupe.cli.shared.local_page import quiet_option, serve_locally
from loupe.cli.shared.output import say
from loupe.errors import UsageError, word
from loupe.hooks import loaded

if TYPE_CHECKING:
    from loupe.web.review.review_target import ReviewTarget
    from loupe.web.review.session import Review


F = TypeVar("F", bound=Callable[..., Any])
_TARGETS: list[ReviewTarget] = [target for _, target in loaded("review_targets")]


class _ReviewGroup(SuggestingGroup):
    """`loupe review DIR` is `loupe review folder DIR`: `usual` is what a review without the name of a command is."""

    usual = "folder"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it, with the name of the usual command put in where none is given."""
        if not args:
            raise UsageError("which folder?", hint="run: loupe review DIR, or loupe review tests FILE.jsonl")
        if args[0] not in (*self.list_commands(ctx), *self.get_help_option_names(ctx)):
            args = [self.usual, *args]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Those of the usual command."""
        return self.commands[self.usual].collect_usage_pieces(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of the usual command, then the commands."""
        self.commands[self.usual].format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


@click.group("review", cls=_ReviewGroup)
def command() -> None:
    """Review ground truth beside the page in a browser: accept, edit, skip.

    `loupe review DIR` is short for `loupe review folder DIR`.
    """


def _serving(function: Callable[..., None]) -> Callable[..., None]:
    """Options of the server."""
    port = click.option(
        "--port",
        type=click.IntRange(0, 65535),
        metavar="N",
        help="Port to listen on; 0: any free one. Default: the same for this file or folder each time, if it is free.",
    )
    return port(quiet_option(function))


def _of_targets(function: F) -> F:
    """Add the options of everything else that a folder may hold."""
    for target in reversed(_TARGETS):
        function = target.add_options(function)
    return function


_HELP = f"""Review the ground truth of your own documents: accept, edit, skip, beside the page.

DIR has {"; or ".join(["loupe.toml and samples.jsonl", *(target.ABOUT for target in _TARGETS)])}. Samples with
differing drafts come first. Each decision is written at once, with who made it and when. The address works on this
machine alone, and only with its token. Ctrl-C ends.
"""


@command.command("folder", short_help="Review the ground truth of your own documents.", help=_HELP)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@_of_targets
@click.option("--as", "name", metavar="NAME", help="Name of the reviewer. Default: your account name.")
@_serving
def folder(folder: Path, name: str | None, port: int | None, no_browser: bool, **options: Any) -> None:
    """Open a folder; `options` are those of targets."""
    _need()
    from loupe.web.review.review_target import open_folder

    if folder.is_file() and folder.suffix == ".jsonl":
        raise UsageError(
            f"{folder} is a file", hint=f"run: loupe review tests {word(folder)}, or loupe review {word(folder.parent)}"
        )
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder", hint="run: loupe review DIR, or loupe review tests FILE.jsonl")
    review = open_folder(folder, by=name or _account(), **options)
    _announce(review)
    _open(review, folder, port=port, no_browser=no_browser)


@command.command("tests", short_help="Review the tests of an olmOCR-Bench file.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE.jsonl")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder of the documents, or one with `pdfs`. Default: that of the file.",
)
@_serving
def tests(file: Path, data: Path | None, **serving: Any) -> None:
    """Review the tests of an olmOCR-Bench file: verify, reject, edit, beside the page.

    Each decision is written to the file at once, in the field `checked`; other lines stay as they are, byte for byte.
    The address works on this machine alone, and only with its token. Ctrl-C ends.
    """
    _need()
    from loupe.web.review.review_target import open_tests
    from loupe.web.review.session import documents_folder

    review = open_tests(file)
    _announce(review)
    _open(review, documents_folder(file, data), **serving)


def _need() -> None:
    from loupe.data.extras import need

    need("starlette", "uvicorn", extra="web", purpose="loupe review")


def _account() -> str:
    """The name of the person's account; accounts without a name exist, in containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def _announce(review: Review) -> None:
    """Say what a person must know before the first decision."""
    if review.locked:
        say(f"nothing can be saved: {review.path}: {review.locked}; you can look now, and continue once this is fixed")
    counts = review.counts()
    if counts["broken"]:
        where = next(row.entry.problem for row in review.entries() if row.entry.broken)
        noun = review.truth.noun if counts["broken"] == 1 else f"{review.truth.noun}s"
        say(f"{counts['broken']} {noun} cannot be read and stay unchanged; the first: {where}")


def _open(review: Review, data: Path, *, port: int | None, no_browser: bool) -> None:
    from loupe.web.review.app import serve

    async def serving(stop: asyncio.Event, ready: Callable[[str], None]) -> None:
        await serve(review, data, port=port, on_ready=ready, stop=stop)

    serve_locally(serving, said=f"{review.name} is open at this address; Ctrl-C ends it", browser=not no_browser)
    if review.remark:
        say(review.remark)
