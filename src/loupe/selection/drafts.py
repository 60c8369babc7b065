"""Drafts of ground truth: a text model reads the document's text, a vision model the picture where that is too little.

Source: docs/select.md. Every draft is written at once, unverified.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from loupe.benchmarks.selection.documents import Document
from loupe.benchmarks.selection.extractions import Extraction, parse_extraction
from loupe.benchmarks.selection.prompts import EXTRACTION_TOKENS, FIELDS, extraction_prompt
from loupe.benchmarks.selection.questions import Phase, Rules
from loupe.benchmarks.selection.truth_files import Truth, now, write_truth
from loupe.metrics.dates import normalize_date
from loupe.selection.assessment import call
from loupe.selection.candidates import Candidate
from loupe.selection.limits import Limits
from loupe.selection.preparation import Prepared
from loupe.selection.serving import DeadServerError, Served, UnavailableModelError
from loupe.types import Request

#: Opens a model of a phase.
Open = Callable[[Phase, Candidate], AbstractAsyncContextManager[Served]]


@dataclass(slots=True)
class Drafter:
    """Makes drafts with two models, one after the other; `say` hears of a model that cannot help."""

    rules: Rules
    prepared: Prepared
    text_model: Candidate
    vlm: Candidate
    open_model: Open
    limits: Limits
    say: Callable[[str], None]
    tell: Callable[[str, int], None]
    _drafts: dict[str, Truth] = field(default_factory=dict)

    def draft(self, documents: Sequence[Document]) -> dict[str, Truth]:
        """Drafts of these documents, written beside them. What no model gives is empty."""
        asyncio.run(self._draft(documents))
        return self._drafts

    async def _draft(self, documents: Sequence[Document]) -> None:
        self._drafts = {document.id: Truth() for document in documents}
        try:
            await self._ask("b", self.text_model, documents)
            await self._ask("a", self.vlm, [each for each in documents if self._is_incomplete(each)])
        finally:
            self.tell("", 0)
        for document in documents:
            self._write(document, self._drafts[document.id])

    def _is_incomplete(self, document: Document) -> bool:
        draft = self._drafts[document.id]
        return not draft.date or not (draft.name or not FIELDS[self.rules.field].key)

    async def _ask(self, phase: Phase, model: Candidate, documents: Sequence[Document]) -> None:
        if not documents:
            return
        try:
            async with self.open_model(phase, model) as served:
                for number, document in enumerate(documents):
                    self.tell(f"drafting ground truth with {model.id}", number)
                    self._take(document, phase, model, await self._extraction(served, document, phase))
        except (UnavailableModelError, DeadServerError) as error:
            self.say(f"{model.id} cannot draft ground truth: {error.message}")

    async def _extraction(self, served: Served, document: Document, phase: Phase) -> Extraction:
        field = FIELDS[self.rules.field]
        images: tuple[Path, ...] = (self.prepared.images[document.id],) if phase == "a" else ()
        prompt = extraction_prompt(self.rules.document_type, field, self.prepared.texts[document.id])
        request = Request(id=document.id, prompt=prompt, images=images, max_tokens=EXTRACTION_TOKENS)
        prediction = await call(served, request, self.limits.timeout)
        if prediction.failed:
            self.say(f"{document.path}: {prediction.error}")
        return parse_extraction(prediction.text, field)

    def _take(self, document: Document, phase: Phase, model: Candidate, found: Extraction) -> None:
        """Fill what is empty, and write the draft: whatever happens next, it is kept."""
        draft = self._drafts[document.id]
        day = normalize_date(found.date, self.rules.date_order) or ""
        draft = replace(draft, date=draft.date or day, name=draft.name or "_".join(found.name.split()), generated=now())
        draft = replace(draft, text_model=model.id) if phase == "b" else replace(draft, vlm_model=model.id)
        self._drafts[document.id] = draft
        self._write(document, draft)

    def _write(self, document: Document, draft: Truth) -> None:
        write_truth(document, self.rules.document_type, draft)
