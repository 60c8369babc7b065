"""The model server that a package asks for every region of a page: one address, and whether somebody answers there."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
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
from loupe.errors import EngineUnavailableError, ProfileError, UsageError, word

_HEALTH_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A model server by its base URL, such as http://127.0.0.1:8080/v1; `variable` names it where no profile does."""

    url: str
    variable: str = ""

    @property
    def host(self) -> str:
        """The name or address of the machine."""
        return urlsplit(self.url).hostname or ""

    async def answers(self) -> bool:
        """Whether it says that it is well: HTTP 200 for its models, or for its health where it lists none.

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


async def one_server(base_url: str | Sequence[str], usual: str = "") -> ModelServer:
    """The server that a profile names, else a variable, else the `usual` one of the package.

    Raises UsageError for none, for several, and for what is no address, and what looking for one raises.
    """
    named = addresses_of(base_url, os.environ)
    urls = named.urls or ((usual,) if usual else ())
    if len(urls) != 1:
        what = f"{len(urls)} servers" if len(urls) > 1 else "no server"
        raise UsageError(f"this engine asks one model server, and got {what}", hint="use --base-url URL")
    try:
        [url] = (await located(Addresses(tuple(urls), named.variable))).urls
        return ModelServer(normalize_base_url(url), named.variable)
    except ValueError as error:
        raise ProfileError(str(error)) from None


async def reach_server(server: ModelServer, model: str, *, start: str) -> dict[str, str]:
    """Facts about the server. Raises EngineUnavailableError where none answers, or where it has not this model.

    `start` is the command that starts such a server.
    """
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
        **source_of(Addresses((server.url,), server.variable)),
    }
