"""Options for servers that Loupe starts (`--serve`), and finding those that run already."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from loupe.cli.shared.lazy import in_group
from loupe.cli.shared.output import say
from loupe.errors import UsageError
from loupe.hooks import called, found

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from loupe.engines.chat.settings import Settings
    from loupe.engines.registry import Profile
    from loupe.pipeline import Plan


def _port(_: click.Context, parameter: click.Parameter, value: str | None) -> int | str | None:
    """A number from 1 to 65535, or `auto`."""
    if value is None or value == "auto":
        return value
    if not (value.isdigit() and 1 <= int(value) <= 65535):
        raise click.BadParameter(f"{value!r} is neither a port nor auto", param=parameter)
    return int(value)


#: In the order of the help; `--serve` is a common option, the others say how.
SERVER_OPTIONS = (
    click.option(
        "--serve",
        metavar="KIND[:MODEL]",
        help="Start this model server first, and stop it at the end: vllm, sglang, llama-server, ollama, mlx_vlm, "
        "mlx_lm or another kind (docs/servers.md).",
    ),
    *(
        in_group("The server of --serve", option)
        for option in (
            click.option(
                "--size",
                metavar="auto|GB|NAME",
                hidden=not found("server_plans"),
                help="With vllm: the settings that are planned for this machine's GPU, or for the named card; "
                "auto:bf16 keeps the weights unquantised.",
            ),
            click.option(
                "--server-arg", multiple=True, metavar="ARG", help="Argument for that server: --max-model-len=8192."
            ),
            click.option(
                "--server-port", callback=_port, metavar="N", help="Port of that server, or auto for a free one."
            ),
            click.option(
                "--gpus",
                metavar="0,1",
                help="GPUs that it may use; an engine in an environment of its own starts a worker on each.",
            ),
            click.option(
                "--startup-timeout",
                type=click.FloatRange(min=0, min_open=True),
                metavar="S",
                help="Seconds to wait until that server is ready. Default: 1200.",
            ),
        )
    ),
)
F = TypeVar("F", bound="Callable[..., Any]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    """The profile of an engine whose server is started as planned, and the settings of its client; None: no such one.

    `remarks` are lines for a person.
    """

    profile: Settings
    model: str
    remarks: tuple[str, ...]
    workers: int | None = None
    layout_batch: int | None = None
    image_batch: int | None = None
    text_batch: int | None = None


def server_options(function: F) -> F:
    """Those of a server that is started, for a command with options of its own."""
    for option in reversed(SERVER_OPTIONS):
        function = option(function)
    return function


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
        raise UsageError(
            "--serve starts a server, --base-url names a running one: use only one of them", hint="leave one out"
        )


def check_server_settings(given: Mapping[str, object], engines: Sequence[tuple[str, Profile]]) -> None:
    """Raise UsageError where a server is described that no engine wants started."""
    for option, key in (*SERVER_OVERRIDES.items(), ("size", "size")):
        if key in given and not any(_takes(profile, key) for _, profile in engines):
            raise UsageError(
                f"--{option.replace('_', '-')} goes with --serve", hint="use --serve KIND[:MODEL], such as --serve vllm"
            )


def _takes(profile: Profile, key: str) -> bool:
    """True if a setting of a server is of use: the engine has one started, or the setting is its own."""
    return bool(getattr(profile, "serve", "")) or (hasattr(profile, key) and not hasattr(profile, "serve"))


def sized(
    engines: Sequence[tuple[str, Profile]], size: str | None, given: Mapping[str, object]
) -> list[tuple[str, Profile]]:
    """The engines, those that start vLLM with what is planned for the card; what is `given` on the command line stays.

    Raises UsageError where nothing can be planned.
    """
    from loupe.engines.chat.settings import Settings

    if size is None:
        return list(engines)
    check_server_settings({"size": size}, engines)
    return [
        (label, _sized(label, profile, size, given) if isinstance(profile, Settings) and profile.serve else profile)
        for label, profile in engines
    ]


def _sized(label: str, profile: Settings, size: str, given: Mapping[str, object]) -> Settings:
    import msgspec

    plan = plan_server(profile, size)
    say_plan(label, plan)
    planned = {"concurrency": plan.workers, "layout_batch": plan.layout_batch}
    client = {
        key: value
        for key, value in planned.items()
        if value is not None and key in profile.__struct_fields__ and not given.get(key)
    }
    return msgspec.structs.replace(plan.profile, **client)


def plan_server(profile: Settings, size: str, *, embedding: bool = False) -> ServerPlan:
    """Plan the server that an engine has started for a card. Raises UsageError if nothing can be planned."""
    plan: ServerPlan | None = next(called("server_plans", profile, size, embedding), None)
    if plan is None:
        raise UsageError("--size: nothing is installed that plans a server", hint="leave it out")
    return plan


def say_plan(label: str, plan: ServerPlan) -> None:
    """Say what was planned for which card, and what there is to know of it."""
    for remark in plan.remarks:
        say(f"{label}: {remark}")


def check_variables(engines: Sequence[tuple[str, Profile]]) -> None:
    """Raise UsageError for a variable without an address where an engine would ask the server that it names."""
    from loupe.engines.chat.discovery import addresses_of
    from loupe.engines.chat.settings import Settings

    for _, profile in engines:
        if isinstance(profile, Settings) and not profile.serve:
            addresses_of(profile.base_url, os.environ)


def served_by(serve: str) -> str:
    """The model in KIND:MODEL. Raises UsageError where there is none and no engine either to name it."""
    from loupe.servers.templates import server_kind

    kind, _, model = serve.partition(":")
    if not model:
        known = server_kind(kind)
        raise UsageError(f"--serve {known}: which model?", hint=f"use --serve {known}:MODEL, or -e ENGINE with a model")
    return model


def in_server_order(plans: Sequence[Plan]) -> list[Plan]:
    """The plans so that each server is started once. Raises UsageError for a server that makes no sense."""
    from loupe.servers.keeper import started_once

    return started_once(plans, lambda plan: plan.profile)


def find_server(written: Sequence[str] = ()) -> str:
    """The first server that is `written` or that the environment names; else the one on loopback, marked as found."""
    import asyncio

    from loupe.engines.chat.discovery import addresses_of, located

    return asyncio.run(located(addresses_of(written, os.environ))).urls[0]


def served_model(profile: Profile) -> str:
    """The one model that a server offers, to file the run under; "" where it does not say or there are several."""
    import asyncio

    from loupe.engines.chat.endpoints import offer_of
    from loupe.engines.chat.settings import Settings

    return asyncio.run(offer_of(profile)).model if isinstance(profile, Settings) else ""
