"""Give engines pages from worker processes: as images, as files that a program can open, as text in prompts.

PDFium and image decoders are C code, and pages are other people's files. The workers start with the first page that
needs them; what can be passed on byte for byte never gets here.

A file is passed on as it is if the program can open it, else as a temporary PNG. A prompt with `{anchor_text}` is asked
with the text and the positions of its own page there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import msgspec

from loupe.data.extras import need
from loupe.data.packed import packed_name, read_packed
from loupe.data.page_drawing import write_page_alone, write_picture_as_pdf
from loupe.data.pages import DEFAULT_DPI, load_page, page_count
from loupe.data.rasters import is_upright, open_image
from loupe.engines.pages.anchor_text import MARK, PACKAGES, anchor_text
from loupe.engines.pages.page_images import EncodedImage, ImageRule, encode
from loupe.errors import EngineError, EngineUnavailableError, PageError, RejectedError
from loupe.files.scratch import scratch_folder
from loupe.typed import encode_json, json_decoder
from loupe.types import Engine, Output, PackedImage, PageSource, PdfPage, Request
from loupe.workers.child import Loaded
from loupe.workers.limits import readers
from loupe.workers.pool import WorkerPool, worker_pool

#: No page takes longer than this, in seconds, to be decoded: the largest allowed take a tenth of it.
LONGEST_DECODING = 60.0


class _Order(msgspec.Struct):
    """The work to be done with a page; travels as the prompt of a request."""

    task: Literal["encode", "file", "pdf", "cut", "anchor", "count"]
    rule: ImageRule | None = None
    folder: str = ""
    formats: frozenset[str] = frozenset()
    longest: int | None = None
    dpi: float | None = None


class PageReader:
    """Reads pages in other processes, within the time limit of a request. Use `page_reader`, which opens it."""

    def __init__(self, pool: WorkerPool, timeout: float) -> None:
        self._pool = pool
        self._timeout = min(timeout, LONGEST_DECODING)

    async def encode(self, source: PageSource, rule: ImageRule) -> EncodedImage:
        """The page as an image file in memory. Raises PageError, also if reading it takes too long or crashes."""
        response = (await self._ask(source, _Order(task="encode", rule=rule))).response or {}
        return EncodedImage(response["mime"], response["data"])

    async def file(
        self, source: PageSource, folder: Path, *, longest: int | None, dpi: float | None, formats: frozenset[str]
    ) -> Path:
        """The absolute path of the page as an upright image: the source itself if it is one in `formats`, else in
        `folder`. Raises PageError, also if reading it takes too long or crashes."""
        order = _Order(task="file", folder=str(folder), longest=longest, dpi=dpi, formats=formats)
        return Path((await self._ask(source, order)).text)

    async def one_page_pdf(self, source: PageSource, folder: Path, *, longest: int | None, dpi: float) -> Path:
        """The absolute path of a PDF in `folder` whose only page is the upright picture of this one, pixel for pixel,
        at `dpi`. Raises PageError, also if reading the page takes too long or crashes."""
        order = _Order(task="pdf", folder=str(folder), longest=longest, dpi=dpi)
        return Path((await self._ask(source, order)).text)

    async def cut_page(self, source: PdfPage, folder: Path) -> Path:
        """The absolute path of a PDF that is this page alone, text layer and all: the document itself if it has no
        other, else one in `folder`. Raises PageError, also if that takes too long or crashes."""
        return Path((await self._ask(source, _Order(task="cut", folder=str(folder)))).text)

    async def anchor_text(self, source: PageSource) -> str:
        """Return the texts on the page with their places, for a prompt. Raises PageError, also if that takes too long
        or crashes.
        """
        return (await self._ask(source, _Order(task="anchor"))).text

    async def count(self, path: Path) -> int:
        """Count the pages of a document. Raises PageError, also if finding out takes too long or crashes."""
        return int((await self._ask(path, _Order(task="count"))).text)

    async def _ask(self, source: PageSource, order: _Order) -> Output:
        return await ask_about_page(self._pool, source, order, timeout=self._timeout)


async def ask_about_page(pool: WorkerPool, source: PageSource, order: msgspec.Struct, *, timeout: float) -> Output:
    """Have a worker do something with a page. Raises PageError where that fails, takes too long or crashes."""
    request = Request(id="page", prompt=encode_json(order).decode(), images=(source,))
    try:
        return await pool.ask(request, timeout=timeout)
    except EngineUnavailableError:
        raise
    except EngineError as error:
        path = source if isinstance(source, Path) else source.path
        raise PageError(f"{path}: cannot be decoded: {error.message}") from None


@asynccontextmanager
async def page_reader(*, timeout: float, workers: int | None = None) -> AsyncIterator[PageReader]:
    """A reader with up to `workers` processes, as many as there are cores and memory for; none starts before a page."""
    most = readers()
    count = min(workers or most, most)
    async with worker_pool("loupe.engines.pages.page_reader:load", {}, workers=count, lazy=True, bounded=True) as pool:
        yield PageReader(pool, timeout)


def load() -> Loaded:
    """The reader as a worker uses it."""
    return Loaded(read=_read)


def _read(request: Request) -> Output:
    (source,) = request.images
    order = json_decoder(_Order).decode(request.prompt)
    if order.task == "count":
        assert isinstance(source, Path)
        return Output(text=str(page_count(source)))
    if order.task == "encode":
        assert order.rule is not None
        image = encode(source, order.rule)
        return Output(text="", response={"mime": image.mime, "data": image.data})
    if order.task == "anchor":
        return Output(text=anchor_text(source))
    if order.task == "cut":
        assert isinstance(source, PdfPage)
        return Output(text=str(write_page_alone(source, Path(order.folder) / "page.pdf")))
    return Output(text=str(_pdf(source, order) if order.task == "pdf" else _file(source, order)))


def _file(source: PageSource, order: _Order) -> Path:
    """A file with the page: the one that it is in already, its very bytes out of a data file, or a PNG of it."""
    folder = Path(order.folder)
    if isinstance(source, Path) and _fitting(source, source, order):
        return source.absolute()
    if isinstance(source, PackedImage):
        data = read_packed(source)
        kind = _fitting(data, packed_name(source), order)
        if kind:
            path = folder / f"page.{kind.lower()}"
            path.write_bytes(data)
            return path
    image = load_page(source, longest=order.longest, dpi=order.dpi)
    path = folder / "page.png"
    # Programs judge sizes by the resolution that the file states.
    resolution = order.dpi if order.dpi is not None and isinstance(source, PdfPage) else None
    image.save(path, compress_level=1, dpi=(resolution, resolution) if resolution else None)
    return path


def _pdf(source: PageSource, order: _Order) -> Path:
    """A PDF of one page that shows the picture of a page, without loss."""
    image = load_page(source, longest=order.longest, dpi=order.dpi)
    path = Path(order.folder) / "page.pdf"
    write_picture_as_pdf(image, path, dpi=order.dpi or DEFAULT_DPI)
    return path


def _fitting(source: Path | bytes, name: Path, order: _Order) -> str:
    """The format of an image that a program can be given as it is, else ""."""
    with open_image(source, name) as image:
        small = order.longest is None or max(image.size) <= order.longest
        plain = is_upright(image) and getattr(image, "n_frames", 1) == 1 and not image.has_transparency_data
        return str(image.format) if image.format in order.formats and small and plain else ""


def single_page(request: Request) -> PageSource:
    """The one page of a request. Raises RejectedError if it has none or several: such an engine reads one at a time."""
    if len(request.images) != 1:
        raise RejectedError(f"this engine reads one page per request, not {len(request.images)}")
    return request.images[0]


@asynccontextmanager
async def page_file(
    source: PageSource, *, longest: int | None, dpi: float | None, formats: frozenset[str], reader: PageReader
) -> AsyncIterator[Path]:
    """An absolute path of the page as an image in one of `formats` (Pillow's names), upright.

    The source itself if it is such a file; else a PNG in a private temporary folder that is deleted afterwards.
    Raises PageError if the page cannot be read.
    """
    with scratch_folder("loupe-page-") as folder:
        # Absolute, so that no name can be taken for an option.
        yield await reader.file(source, folder, longest=longest, dpi=dpi, formats=formats)


def anchored_by(prompts: Iterable[str]) -> str:
    """Name the package that makes the anchor text, with its release, if a prompt wants one; else "".

    Raises MissingToolError where one is wanted and the packages are not there.
    """
    if not any(MARK in prompt for prompt in prompts):
        return ""
    need(*PACKAGES, extra="anchors", purpose=f"a prompt with {MARK}")
    return "+".join(f"{package}-{version(package)}" for package in PACKAGES)


@asynccontextmanager
async def with_anchors(engine: Engine, *, timeout: float) -> AsyncIterator[Engine]:
    """The engine, asked with the anchor text of the request's pages in the place of the mark."""
    async with page_reader(timeout=timeout) as reader:

        async def predict(request: Request) -> Output:
            if MARK not in request.prompt:
                return await engine.predict(request)
            anchored_by([request.prompt])
            texts = [await reader.anchor_text(page) for page in request.images]
            prompt = request.prompt.replace(MARK, "\n".join(texts))
            return await engine.predict(replace(request, prompt=prompt))

        yield replace(engine, predict=predict)
