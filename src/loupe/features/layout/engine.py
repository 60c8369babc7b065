"""A layout pipeline around any vision model: pages are cut up, regions are read, and their answers joined.

Protocol: docs/protocols/engines.md#layout-pipeline; docs/engines/layout.md. The model is asked as by the kind `openai`,
whose keys this kind has too. The page is cut in worker processes, its regions are asked like requests of their own
(`Engine.divide`). The joined answer is Markdown, with the regions as JSON and what was lost on the way.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import msgspec

from loupe.engines import openai
from loupe.engines.adapters.steps import apply_adapters, check_adapters
from loupe.engines.chat.bodies import EncodedRequest
from loupe.engines.chat.settings import Settings as ChatSettings
from loupe.engines.pages.page_images import EncodedImage, parse_rule
from loupe.engines.pages.page_reader import single_page
from loupe.engines.registry import WHOLE_PAGES
from loupe.errors import (
    EngineError,
    EngineTimeoutError,
    EngineUnavailableError,
    LoupeError,
    NoAnswerError,
    RejectedError,
    outcome_of,
)
from loupe.features.layout.cutting import CutPage, CutRegion, Cutter, Order
from loupe.features.layout.detectors import DetectorOptions, check_detector
from loupe.features.layout.filtering import IMAGE, LABELS, SCORE, Nesting, WholeBox, category_of
from loupe.features.layout.formatting import PageRegion, ReadRegion, format_pages
from loupe.helpers import for_children
from loupe.runs.info import digest_of
from loupe.typed import encode_json
from loupe.types import RETRIED, Division, Engine, Joined, Outcome, Output, Prediction, Request
from loupe.workers.limits import cores
from loupe.workers.pool import worker_pool

#: Said where a benchmark asks something: its answer is not in a transcript.
QUESTION = "question_not_asked"
FAILED = "layout_failed"


@dataclass(frozen=True, slots=True)
class Joiner:
    """Makes pages of regions. `steps` prepare each answer, as `images` says whether images are in the Markdown."""

    steps: Sequence[str]
    images: Literal["keep", "drop"] = "keep"

    def join(self, request: Request, page: CutPage, ended: Sequence[Prediction]) -> Joined:
        """The answer for a page, with all regions and raw answers beside it; `ended` are those of regions asked about.

        A page fails where its layout did, and where there are regions to read and none was read.
        """
        answers = dict(zip((region.index for region in page.regions if region.is_asked), ended, strict=True))
        lost = [_lost(region, answers.get(region.index)) for region in page.regions]
        losses = [loss for loss in lost if loss is not None]
        wanted = sum(region.task != "skip" for region in page.regions)
        loops = sum(answer.outcome == "repeated" for answer in answers.values())
        outcome: Outcome | None = "repeated" if loops else None
        error = ""
        if page.failed:
            outcome, error = "error", f"the layout detector failed: {page.failed}"
        elif wanted and len(losses) == wanted:
            outcome, error = _failure(losses)
        read = [self._read(region, answers.get(region.index)) for region in page.regions]
        kept = frozenset((0, region.box) for region in page.regions if _is_image(region) and self.images == "keep")
        formatted = format_pages([read], crops=kept)
        again = sum(loss["class"] in RETRIED for loss in losses)
        calls = sum(answer.attempt for answer in answers.values() if answer.outcome != "missing")
        seconds = sum(answer.seconds for answer in answers.values())
        sure = {region.box: region.score for region in page.regions if region.score is not None}
        response: dict[str, Any] = {
            "regions": [_record(region, sure) for region in formatted.pages[0]],
            "calls": calls,
            "regions_read": sum(not answer.failed for answer in answers.values()),
            "failed_regions": len(losses),
            "layout": _layout(page),
            "answers": [_answer(region, answers[region.index]) for region in page.regions if region.index in answers],
        }
        response |= {"lost": losses} if losses else {}
        response |= {"repeated_regions": loops} if loops else {}
        response |= {FAILED: page.failed} if page.failed else {}
        response |= {QUESTION: True} if request.prompt else {}
        # A refusal is paid for, too.
        replies = [one for one in answers.values() if not one.failed or one.input_tokens is not None]
        output = Output(
            text="" if error else formatted.markdown,
            finish_reason=_finish_reason(list(answers.values())),
            input_tokens=_sum([answer.input_tokens for answer in replies]),
            output_tokens=_sum([answer.output_tokens for answer in replies]),
            seconds=page.seconds + seconds,
            discarded_tokens=_discarded(list(answers.values())),
            response=response,
            endpoint=_endpoint(list(answers.values())),
        )
        return Joined(
            output=output,
            outcome=outcome,
            error=error,
            lost=0 if error else again,
            uncounted=_uncounted(list(answers.values())),
        )

    def _read(self, region: CutRegion, answer: Prediction | None) -> ReadRegion:
        content = None
        if answer is not None and not answer.failed:
            content = apply_adapters(answer.text, self.steps)
        return ReadRegion(
            index=region.index, label=region.label, content=content, box=region.box, skipped=region.task == "skip"
        )


def _is_image(region: CutRegion) -> bool:
    return region.task == "skip" or category_of(region.label) == IMAGE


def _layout(page: CutPage) -> dict[str, Any]:
    """What the detector found, and how long that took."""
    tasks = Counter(region.task for region in page.regions)
    found = {"width": page.width, "height": page.height, "detections": page.found, "seconds": round(page.seconds, 4)}
    known: dict[str, Any] = {**found, **{str(task): count for task, count in tasks.items()}}
    return known | ({"left_out": page.left_out} if page.left_out else {})


def _lost(region: CutRegion, answer: Prediction | None) -> dict[str, Any] | None:
    """A region that should have been read and was not, and why."""
    if answer is None:
        outcome, error = ("rejected", region.error) if region.error else ("", "")
    else:
        outcome, error = (answer.outcome, answer.error) if answer.failed else ("", "")
    if not outcome:
        return None
    place = {"index": region.index, "label": region.label, "bbox_2d": list(region.box)}
    return {**place, "class": outcome, "error": error[:300]}


def _failure(losses: Sequence[dict[str, Any]]) -> tuple[Outcome, str]:
    """The page's own failure: that of most of its regions, of those first that may be read another time."""
    hopeful = [loss for loss in losses if loss["class"] in RETRIED] or losses
    outcome: Outcome
    ((outcome, _),) = Counter(loss["class"] for loss in hopeful).most_common(1)
    first = next(loss["error"] for loss in hopeful if loss["class"] == outcome)
    said = f"none of the page's {len(losses)} regions could be read: {first}"
    return "error" if outcome == "missing" else outcome, said


