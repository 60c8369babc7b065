"""A finished run that is asked for again: whether the server that was named now is still that of its model."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import msgspec

from loupe.engines.chat.discovery import addresses_of
from loupe.engines.chat.endpoints import Offer, is_listed, offer_of
from loupe.engines.chat.settings import Settings
from loupe.engines.registry import Profile
from loupe.runs.folder import RunFolder, check_same


async def check_finished(folder: RunFolder, profile: Profile) -> str:
    """Who answered and when, in one line, where no server says that it is still the same model; "" where one does.

    Raises RunError where the server that was named has another model: it would be taken for this one's result.
    """
    facts = folder.info.facts
    if "base_url" not in facts:
        return ""
    model = facts.get("model", "")
    offer = await offer_of(profile) if isinstance(profile, Settings) and _leaves_it_open(profile) else Offer()
    if model and offer.listed and not offer.model and is_listed(model, offer.listed):
        return _by_whom(folder)
    if model and (now := offer.model or ", ".join(offer.listed)):
        check_same(folder.path, folder.info, msgspec.structs.replace(folder.info, facts={**facts, "model": now}))
        return ""
    return _by_whom(folder)


def _leaves_it_open(settings: Settings) -> bool:
    """Whether a server that a person named decides about the model."""
    return not (settings.model or settings.serve) and addresses_of(settings.base_url, os.environ).are_named


def _by_whom(folder: RunFolder) -> str:
    info = folder.info
    last = max(folder.prediction_places().values(), key=lambda place: place.offset)
    ended = folder.read_prediction(last).ended
    when = datetime.fromtimestamp(ended, UTC) if isinstance(ended, float) else datetime.fromisoformat(info.created)
    who = info.facts.get("model") or info.engine
    return f"finished on {when:%Y-%m-%d %H:%M} UTC by {who} at {info.facts['base_url']}; nothing was asked"
