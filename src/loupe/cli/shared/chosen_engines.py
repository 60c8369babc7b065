"""Choose the engines a command reads with, and what its options change in their profiles."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from loupe.cli.shared.engine_settings import caution, differences, given_prompt, settings_of
from loupe.cli.shared.flags import Flags
from loupe.cli.shared.output import can_ask, prompt, say
from loupe.cli.shared.server_options import (
    SERVER_OVERRIDES,
    check_serve,
    check_server_settings,
    check_variables,
    find_server,
    served_by,
    served_model,
    sized,
)
from loupe.data.extras import install_command
from loupe.engines.chat.discovery import is_named
from loupe.engines.chat.endpoints import GIVEN_KEY
from loupe.engines.registry import Profile, engine_kinds, load_profile, profile_names, slug
from loupe.errors import EngineUnavailableError, ProfileError, UsageError, word

#: Option → the profile key that it overrides.
OVERRIDES = {
    "base_url": "base_url",
    "model": "model",
    "concurrency": "concurrency",
    "timeout": "timeout",
    "retries": "retries",
    "max_tokens": "max_tokens",
    "retry_truncated": "retry_truncated",
    "temperature": "temperature",
    "image": "image",
    "worker": "worker",
    **SERVER_OVERRIDES,
}

#: The engine of who names none and runs no server.
DEFAULT = "rapidocr"
#: Settings that speak of a server: with one of them, reading with a local engine would be a surprise.
SERVER_ONLY = frozenset({"base_url", "model", "max_tokens", "retry_truncated", "temperature", "image"})


def open_engines(flags: Flags) -> list[tuple[str, Profile]]:
    """The engines asked for, checked, and what has to be said of their settings said."""
    engines = choose_engines(flags)
    for label, profile in engines:
        for line in differences(profile):
            say(f"{label} is not as in {profile.version.partition('+')[0]}: {line}")
        if unproven := caution(profile):
            say(f"{label}: {unproven}")
        for need in profile.needs:
            say(f"{label} needs: {need}")
    check_server_settings(override_table(flags), engines)
    check_variables(engines)
    agree_to_send([profile for _, profile in engines], yes=flags.yes)
    return sized(engines, flags.size, override_table(flags))


def agree_to_send(profiles: Sequence[Profile], *, yes: bool) -> None:
    """Say which hosts pages are sent to, and ask for those that a profile names. Raises UsageError where they may not.

    A host that the user has named as a server of his own is only said.
    """
    for host in dict.fromkeys(host for profile in profiles for host in profile.hosts):
        say(f"sends pages to {host}")
    if yes or not any(profile.services for profile in profiles):
        return
    if not can_ask() or prompt("Send them? [y/N]").casefold() not in ("y", "yes"):
        raise UsageError("nothing was sent", hint="use --yes to send pages without asking")


def engine_names(flags: Flags) -> list[str]:
    """The engines that the command line names."""
    return [*flags.engine, *(name.strip() for name in flags.engines.split(",") if name.strip())]


def choose_engines(flags: Flags) -> list[tuple[str, Profile]]:
    """The engines named, with overrides applied; with none named, the server given or found here, else `DEFAULT`."""
    names = engine_names(flags)
    overrides = override_table(flags)
    check_serve(overrides)
    _check_one_server(names, overrides)
    if names:
        return configure_each(list(dict.fromkeys(names)), overrides)
    if flags.serve:
        model = flags.model or served_by(flags.serve)
        _, profile = configure("openai", {**overrides, "model": model})
        return [(_run_label(slug(model)), profile)]
    try:
        server = find_server(overrides.get("base_url", ()))
    except EngineUnavailableError as error:
        if overrides.keys() & SERVER_ONLY or flags.settings:
            error.hint = error.hint.partition("; without a server")[0]  # these settings speak of one
            raise
        if find_spec(DEFAULT) is None:
            error.hint += f", which comes with: {install_command(DEFAULT)}"
            raise
        say(f"no model server answers on this machine: reading with {DEFAULT} (-e NAME or --base-url URL to choose)")
        return [configure(DEFAULT, overrides)]
    if not is_named(server):  # The engine knows the variables itself, and which keys do not go with them.
        overrides["base_url"] = server
    label, profile = configure("openai", overrides)
    model = slug(flags.model or served_model(profile) or label)
    return [(model if model == label else _run_label(model), profile)]


def _check_one_server(names: Sequence[str], overrides: Mapping[str, Any]) -> None:
    """Raise UsageError where one address or key is given for several engines, one of which has a server of its own."""
    given = "--base-url" if "base_url" in overrides else "--api-key-file" if GIVEN_KEY in os.environ else ""
    if not given:
        return
    servers = {name: getattr(configure(name, {})[1], "base_url", None) for name in names}
    asking = {name: url for name, url in servers.items() if url is not None}
    own = next((name for name, url in asking.items() if url), "")
    if own and len(asking) > 1:
        raise UsageError(
            f"{given} is for one server, but {own} sets its own", hint=f"use a separate command for -e {word(own)}"
        )


def _run_label(model: str) -> str:
    """Name the runs of a served model: those of a served tesseract are not the local engine's."""
    return f"{model}-server" if model in profile_names() or model in engine_kinds() else model


