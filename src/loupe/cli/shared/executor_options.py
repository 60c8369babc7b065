"""Options for reading and scoring elsewhere (`--on`), on what a feature or another package offers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from loupe.cli.shared.output import say
from loupe.errors import UsageError, did_you_mean
from loupe.hooks import found

if TYPE_CHECKING:
    from loupe.engines.registry import Profile
    from loupe.pipeline.plan import Executor

_KNOWN = found("executors")
#: What `--on` takes.
NAMES = "|".join(_KNOWN) or "NAME"
ON = click.option(
    "--on",
    metavar=NAMES,
    hidden=not _KNOWN,
    help="Read and score on the nodes of a cluster: a running one, else this machine (docs/cluster.md).",
)
SHARED_DATA = click.option(
    "--shared-data",
    is_flag=True,
    hidden=not _KNOWN,
    help="With --on: every node sees the data under its path here, so send no pages.",
)


def _needs(context: click.Context, option: click.Parameter, value: str | None) -> dict[str, float] | None:
    """`cpus=1,gpus=0.5` as numbers."""
    if value is None:
        return None
    numbers: dict[str, float] = {}
    for part in value.split(","):
        name, _, number = part.strip().partition("=")
        try:
            numbers[name] = float(number)
        except ValueError:
            name = ""
        if name not in ("cpus", "gpus") or not 0 <= numbers[name] < math.inf or numbers.get("cpus") == 0:
            raise click.BadParameter(f"{part.strip()!r} is neither cpus=N above 0 nor gpus=N", context, option)
        if name == "gpus" and numbers[name] > 1 and not numbers[name].is_integer():
            raise click.BadParameter(f"{part.strip()!r}: a part of one GPU, or whole ones", context, option)
    return numbers


WORKER = click.option(
    "--worker",
    callback=_needs,
    hidden=not _KNOWN,
    metavar="cpus=N,gpus=N",
    help="With --on: what one worker of the engine takes. Default: one CPU, and for a server a GPU if there are any.",
)


def open_executor(
    on: str | None, *, shared_data: bool, profiles: Sequence[tuple[str, Profile]] = ()
) -> Executor | None:
    """Return the executor that is asked for, connected; None if none is.

    Raises UsageError for options that go with one, and for settings of these engines that do not.
    """
    if on is None:
        if shared_data:
            raise UsageError("--shared-data goes with --on", hint=f"use --on {NAMES}")
        return None
    known = found("executors")
    name = on.partition(":")[0]
    if name not in known:
        near = did_you_mean(name, known)
        raise UsageError(f"--on {on}: unknown{near}", hint=f"known: {', '.join(known) or 'none'}")
    opened: Executor = known[name].call(on, shared_data, profiles, say)
    return opened
