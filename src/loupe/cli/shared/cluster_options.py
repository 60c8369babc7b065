"""Options for reading and scoring on many machines (`--on ray`); nothing of a cluster is imported without them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from loupe.cli.shared.output import say
from loupe.errors import UsageError

if TYPE_CHECKING:
    from loupe.cluster.cluster import Cluster
    from loupe.engines.registry import Profile

ON = click.option(
    "--on",
    metavar="ray",
    help="Read and score on the nodes of a Ray cluster: a running one, else this machine (docs/cluster.md).",
)
SHARED_DATA = click.option(
    "--shared-data", is_flag=True, help="With --on: every node sees the data under its path here, so send no pages."
)


def _needs(context: click.Context, option: click.Parameter, value: str | None) -> dict[str, float] | None:
    """`cpus=1,gpus=0.5` as numbers."""
    if value is None:
        return None
    found: dict[str, float] = {}
    for part in value.split(","):
        name, _, number = part.strip().partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            name = ""
        if name not in ("cpus", "gpus") or not 0 <= found[name] < math.inf or found.get("cpus") == 0:
            raise click.BadParameter(f"{part.strip()!r} is neither cpus=N above 0 nor gpus=N", context, option)
        if name == "gpus" and found[name] > 1 and not found[name].is_integer():
            raise click.BadParameter(f"{part.strip()!r}: a part of one GPU, or whole ones", context, option)
    return found


WORKER = click.option(
    "--worker",
    callback=_needs,
    metavar="cpus=N,gpus=N",
    help="With --on: what one worker of the engine takes. Default: one CPU, and for a server a GPU if there are any.",
)


def open_cluster(on: str | None, *, shared_data: bool, profiles: Sequence[tuple[str, Profile]] = ()) -> Cluster | None:
    """The cluster that is asked for, connected; None where none is.

    Raises UsageError for options that go with one, and for settings of these engines that do not.
    """
    if on is None:
        given = next((f"--{flag}" for flag, is_given in (("shared-data", shared_data),) if is_given), "")
        if given:
            raise UsageError(f"{given} goes with --on", hint="--on ray")
        return None
    from loupe.cluster.cluster import Cluster, check_profile, runs_on_nodes
    from loupe.cluster.connection import check_address

    check_address(on)
    for _, profile in profiles:
        check_profile(profile)
    for label in dict.fromkeys(label for label, profile in profiles if not runs_on_nodes(profile)):
        say(f"{label} is asked from this machine: a client needs no cluster; scoring runs there")
    passed = {name for _, profile in profiles for name in getattr(profile, "pass_env", ())}
    cluster = Cluster(on, shared_data=shared_data, passed=passed)
    where = "no Ray cluster is running: started one on this machine" if cluster.is_started_here else "Ray cluster"
    say(f"{where}: {cluster.called()}")
    return cluster
