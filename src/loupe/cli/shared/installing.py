"""`loupe engine install` and `remove`: environments of engines, made, tried once, and deleted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from loupe.cli.shared.output import say
from loupe.engines.environment import reader_pool
from loupe.engines.environments.making import make, remove, uv_command
from loupe.engines.environments.places import Settings, made, wanted
from loupe.engines.registry import load_profile, profile_names
from loupe.errors import EngineError, LoupeError, UsageError, word
from loupe.quantities import size


def install_engines(names: Sequence[str], overrides: Mapping[str, object], *, weights: bool) -> list[dict[str, object]]:
    """Make the environments of these engines, each tried once, and say and return of each what it is.

    Raises UsageError for an engine that needs none, before anything is installed.
    """
    chosen = [(name, environment_settings(name, overrides)) for name in names]
    uv_command()
    return [_install(name, settings, weights=weights) for name, settings in chosen]


def _install(name: str, settings: Settings, *, weights: bool) -> dict[str, object]:
    environment = wanted(settings)
    say(f"{name}: {settings.title or settings.environment}, licence {settings.licence or 'not stated'}")
    if environment.record is None:
        told = f", {size(environment.download)} to download at most" if environment.download else ""
        say(f"{name}: installing {', '.join(settings.packages)}{told}, into {environment.folder}")
    record = make(settings, lambda line: say(f"{name}: uv: {line}"))
    say(f"{name}: {size(record.size)} on disk, Python {record.python}, made in {record.seconds:g} s")
    if settings.weights:
        say(f"{name}: weights: {settings.weights}")
    return {
        "engine": name,
        "environment": settings.environment,
        "folder": str(environment.folder),
        "bytes": record.size,
        "python": record.python,
        "problem": _try(name, settings, weights=weights),
    }


def _try(name: str, settings: Settings, *, weights: bool) -> str:
    """Start one worker, and say how long that took, or what it lacks; that is returned, "" for nothing."""
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
        return error.message
    say(f"{name}: starts in {time.monotonic() - began:.1f} s")
    return ""


async def _started(settings: Settings, *, download: bool) -> None:
    async with reader_pool(settings, download=download):
        pass


def remove_engines(names: Sequence[str]) -> list[dict[str, object]]:
    """Delete the environments of these engines, and say and return what each had. Raises UsageError for one without."""
    there = {name for name, _, _ in made()}
    chosen = [name if name in there else environment_settings(name, {}).environment for name in names]
    removed: list[dict[str, object]] = []
    for name, environment in zip(names, chosen, strict=True):
        if environment not in there:
            raise UsageError(f"no environment of {name} is installed", hint="list the engines: loupe engine list")
        freed = remove(environment)
        say(f"{name}: removed, {size(freed)} freed (or shared with uv's cache: uv cache clean)")
        removed.append({"engine": name, "environment": environment, "bytes": freed})
    return removed


def environment_settings(name: str, overrides: Mapping[str, object]) -> Settings:
    """The profile of this name, or the first whose environment has it. Raises UsageError for one of another kind."""
    if name not in profile_names() and (found := profile_of(name)):
        name = found
    profile = load_profile(name, overrides)[1]
    if not isinstance(profile, Settings):
        raise UsageError(
            f"engine {name!r} (kind {profile.kind}) has no environment of its own",
            hint=f"see its settings: loupe engine show {word(name)}",
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
