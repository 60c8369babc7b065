"""GLM-OCR's own pipeline, package `glmocr`: layout model here, every region asked of a model server of yours.

Source: zai-org/GLM-OCR @ cef4d0ea (0.1.5); docs/protocols/engines.md#glm-ocr, docs/engines/glm-ocr-sdk.md. By itself
the package sends documents to a cloud, and a key in the environment is enough for that: here it never does
(`_own_config`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

import msgspec

from loupe.data.extras import install_command
from loupe.engines.chat.discovery import beside_url, join_url
from loupe.engines.registry import WHOLE_PAGES
from loupe.engines.vendors.opening import SdkSettings, Work, installed, open_package
from loupe.engines.vendors.outbound import Outbound, loading, reading_here, without_proxies
from loupe.engines.vendors.regions import WHOLE, region
from loupe.engines.vendors.servers import one_server, reach_server
from loupe.engines.workers.worker import Loaded
from loupe.errors import EngineError, EngineUnavailableError, UsageError
from loupe.files.scratch import scratch_folder
from loupe.helpers import for_children
from loupe.types import Engine, Output, Request

WAY = "pipeline"
JOINS, MARGINS = "an empty line", "left out"
UNPROVEN = "never run with its models: glmocr 0.1.5 ran with a stand-in for its layout model and for the model server"
_EXTRA = "glmocr"
#: Where the package looks for its server.
_USUAL = "http://127.0.0.1:8080/v1"
_START = "vllm serve zai-org/GLM-OCR --port 8080 --served-model-name glm-ocr"
_MODELS = "hf download PaddlePaddle/PP-DocLayoutV3_safetensors"
#: Where the vendor's cloud is.
_CLOUD = ("bigmodel.cn", "z.ai")
#: What the package's log says, as a warning, of a page whose layout model failed; the page is then empty.
_NO_LAYOUT = "Layout detection failed"


class Settings(SdkSettings, frozen=True, kw_only=True):
    """Keys of the kind `glmocr`.

    `base_url` is the model server (nothing: a variable's, else port 8080 of this machine), `model` its name there;
    `api_mode` is "openai" or, for Ollama, "ollama_generate".
    Sampling and `max_tokens` are for each region. `region_workers` regions are asked at a time, each for at most
    `region_timeout` seconds and `region_retries` times more. `layout_device` is "cpu", "cuda", "cuda:1"; "" is the
    package's choice. `config` overrides anything else of the package's config.yaml, as `[config.pipeline.layout]`.
    """

    gives: ClassVar[frozenset[str] | None] = WHOLE_PAGES

    base_url: str | list[str] = ""
    model: str = "glm-ocr"
    api_mode: Literal["openai", "ollama_generate"] = "openai"
    max_tokens: int = 8192
    temperature: float = 0.0
    top_p: float = 0.00001
    top_k: int = 1
    repetition_penalty: float = 1.1
    region_workers: int = 32
    region_timeout: int = 120
    region_retries: int = 2
    layout_device: str = ""
    config: dict[str, Any] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        pipeline = self.config.get("pipeline", {})
        if "maas" in self.config or (isinstance(pipeline, dict) and "maas" in pipeline):
            raise ValueError("config.pipeline.maas: that is the vendor's cloud, and Loupe sends no document there")

    def signature(self) -> dict[str, str]:
        """The image, and what steers sampling."""
        return {**super().signature(), "max": str(self.max_tokens), "t": f"{self.temperature:g}"}

    def defining(self) -> dict[str, Any]:
        """How many regions are asked at a time changes no answer."""
        return {key: value for key, value in super().defining().items() if key != "region_workers"}


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Check package and server, load the layout model, then yield the engine.

    Raises MissingToolError without the package, EngineUnavailableError without the server, UsageError for the cloud.
    """
    facts = installed("glmocr", install=install_command(_EXTRA))
    server = await one_server(settings.base_url, _USUAL)
    if server.host.endswith(_CLOUD):
        raise UsageError(f"{server.host} is the vendor's cloud; Loupe sends no document there", hint=_START)
    facts |= await reach_server(server, settings.model, start=_START) | {"model": settings.model, "mode": "selfhosted"}
    environment = for_children()
    work = Work(
        factory="loupe.engines.glmocr:load",
        arguments={
            "config": _own_config(settings, server.url),
            "layout_device": settings.layout_device or None,
            "host": server.host,
        },
        environment=without_proxies(environment, [server.host]),
    )
    async with open_package(settings, work, facts=facts, healthy=server.answers) as engine:
        yield engine


def _own_config(settings: Settings, url: str) -> dict[str, Any]:
    """What is not as in the package's config.yaml. Its cloud is off, and has no address and no key."""
    is_ollama = settings.api_mode == "ollama_generate"
    path = beside_url(url, "/api/generate") if is_ollama else join_url(url, "chat/completions")
    sampling = ("max_tokens", "temperature", "top_p", "top_k", "repetition_penalty")
    ours = {
        "pipeline": {
            "maas": {"enabled": False, "api_url": "http://127.0.0.1:9/", "api_key": None},
            "ocr_api": {
                "api_url": path,
                "model": settings.model,
                "api_mode": settings.api_mode,
                "request_timeout": settings.region_timeout,
                "retry_max_attempts": settings.region_retries,
            },
            "max_workers": settings.region_workers,
            "page_loader": {name: getattr(settings, name) for name in sampling},
        },
        "logging": {"level": "WARNING"},
    }
    return merged(ours, settings.config)


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A table with another laid over it, table by table.

    >>> merged({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}})
    {'a': {'b': 3, 'c': 2}}
    """
    found = dict(base)
    for key, value in over.items():
        below = found.get(key)
        found[key] = merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return found


def load(*, config: dict[str, Any], layout_device: str | None, host: str, download: bool) -> Loaded:
    """The engine as a worker uses it. Raises EngineUnavailableError if the package would use the cloud all the same."""
    outbound = Outbound([host])
    with loading(outbound, download=download, package="glmocr", models=_MODELS):
        reader, unread = _open(config, layout_device)
    complaints = _Complaints()
    logging.getLogger("glmocr").addHandler(complaints)
    if reader.config_model.pipeline.maas.enabled or getattr(reader, "_use_maas", False):
        raise EngineUnavailableError(
            "glmocr would use the vendor's cloud, so nothing was sent or read", hint=install_command(_EXTRA)
        )

    def read(request: Request) -> Output:
        (path,) = request.images
        complaints.heard.clear()
        return page_output(
            reader.parse(str(path), save_layout_visualization=False), unread=unread, complaints=complaints.heard
        )

    return Loaded(read=reading_here(read, outbound, package="glmocr", models=_MODELS))


@dataclass(frozen=True, slots=True)
class Complaint:
    """A warning of the package's log; `broken`: it says that the layout of the page was not found."""

    text: str
    broken: bool


