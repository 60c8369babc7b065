"""OCR and a text model as one engine: the OCR reads the pages, the model answers from what was read.

Contract: docs/engines/ocr-and-text.md. For questions to documents (fields, labels, answers) where no vision model is at
hand. The model is asked as by the kind `openai`, whose keys this kind has too; it never gets a picture.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import msgspec

from loupe.engines import openai
from loupe.engines.adapters.steps import apply_adapters
from loupe.engines.chat.settings import Settings as ChatSettings
from loupe.engines.registry import Profile, engine_module, load_profile
from loupe.types import Engine, Output, Request
from loupe.workers.limits import cores

#: `-e ocr_and_text:OCR`
ARGUMENT = "ocr"
#: The model sees text, not pages (`loupe reproduce` tells the two apart).
WAY = "pipeline"
#: What stands between the question and the text.
_HEAD = "The text of the document, as OCR read it:"
#: Kinds that may read anything, and give it as text.
_OWN = ("command", "python")
#: Texts that are kept for another attempt at a model that was busy: reading again would take seconds each.
_KEPT = 64


#: Whether the profile of an OCR is being loaded, which must not be of this kind: it could name itself.
_loading: ContextVar[bool] = ContextVar("loading", default=False)


class Settings(ChatSettings, frozen=True, kw_only=True):
    """Keys of an `ocr_and_text` profile, beside those of `openai`; see docs/engines/ocr-and-text.md.

    `ocr` is the engine that reads, by the name that `-e` takes. `concurrency` counts documents: the OCR reads as many
    at once as its own profile says, the others wait for the model.
    """

    unasked: ClassVar[frozenset[str]] = frozenset({"text"})

    ocr: str = "rapidocr"
    concurrency: int | Literal["auto"] | None = msgspec.field(default_factory=lambda: 2 * cores())

    def __post_init__(self) -> None:
        super().__post_init__()
        reader = self.reader
        if reader.gives is None and reader.kind not in _OWN:
            raise ValueError(f"ocr = {self.ocr!r} is not an OCR engine such as rapidocr or tesseract")

    @property
    def reader(self) -> Profile:
        """The profile of the OCR. Raises what loading it raises, ValueError for one that leads back to its own kind."""
        if _loading.get():
            raise ValueError(f"ocr = {self.ocr!r} is not an OCR engine such as rapidocr or tesseract")
        token = _loading.set(True)
        try:
            return load_profile(self.ocr)[1]
        finally:
            _loading.reset(token)

    @property
    def services(self) -> tuple[str, ...]:
        """Those of the OCR."""
        return self.reader.services

    @property
    def hosts(self) -> tuple[str, ...]:
        """Those of the OCR, and of the model."""
        return tuple(dict.fromkeys([*self.reader.hosts, *super().hosts]))

    def signature(self) -> dict[str, str]:
        """The signature of a text model; the picture is the OCR's, which is named."""
        picture = {key: text for key, text in self.reader.signature().items() if key == "img"}
        return {**super().signature(), "img": "none", **picture, "ocr": self.ocr}

    def defining(self) -> dict[str, Any]:
        """Also all settings of the OCR that can change what is read; there is no image rule."""
        found = {key: value for key, value in super().defining().items() if key != "image"}
        return {**found, "ocr": {"engine": self.ocr, **self.reader.defining()}}


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncIterator[Engine]:
    """Open the OCR and find the server, then yield the engine. Raises what opening either of them raises."""
    reader = settings.reader
    places = reader.concurrency if isinstance(reader.concurrency, int) else 1
    async with (
        engine_module(reader.kind).open_engine(reader) as ocr,
        openai.open_engine(settings) as model,
    ):
        both = _Both(ocr, model, reader.adapters, asyncio.Semaphore(places))
        facts = {f"ocr_{name}": fact for name, fact in ocr.facts.items()}
        yield replace(model, predict=both.predict, facts={**model.facts, **facts})


@dataclass(slots=True)
class _Both:
    """`kept`: requests whose pages are read and whose question has no answer yet, by their identity."""

    ocr: Engine
    model: Engine
    adapters: list[str]
    places: asyncio.Semaphore
    kept: dict[int, tuple[Request, Output]] = field(default_factory=dict)

    async def predict(self, request: Request) -> Output:
        """The model's answer to the question about the pages; what stands on them, where nothing is asked."""
        if not request.images:
            return await self.model.predict(request)
        read = await self._text_of(request)
        if not request.prompt:
            return read
        asked = "\n\n".join(filter(None, (request.text, _HEAD, read.text)))
        output = await self.model.predict(replace(request, images=(), text=asked))
        self.kept.pop(id(request), None)
        return replace(output, response={**(output.response or {}), **(read.response or {}), "ocr_text": read.text})

    async def _text_of(self, request: Request) -> Output:
        if id(request) not in self.kept:
            read = await self._read(request)
            if len(self.kept) >= _KEPT:
                self.kept.pop(next(iter(self.kept)))
            self.kept[id(request)] = request, read
        return self.kept[id(request)][1]

    async def _read(self, request: Request) -> Output:
        """The text of all pages, in their order: engines on this machine take one page at a time.

        Of a single page also where its lines stand, for marks in `loupe review`.
        """
        pages = [replace(request, images=(page,), prompt="", text="", task="text") for page in request.images]
        read = [await self._read_page(page) for page in pages]
        texts = [apply_adapters(each.text, self.adapters) for each in read]
        lines = (read[0].response or {}).get("lines") if len(read) == 1 else None
        return Output(
            text="\n\n".join(texts), finish_reason="stop", response={"lines": lines} if lines is not None else None
        )

    async def _read_page(self, page: Request) -> Output:
        async with self.places:
            return await self.ocr.predict(page)
