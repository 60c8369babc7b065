"""The rows of the three matrices before any is asked for: what each stands for, and the key of its vector."""

from __future__ import annotations

import binascii
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from loupe.data.digests import file_digest
from loupe.data.pages import page_size
from loupe.errors import PageError
from loupe.files.file_names import safe_name
from loupe.files.foreign import is_inside, real_path
from loupe.runs.folder import RunFolder
from loupe.studies.embed.captions import captions
from loupe.studies.embed.crops import SMALLEST, Cut, Cutter, Made
from loupe.studies.embed.inputs import PageRecord, Query, Region, pages_of_run
from loupe.studies.embed.journal import key_of
from loupe.studies.embed.plan import Plan
from loupe.types import PageSource

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
