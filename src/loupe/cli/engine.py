"""`loupe engine`: which engines there are, how one is set up, and whether it reads a page right now."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from loupe.cli.shared.lazy import SuggestingGroup
from loupe.cli.shared.options import engine_options
from loupe.cli.shared.output import as_json, json_option, plain_option, print_data, print_line, say, table
from loupe.errors import NoAnswerError, RejectedError

if TYPE_CHECKING:
    from loupe.engines.registry import Profile
    from loupe.types import Output, PageSource, Request


@click.group("engine", cls=SuggestingGroup)
def command() -> None:
    """List, show, install and try engines."""


@command.command("list")
@json_option
@plain_option
def list_engines(json: bool, plain: bool) -> None:
    """List all profiles, and the kinds of engine that a profile can use."""
    from loupe.api.listing import engine_rows

    rows = [
        {
            "engine": row["id"],
            "kind": row["kind"],
            "title": row["title"],
            "from": row["place"],
            "state": row["state"],
        }
        for row in engine_rows()
    ]
    if json:
        as_json(rows)
        return
    header = ("engine", "kind", "title", "from", "state")
    table(header, [tuple(row[key] for key in header) for row in rows], plain=plain)
    say("any OpenAI-compatible server: loupe run BENCH --base-url http://127.0.0.1:8000/v1")


@command.command("show")
@click.argument("name")
@json_option
def show(name: str, json: bool) -> None:
    """Show every setting of engine NAME as it would be used: prompts, limits, images, steps, servers, with sources.

    What is printed is a profile that can be used as it stands, in a file of your own.
    """
    from loupe.api.listing import state_of
    from loupe.cli.shared.profile_text import lines_of, server_commands
    from loupe.engines.registry import load_profile, profile_names

    label, profile = load_profile(name)
    origin = profile_names().get(name)
    place = _origin(origin) if origin else "kind"
    if json:
        commands = server_commands(profile)
        as_json({"engine": label, "from": place, "settings": profile.stored(), "server_commands": commands})
        return
    state = state_of(profile)
    print_line(f"# {label} ({place}{f'; {state}' if state else ''})")
    for setting in lines_of(label, profile):
        print_line(setting)


@command.command("install")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--weights", is_flag=True, help="Fetch weights, too: load it once with the network open.")
@click.option("-o", "--option", multiple=True, metavar="KEY=VALUE", help="Setting of the engine (engine show).")
@json_option
def install(names: tuple[str, ...], weights: bool, option: tuple[str, ...], json: bool) -> None:
    """Make the environment of engine NAME with uv: exactly the locked packages, apart from Loupe's own.

    Licence, size and place are said first. It needs the network once; `loupe run -e NAME` never does.
    """
    from loupe.cli.shared.engine_settings import settings_from
    from loupe.cli.shared.installing import install_engines

    made = install_engines(names, settings_from(option, names[0]), weights=weights)
    if json:
        as_json(made)


@command.command("remove")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@json_option
def remove(names: tuple[str, ...], json: bool) -> None:
    """Delete the environment of engine NAME."""
    from loupe.cli.shared.installing import remove_engines

    removed = remove_engines(names)
    if json:
        as_json(removed)


@command.command("test")
@click.argument("name")
@click.option(
    "--image",
    metavar="FILE",
    help="Page to read; FILE.pdf#page=2 names one of a PDF or TIFF. Default: a sample page.",
)
@engine_options
@click.option("-o", "--option", multiple=True, metavar="KEY=VALUE", help="Setting of the engine (engine show).")
@json_option
def test(
    name: str,
    image: str | None,
    prompt: str | None,
    prompt_file: Path | None,
    option: tuple[str, ...],
    json: bool,
    **flags: object,
) -> None:
    """Open engine NAME, read one page with it, and print what it read."""
    import msgspec

    from loupe.cli.shared.chosen_engines import agree_to_send, configure, override_table
    from loupe.cli.shared.engine_settings import caution, given_prompt, settings_from
    from loupe.cli.shared.flags import Flags
    from loupe.cli.shared.server_options import check_serve, check_server_settings, check_variables, sized
    from loupe.typed import convert

    prompt = given_prompt(prompt, prompt_file)
    given = convert(flags | {"settings": settings_from(option, name)}, Flags)
    overrides = override_table(given)
    check_serve(overrides)
    label, profile = configure(name, overrides)
    check_server_settings(overrides, [(label, profile)])
    check_variables([(label, profile)])
    agree_to_send([profile], yes=given.yes)
    ((label, profile),) = sized([(label, profile)], given.size, overrides)
    if unproven := caution(profile):
        say(f"{label}: {unproven}")
    for need in profile.needs:
        say(f"{label} needs: {need}")
    _tell_steps()
    began = time.monotonic()
    output, seconds = asyncio.run(_read(label, profile, _requests(image, profile, prompt)))
    opening = time.monotonic() - began - seconds
    if json:
        as_json({"engine": label, "opening_seconds": opening, **msgspec.to_builtins(output), "seconds": seconds})
        return
    print_data(output.text)
    tokens = f", {output.output_tokens:,} tokens" if output.output_tokens is not None else ""
    say(f"{label}: opened in {opening:.2f} s, read in {seconds:.2f} s, {len(output.text):,} characters{tokens}")


def _tell_steps() -> None:
    """Say each request to a service: whoever writes a profile sees where it breaks."""
    import logging

    class Said(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(record.getMessage())

    steps = logging.getLogger("loupe.services")
    steps.setLevel(logging.INFO)
    steps.handlers = [Said()]
    steps.propagate = False


def _requests(image: str | None, profile: Profile, prompt: str | None) -> list[Request]:
    """The page to read; without one, a sample page as an image, then one of a PDF, which some engines need."""
    from loupe.benchmarks.registry import get_benchmark
    from loupe.inference.prompts import make_request
    from loupe.types import PdfPage, Sample

    benchmark = get_benchmark("sample_pages")
    if image:
        samples = [Sample(id="page", images=(_page(image),))]
    else:
        by_kind = {type(sample.images[0]): sample for sample in reversed(list(benchmark.load(None)))}
        samples = [by_kind[kind] for kind in (*(by_kind.keys() - {PdfPage}), PdfPage)]
    asked = [Sample(id=sample.id, images=sample.images, prompt=prompt or "", task="text") for sample in samples]
    return [make_request(each, profile=profile, benchmark=benchmark, benchmark_id="sample_pages") for each in asked]


def _page(name: str) -> PageSource:
    """The page that FILE or FILE.pdf#page=N names; a file that is really called so comes first."""
    from loupe.benchmarks.folders.own.rows import page_source

    return Path(name) if Path(name).exists() and "#page=" in name else page_source(Path(), name)


async def _read(label: str, profile: Profile, requests: list[Request]) -> tuple[Output, float]:
    """The answer to the first request that the engine does not refuse, and the seconds that it took."""
    from loupe.engines.chat.endpoints import chosen_server
    from loupe.servers.keeper import open_profile
    from loupe.servers.record import kept_folder

    async with open_profile(profile, folder=kept_folder("engine-test")) as engine:
        if chosen := chosen_server(engine.facts):
            say(f"{label}: {chosen}")
        for request in requests[:-1]:
            began = time.monotonic()
            with contextlib.suppress(RejectedError, NoAnswerError):
                return await engine.predict(request), time.monotonic() - began
        began = time.monotonic()
        return await engine.predict(requests[-1]), time.monotonic() - began


def _origin(path: Path) -> str:
    from loupe.engines.registry import is_built_in

    return "loupe" if is_built_in(path) else str(path)
