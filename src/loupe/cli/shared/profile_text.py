"""A profile as people read it: a TOML file that could be used as it stands, with its sources and server commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from loupe.cli.shared.engine_settings import caution
from loupe.data.toml import as_toml, toml_key
from loupe.engines.chat.settings import Settings
from loupe.engines.registry import Profile
from loupe.servers.templates import templates
from loupe.servers.wanted import wanted_server

#: Groups of keys in the order in which they are shown; all others follow them.
_GROUPS = {
    "description": ("kind", "title", "version", "sources", "licence", "needs"),
    "the environment: what is installed, and from where weights come": (
        *("environment", "packages", "lock", "python", "weights", "unproven", "programs"),
        *("reader", "reads", "variables", "sends_to", "may_reach"),
    ),
    "request": (
        *("base_url", "model", "image", "max_tokens", "max_tokens_field", "retry_truncated", "temperature", "top_p"),
        *("retry_temperatures", "retry_if"),
        *("top_k", "min_p", "repetition_penalty", "seed", "stop", "system", "content_order", "extra_body"),
    ),
    "how a page is split into regions and reassembled": (
        *("detector", "detector_model", "detector_revision", "threshold", "thresholds", "nesting", "trim_formulas"),
        *("images", "dpi", "longest", "region_adapters", "layout_timeout"),
    ),
    "how answers are processed before scoring": ("answer_from", "adapters"),
    "patience": ("concurrency", "timeout", "connect_timeout", "retries", "errors_before_check", "max_timeouts"),
}

#: Tables of engines in environments, and what to say above each.
_FURTHER = {
    "options": "what the reader is given: -o NAME=VALUE sets one of these",
    "choices": "the values that some of them may have",
    "model_server": "the model server that the reader asks at --base-url",
}


def lines_of(name: str, profile: Profile) -> Iterator[str]:
    """The profile as lines of TOML; what is not set stands in a comment, and so do commands."""
    stored = profile.stored()
    # An empty system message is sent; nothing else is said by nothing.
    settings = {
        key: value for key, value in stored.items() if value not in (None, "", [], {}) or (key, value) == ("system", "")
    }
    apart = {"prompts", "servers", "unproven", *_FURTHER}
    plain = {key: value for key, value in settings.items() if key not in apart}
    if unproven := caution(profile):
        yield f"# {unproven}"
    for title, keys in _grouped(plain).items():
        yield f"# {title}"
        for key in keys:
            yield from _setting(key, plain[key])
        yield ""
    yield from _unset([key for key in stored if key not in settings])
    yield from _tables("prompts", "prompts, by benchmark or by task", settings.get("prompts", {}))
    for key, comment in _FURTHER.items():
        yield from _tables(key, comment, settings.get(key, {}))
    commands = server_commands(profile)
    for kind, table in settings.get("servers", {}).items():
        comment = f"loupe run BENCHMARK -e {name} --serve {kind} starts: {commands[kind]}"
        yield from _tables(f"servers.{kind}", comment, table)


def server_commands(profile: Profile) -> dict[str, str]:
    """The command line of each kind of server that the profile has arguments for."""
    if not isinstance(profile, Settings):
        return {}
    found = {}
    for kind in profile.servers:
        wanted = wanted_server(msgspec.structs.replace(profile, serve=kind))
        if wanted is not None:
            found[kind] = shlex.join(wanted.shown(wanted.port or templates()[wanted.kind].port))
    return found


def _grouped(settings: Mapping[str, Any]) -> dict[str, list[str]]:
    groups = {title: [key for key in keys if key in settings] for title, keys in _GROUPS.items()}
    named = {key for keys in groups.values() for key in keys}
    groups["further settings"] = [key for key in settings if key not in named]
    return {title: keys for title, keys in groups.items() if keys}


def _setting(key: str, value: Any) -> Iterator[str]:
    if key not in ("sources", "needs"):
        yield f"{key} = {as_toml(value)}"
        return
    yield f"{key} = ["
    yield from (f"    {as_toml(each)}," for each in value)
    yield "]"


def _unset(keys: list[str]) -> Iterator[str]:
    if keys:
        yield f"# not set: {', '.join(keys)}"


def _tables(name: str, comment: str, table: Mapping[str, Any]) -> Iterator[str]:
    if table:
        yield ""
        yield f"# {comment}"
        yield f"[{name}]"
        yield from (f"{toml_key(key)} = {as_toml(value)}" for key, value in table.items())
