"""Find the model server that a package asks for every region of a page, and see that it answers and has the model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from loupe.data.certificates import open_client
from loupe.engines.chat.discovery import (
    Addresses,
    Patience,
    addresses_of,
    beside_url,
    get_json,
    join_url,
    located,
    normalize_base_url,
    probe,
    shown,
)
from loupe.engines.chat.endpoints import source_of
from loupe.engines.environments.places import Settings
from loupe.errors import EngineUnavailableError, ProfileError, UsageError, word

_HEALTH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class FoundServer:
    """A model server by its base URL, such as http://127.0.0.1:8080/v1; `variable` named it if no profile did.

    `facts` are for run.json.
    """

    url: str
    variable: str = ""
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """The name or address of the machine."""
        return urlsplit(self.url).hostname or ""

    async def answers(self) -> bool:
        """Return whether it is well: HTTP 200 for its models, or for its health if it lists none.

        Protocol: docs/protocols/engines.md#health-check.
        """
        patience = Patience(_HEALTH_SECONDS, _HEALTH_SECONDS)
        async with open_client() as session:
            for address in (join_url(self.url, "models"), beside_url(self.url, "/health")):
                answer = await get_json(session, address, patience)
                if answer is None:
                    return False
                if answer[0] == 200:
                    return True
        return False


async def server_of(settings: Settings) -> FoundServer | None:
    """The server that a reader asks, which answers and has the model; None if the reader asks none.

    Raises UsageError if it is none, several or a vendor's cloud, EngineUnavailableError if it does not answer or has
    not this model, and what looking for one raises.
    """
    wanted, options = settings.model_server, settings.options
    if wanted is None or not settings.asks_server:
        return None
    server = await one_server(options.get("base_url", ""), wanted.usual)
    if wanted.never and server.host.endswith(tuple(wanted.never)):
        raise UsageError(
            f"{server.host} is the vendor's cloud; Loupe sends no document there",
            hint=f"start a server of your own: {wanted.start}",
        )
    return replace(server, facts=await _facts(server, str(options.get("model", "")), start=wanted.start))


async def one_server(base_url: str | Sequence[str], usual: str = "") -> FoundServer:
    """The server that a profile names, else a variable, else the `usual` one of the package."""
    named = addresses_of(base_url, os.environ)
    urls = named.urls or ((usual,) if usual else ())
    if len(urls) != 1:
        what = f"{len(urls)} servers" if len(urls) > 1 else "no server"
        raise UsageError(f"this engine asks one model server, and got {what}", hint="use --base-url URL")
    try:
        [url] = (await located(Addresses(tuple(urls), named.variable))).urls
        return FoundServer(normalize_base_url(url), named.variable)
    except ValueError as error:
        raise ProfileError(str(error)) from None


async def _facts(server: FoundServer, model: str, *, start: str) -> dict[str, str]:
    """Return what is known of the server; `start` is the command that starts one."""
    async with open_client() as session:
        endpoint = await probe(session, server.url)
    if endpoint is None:
        raise EngineUnavailableError(f"no model server answers at {shown(server.url)}", hint=start)
    if endpoint.needs_key:
        raise EngineUnavailableError(
            f"{shown(server.url)} needs a key, but Loupe passes none to this package", hint=start
        )
    if model and endpoint.model_ids and not {model, f"{model}:latest"} & set(endpoint.model_ids):
        listed = ", ".join(endpoint.model_ids[:10])
        raise EngineUnavailableError(
            f"{shown(server.url)} does not serve {model!r}, only: {listed}",
            hint=f"use --model {word(endpoint.model_ids[0])}",
        )
    return {
        "base_url": shown(server.url),
        "server": endpoint.server,
        **({"model": model} if model else {}),
        **source_of(Addresses((server.url,), server.variable)),
    }