def override_table(flags: Flags) -> dict[str, Any]:
    """Profile keys that the command line sets."""
    given = {key: getattr(flags, option) for option, key in OVERRIDES.items()}
    table = {key: list(value) if isinstance(value, tuple) else value for key, value in given.items()}
    table = {key: value for key, value in table.items() if value not in (None, [])}
    if twice := next((key for key in flags.settings if key in table), None):
        raise UsageError(f"-o {twice} and --{_flag(twice)} set the same", hint="leave one of them out")
    prompt = given_prompt(flags.prompt, flags.prompt_file)
    return table | flags.settings | ({} if prompt is None else {"prompts": {"*": prompt}})


def _flag(key: str) -> str:
    return next(flag for flag, each in OVERRIDES.items() if each == key).replace("_", "-")


def configure_each(names: Sequence[str], overrides: Mapping[str, Any]) -> list[tuple[str, Profile]]:
    """Engines, each with those of the overrides that it has a setting for.

    Raises UsageError for one that none of them has.
    """
    if len(names) == 1:
        return [configure(names[0], overrides)]
    fields = {name: settings_of(name) for name in names}
    engines = [configure(name, {key: overrides[key] for key in overrides if key in fields[name]}) for name in names]
    if nobodys := overrides.keys() - {key for known in fields.values() for key in known}:
        given = ", ".join(map(_as_given, sorted(nobodys)))
        raise UsageError(
            f"none of {', '.join(names)} has a setting for {given}", hint="see its settings: loupe engine show NAME"
        )
    return engines


def _as_given(key: str) -> str:
    """A setting as the command line gave it."""
    return f"--{_flag(key)}" if key in OVERRIDES.values() else f"-o {key}"


def configure(name: str, overrides: Mapping[str, Any]) -> tuple[str, Profile]:
    """One engine with overrides. Raises UsageError for an option that this kind of engine does not have."""
    try:
        return load_profile(name, overrides)
    except ProfileError as error:
        option = next((key for key in overrides if f"unknown key {key!r}" in error.message), None)
        if option is None:
            raise _blaming_the_option(error, overrides) or error from None
    except UsageError as error:
        raise _misplaced_profile(name) or error from None
    raise UsageError(
        f"engine {name!r} has no setting for {_as_given(option)}",
        hint=f"see its settings: loupe engine show {word(name)}",
    )


def _blaming_the_option(error: ProfileError, overrides: Mapping[str, Any]) -> UsageError | None:
    """The error without the profile's file where the command line gave the value that is wrong."""
    _, _, wrong = error.message.partition(": ")
    given = re.match(r"[a-z_]+", wrong)
    if given is None or given[0] not in overrides:
        return None
    said = f"--{_flag(given[0])}: {wrong}" if given[0] in OVERRIDES.values() else f"-o {wrong}"
    return UsageError(said, hint=error.hint)


def _misplaced_profile(name: str) -> UsageError | None:
    """The complaint about a profile that stands in loupe.toml under [engine.NAME], where nobody looks for it."""
    from loupe.engines.shared.local_settings import read_settings

    try:
        local = read_settings()
    except ProfileError:
        return None
    if local is None or name not in local.table("engine"):
        return None
    return UsageError(
        f"no engine {name!r}; loupe.toml has a table [engine.{name}], but profiles belong under [engines.NAME]",
        hint="sed -i.old 's/^\\[engine\\./[engines./' loupe.toml",
    )
