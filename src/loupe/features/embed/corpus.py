"""Rows of the three matrices: captions of figures, crops of figures, and the keys of their vectors.

Protocol: docs/embedding.md. The labels of captions are given ("crop + surrounding figure_title / vision_footnote
text"), not the geometry: that is ours. Boxes are left, top, right, bottom. Crops are cut from the page at its own
resolution, kept as PNG, and sent in the size that the model wants. Pages and crops are other people's files: worker
processes decode them, where a crash costs one page.
"""

from __future__ import annotations

import binascii
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from loupe.data.digests import file_digest
from loupe.data.pages import load_page, page_size
from loupe.engines.pages.page_images import EncodedImage, encode, parse_rule
from loupe.engines.pages.page_reader import ask_about_page
from loupe.errors import PageError
from loupe.features.embed.inputs import WHOLE, Box, PageRecord, Plan, Query, Region, pages_of_run
from loupe.features.embed.journal import key_of
from loupe.files.file_names import safe_name
from loupe.files.folder import Folder
from loupe.files.foreign import is_inside, real_path
from loupe.runs.folder import RunFolder
from loupe.typed import convert, json_decoder
from loupe.types import Output, PageSource, Request
from loupe.workers.child import Loaded
from loupe.workers.limits import readers
from loupe.workers.pool import WorkerPool, worker_pool

ANCHORS = frozenset({"image", "chart"})
CAPTIONS = frozenset({"figure_title", "vision_footnote"})
_TITLE = "figure_title"
#: Of the narrower box, horizontally: above or below.
_OVERLAP = 0.3
#: Of the lower box, vertically: side by side.
_ROW_OVERLAP = 0.5


def captions(regions: Sequence[Region]) -> Mapping[int, str]:
    """Caption texts by position in `regions` of the figures there; "" for those without one.

    A title or footnote goes to its nearest figure. A single title of figures that stand side by side goes to all.
    """
    anchors = [place for place, region in enumerate(regions) if region.label in ANCHORS]
    texts = [place for place, region in enumerate(regions) if region.label in CAPTIONS]
    attached: dict[int, list[int]] = {anchor: [] for anchor in anchors}
    nearest = {text: _nearest(regions, text, anchors) for text in texts} if anchors else {}
    titles = Counter(anchor for text, anchor in nearest.items() if regions[text].label == _TITLE)
    for text, anchor in nearest.items():
        row = _row(regions, anchor, anchors)
        alone = regions[text].label == _TITLE and len(row) > 1 and sum(titles[one] for one in row) == 1
        for one in row if alone else [anchor]:
            attached[one].append(text)
    return {
        anchor: "\n".join(regions[text].text.strip() for text in found if regions[text].text.strip())
        for anchor, found in attached.items()
    }


def _nearest(regions: Sequence[Region], text: int, anchors: Sequence[int]) -> int:
    """The smallest vertical gap among figures above or below; else the nearest centre. Ties: the lower index."""
    box = regions[text].box
    stacked = [anchor for anchor in anchors if _overlap(box, regions[anchor].box, 0) >= _OVERLAP]
    if stacked:
        return min(stacked, key=lambda anchor: (_gap(box, regions[anchor].box), regions[anchor].index))
    return min(anchors, key=lambda anchor: (_distance(box, regions[anchor].box), regions[anchor].index))


def _row(regions: Sequence[Region], anchor: int, anchors: Sequence[int]) -> Sequence[int]:
    """The figures that stand side by side with one, itself among them."""
    return [one for one in anchors if _overlap(regions[anchor].box, regions[one].box, 1) >= _ROW_OVERLAP]


def _overlap(one: Box, other: Box, axis: int) -> float:
    """What two boxes share of an axis (0 across, 1 down), as a part of the smaller extent."""
    shared = min(one[axis + 2], other[axis + 2]) - max(one[axis], other[axis])
    return max(shared, 0.0) / min(one[axis + 2] - one[axis], other[axis + 2] - other[axis])


def _gap(one: Box, other: Box) -> float:
    return max(one[1] - other[3], other[1] - one[3], 0.0)


def _distance(one: Box, other: Box) -> float:
    across = (one[0] + one[2] - other[0] - other[2]) / 2
    down = (one[1] + one[3] - other[1] - other[3]) / 2
    return float((across**2 + down**2) ** 0.5)


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
    async with worker_pool("loupe.features.embed.corpus:load", {}, workers=readers(), lazy=True, bounded=True) as pool:
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


CROPS = "crops"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row: the name of its item and the key of its vector; without a key there is nothing to ask, for a reason."""

    id: str
    key: str = ""
    outcome: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure with its caption; `crop` is its file, `path` that file as the metadata names it."""

    page_id: str
    region: Region
    caption: str
    crop: Path
    path: str
    row: Row