class _Complaints(logging.Handler):
    """What the package only writes to its log, such as a layout model that failed on a page."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.heard: list[Complaint] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        self.heard.append(Complaint(text, record.levelno >= logging.ERROR or _NO_LAYOUT in text))


def _open(config: dict[str, Any], layout_device: str | None) -> tuple[Any, frozenset[str]]:
    """The package's reader, and the labels of regions that it keeps without reading them.

    It is given files for everything, so that it looks for none of the user's by itself.
    """
    package, packaged = import_module("glmocr"), import_module("glmocr.config")
    default = Path(packaged.GlmOcrConfig.default_path()).read_text(encoding="utf-8")
    whole = merged(import_module("yaml").safe_load(default) or {}, config)
    with scratch_folder("loupe-glmocr-") as folder:
        # JSON is YAML.
        (folder / "config.yaml").write_text(json.dumps(whole), encoding="utf-8")
        # Without one, it takes the next .env above the working folder, with the key and the address that stand there.
        (folder / "empty.env").touch()
        reader = package.GlmOcr(
            config_path=str(folder / "config.yaml"),
            mode="selfhosted",
            env_file=str(folder / "empty.env"),
            layout_device=layout_device,
        )
    tasks = whole.get("pipeline", {}).get("layout", {}).get("label_task_mapping") or {}
    return reader, frozenset(tasks.get("skip") or ())


def page_output(result: Any, *, unread: Collection[str], complaints: Sequence[Complaint]) -> Output:
    """What the package found on one page. Raises EngineError where no page was read, or where every region failed.

    A region that failed is null in the package's raw result, as one that is not read (`unread`) is, and is missing from
    its text without a word; one that was read and is empty is "". A layout model that failed leaves a page without
    regions, and a complaint in the log: a blank page leaves none, or harmless ones.
    """
    if not result.json_result:
        raise EngineError(f"glmocr could not load the page: {_first(complaints)}")
    found = [one for page in result.raw_json_result or [] for one in page]
    if not found and (broken := [each for each in complaints if each.broken]):
        raise EngineError(f"glmocr found no regions: {_first(broken)}")
    asked = [one.get("content") for one in found if one.get("label") not in unread]
    failed = sum(content is None for content in asked)
    if failed and failed == len(asked):
        raise EngineError(f"all {failed} regions that glmocr asked for failed: {_first(complaints)}")
    regions = [
        region(
            number,
            str(one.get("label", "")),
            one.get("content"),
            one.get("bbox_2d"),
            size=(WHOLE, WHOLE),
            score=one.get("score"),
        )
        | {"native_label": str(one.get("native_label") or one.get("label", ""))}
        for page in result.json_result[:1]
        for number, one in enumerate(page)
    ]
    response = {"regions": regions, "failed_regions": failed, "calls": len(asked)}
    return Output(text=result.markdown_result or "", response=response)


def _first(complaints: Sequence[Complaint]) -> str:
    return complaints[0].text[:300] if complaints else "it gives no reason"
