"""Cut pages into their regions in worker processes: load, search, filter, crop, encode.

Pages are cut alone or as batches; a page whose worker dies fails alone, and a detector that works no more ends the
engine. Crops come from the page at its own resolution. Steps and arithmetic:
docs/protocols/engines.md#layout-detections and #layout-formatting.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from loupe.data.pages import load_page
from loupe.engines.chat.http_failures import is_fatal
from loupe.engines.pages.page_images import EncodedImage, ImageRule, encode_image
from loupe.errors import EngineError, EngineTimeoutError, EngineUnavailableError, LoupeError, PageError
from loupe.features.layout.detectors import Detect, DetectorOptions, load_detector
from loupe.features.layout.filtering import Detection, Nesting, Region, crop_box, keep_areas, label_of, regions
from loupe.typed import json_decoder, msgpack_decoder
from loupe.types import Output, PdfPage, Request
from loupe.workers.child import Loaded
from loupe.workers.pool import WorkerPool

if TYPE_CHECKING:
    from PIL.Image import Image

#: More regions are not read of one page; PP-DocLayoutV3 cannot give more either.
MOST_REGIONS = 300
#: Levels above this are margin where margins are trimmed.
_INK = 200


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """How pages are cut. `dpi` and `longest` are for PDF pages; image files keep their size."""

    detector: str
    options: DetectorOptions
    threshold: float
    thresholds: Mapping[str, float] = {}
    nesting: Nesting = "glm"
    rule: ImageRule
    trim_formulas: bool = False
    unread: frozenset[str] = frozenset()
    dpi: float = 200.0
    longest: int = 3500


class CutRegion(msgspec.Struct, frozen=True, kw_only=True):
    """A region of a page, with its crop if it is to be read; `error` says why there is no crop."""

    index: int
    label: str
    task: Literal["text", "table", "formula", "skip", "abandon"]
    box: tuple[int, int, int, int]
    score: float | None = None
    mime: str = ""
    data: bytes = b""
    error: str = ""

    @property
    def is_asked(self) -> bool:
        """Whether the model is asked about it; also when its crop was let go of."""
        return self.task != "skip" and not self.error


class CutPage(msgspec.Struct, frozen=True, kw_only=True):
    """All regions of a page. `failed` says why the detector gave none; `found` counts what it gave.

    `unreadable` says why the page could not be read at all, among others of a batch.
    """

    width: int
    height: int
    found: int = 0
    regions: list[CutRegion] = []
    left_out: int = 0
    failed: str = ""
    unreadable: str = ""
    seconds: float = 0.0


def load(*, order: bytes) -> Loaded:
    """The cutter as a worker uses it; `order` is an `Order` in JSON."""
    cut = json_decoder(Order).decode(order)
    detector = load_detector(cut.detector, cut.options)

    def read(job: Request | tuple[Request, ...]) -> Output:
        batch = isinstance(job, tuple)
        pages = cut_pages(job, cut, detector.detect) if isinstance(job, tuple) else cut_page(job, cut, detector.detect)
        return Output(text="", response={"pages" if batch else "page": msgspec.msgpack.encode(pages)})

    return Loaded(read=read, facts=detector.facts)


def cut_page(request: Request, order: Order, detect: Detect) -> CutPage:
    """Cut the one page of a request; without one, a plain page, to see whether the detector still works.

    Raises PageError where the page cannot be read, EngineUnavailableError where the detector cannot go on.
    """
    image = _load(request, order)
    began = time.perf_counter()
    width, height = image.size
    try:
        (detections,) = detect([image])
    except EngineUnavailableError:
        raise
    except Exception as error:  # noqa: BLE001  a detector's border: the page has no regions then, and says so
        said = error.message if isinstance(error, LoupeError) else f"{type(error).__name__}: {error}"
        said = " ".join(said.split())[:500] or type(error).__name__
        if is_fatal(f"{type(error).__module__}.{type(error).__name__}: {error}"):
            hint = "free memory on the device, or: -o detector_device=cpu"
            raise EngineUnavailableError(f"the layout detector cannot go on: {said}", hint=hint) from None
        return CutPage(width=width, height=height, failed=said)
    return _regions_of(image, detections, order, began)


def cut_pages(requests: Sequence[Request], order: Order, detect: Detect) -> list[CutPage]:
    """Cut several pages that the detector sees at once; a page that cannot be read says so and is not among them.

    Raises whatever the detector raises: which of the pages it is about, only asking for each alone can tell.
    """
    images: dict[int, Image] = {}
    pages: dict[int, CutPage] = {}
    for number, request in enumerate(requests):
        try:
            images[number] = _load(request, order)
        except PageError as error:
            pages[number] = CutPage(width=0, height=0, unreadable=error.message)
    began = time.perf_counter()
    found = detect(list(images.values())) if images else []
    shared = (time.perf_counter() - began) / max(len(images), 1)
    for (number, image), detections in zip(images.items(), found, strict=True):
        pages[number] = _regions_of(image, detections, order, time.perf_counter() - shared)
    return [pages[number] for number in range(len(requests))]


def _regions_of(image: Image, detections: Sequence[Detection], order: Order, began: float) -> CutPage:
    width, height = image.size
    wanted = [one for one in detections if one.rank >= _least_score(one, order)]
    found = regions(keep_areas(wanted, width, height, least_score=0.0, nesting=order.nesting), width, height)
    kept = found[:MOST_REGIONS]
    return CutPage(
        width=width,
        height=height,
        found=len(detections),
        regions=[_cut(image, region, order) for region in kept],
        left_out=len(found) - len(kept),
        seconds=time.perf_counter() - began,
    )


def _load(request: Request, order: Order) -> Image:
    if not request.images:
        return plain_page()
    (source,) = request.images
    pdf = isinstance(source, PdfPage)
    return load_page(source, dpi=order.dpi if pdf else None, longest=order.longest if pdf else None)


def plain_page() -> Image:
    """A white page with a few dark bars for lines, which no detector has trouble with."""
    from PIL import Image

    page = Image.new("RGB", (800, 1000), "white")
    for top in range(100, 400, 40):
        page.paste((0, 0, 0), (100, top, 700, top + 12))
    return page


def _least_score(one: Detection, order: Order) -> float:
    return order.thresholds.get(label_of(one.class_id), order.threshold)


def _cut(image: Image, region: Region, order: Order) -> CutRegion:
    plain = CutRegion(index=region.index, label=region.label, task=region.task, box=region.box, score=region.score)
    if region.task == "skip" or region.label in order.unread:
        return msgspec.structs.replace(plain, task="skip")
    left, top, right, bottom = crop_box(region.box, *image.size)
    if left >= right or top >= bottom:
        return msgspec.structs.replace(plain, error="nothing is left of the region after rounding")
    crop = image.crop((left, top, right, bottom))
    if order.trim_formulas and region.task == "formula":
        crop = trimmed(crop)
    try:
        encoded = _encoded(crop, order.rule)
    except PageError as error:
        return msgspec.structs.replace(plain, error=error.message)
    return msgspec.structs.replace(plain, mime=encoded.mime, data=encoded.data)


def _encoded(crop: Image, rule: ImageRule) -> EncodedImage:
    return encode_image(crop, rule, Path("region"))


def trimmed(image: Image) -> Image:
    """Without its light margins, as PaddleX cuts formulas: what is light is told after stretching the contrast.

    An image of one level, or one of which hardly anything would be left, stays as it is.
    """
    gray = image.convert("L")
    pixels = gray.histogram()
    used = [level for level, count in enumerate(pixels) if count]
    low, high = used[0], used[-1]
    if low == high:
        return image
    levels = [255 if int((level - low) / (high - low) * 255) <= _INK else 0 for level in range(256)]
    left, top, right, bottom = gray.point(levels).getbbox() or (0, 0, *image.size)
    return image.crop((left, top, right, bottom)) if min(right - left, bottom - top) > 2 else image


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    request: Request
    ended: asyncio.Future[CutPage | None]


@dataclass(slots=True)
class Cutter:
    """Cuts pages in the workers of a pool, each within `timeout` seconds.

    Up to `batch` pages that wait at the same time are shown to the detector at once, in as many `places` as there are
    workers. Where that fails as a whole, each of them is cut alone, and batches are half as large from then on. After
    `errors_before_check` failures in a row a plain page is cut, to see whether the detector works at all.
    """

    pool: WorkerPool
    timeout: float
    errors_before_check: int
    batch: int = 1
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(1))
    _waiting: deque[_Waiting] = field(default_factory=deque)
    _failures: int = 0
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def cut(self, request: Request) -> CutPage:
        """The page's regions; none, with the reason, where the detector fails on it.

        Raises PageError where the page cannot be read, EngineError or EngineTimeoutError where the worker dies or
        takes too long, EngineUnavailableError where the detector works no more.
        """
        try:
            page = await self._patiently(request)
        except EngineUnavailableError:
            raise
        except EngineError as error:
            await self._note_failure(error.message)
            raise
        if page.failed:
            await self._note_failure(page.failed)
        else:
            self._failures = 0
        return page

    async def _patiently(self, request: Request) -> CutPage:
        """Once more where the worker died (it may have been another's fault), not where the page took too long."""
        if self.batch > 1 and (page := await self._with_others(request)) is not None:
            if page.unreadable:
                raise PageError(page.unreadable)
            return page
        try:
            return await self._once(request)
        except (EngineTimeoutError, EngineUnavailableError):
            raise
        except EngineError:
            return await self._once(request)

    async def _with_others(self, request: Request) -> CutPage | None:
        """The page, cut with those that wait beside it; None where the batch failed, whosever fault that was.

        While all workers are busy pages gather; the first of them takes the next batch to the worker that is free.
        """
        mine = _Waiting(request, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        try:
            async with self.places:
                if mine in self._waiting:
                    await self._take_batch()
            return await mine.ended
        finally:
            mine.ended.cancel()

    async def _take_batch(self) -> None:
        taken: list[_Waiting] = []
        while self._waiting and len(taken) < self.batch:
            one = self._waiting.popleft()
            taken += [] if one.ended.done() else [one]
        pages: list[CutPage | None] = [None] * len(taken)
        try:
            job = tuple(one.request for one in taken)
            output = await self.pool.ask(job, timeout=self.timeout * len(taken))
            pages = [*msgpack_decoder(list[CutPage]).decode((output.response or {})["pages"])]
        except EngineUnavailableError:
            pass  # Whoever asks alone next is told.
        except EngineError:
            self.batch = max(1, self.batch // 2) if len(taken) > 1 else self.batch
        finally:
            for one, page in zip(taken, pages, strict=True):
                if not one.ended.done():
                    one.ended.set_result(page)

    async def _once(self, request: Request) -> CutPage:
        output = await self.pool.ask(request, timeout=self.timeout)
        return msgpack_decoder(CutPage).decode((output.response or {})["page"])

    async def _note_failure(self, said: str) -> None:
        self._failures += 1
        async with self._looking:
            if self._failures < self.errors_before_check:
                return
            try:
                failed = (await self._once(Request(id="plain page"))).failed
            except EngineUnavailableError:
                raise
            except EngineError as error:
                failed = error.message
            if failed:
                begun = f"the layout detector failed on {self._failures} pages in a row ({said})"
                raise EngineUnavailableError(
                    f"{begun}, and on a plain page: {failed}",
                    hint="fix it (try -o detector_device=cpu), then repeat the same command: finished pages are kept",
                )
            self._failures = 0
