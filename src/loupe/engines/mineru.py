"""MinerU, package `mineru`: its pipeline, vision model and hybrid in versions 2 and 3, the tiers of version 4.

Source: opendatalab/MinerU @ 79d6d8d7 (3.4.4) and PyPI mineru 4.0.12; docs/protocols/engines.md#mineru,
docs/engines/mineru.md. Which interface is used goes by the installed version. Version 4 can send documents to
mineru.net: it is never asked to.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from loupe.data.extras import install_command
from loupe.engines.registry import WHOLE_PAGES
from loupe.engines.vendors.opening import SdkSettings, Work, installed, open_package
from loupe.engines.vendors.outbound import Outbound, loading, reading_here, without_proxies
from loupe.engines.vendors.servers import ModelServer, one_server, reach_server
from loupe.engines.workers.worker import Loaded
from loupe.errors import MissingToolError
from loupe.files.scratch import scratch_folder
from loupe.helpers import for_children
from loupe.types import Engine

if TYPE_CHECKING:
    from loupe.engines.vendors.mineru_parsers import Backends, Tiers

WAY = "pipeline"
MARGINS = "left out"
UNPROVEN = "never run with its models: mineru 4.0.12 read the text of PDFs (tier flash), 3.4.5 is checked by signature"
_EXTRA = "mineru"
_START = "mineru-openai-server --port 30000"
_FIRST, _LAST = 2, 4
#: What fetches the models, of the versions before 4 and of 4.
_MODELS = ("mineru-models-download", "mineru-kit models download --tier standard")


class Settings(SdkSettings, frozen=True, kw_only=True):
    """Keys of the kind `mineru`.

    `method` is "auto", "txt" (text layer of a PDF) or "ocr". Versions 2 and 3: `backend` as the package names it
    (pipeline, vlm-engine, vlm-http-client, hybrid-engine, hybrid-http-client), `effort` of hybrid ones, `language`,
    `formulas`, `tables`. Version 4: `tier` (flash, basic, standard, advanced). `base_url` is the model server of the
    http clients, in version 4 of any tier; "" is none. `pdf_pages` hands pages of a PDF over as they are; else as
    images of `dpi`.
    """

    gives: ClassVar[frozenset[str] | None] = WHOLE_PAGES

    method: Literal["auto", "txt", "ocr"] = "auto"
    backend: str = "hybrid-engine"
    effort: Literal["medium", "high"] = "medium"
    language: str = "ch"
    formulas: bool = True
    tables: bool = True
    image_analysis: bool = True
    tier: Literal["flash", "basic", "standard", "advanced"] = "standard"
    base_url: str | list[str] = ""
    model: str = ""
    pdf_pages: bool = True

    def signature(self) -> dict[str, str]:
        """The image or that there is none, and the ways of version 4 (tier) and of those before (backend)."""
        image = {"img": "pdf"} if self.pdf_pages else {}
        return {**super().signature(), **image, "method": self.method, "tier": self.tier, "backend": self.backend}


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Check package and server, load the models by a page of our own, then yield the engine.

    Raises MissingToolError without the package, or with a version that has neither interface.
    """
    facts = installed("mineru", install=install_command(_EXTRA))
    major = major_version(facts["mineru"])
    facts |= {"interface": "MinerUParser" if major == _LAST else "do_parse"}
    facts |= {"tier": settings.tier} if major == _LAST else {"backend": settings.backend}
    asks = bool(settings.base_url) or (major < _LAST and settings.backend.endswith("-http-client"))
    server = await one_server(settings.base_url) if asks else None
    if server is not None:
        facts |= await reach_server(server, settings.model, start=_START)
    hosts = [server.host] if server else []
    with scratch_folder("loupe-mineru-") as folder:
        environment = for_children("servers")  # it may run vLLM itself
        # Version 4 reads ~/.mineru/config.yaml, which may name servers of others: it is given a file of ours.
        config = folder / "config.yaml"
        config.write_text("{}\n", encoding="utf-8")
        if major == _LAST and not settings.download:
            # Its own word for "what is in the folder of models, and nothing from the network".
            environment["MINERU_MODEL_SOURCE"] = "local"
        work = Work(
            factory="loupe.engines.mineru:load",
            arguments={"options": _options(settings, major, server), "hosts": hosts, "tiers": major == _LAST},
            environment=without_proxies({**environment, "MINERU_CONFIG": str(config)}, hosts),
            takes_pdf=settings.pdf_pages,
        )
        async with open_package(settings, work, facts=facts, healthy=server.answers if server else None) as engine:
            yield engine


def major_version(version: str) -> int:
    """The version that decides about the interface. Raises MissingToolError for one that has none of ours."""
    found = re.match(r"\d+", version)
    if found is None or not _FIRST <= int(found[0]) <= _LAST:
        raise MissingToolError(
            f"mineru {version} has none of the interfaces that Loupe knows ({_FIRST}.x to {_LAST}.x)",
            hint=install_command(_EXTRA),
        )
    return int(found[0])


def _options(settings: Settings, major: int, server: ModelServer | None) -> dict[str, Any]:
    url = server.url if server else ""
    if major == _LAST:
        return {
            "tier": settings.tier,
            "method": settings.method,
            "image_analysis": settings.image_analysis,
            "server_url": url,
            "model": settings.model,
        }
    return {
        "backend": settings.backend,
        "parse_method": settings.method,
        "formula_enable": settings.formulas,
        "table_enable": settings.tables,
        # The package adds /v1 itself.
        "server_url": url.removesuffix("/v1") or None,
        "image_analysis": settings.image_analysis,
        "effort": settings.effort,
        "language": settings.language,
    }


def load(*, options: dict[str, Any], hosts: list[str], tiers: bool, download: bool) -> Loaded:
    """The engine as a worker uses it: `tiers` of version 4, or the back ends of those before."""
    outbound = Outbound(hosts)
    models = f"{_MODELS[tiers]}, then export MINERU_MODEL_SOURCE=local"
    with loading(outbound, download=download, package="mineru", models=models):
        reader = _reader(options, tiers=tiers)
        reader.warm_up()
    return Loaded(read=reading_here(reader.read, outbound, package="mineru", models=models))


def _reader(options: dict[str, Any], *, tiers: bool) -> Backends | Tiers:
    if tiers:
        from loupe.engines.vendors.mineru_parsers import Tiers

        return Tiers(**options)
    from loupe.engines.vendors.mineru_parsers import Backends

    return Backends(**options)
