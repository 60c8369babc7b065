"""The plan of `loupe size` for a server that is to be started, and a profile with it.

Source: docs/sizing.md. Planned arguments take the place of the profile's of the same name; its others stay, and what
the command line gives comes last.
"""

from __future__ import annotations

import os
from typing import Any, Final

import msgspec

from loupe.cli.shared.server_options import ServerPlan
from loupe.engines.chat.settings import Settings
from loupe.errors import UsageError
from loupe.features.size.detection import card
from loupe.features.size.models_and_cards import Dtype, model_facts
from loupe.features.size.plan import Sizing, plan
from loupe.servers.wanted import from_words, wanted_server

#: The only server whose arguments are planned.
_KIND: Final = "vllm"
_DTYPES: Final[dict[str, Dtype]] = {"fp8": "fp8", "bf16": "bf16"}


def plan_server(profile: Settings, size: str, embedding: bool = False) -> ServerPlan:
    """Plan the server that a profile wants for a card: `auto`, H100, 80, each with `:bf16` or `:fp8` behind it.

    Raises UsageError for another kind of server, an unknown card or model, no GPU, and a model that does not fit.
    """
    sizing = _sizing(profile, size, embedding=embedding)
    numbers = {
        "sequences": sizing.max_num_seqs,
        "requests in flight": sizing.workers,
        "pages in the layout model": sizing.layout_batch,
        "figures in flight": sizing.embed_batch_image,
        "texts per request": sizing.embed_batch_text,
    }
    said = ", ".join(f"{value:,} {what}" for what, value in numbers.items() if value is not None)
    gpu = f"{float(sizing.gpu_gb):g} GB {sizing.gpu}".strip()
    return ServerPlan(
        profile=_with_plan(profile, sizing),
        model=sizing.model,
        remarks=(f"sized for {gpu}, weights in {sizing.dtype.upper()}: {said}", *sizing.notes),
        workers=sizing.workers,
        layout_batch=sizing.layout_batch,
        image_batch=sizing.embed_batch_image,
        text_batch=sizing.embed_batch_text,
    )


def _sizing(profile: Settings, size: str, *, embedding: bool) -> Sizing:
    wanted = wanted_server(profile, embedding=embedding)
    if wanted is None or wanted.kind != _KIND:
        raise UsageError("--size plans the arguments of vLLM", hint="use --serve vllm --size auto")
    name, _, dtype = size.partition(":")
    if dtype and dtype not in _DTYPES:
        raise UsageError(f"--size {size[:40]}: {dtype[:40]!r} is no type of weights", hint=f"use --size {name}:bf16")
    gpus = [gpu.strip() for gpu in profile.gpus.split(",") if gpu.strip()]
    try:
        chosen = card(name, gpus, os.environ)
        found = plan(model_facts(wanted.model), chosen, dtype=_DTYPES.get(dtype), tensor_parallel=max(len(gpus), 1))
    except UsageError as error:
        raise UsageError(f"--size {size[:40]}: {error.message}", hint=error.hint) from None
    if not found.fits:
        raise UsageError(f"--size {size[:40]}: {found.model} {found.notes[-1]}", hint="show what fits: loupe size")
    return found


def _with_plan(profile: Settings, sizing: Sizing) -> Settings:
    """The profile whose server is started as planned."""
    planned: dict[str, Any] = {
        argument.name.replace("-", "_"): argument.values[0] if argument.values else True
        for argument in from_words(sizing.arguments)
    }
    own = {key: value for key, value in profile.servers.get(_KIND, {}).items() if key.replace("-", "_") not in planned}
    return msgspec.structs.replace(profile, servers={**profile.servers, _KIND: own | planned})
