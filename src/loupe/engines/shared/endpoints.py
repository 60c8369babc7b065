"""Reaching the servers of an engine before the first sample: the key, the addresses, the model, what to record.

Source: protocols/engines.md A7 (model ids, server kinds).
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loupe.engines.shared.discovery import (
    AUTO,
    AUTO_FIRST,
    PORTS,
    Endpoint,
    Patience,
    Server,
    as_found,
    choose,
    discover,
    identify,
    is_named,
    normalize_base_url,
    probe,
    shown,
)
from loupe.engines.shared.endpoint_pool import Place
from loupe.errors import EngineUnavailableError, UsageError, word

if TYPE_CHECKING:
    import aiohttp

#: Where an API key is looked for, besides the variable that the profile names; the command line sets the first.
KEY_VARIABLES = ("LOUPE_API_KEY", "OPENAI_API_KEY")
#: What servers without keys are sent.
NO_KEY = "EMPTY"

#: Servers that refuse a model which they do not list, or would download it. Others (gateways, llama-server, which takes
#: any name) may serve more than they say.
_STRICT_SERVERS = {"vllm", "sglang", "mlx_vlm", "ollama", "loupe"}
#: Whether a server says what it is or not, nobody waits longer for it.
_IDENTIFY_SECONDS = 5.0


def api_key(variable: str, environment: Mapping[str, str]) -> str:
    """The API key: LOUPE_API_KEY, else the `variable` that the profile names, else OPENAI_API_KEY, else none.

    Raises EngineUnavailableError if the named variable is not set, or if the key cannot stand in a header.
    """
    ours, usual = KEY_VARIABLES
    key = environment.get(ours, "").strip()
    if not key and variable:
        key = environment.get(variable, "").strip()
        if not key:
            raise EngineUnavailableError(
                f"no API key in the environment variable {variable}", hint=f"export {variable}=KEY"
            )
    key = key or environment.get(usual, "").strip() or NO_KEY
    if not (key.isascii() and key.isprintable()):
        raise EngineUnavailableError("the API key holds characters that no key has", hint="--api-key-file FILE")
    return key


def key_for(base_urls: Sequence[str], variable: str, environment: Mapping[str, str]) -> str:
    """The API key for these servers: none unless a person named each of them. Raises what `api_key` raises."""
    return api_key(variable, environment) if base_urls and all(map(is_named, base_urls)) else NO_KEY


@dataclass(frozen=True, slots=True)
class Found:
    """A server that answers, and what it says that it is."""

    endpoint: Endpoint
    server: Server


async def reach(
    base_urls: Sequence[str],
    session: aiohttp.ClientSession,
    *,
    connect_timeout: float,
    ports: Sequence[int] = PORTS,
) -> list[Found]:
    """Every server to be asked, each of which answers. No URL: the one on this machine."""
    found, silent = await reach_any(base_urls, session, connect_timeout=connect_timeout, ports=ports)
    if silent:
        raise _no_answer(silent[0])
    return found


async def reach_any(
    base_urls: Sequence[str],
    session: aiohttp.ClientSession,
    *,
    connect_timeout: float,
    ports: Sequence[int] = PORTS,
) -> tuple[list[Found], list[str]]:
    """The servers that answer, at least one, and the addresses where nobody answers."""
    urls = list(base_urls) or [AUTO]
    if urls[0] in (AUTO, AUTO_FIRST):
        urls = [as_found(choose(await discover(ports), first=urls[0] == AUTO_FIRST).base_url)]
    patience = Patience(connect_timeout, connect_timeout)
    bases = list(dict.fromkeys(normalize_base_url(url) for url in urls))
    answers = await asyncio.gather(*(probe(session, base, patience) for base in bases))
    named = all(map(is_named, urls))
    found = [_with_key(endpoint, named=named) for endpoint in answers if endpoint is not None]
    silent = [base for base, endpoint in zip(bases, answers, strict=True) if endpoint is None]
    if not found:
        raise _no_answer(silent[0])
    patience = Patience(connect_timeout, _IDENTIFY_SECONDS)
    servers = await asyncio.gather(*(identify(session, endpoint, patience) for endpoint in found))
    return list(map(Found, found, servers)), silent


def _no_answer(base: str) -> EngineUnavailableError:
    return EngineUnavailableError(
        f"no server answers at {shown(base)}", hint="start it, or give its address: --base-url URL"
    )


def _with_key(endpoint: Endpoint, *, named: bool) -> Endpoint:
    if endpoint.needs_key and not named:
        raise EngineUnavailableError(
            f"{shown(endpoint.base_url)} wants a key; it was found and not named, so it was sent none",
            hint=f"if you trust it, name it: --base-url {shlex.quote(endpoint.base_url)}",
        )
    if endpoint.needs_key:
        raise EngineUnavailableError(
            f"{shown(endpoint.base_url)} refuses the key (HTTP {endpoint.status})",
            hint="--api-key-file FILE, or export OPENAI_API_KEY=KEY",
        )
    return endpoint


def check_served(model: str, found: Sequence[Found]) -> None:
    """Raise UsageError where a model that is not listed would be refused for every sample, downloaded, or another's.

    Of several servers that list different models, one that answers to any name would answer with another model.
    """
    differ = len({frozenset(each.endpoint.model_ids) for each in found if each.endpoint.model_ids}) > 1
    for each in found:
        listed = each.endpoint.model_ids
        if (differ or each.server.kind in _STRICT_SERVERS) and listed and not is_listed(model, listed):
            raise UsageError(
                f"{shown(each.endpoint.base_url)} does not serve {model!r}, only: {', '.join(listed[:10])}",
                hint=f"--model {word(listed[0])}",
            )


def places_of(model: str, found: Sequence[Found], silent: Sequence[str]) -> list[Place]:
    """A place for every address; nobody knows yet whether a silent one lists models."""
    lists_it = [is_listed(model, each.endpoint.model_ids) for each in found]
    several = len(found) + len(silent) > 1
    places = [
        Place(
            each.endpoint.base_url,
            lists_models=each.endpoint.models is not None,
            must_list=each.server.kind in _STRICT_SERVERS or (several and listed),
        )
        for each, listed in zip(found, lists_it, strict=True)
    ]
    return places + [Place(url, lists_models=False, must_list=any(lists_it)) for url in silent]


def is_listed(model: str, listed: Sequence[str]) -> bool:
    """Whether a list of models holds this one, in a spelling of it that servers take too.

    Ollama lists `name:latest` and takes `name`; Gemini lists `models/name`; OpenRouter takes variants of what it lists,
    `name:nitro`; others take `name-latest` for the last of `name-2026-01-31`.
    """
    base, _, variant = model.partition(":")
    spellings = {model, f"{model}:latest", f"models/{model}", *([base] if variant and "/" in base else [])}
    family = model.removesuffix("latest") if model.endswith("-latest") else None
    return any(name in spellings or (family and name.startswith(family)) for name in listed)


def server_facts(model: str, found: Sequence[Found], silent: Sequence[str] = ()) -> dict[str, str]:
    """What run.json keeps about the servers, and where else (`silent`) one may come to answer.

    Where several differ, each fact has all values, and `servers_differ` says which server has which.
    """
    told = [_told(model, each) for each in found]
    addresses = [shown(each.endpoint.base_url) for each in found]
    facts = {"model": model, "base_url": ", ".join([*addresses, *map(shown, silent)])}
    facts |= {name: ", ".join(sorted({each[name] for each in told} - {""})) for name in told[0]}
    listed = list(dict.fromkeys(name for each in found for name in each.endpoint.model_ids))
    if listed and not is_listed(model, listed):
        facts["models_listed"] = ", ".join(listed[:10]) + (", …" if len(listed) > 10 else "")
    if any(each != told[0] for each in told):
        facts["servers_differ"] = "; ".join(
            f"{address}: {each['server']} {each['server_version'] or 'of unknown version'}"
            f", context {each['max_model_len'] or 'unknown'}"
            for address, each in zip(addresses, told, strict=True)
        )
    return {key: value for key, value in facts.items() if value}


def unlisted_model(facts: Mapping[str, str]) -> str:
    """What to say of servers that do not list the model that they were asked for; "" where they do, or list none."""
    listed = facts.get("models_listed")
    return (
        f"the server does not list {facts['model']!r}, only: {listed}; it may have answered with that" if listed else ""
    )


def _told(model: str, found: Found) -> dict[str, str]:
    entry = next((entry for entry in found.endpoint.models or () if entry.get("id") == model), {})
    length = str(entry.get("max_model_len") or "")
    return {"server": found.server.kind, "server_version": found.server.version, "max_model_len": length}
