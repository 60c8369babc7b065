"""Reaching the servers of an engine before the first sample: the key, the addresses, the model, what to record.

Source: protocols/engines.md A7 (model ids, server kinds).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from loupe.engines.shared.discovery import (
    AUTO,
    AUTO_FIRST,
    PORTS,
    Endpoint,
    Patience,
    Server,
    choose,
    discover,
    identify,
    normalize_base_url,
    probe,
    shown,
)
from loupe.errors import EngineUnavailableError, UsageError

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
        raise EngineUnavailableError("the API key holds characters that no key has", hint="--api-key KEY")
    return key


async def reach(
    base_urls: Sequence[str],
    session: aiohttp.ClientSession,
    *,
    connect_timeout: float,
    ports: Sequence[int] = PORTS,
) -> tuple[list[Endpoint], Server]:
    """Every server to be asked, each of which answers, and what the first one is. No URL: the one on this machine."""
    found, server, silent = await reach_any(base_urls, session, connect_timeout=connect_timeout, ports=ports)
    if silent:
        raise _no_answer(silent[0])
    return found, server


async def reach_any(
    base_urls: Sequence[str],
    session: aiohttp.ClientSession,
    *,
    connect_timeout: float,
    ports: Sequence[int] = PORTS,
) -> tuple[list[Endpoint], Server, list[str]]:
    """The servers that answer, at least one, what the first of them is, and the addresses where nobody answers."""
    urls = list(base_urls) or [AUTO]
    if urls[0] in (AUTO, AUTO_FIRST):
        urls = [choose(await discover(ports), first=urls[0] == AUTO_FIRST).base_url]
    patience = Patience(connect_timeout, connect_timeout)
    bases = list(dict.fromkeys(normalize_base_url(url) for url in urls))
    answers = await asyncio.gather(*(probe(session, base, patience) for base in bases))
    found = [_with_key(endpoint) for endpoint in answers if endpoint is not None]
    silent = [base for base, endpoint in zip(bases, answers, strict=True) if endpoint is None]
    if not found:
        raise _no_answer(silent[0])
    return found, await identify(session, found[0], Patience(connect_timeout, _IDENTIFY_SECONDS)), silent


def _no_answer(base: str) -> EngineUnavailableError:
    return EngineUnavailableError(
        f"no server answers at {shown(base)}", hint="start it, or give its address: --base-url URL"
    )


def _with_key(endpoint: Endpoint) -> Endpoint:
    if endpoint.needs_key:
        raise EngineUnavailableError(
            f"{shown(endpoint.base_url)} refuses the key (HTTP {endpoint.status})",
            hint="--api-key KEY, or export OPENAI_API_KEY=KEY",
        )
    return endpoint


def check_served(model: str, endpoints: Sequence[Endpoint], server: Server) -> None:
    """Raise UsageError where a model that is not listed would be refused for every sample, or downloaded."""
    for endpoint in endpoints if server.kind in _STRICT_SERVERS else ():
        if endpoint.model_ids and not _is_listed(model, endpoint.model_ids):
            listed = ", ".join(endpoint.model_ids[:10])
            raise UsageError(
                f"{shown(endpoint.base_url)} does not serve {model!r}, only: {listed}",
                hint=f"--model {endpoint.model_ids[0]}",
            )


def _is_listed(model: str, listed: Sequence[str]) -> bool:
    """Whether a list of models holds this one, in a spelling of it that servers take too.

    Ollama lists `name:latest` and takes `name`; Gemini lists `models/name`; OpenRouter takes variants of what it lists,
    `name:nitro`; others take `name-latest` for the last of `name-2026-01-31`.
    """
    base, _, variant = model.partition(":")
    spellings = {model, f"{model}:latest", f"models/{model}", *([base] if variant and "/" in base else [])}
    family = model.removesuffix("latest") if model.endswith("-latest") else None
    return any(name in spellings or (family and name.startswith(family)) for name in listed)


def server_facts(
    model: str, endpoints: Sequence[Endpoint], server: Server, silent: Sequence[str] = ()
) -> dict[str, str]:
    """What run.json keeps about the server, and where else (`silent`) it may come to answer."""
    entry = next((entry for entry in endpoints[0].models or () if entry.get("id") == model), {})
    facts = {
        "model": model,
        "base_url": ", ".join(map(shown, [*(endpoint.base_url for endpoint in endpoints), *silent])),
        "server": server.kind,
        "server_version": server.version,
        "max_model_len": str(entry.get("max_model_len") or ""),
    }
    return {key: value for key, value in facts.items() if value}