def _record(region: PageRegion, sure: Mapping[WholeBox, float]) -> dict[str, Any]:
    """As the SDK has it, and how sure the detector was; but for the file of a crop: none is written."""
    known = {key: value for key, value in region.record().items() if key != "image_path"}
    return known | ({"score": round(sure[region.box], 4)} if region.box and region.box in sure else {})


def _answer(region: CutRegion, answer: Prediction) -> dict[str, Any]:
    """What the model gave for a region, to the letter."""
    known: dict[str, Any] = {"index": region.index, "label": region.label, "task": region.task}
    known |= {"bbox_2d": list(region.box), "class": answer.outcome}
    known |= {} if region.score is None else {"score": round(region.score, 4)}
    known |= {"text": answer.text, "seconds": answer.seconds, "attempt": answer.attempt}
    tokens = {"input_tokens": answer.input_tokens, "output_tokens": answer.output_tokens}
    known |= {key: value for key, value in tokens.items() if value is not None}
    further = {
        "finish_reason": answer.finish_reason,
        "error": answer.error[:300],
        "reasoning": answer.reasoning,
        "endpoint": answer.endpoint,
        "response": answer.response,
    }
    return known | {key: value for key, value in further.items() if value}


def _finish_reason(answers: Sequence[Prediction]) -> str | None:
    """`length` where any region was cut off: then the page is, too."""
    reasons = [answer.finish_reason for answer in answers if answer.finish_reason]
    return "length" if "length" in reasons else reasons[0] if reasons else None


def _sum(counts: Sequence[int | None]) -> int | None:
    """None where any is not known: less than all of them would pass for the whole."""
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _uncounted(answers: Sequence[Prediction]) -> tuple[int, int]:
    """Calls whose tokens nobody told: those that were answered, and those that were given up."""
    untold = sum(not each.failed and None in (each.input_tokens, each.output_tokens) for each in answers)
    return untold, sum(each.outcome == "timeout" for each in answers)


def _endpoint(answers: Sequence[Prediction]) -> str:
    """The server, where one alone answered."""
    named = {answer.endpoint for answer in answers if answer.endpoint}
    return str(named.pop()) if len(named) == 1 else ""


def _discarded(answers: Sequence[Prediction]) -> tuple[int, int]:
    pairs = [answer.discarded_tokens for answer in answers if answer.discarded_tokens is not msgspec.UNSET]
    return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)


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
    factory = "loupe.features.layout.cutting:load"
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
