"""A layout pipeline around any vision model: pages are cut up, regions are read, and their answers joined.

Protocol: docs/protocols/engines.md#layout-pipeline; docs/engines/layout.md. The model is asked as by the kind `openai`,
whose keys this kind has too. The page is cut in worker processes, its regions are asked like requests of their own
(`Engine.divide`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import msgspec

from loupe.engines import openai
from loupe.engines.adapters.steps import check_adapters
from loupe.engines.chat.encoded_request import EncodedRequest
from loupe.engines.chat.settings import Settings as ChatSettings
from loupe.engines.layout.cutting import CutRegion, Cutter, Order
from loupe.engines.layout.detectors import DetectorOptions, check_detector
from loupe.engines.layout.filtering import LABELS, SCORE, Nesting
from loupe.engines.layout.joined_regions import Joiner
from loupe.engines.pages.page_files import single_page
from loupe.engines.pages.page_images import EncodedImage, parse_rule
from loupe.engines.registry import WHOLE_PAGES
from loupe.engines.workers.cores import cores
from loupe.engines.workers.isolation import worker_pool
from loupe.errors import (
    EngineError,
    EngineTimeoutError,
    EngineUnavailableError,
    LoupeError,
    NoAnswerError,
    RejectedError,
    outcome_of,
)
from loupe.helpers import for_children
from loupe.runs.info import digest_of
from loupe.typed import encode_json
from loupe.types import Division, Engine, Joined, Output, Prediction, Request

#: `-e layout_pipeline:MODEL`
ARGUMENT = "model"
#: The model sees regions, not pages (`loupe reproduce` tells the two apart).
WAY = "pipeline"
JOINS, MARGINS = "an empty line", "left out"
#: Said on screen before a run, and in the profile as it is shown.
UNPROVEN = (
    "PP-DocLayoutV3 never ran here with its weights: calls are checked with transformers 5.23 and random weights, the "
    "rules around it against the SDK's; the detector `geometric` is ours and has no part in published figures"
)
#: Regions that one page may have in flight where it is not the scheduler that asks.
_AT_ONCE = 8
#: Benchmarks whose published numbers have the image lines (docs/protocols/engines.md#layout-formatting).
_IMAGE_LINES = {"omnidocbench"}
#: What a detector alone needs, and where it runs: no answer depends on it.
_NOT_DEFINING = {"detector_download", "detector_device", "detector_processes", "layout_batch", "layout_timeout"}
_TASKS = ("text", "table", "formula")


class Settings(ChatSettings, frozen=True, kw_only=True):
    """Keys of a `layout_pipeline` profile, beside those of `openai`; see docs/engines/layout.md.

    `prompts` are by task of a region (text, table, formula), or `"*"` for all. `image` is how crops are sent. `timeout`
    is that of a region, `layout_timeout` that of cutting a page. `layout_batch` is how many pages the detector may see
    at once. `concurrency` counts regions in flight.
    """

    asks_regions: ClassVar[bool] = True
    gives: ClassVar[frozenset[str] | None] = WHOLE_PAGES

    detector: str = "pp_doclayout_v3"
    detector_model: str = ""
    detector_revision: str = ""
    detector_download: bool = False
    detector_device: str = ""
    detector_processes: int | None = None
    layout_batch: int = 1
    threshold: float = SCORE
    thresholds: dict[str, float] = msgspec.field(default_factory=dict)
    nesting: Nesting = "glm"
    trim_formulas: bool = False
    images: Literal["auto", "keep", "drop"] = "auto"
    unread: list[str] = msgspec.field(default_factory=list)
    dpi: float = 200.0
    longest: int = 3500
    layout_timeout: float = 120.0
    region_adapters: list[str] = msgspec.field(
        default_factory=lambda: ["newlines", "think", "end_tokens", "unfence", "strip"]
    )
    adapters: list[str] = msgspec.field(default_factory=list)
    prompts: dict[str, str] = msgspec.field(
        default_factory=lambda: {
            "text": "Transcribe all text in this image in reading order. Output ONLY the text, no explanations.",
            "table": "Convert this table image to HTML. Output ONLY the HTML table, no explanations.",
            "formula": "Convert this mathematical expression to LaTeX. Output ONLY the LaTeX code, nothing else.",
        }
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_detector(self.detector)
        check_adapters(self.region_adapters)
        missing = [task for task in _TASKS if task not in self.prompts and "*" not in self.prompts]
        unknown = [task for task in self.prompts if task not in (*_TASKS, "*")]
        if missing or unknown:
            said = f"none for {', '.join(missing)}" if missing else f"regions have no task {unknown[0]!r}"
            raise ValueError(f'prompts: {said}; a pipeline asks with text, table and formula, or with "*"')
        for name, least in {"threshold": self.threshold, **self.thresholds}.items():
            if not 0 <= least <= 1:
                raise ValueError(f"{name} = {least}: a score is from 0 to 1")
        for key, names in {"thresholds": list(self.thresholds), "unread": self.unread}.items():
            if strange := [name for name in names if name not in LABELS]:
                raise ValueError(f"{key}: no label {strange[0]!r}; there are {', '.join(LABELS)}")
        for key in ("dpi", "longest", "layout_timeout", "layout_batch", "detector_processes"):
            value = getattr(self, key)
            if value is not None and not (0 < value < math.inf):
                raise ValueError(f"{key} = {value}: must be above 0 and finite")

    def for_benchmark(self, benchmark_id: str) -> Settings:
        """Image lines stay where the official numbers were made with them; elsewhere they would be scored as text."""
        images: Literal["keep", "drop"] = "keep" if benchmark_id in _IMAGE_LINES else "drop"
        return msgspec.structs.replace(self, images=images) if self.images == "auto" else self

    def prompt_for(self, task: str) -> str:
        """What a region of this task is asked."""
        return self.prompts.get("*", self.prompts.get(task, ""))

    def signature(self) -> dict[str, str]:
        """What a VLM's signature has, the detector with its version and threshold, and a digest of the other rules."""
        rules = [self.thresholds, self.nesting, self.trim_formulas, self.dpi, self.longest, self.region_adapters]
        rules += [self.unread] if self.unread else []
        weights = [self.detector_model, self.detector_revision]
        layout = {"layout": f"{check_detector(self.detector)}@{self.threshold:g}", "images": self.images}
        return {**super().signature(), **layout, "regions": digest_of([*rules, *weights])[:8]}

    def defining(self) -> dict[str, Any]:
        """Also the version of the detector; not where it runs."""
        found = {key: value for key, value in super().defining().items() if key not in _NOT_DEFINING}
        return {**found, "detector": check_detector(self.detector)}

    def order(self) -> Order:
        """How a worker cuts pages."""
        least = min([self.threshold, *self.thresholds.values()])
        options = DetectorOptions(
            model=self.detector_model,
            revision=self.detector_revision,
            download=self.detector_download,
            device=self.detector_device,
            least_score=least,
        )
        return Order(
            detector=self.detector,
            options=options,
            threshold=self.threshold,
            thresholds=self.thresholds,
            nesting=self.nesting,
            rule=parse_rule(self.image),
            trim_formulas=self.trim_formulas,
            unread=frozenset(self.unread),
            dpi=self.dpi,
            longest=self.longest,
        )

    @property
    def processes(self) -> int:
        """Processes that cut pages: one for a model, which has threads or a GPU of its own; else one per core."""
        return self.detector_processes or (cores() if self.detector == "geometric" else 1)


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Load the detector and find the server, then yield the engine.

    Raises MissingToolError where the detector or its model is not installed, and what opening `openai` raises.
    """
    count = settings.processes
    threads = str(max(1, cores() // count))
    environment = {**for_children(), "OMP_NUM_THREADS": threads, "OPENBLAS_NUM_THREADS": threads}
    keys = {"order": encode_json(settings.order())}
    factory = "loupe.engines.layout.cutting:load"
    async with (
        worker_pool(factory, keys, workers=count, environment=environment) as pool,
        openai.open_engine(settings) as model,
    ):
        cutter = Cutter(
            pool,
            timeout=settings.layout_timeout,
            errors_before_check=settings.errors_before_check,
            batch=settings.layout_batch,
            places=asyncio.Semaphore(count),
        )
        pipeline = _Pipeline(settings, cutter, model, _joiner(settings))
        facts = {"detector": check_detector(settings.detector), **pool.facts}
        yield replace(
            model,
            predict=pipeline.predict,
            facts={**model.facts, **facts},
            divide=pipeline.divide,
            dividers=count * settings.layout_batch,
        )


def _joiner(settings: Settings) -> Joiner:
    return Joiner(settings.region_adapters, images="keep" if settings.images == "keep" else "drop")


@dataclass(frozen=True, slots=True)
class _Pipeline:
    settings: Settings
    cutter: Cutter
    model: Engine
    joiner: Joiner

    async def predict(self, request: Request) -> Output:
        """The answer for a region; or a whole page, for those who ask one alone and not through a scheduler.

        Nothing is asked twice then, as with any engine that is asked alone. Raises EngineError, EngineTimeoutError or
        RejectedError where nothing of the page was read.
        """
        if isinstance(request, EncodedRequest):
            return await self.model.predict(request)
        division = await self.divide(request)
        places = asyncio.Semaphore(_AT_ONCE)

        async def ask(part: Request) -> Prediction:
            async with places:
                return await self._ended(part)

        joined = division.join(await asyncio.gather(*map(ask, division.parts)))
        if joined.error:
            raise _error(joined)
        return joined.output

    async def divide(self, request: Request) -> Division:
        """Cut the page up. Raises PageError where it cannot be read, EngineError where the worker dies or hangs.

        Where the detector itself fails on the page, there are no regions, and joining them says so.
        """
        single_page(request)
        page = await self.cutter.cut(request)
        parts = [self._part(request, region) for region in page.regions if region.is_asked]
        # Crops are held by the requests alone, which are let go of one by one.
        page = msgspec.structs.replace(page, regions=[msgspec.structs.replace(each, data=b"") for each in page.regions])
        return Division(parts=parts, join=lambda ended: self.joiner.join(request, page, ended))

    def _part(self, request: Request, region: CutRegion) -> EncodedRequest:
        return EncodedRequest(
            id=f"{request.id}#{region.index}",
            prompt=self.settings.prompt_for(region.task),
            task=region.task,
            max_tokens=request.max_tokens,
            encoded=(EncodedImage(region.mime, region.data),),
        )

    async def _ended(self, part: Request) -> Prediction:
        try:
            output = await self.model.predict(part)
        except EngineUnavailableError:
            raise
        except LoupeError as error:
            return Prediction(sample=part.id, outcome=outcome_of(error), error=error.message)
        return Prediction(
            sample=part.id,
            text=output.text,
            finish_reason=output.finish_reason,
            input_tokens=output.input_tokens,
            output_tokens=output.output_tokens,
            reasoning=output.reasoning,
            response=dict(output.response) if output.response else None,
            endpoint=output.endpoint or msgspec.UNSET,
        )


def _error(joined: Joined) -> EngineError:
    if joined.outcome == "timeout":
        return EngineTimeoutError(joined.error)
    if joined.outcome in ("refused", "unfinished"):
        return NoAnswerError(joined.error, outcome=joined.outcome)
    return RejectedError(joined.error) if joined.outcome == "rejected" else EngineError(joined.error)
