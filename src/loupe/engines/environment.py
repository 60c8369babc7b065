"""An engine whose packages lie in an environment of their own (`loupe engine install`), read by processes in it.

docs/engines/environments.md. Loupe's own packages are never there, and those of the engine never here.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from loupe.data.digests import short_digest
from loupe.engines.environments.model_server import FoundServer, server_of
from loupe.engines.environments.places import LOCKED, Environment, Settings, installed, reader_of
from loupe.engines.environments.speech import ForeignInterpreter, Page, Start
from loupe.engines.pages.page_reader import PageReader, page_file, page_reader, single_page
from loupe.engines.pages.whole_documents import Conversions, Document, conversions
from loupe.engines.shared.model_names import from_anywhere
from loupe.errors import EngineError, EngineUnavailableError, MissingToolError, PageError, RejectedError, word
from loupe.files.scratch import scratch_folder
from loupe.helpers import for_children
from loupe.types import Engine, Output, PageSource, PdfPage, Request
from loupe.workers.limits import cores, memory_share
from loupe.workers.pool import WorkerPool, interpreter_pool

_FORMATS = frozenset({"PNG", "JPEG"})
#: Where libraries look how many threads they may start; they look when they are imported.
_THREADS = (
    *("OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
    *("DOCLING_NUM_THREADS", "RAYON_NUM_THREADS"),
)
#: Nothing is fetched while pages are read.
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
_READABLE = {"PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
#: A proxy that does not exist: it stops what is not written in Python, too, if it respects proxies.
_NO_PROXY = "http://network-closed-by-loupe.invalid:9"
_HERE = "localhost,127.0.0.1,::1"

__all__ = ["Settings", "open_engine", "reader_pool"]


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Start a worker in the environment, then yield the engine.

    Raises MissingToolError if it is not installed, and what looking for its model server raises.
    """
    environment, _ = installed(settings)
    server = await server_of(settings)
    async with (
        reader_pool(settings, server, download=settings.download) as pool,
        page_reader(timeout=settings.timeout, workers=settings.concurrency) as reader,
        conversions() as documents,
    ):
        # Of what was installed: without a lock of the profile's, the same packages may bring others at another time.
        lock, source = (short_digest([file]) for file in (environment.folder / LOCKED, reader_of(settings)))
        engine = _Reading(settings, pool, reader, documents)
        yield Engine(
            predict=engine.predict,
            facts={**(server.facts if server else {}), **pool.facts, "lock": lock, "source": source},
            healthy=server.answers if server else None,
        )


@asynccontextmanager
async def reader_pool(
    settings: Settings, server: FoundServer | None = None, *, download: bool = False
) -> AsyncIterator[WorkerPool]:
    """The workers of a profile. With `download` its reader may fetch what it needs while it is loaded."""
    environment, _ = installed(settings)
    for program in settings.programs:
        if shutil.which(program) is None:
            raise MissingToolError(f"{settings.environment} needs the program {program!r}", hint="check the PATH")
    workers = settings.concurrency or 1
    unlimited = settings.memory == 0 or (settings.memory is None and settings.gpu_list)
    limit = None if unlimited else int(settings.memory * 1e9) if settings.memory else memory_share(workers)
    start = Start(
        reader=str(reader_of(settings)),
        options=from_anywhere(settings.options) | ({"base_url": server.url} if server else {}),
        packages=list(settings.pins),
        hosts=[*settings.may_reach, *settings.hosts, *([server.host] if server else [])],
        memory=limit,
        download=download,
        strict_network=settings.strict_network,
    )
    with scratch_folder("loupe-engine-") as folder:
        hint = "" if download else _about_weights(settings)
        reader = ForeignInterpreter(environment.python, start, folder, hint)
        environments = _environments(settings, environment, workers, server, download=download)
        async with interpreter_pool(reader, environments, load_timeout=settings.startup_timeout) as pool:
            yield pool


def _about_weights(settings: Settings) -> str:
    """Say where the weights of an engine come from, and what brings them; "" if it needs none."""
    if not settings.weights:
        return ""
    fetching = f"; loupe engine install {word(settings.environment)} --weights" if settings.fetches else ""
    return f"weights: {settings.weights}{fetching}"


