"""What a server offers before any page is sent: the model that names a run, or shows that a finished one is another's.

Source: docs/protocols/engines.md#discovery.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from loupe.data.certificates import open_client
from loupe.engines.chat.discovery import addresses_of, choose_model, identify, normalize_base_url, probe
from loupe.engines.chat.endpoints import NO_KEY, key_for
from loupe.errors import LoupeError

if TYPE_CHECKING:
    from loupe.engines.chat.settings import Settings


@dataclass(frozen=True, slots=True)
class Offer:
    """The models that a server lists, and the one that answers where none is named; nothing where it does not say."""

    model: str = ""
    listed: tuple[str, ...] = ()


async def offer_of(settings: Settings) -> Offer:
    """What the first server of these settings offers, asked with the key that its pages would be sent with.

    Nothing where it cannot be asked: the engine asks again when it opens, and then says what is wrong.
    """
    try:
        addresses = addresses_of(settings.base_url, os.environ)
        url = normalize_base_url(addresses.urls[0])
        key = key_for(addresses, settings.api_key_env, os.environ)
    except (LoupeError, ValueError, IndexError):
        return Offer()
    headers = {} if key == NO_KEY else {"Authorization": f"Bearer {key}"}
    try:
        async with open_client(headers=headers) as session:
            endpoint = await probe(session, url)
            if endpoint is None:
                return Offer()
            server = await identify(session, endpoint)
    except LoupeError:
        return Offer()
    listed = tuple(endpoint.model_ids)
    try:
        return Offer(choose_model(endpoint, server), listed)
    except LoupeError:
        return Offer("", listed)
