"""Crops of figures: cut from the page at its own resolution, kept as PNG, sent in the size that the model wants.

Pages and crops are other people's files: they are decoded in worker processes, where a crash costs one page.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from loupe.data.pages import load_page
from loupe.engines.pages.page_images import EncodedImage, encode, parse_rule
from loupe.engines.pages.page_reader import ask_about_page
from loupe.engines.workers.cores import readers
from loupe.engines.workers.isolation import WorkerPool, worker_pool
from loupe.engines.workers.worker import Loaded
from loupe.files.folder import Folder
from loupe.studies.embed.inputs import WHOLE, Box
from loupe.typed import convert, json_decoder
from loupe.types import Output, PageSource, Request

#: Smaller crops, in pixels a side, are skipped.
SMALLEST = 32
#: MIN_PIXELS and MAX_PIXELS of Qwen3-VL-Embedding: 4 and 1,800 blocks of 32 x 32, a token each.
MIN_PIXELS, MAX_PIXELS = 4 * 32 * 32, 1800 * 32 * 32
IMAGE_RULE = f"smart(32, {MIN_PIXELS}, {MAX_PIXELS})"
IMAGE_TOKENS = 1800
_SECONDS = 120.0


class Cut(msgspec.Struct, frozen=True):
    """A crop to be made: the box, and the file for it, by its name below a folder."""

    box: Box
    root: str
    name: str


class Made(msgspec.Struct, frozen=True):
    """A crop that was made: its size, and the digest of its pixels; no digest where it was too small to be kept."""

    width: int
    height: int
    digest: str = ""


class _Order(msgspec.Struct):
    cuts: list[Cut] = []
    encode: bool = False


class Cutter:
    """Cuts and encodes in other processes. Use `cutter`, which opens it."""

    def __init__(self, pool: WorkerPool) -> None:
        self._pool = pool

    async def cut(self, page: PageSource, cuts: Sequence[Cut]) -> list[Made]:
        """Make crops of a page. Raises PageError if the page cannot be read."""
        answer = await self._ask(page, _Order(cuts=list(cuts)))
        return convert((answer.response or {})["made"], list[Made])

    async def encode(self, crop: Path) -> EncodedImage:
        """A crop as it is sent. Raises PageError if it cannot be read, or is 200 times as long as wide."""
        response = (await self._ask(crop, _Order(encode=True))).response or {}
        return EncodedImage(response["mime"], response["data"])

    async def _ask(self, source: PageSource, order: _Order) -> Output:
        return await ask_about_page(self._pool, source, order, timeout=_SECONDS)


@asynccontextmanager
async def cutter() -> AsyncIterator[Cutter]:
    """A cutter with a process for each core; none starts before the first page."""
    async with worker_pool("loupe.studies.embed.crops:load", {}, workers=readers(), lazy=True, bounded=True) as pool:
        yield Cutter(pool)


def load() -> Loaded:
    """The cutter as a worker uses it."""
    return Loaded(read=_work)


def _work(request: Request) -> Output:
    (source,) = request.images
    order = json_decoder(_Order).decode(request.prompt)
    if order.encode:
        image = encode(source, parse_rule(IMAGE_RULE))
        return Output(text="", response={"mime": image.mime, "data": image.data})
    page = load_page(source)
    made = []
    for cut in order.cuts:
        # As the GLM-OCR pipeline cuts: int(coordinate * side / 1000).
        left, top, right, bottom = (
            int(side * size / WHOLE) for side, size in zip(cut.box, (*page.size, *page.size), strict=True)
        )
        if right - left < SMALLEST or bottom - top < SMALLEST:
            made.append(Made(right - left, bottom - top))
            continue
        crop = page.crop((left, top, right, bottom))
        digest = hashlib.sha256(repr(crop.size).encode() + crop.tobytes()).hexdigest()
        with Folder(Path(cut.root)).draft(cut.name, sync=False) as draft:
            crop.save(draft.file, "PNG", compress_level=1)
            draft.replace()
        made.append(Made(*crop.size, digest))
    return Output(text="", response={"made": msgspec.to_builtins(made)})
