"""`loupe engine install` and `remove`: environments of engines, made, tried once, and deleted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from loupe.cli.shared.output import say
from loupe.engines.environment import reader_pool
from loupe.engines.environments.making import make, remove, uv_command
from loupe.engines.environments.places import made, megabytes, wanted
from loupe.engines.environments.settings import Settings
from loupe.engines.registry import load_profile, profile_names
from loupe.errors import EngineError, LoupeError, UsageError, word


def install_engines(names: Sequence[str], overrides: Mapping[str, object], *, weights: bool) -> None:
    """Make the environments of these engines, each tried once, and say of each what it is.

    Raises UsageError for an engine that needs none, before anything is installed.
    """
    chosen = [(name, environment_settings(name, overrides)) for name in names]
    uv_command()
    for name, settings in chosen:
        _install(name, settings, weights=weights)


def _install(name: str, settings: Settings, *, weights: bool) -> None:
    environment = wanted(settings)
    say(f"{name}: {settings.title or settings.environment}, licence {settings.licence or 'not stated'}")
    if environment.record is None:
        size = f", {megabytes(environment.download)} to download at most" if environment.download else ""
        say(f"{name}: installing {', '.join(settings.packages)}{size}, into {environment.folder}")
    record = make(settings, lambda line: say(f"{name}: uv: {line}"))
    say(f"{name}: {megabytes(record.size)} on disk, Python {record.python}, made in {record.seconds:g} s")
    if settings.weights:
        say(f"{name}: weights: {settings.weights}")
    _try(name, settings, weights=weights)


def _try(name: str, settings: Settings, *, weights: bool) -> None:
    """Start one worker, and say how long that took, or what it lacks."""
    if weights:
        say(f"{name}: loading with the network open, so that missing weights are fetched")
    began = time.monotonic()
    try:
        asyncio.run(_started(settings, download=weights))
    except EngineError as error:
        if weights:
            raise
        say(f"{name}: installed, but it does not start yet: {error.message}")
        if settings.fetches:
            say(f"{name}: loupe engine install {word(name)} --weights")
    else:
        say(f"{name}: starts in {time.monotonic() - began:.1f} s")


async def _started(settings: Settings, *, download: bool) -> None:
    async with reader_pool(settings, download=download):
        pass


def remove_engines(names: Sequence[str]) -> None:
    """Delete the environments of these engines. Raises UsageError for one that has none."""
    there = {name for name, _, _ in made()}
    chosen = [name if name in there else environment_settings(name, {}).environment for name in names]
    for name, environment in zip(names, chosen, strict=True):
        if environment not in there:
            raise UsageError(f"no environment of {name} is installed", hint="loupe engine list")
        say(f"{name}: removed, {megabytes(remove(environment))} freed (or shared with uv's cache: uv cache clean)")


def environment_settings(name: str, overrides: Mapping[str, object]) -> Settings:
    """The profile of this name, or the first whose environment has it. Raises UsageError for one of another kind."""
    if name not in profile_names() and (found := profile_of(name)):
        name = found
    profile = load_profile(name, overrides)[1]
    if not isinstance(profile, Settings):
        raise UsageError(
            f"engine {name!r} (kind {profile.kind}) has no environment of its own",
            hint=f"loupe engine show {word(name)}",
        )
    return profile


def profile_of(environment: str) -> str:
    """The first profile with this environment, "" where there is none."""
    for name in profile_names():
        try:
            profile = load_profile(name)[1]
        except LoupeError:
            continue
        if isinstance(profile, Settings) and profile.environment == environment:
            return name
    return ""
