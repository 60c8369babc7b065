"""Options for servers that Loupe starts (`--serve`), and finding those that run already."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from loupe.errors import LoupeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from loupe.engines.registry import Profile
    from loupe.pipeline import Plan


def _port(_: click.Context, parameter: click.Parameter, value: str | None) -> int | str | None:
    """A number from 1 to 65535, or `auto`."""
    if value is None or value == "auto":
        return value
    if not (value.isdigit() and 1 <= int(value) <= 65535):
        raise click.BadParameter(f"{value!r} is neither a port nor auto", param=parameter)
    return int(value)


#: In the order of the help.
SERVER_OPTIONS = (
    click.option(
        "--serve",
        metavar="KIND[:MODEL]",
        help="Start this model server first, and stop it at the end: vllm, sglang, llama-server, ollama, mlx_vlm, "
        "mlx_lm, or loupe:ENGINE (docs/servers.md).",
    ),
    click.option("--server-arg", multiple=True, metavar="ARG", help="Argument for it, such as --max-model-len=8192."),
    click.option("--server-port", callback=_port, metavar="N", help="Its port, or auto for a free one."),
    click.option("--gpus", metavar="0,1", help="GPUs that it may use."),
    click.option(
        "--startup-timeout",
        type=click.FloatRange(min=0, min_open=True),
        metavar="S",
        help="Seconds until it must be ready. Default: 1200.",
    ),
)
#: Option → the profile key that it sets.
SERVER_OVERRIDES = {
    "serve": "serve",
    "server_arg": "server_args",
    "server_port": "server_port",
    "gpus": "gpus",
    "startup_timeout": "startup_timeout",
}


def check_serve(given: Mapping[str, object]) -> None:
    """Raise UsageError for a server that is started and one that runs at once."""
    if given.get("serve") and given.get("base_url"):
        raise UsageError("--serve starts a server, --base-url names one that runs: not both", hint="leave one out")


def check_server_settings(given: Mapping[str, object], engines: Sequence[tuple[str, Profile]]) -> None:
    """Raise UsageError where a server is described that no engine wants started."""
    for option, key in SERVER_OVERRIDES.items():
        if key in given and not any(getattr(profile, "serve", "") for _, profile in engines):
            raise UsageError(
                f"--{option.replace('_', '-')} goes with --serve", hint="--serve KIND[:MODEL], such as --serve vllm"
            )


def served_by(serve: str) -> str:
    """The model in KIND:MODEL. Raises UsageError where there is none and no engine either to name it."""
    from loupe.servers.templates import server_kind

    kind, _, model = serve.partition(":")
    if not model:
        known = server_kind(kind)
        raise UsageError(f"--serve {known}: which model?", hint=f"--serve {known}:MODEL, or -e ENGINE with a model")
    return model


def in_server_order(plans: Sequence[Plan]) -> list[Plan]:
    """The plans so that each server is started once. Raises UsageError for a server that makes no sense."""
    from loupe.servers.keeper import started_once

    return started_once(plans, lambda plan: plan.profile)


def find_server() -> str:
    """The server that the environment names, or the one that answers on loopback."""
    import asyncio

    from loupe.engines.shared.discovery import find_endpoint

    return asyncio.run(find_endpoint(os.environ))


def served_model(base_url: str | list[str]) -> str:
    """The one model that a server offers, to file the run under; "" where it does not say or there are several.

    The engine asks again when it opens, and then says what is wrong.
    """
    import asyncio

    from loupe.engines.shared.discovery import choose_model, identify, normalize_base_url, probe

    async def ask(url: str) -> str:
        import aiohttp

        async with aiohttp.ClientSession() as session:
            endpoint = await probe(session, url)
            return choose_model(endpoint, await identify(session, endpoint)) if endpoint else ""

    try:
        return asyncio.run(ask(normalize_base_url(base_url if isinstance(base_url, str) else base_url[0])))
    except (LoupeError, ValueError):
        return ""