def _environments(
    settings: Settings, environment: Environment, workers: int, server: FoundServer | None, *, download: bool
) -> list[dict[str, str]]:
    """Return the environment that each worker gets: no secrets, its share of the cores, its GPU."""
    threads = str(max(1, cores() // workers))
    shared = {
        **for_children("servers", passed=settings.pass_env),  # some run one themselves
        **dict.fromkeys(_THREADS, threads),
        **_READABLE,
    }
    shared.pop("PYTHONPATH", None)
    if not download:
        shared |= _OFFLINE
        if not settings.may_reach and not settings.hosts:
            shared |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), _NO_PROXY)
            shared |= dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), _NO_PROXY)
            shared |= dict.fromkeys(("NO_PROXY", "no_proxy"), _HERE)
    if server is not None:  # It is asked directly, regardless of the user's proxies for the rest.
        listed = shared.get("no_proxy") or shared.get("NO_PROXY") or ""
        direct = ",".join(filter(None, [listed, _HERE, server.host]))
        shared |= dict.fromkeys(("NO_PROXY", "no_proxy"), direct)
    shared["PATH"] = os.pathsep.join([str(environment.python.parent), os.environ.get("PATH", os.defpath)])
    shared |= settings.variables
    gpus: Sequence[str] = settings.gpu_list
    return [shared | ({"CUDA_VISIBLE_DEVICES": gpus[place % len(gpus)]} if gpus else {}) for place in range(workers)]


@dataclass(frozen=True, slots=True)
class _Reading:
    """Gives the workers what they read."""

    settings: Settings
    pool: WorkerPool
    reader: PageReader
    documents: Conversions

    async def predict(self, request: Request) -> Output:
        """Have the reader read a page. Raises RejectedError for a page of a form that it does not take."""
        source = single_page(request)
        reads = self.settings.reads
        if isinstance(source, PdfPage) and not source.variant and reads != ["image"]:
            if "page" not in reads and "document" in reads:
                return await self._of_document(source, request)
            if "page" in reads:
                with scratch_folder("loupe-page-") as folder:
                    path = await self.reader.cut_page(source, folder)
                    return await self._ask(path, "page", request)
        if "image" not in reads:
            raise _refusal(source, self.settings)
        longest, dpi = self.settings.longest, self.settings.dpi
        async with page_file(source, longest=longest, dpi=dpi, formats=_FORMATS, reader=self.reader) as path:
            return await self._ask(path, "image", request)

    async def _ask(self, path: Path, form: str, request: Request, *, pages: int = 1) -> Output:
        page = Page(path=str(path), type=form, prompt=request.prompt, pages=pages)
        output = await self.pool.ask(page, timeout=pages * self.settings.timeout)
        texts = (output.response or {}).get("pages")
        if form == "document" or texts is None:
            return output
        if len(texts) != 1:
            raise EngineError(f"{len(texts):,} texts for one page")
        return replace(output, text=texts[0], response=None)

    async def _of_document(self, source: PdfPage, request: Request) -> Output:
        """The page's text out of its document, which is read once, however many of its pages are asked for."""
        path = source.path.absolute()
        count = await self.reader.count(path)
        if not 1 <= source.page <= count:
            raise PageError(f"{path}: has no page {source.page} (pages 1 to {count})")
        convert = partial(self._convert, path, count, request)
        document = await self.documents.get((path, request.prompt), convert)
        return Output(text=document.pages[source.page - 1], finish_reason="stop", seconds=document.seconds)

    async def _convert(self, path: Path, count: int, request: Request) -> Document:
        began = time.monotonic()
        output = await self._ask(path, "document", request, pages=count)
        pages = (output.response or {}).get("pages", [output.text] if count == 1 else [])
        if len(pages) != count:
            raise EngineError(f"{len(pages):,} texts for the {count:,} pages of {path.name}")
        return Document(list(pages), round((time.monotonic() - began) / count, 4))


def _refusal(source: PageSource, settings: Settings) -> EngineError:
    """Return why a page cannot be read: one picture among PDFs is rejected; pages made worse are never read."""
    if isinstance(source, PdfPage):
        return EngineUnavailableError(
            f"{settings.environment} reads PDF files, but the pages are pictures here (variant={source.variant})",
            hint="use an engine that reads images, or no variant",
        )
    name = source.name if isinstance(source, Path) else source.path.name
    return RejectedError(f"{settings.environment} reads PDF files, and {name} is an image file")
