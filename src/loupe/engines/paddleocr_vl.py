"""PaddleOCR-VL's own pipeline, package `paddleocr`: layout model and vision model, or a model server for the latter.

Source: PyPI paddleocr 3.7.0 and paddlex 3.7.2; docs/protocols/engines.md#paddleocr-vl,
docs/engines/paddleocr-vl-sdk.md. The package turns the tokens of tables (OTSL) into HTML itself, and cuts loops off;
what it could not turn stays as it is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, ClassVar, Literal

import msgspec

from loupe.data.extras import install_command
from loupe.engines.registry import WHOLE_PAGES
from loupe.engines.vendors.opening import SdkSettings, Work, installed, open_package
from loupe.engines.vendors.outbound import Outbound, loading, reading_here, without_proxies
from loupe.engines.vendors.regions import region
from loupe.engines.vendors.servers import ModelServer, one_server, reach_server
from loupe.engines.workers.worker import Loaded
from loupe.errors import EngineError
from loupe.helpers import for_children
from loupe.types import Engine, Output, Request

WAY = "pipeline"
MARGINS = "left out"
UNPROVEN = "never run with its models: calls and results are checked against paddleocr 3.7.0 and paddlex 3.7.2"
_EXTRA = "paddleocr"
_START = "paddleocr genai_server --model_name PaddleOCR-VL-1.5-0.9B --backend vllm --port 8080"
_MODELS = "-o download=true for one page: the package fetches its models when it is opened"

Backend = Literal["native", "vllm-server", "sglang-server", "fastdeploy-server", "mlx-vlm-server", "llama-cpp-server"]


class Settings(SdkSettings, frozen=True, kw_only=True):
    """Keys of the kind `paddleocr_vl`; those without a word here are the package's own, with its names.

    `pipeline_version` is "v1", "v1.5" or "v1.6": the package's own default moves from release to release. `backend`
    says who runs the vision model: "native" does so in the worker, the others ask the server `base_url` for `model`,
    `region_workers` regions at a time. `device` is "gpu:0", "cpu"; "" is the package's choice. `options` go to the
    package's class as they are.
    """

    gives: ClassVar[frozenset[str] | None] = WHOLE_PAGES

    pipeline_version: Literal["v1", "v1.5", "v1.6"] = "v1.5"
    backend: Backend = "native"
    base_url: str | list[str] = ""
    model: str = ""
    region_workers: int | None = None
    device: str = ""
    use_layout_detection: bool = True
    use_doc_orientation_classify: bool = False
    use_doc_unwarping: bool = False
    use_chart_recognition: bool = False
    use_seal_recognition: bool = False
    format_block_content: bool = False
    merge_layout_blocks: bool = True
    max_tokens: int = 4096
    options: dict[str, Any] = msgspec.field(default_factory=dict)

    def signature(self) -> dict[str, str]:
        """The image, and which pipeline it is."""
        return {
            **super().signature(),
            "pipeline": self.pipeline_version,
            "backend": self.backend,
            "max": str(self.max_tokens),
        }

    def defining(self) -> dict[str, Any]:
        """How many regions are asked at a time changes no answer."""
        return {key: value for key, value in super().defining().items() if key != "region_workers"}


#: Settings that the package's class takes by the same name.
_SAME_NAME = (
    "pipeline_version",
    "use_layout_detection",
    "use_doc_orientation_classify",
    "use_doc_unwarping",
    "use_chart_recognition",
    "use_seal_recognition",
    "format_block_content",
    "merge_layout_blocks",
)


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Check package and server, load the models, then yield the engine. Raises MissingToolError without the package."""
    facts = installed(
        "paddleocr", "paddlex", *(("paddle",) if settings.backend == "native" else ()), install=install_command(_EXTRA)
    )
    facts |= {"pipeline_version": settings.pipeline_version, "backend": settings.backend}
    server: ModelServer | None = None
    if settings.backend != "native":
        server = await one_server(settings.base_url)
        facts |= await reach_server(server, settings.model, start=_START)
    hosts = [server.host] if server else []
    work = Work(
        factory="loupe.engines.paddleocr_vl:load",
        arguments={
            "options": constructor_options(settings, server),
            "hosts": hosts,
            "max_tokens": settings.max_tokens,
        },
        environment=without_proxies(for_children(), hosts),
    )
    async with open_package(settings, work, facts=facts, healthy=server.answers if server else None) as engine:
        yield engine


def constructor_options(settings: Settings, server: ModelServer | None) -> dict[str, Any]:
    """What the package's class is called with; what is not set is left to it."""
    options: dict[str, Any] = {name: getattr(settings, name) for name in _SAME_NAME}
    options["vl_rec_backend"] = settings.backend
    if server is not None:
        options["vl_rec_server_url"] = server.url
        options |= {"vl_rec_api_model_name": settings.model} if settings.model else {}
        options |= {"vl_rec_max_concurrency": settings.region_workers} if settings.region_workers else {}
    options |= {"device": settings.device} if settings.device else {}
    return {**options, **settings.options}


def load(*, options: dict[str, Any], hosts: list[str], max_tokens: int, download: bool) -> Loaded:
    """The engine as a worker uses it."""
    outbound = Outbound(hosts)
    with loading(outbound, download=download, package="paddleocr", models=_MODELS):
        pipeline = import_module("paddleocr").PaddleOCRVL(**options)

    def read(request: Request) -> Output:
        (path,) = request.images
        results = list(pipeline.predict(str(path), max_new_tokens=max_tokens))
        if len(results) != 1:
            raise EngineError(f"paddleocr gave {len(results)} results for one page")
        return page_output(results[0])

    return Loaded(read=reading_here(read, outbound, package="paddleocr", models=_MODELS))


def page_output(result: Any) -> Output:
    """What the package found on one page. Raises EngineError where its result has no text."""
    text = result.markdown["markdown_texts"]
    if not isinstance(text, str):
        raise EngineError(f"paddleocr gave {type(text).__name__} as the text of a page, not a str")
    page = result.json["res"]
    size = (_side(page["width"]), _side(page["height"]))
    sure = _scores(page.get("layout_det_res"))
    regions = [
        region(
            number,
            str(block["block_label"]),
            block["block_content"],
            block["block_bbox"],
            size=size,
            score=sure.get(_whole(block["block_bbox"])),
        )
        for number, block in enumerate(page["parsing_res_list"])
    ]
    return Output(text=text, response={"regions": regions})


def _scores(layout: Any) -> dict[tuple[int, ...], Any]:
    """How sure the layout model was of each box; blocks that were merged of several have none."""
    boxes = layout.get("boxes") if isinstance(layout, dict) else None
    return {_whole(one.get("coordinate")): one.get("score") for one in boxes or () if isinstance(one, dict)}


def _whole(box: Any) -> tuple[int, ...]:
    """A box in whole pixels; () for what is none."""
    try:
        return tuple(int(side) for side in box)
    except (TypeError, ValueError, OverflowError):
        return ()


def _side(given: Any) -> float:
    """Width or height of the page; some versions wrap it in a list."""
    return float(given[0] if isinstance(given, list) else given)
