"""DeepSeek-OCR without a server: with Transformers in any resolution mode, or with vLLM's offline engine.

Source: deepseek-ai/DeepSeek-OCR @ e4ac34e1, `infer()` of its model repository, vLLM's recipe;
docs/protocols/engines.md#deepseek-ocr and #batch-back-ends, docs/engines/deepseek-ocr-sdk.md. A server cannot change
its mode; this can.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from loupe.data.extras import install_command
from loupe.engines.vendors.opening import SdkSettings, Work, installed, open_package
from loupe.errors import UsageError
from loupe.helpers import for_children
from loupe.metrics.vision_tokens import MODES
from loupe.types import Engine

WAY = "direct"
UNPROVEN = "never run with the model: calls follow the vendor's and vLLM's code, the rest is checked with a stand-in"
_INSTALL_VLLM = "pip install 'vllm>=0.11.1'"


class Settings(SdkSettings, frozen=True, kw_only=True):
    """Keys of the kind `deepseek_ocr`.

    `backend` is "transformers" (any `mode`) or "vllm" (gundam alone: it has no other). `mode` is the resolution mode.
    `tile` is the side of a tile in gundam: 640, and 768 for model 2. `revision` is a commit of the model repository,
    whose code is run: anything else is refused, unless `unpinned_code` is set or `model` is a folder. `ngram_size` and
    `window_size` are the n-gram rule, `allowed_tokens` may always repeat (`<td>`, `</td>`); size 0 leaves Transformers
    to `infer()` itself (no run of 35 twice) and vLLM without any rule. `attention` is Transformers' name of an
    implementation. `vllm` holds further arguments of vLLM's `LLM`.
    """

    backend: Literal["transformers", "vllm"] = "transformers"
    model: str = "deepseek-ai/DeepSeek-OCR"
    revision: str = ""
    unpinned_code: bool = False
    mode: Literal["tiny", "small", "base", "large", "gundam"] = "gundam"
    tile: int = 640
    max_tokens: int = 8192
    ngram_size: int = 30
    window_size: int = 90
    allowed_tokens: list[int] = msgspec.field(default_factory=lambda: [128821, 128822])
    attention: str = "flash_attention_2"
    dpi: float = 144.0
    vllm: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backend == "vllm" and self.mode != "gundam":
            raise ValueError(f'mode = "{self.mode}": vLLM has gundam alone; backend = "transformers" has all modes')
        if self.tile != MODES["gundam"].tile and self.mode != "gundam":
            raise ValueError(f'mode = "{self.mode}": a model with tiles of {self.tile} pixels has gundam alone')
        if self.ngram_size < 0 or self.ngram_size == 1 or self.window_size < 1:
            raise ValueError("ngram_size is 0 or at least 2, and window_size at least 1")

    def signature(self) -> dict[str, str]:
        """The mode, the limit, and the n-gram rule."""
        rule = f"{self.ngram_size}/{self.window_size}" if self.ngram_size else "none"
        return {
            **super().signature(),
            "backend": self.backend,
            "mode": self.mode,
            "max": str(self.max_tokens),
            "t": "0",
            "ngram": rule,
        }


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Load the model in a worker, then yield the engine. Raises MissingToolError without the back end."""
    packages = ("torch", "transformers") if settings.backend == "transformers" else ("vllm",)
    facts = installed(*packages, install=_INSTALL_VLLM if settings.backend == "vllm" else install_command("deepseek"))
    facts |= {"model": settings.model, "backend": settings.backend, "mode": settings.mode}
    _check_code(settings)
    arguments: dict[str, object] = {
        "model": settings.model,
        "revision": settings.revision,
        "max_tokens": settings.max_tokens,
        "rule": {"size": settings.ngram_size, "window": settings.window_size, "allowed": settings.allowed_tokens},
    }
    if settings.backend == "transformers":
        chosen = MODES[settings.mode]
        tile = settings.tile if chosen.tiled else chosen.tile
        sizes = {"base_size": chosen.page, "image_size": tile, "crop_mode": chosen.tiled}
        arguments |= {"sizes": sizes, "attention": settings.attention}
    else:
        arguments |= {"options": settings.vllm}
    work = Work(
        factory=f"loupe.engines.vendors.deepseek_models:load_{settings.backend}",
        arguments=arguments,
        # vLLM asks a server on the internet for its own address unless it has one.
        environment=for_children("servers") | {"VLLM_HOST_IP": "127.0.0.1"},
    )
    async with open_package(settings, work, facts=facts) as engine:
        yield engine


def _check_code(settings: Settings) -> None:
    """Raise UsageError where code would be run that its owner may change at any time."""
    pinned = re.fullmatch(r"[0-9a-f]{40}", settings.revision)
    if not (pinned or settings.unpinned_code or Path(settings.model).is_dir()):
        what = f"revision {settings.revision!r} is no commit" if settings.revision else "no revision is given"
        raise UsageError(
            f"{settings.model} brings code that runs here, and {what}: it may change at any time",
            hint="-o revision=COMMIT (40 characters), or -o unpinned_code=true",
        )
