"""Open an engine around a vendor's package: its common keys, whether it is installed, workers that load it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from loupe.engines.chat.discovery import check_addresses
from loupe.engines.pages.page_reader import page_file, page_reader, single_page
from loupe.engines.registry import Profile
from loupe.engines.shared.model_names import from_anywhere, refuse_folder_instead
from loupe.engines.workers.isolation import worker_pool
from loupe.errors import MissingToolError
from loupe.files.scratch import scratch_folder
from loupe.runs.info import digest_of
from loupe.types import Engine, Output, PdfPage, Request

#: What every one of these packages reads from a file.
_FORMATS = frozenset({"PNG", "JPEG"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What workers do: `factory` (`module:function`) with `arguments` and whether to `download`, in `environment`.

    `takes_pdf`: the package is handed a page of a PDF as it is, with its number, and not as an image.
    """

    factory: str
    arguments: Mapping[str, object]
    environment: Mapping[str, str]
    takes_pdf: bool = False


def installed(*packages: str, install: str) -> dict[str, str]:
    """Versions of packages. Raises MissingToolError, with `install` as the hint, for the first that is not here.

    A package counts by the name that it is imported by; where its version is not known, that is "unknown". `package` is
    what a signature says.
    """
    for package in packages:
        if find_spec(package) is None:
            raise MissingToolError(f"the package {package} is not installed", hint=install)
    versions = {package: _version(package) for package in packages}
    return {**versions, "package": "+".join(f"{name}={number}" for name, number in versions.items())}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


#: What keeps libraries of models, and the processes that they start, from the network.
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


@asynccontextmanager
async def open_package(
    settings: SdkSettings,
    work: Work,
    *,
    facts: Mapping[str, str],
    healthy: Callable[[], Awaitable[bool]] | None = None,
) -> AsyncIterator[Engine]:
    """Load the package in a worker, then yield the engine. A crash or a hang costs the page that it happens on.

    The worker starts in an empty folder, so the package finds no settings and no modules of a stranger's there.
    """
    refuse_folder_instead(str(work.arguments.get("model", "")))
    workers = settings.concurrency or 1
    with scratch_folder("loupe-engine-") as folder:
        async with (
            page_reader(timeout=settings.timeout, workers=workers) as reader,
            worker_pool(
                work.factory,
                {**from_anywhere(work.arguments), "download": settings.download},
                workers=workers,
                environment={**work.environment, **({} if settings.download else _OFFLINE)},
                load_timeout=settings.load_timeout,
                folder=folder,
            ) as pool,
        ):

            async def predict(request: Request) -> Output:
                page = single_page(request)
                if work.takes_pdf and isinstance(page, PdfPage) and not page.variant:
                    anywhere = replace(request, images=(replace(page, path=page.path.absolute()),))
                    return await pool.ask(anywhere, timeout=settings.timeout)
                async with page_file(page, longest=None, dpi=settings.dpi, formats=_FORMATS, reader=reader) as path:
                    return await pool.ask(replace(request, images=(path.absolute(),)), timeout=settings.timeout)

            yield Engine(predict=predict, facts={**facts, **pool.facts}, healthy=healthy)


class SdkSettings(Profile, frozen=True, kw_only=True):
    """`concurrency` is the number of worker processes: each loads the models, so one is right for one GPU.

    `dpi` is for PDF pages. `download` lets the package fetch models that are not on this machine. `load_timeout` is how
    long loading may take, in seconds.
    """

    concurrency: int | None = 1
    dpi: float = 200.0
    download: bool = False
    load_timeout: float = 3600.0

    def __post_init__(self) -> None:
        """Raises ValueError for an address that holds a key: packages write addresses into their messages."""
        written = getattr(self, "base_url", [])
        urls = [url for url in ([written] if isinstance(written, str) else written) if url]
        check_addresses(urls)
        for url in urls:
            if urlsplit(url).query:
                raise ValueError("base_url holds a query, which no vendor's package can take")

    def signature(self) -> dict[str, str]:
        """What the image is made of, and a digest of all settings that can change an answer."""
        return {"img": f"dpi{self.dpi:g}", "set": digest_of([self.defining()])[:8]}

    def defining(self) -> dict[str, Any]:
        """How long we wait, where a server stands, and whether models are fetched, changes no answer."""
        skipped = {"load_timeout", "base_url", "download"}
        return {key: value for key, value in super().defining().items() if key not in skipped}