@dataclass(slots=True, kw_only=True)
class Corpus:
    """Rows in their order, and what was left out on the way there."""

    texts: list[Row] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    queries: list[Row] = field(default_factory=list)
    small: int = 0
    regions_left_out: int = 0


def pages(plan: Plan, run: RunFolder) -> Iterator[PageRecord]:
    """The pages of the run with the plan's names and regions."""
    return pages_of_run(run, page_ids=plan.page_ids, regions_file=plan.regions_file)


def clean(text: str) -> str:
    """The text as it can be sent: half characters, which no encoding has, become question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


def text_row(page: PageRecord) -> Row:
    """The row of a page's text. A page that was not read, or has no text, has nothing to be embedded."""
    text = clean(page.text)
    if text.strip():
        return Row(id=page.page_id, key=key_of("text", text))
    if page.outcome in ("ok", "empty", "truncated", "repeated"):
        return Row(id=page.page_id, outcome="empty", error="the page has no text")
    return Row(id=page.page_id, outcome="error", error=f"the page was not read: {page.outcome}: {page.error}"[:500])


def query_row(query: Query) -> Row:
    """The row of a query."""
    return Row(id=query.query_id, key=key_of("query", clean(query.text)))


async def collect(plan: Plan, run: RunFolder, queries: Sequence[Query], cutter: Cutter) -> Corpus:
    """All rows. Crops are cut here, since what they show is part of their key."""
    corpus = Corpus(queries=[query_row(query) for query in queries])
    for page in pages(plan, run):
        corpus.texts.append(text_row(page))
        if plan.with_regions:
            corpus.regions_left_out += page.regions_left_out
            await _add_figures(corpus, page, plan, run, cutter)
    return corpus


async def _add_figures(corpus: Corpus, page: PageRecord, plan: Plan, run: RunFolder, cutter: Cutter) -> None:
    found = captions(page.regions)
    figures = [(page.regions[place], clean(caption)) for place, caption in found.items()]
    if not figures:
        return
    kept = [_kept_crop(region, run.path) for region, _ in figures]
    places = [_crop_place(plan, page.page_id, region) for region, _ in figures]
    root = plan.folder.root
    cuts = [
        Cut(box=region.box, root=str(root), name=str(place.relative_to(root)))
        for (region, _), place, old in zip(figures, places, kept, strict=True)
        if old is None
    ]
    made, error = await _cut(cutter, page.image, cuts) if cuts else ([], "")
    new = iter(made)
    for (region, caption), place, old in zip(figures, places, kept, strict=True):
        crop = place if old is None else old
        name = f"{page.page_id}#{region.index}"
        if old is not None:
            row = Row(id=name, key=key_of("region", file_digest(old), caption))
        elif error:
            row = Row(id=name, outcome="error", error=error)
        else:
            cut = next(new)
            if not cut.digest:
                corpus.small += 1
                continue
            row = Row(id=name, key=key_of("region", cut.digest, caption))
        path = _named(crop, (run.path, plan.output))
        corpus.figures.append(
            Figure(page_id=page.page_id, region=region, caption=caption, crop=crop, path=path, row=row)
        )


async def _cut(cutter: Cutter, image: PageSource | None, cuts: Sequence[Cut]) -> tuple[list[Made], str]:
    """The crops, or why there are none."""
    if image is None:
        return [], "the page has no image"
    try:
        return await cutter.cut(image, cuts), ""
    except PageError as error:
        return [], error.message


def _named(crop: Path, folders: Sequence[Path]) -> str:
    """A crop's path below the run, or below the output where that is elsewhere."""
    whole = real_path(crop)
    above = next(real_path(folder) for folder in folders if whole.is_relative_to(real_path(folder)))
    return whole.relative_to(above).as_posix()


def _crop_place(plan: Plan, page_id: str, region: Region) -> Path:
    return plan.output / CROPS / f"{safe_name(page_id)}_idx{region.index}.png"


def _kept_crop(region: Region, run: Path) -> Path | None:
    """The crop that the pipeline left in the run folder, if it is there and large enough; never a file elsewhere."""
    if not region.crop:
        return None
    path = run / region.crop
    try:
        inside = is_inside(path, run) and path.is_file()
        return path if inside and min(page_size(path)) >= SMALLEST else None
    except (PageError, OSError, ValueError):
        return None


def data_url(mime: str, data: bytes) -> str:
    """An image as it stands in a request."""
    return f"data:{mime};base64,{binascii.b2a_base64(data, newline=False).decode()}"
