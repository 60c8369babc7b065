"""Drafts of ground truth: a text model reads the document's text, a vision model the picture where that is too little.

Source: docs/select.md. Every draft is written at once, unverified. Where no model answers, nothing is lost: a file that
stood there before keeps what it says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

from loupe.benchmarks.folders.selection.documents import Document
from loupe.benchmarks.folders.selection.extractions import parse_extraction
from loupe.benchmarks.folders.selection.prompts import EXTRACTION_TOKENS, FIELDS, extraction_prompt
from loupe.benchmarks.folders.selection.questions import Phase, Rules
from loupe.benchmarks.folders.selection.truth_files import Truth, keep_verified, now, read_truth, write_truth
from loupe.errors import EngineUnavailableError
from loupe.metrics.dates import normalize_date
from loupe.servers.watch import NOBODY
from loupe.studies.select.assessment import Asking, warm_up
from loupe.studies.select.limits import Limits
from loupe.studies.select.model_lists import Candidate
from loupe.studies.select.ready_documents import Prepared
from loupe.studies.select.serving import DeadServerError, Served, UnavailableModelError
from loupe.types import Prediction, Request

#: Opens a model of a phase.
Open = Callable[[Phase, Candidate], AbstractAsyncContextManager[Served]]


@dataclass(slots=True)
class Drafter:
    """Makes drafts with two models, one after the other; `say` hears of a model that cannot help.

    `blank` is a small picture, with which the vision model is warmed up.
    """

    rules: Rules
    prepared: Prepared
    text_model: Candidate
    vlm: Candidate
    open_model: Open
    limits: Limits
    blank: Path
    say: Callable[[str], None]
    tell: Callable[[str, int], None]
    _drafts: dict[str, Truth] = field(default_factory=dict)

    def draft(self, documents: Sequence[Document]) -> dict[str, Truth]:
        """Drafts of these documents, written beside them. What no model finds is empty.

        Raises EngineUnavailableError where no call was answered at all; then no file was touched.
        """
        asyncio.run(self._draft(documents))
        return self._drafts

    async def _draft(self, documents: Sequence[Document]) -> None:
        self._drafts = {}
        try:
            await self._ask("b", self.text_model, documents)
            await self._ask("a", self.vlm, [each for each in documents if self._is_incomplete(each)])
        finally:
            self.tell("", 0)
        if documents and not self._drafts:
            models = " and ".join(dict.fromkeys((self.text_model.id, self.vlm.id)))
            raise EngineUnavailableError(
                f"no ground truth was drafted: no answer from {models}; the files are unchanged",
                hint="--gt-textllm ID and --gt-vlm ID, or write the files by hand: loupe review DIR --type TYPE",
            )
        for document in documents:
            if document.id not in self._drafts:
                self._drafts[document.id] = self._unanswered(document)
                write_truth(document, self.rules.document_type, self._drafts[document.id])

    def _unanswered(self, document: Document) -> Truth:
        """The draft of a document that nobody answered for: what its file says, to be checked again; else nothing."""
        before = read_truth(document, self.rules.document_type).truth
        if before is None:
            return Truth(generated=now())
        self.say(f"{document.truth_file} stays unchanged for review: no model answered")
        return replace(before, verified=False)

    def _is_incomplete(self, document: Document) -> bool:
        draft = self._drafts.get(document.id, Truth())
        return not draft.date or not (draft.name or not FIELDS[self.rules.field].key)

    async def _ask(self, phase: Phase, model: Candidate, documents: Sequence[Document]) -> None:
        if not documents:
            return
        by_id = {document.id: document for document in documents}

        def take(asking: Asking) -> None:
            last = asking.predictions[-1]
            self._take(by_id[last.sample], phase, model, last)

        try:
            async with self.open_model(phase, model) as served:
                await warm_up(served, self.blank if phase == "a" else None, self.limits)
                asking = Asking(served, self.limits, take, NOBODY)
                await asking.ask_all(self._requests(phase, model, documents))
                if asking.status:
                    raise DeadServerError(asking.reason)
        except (UnavailableModelError, DeadServerError) as error:
            self.say(f"{model.id} cannot draft ground truth: {error.message}")

    def _requests(self, phase: Phase, model: Candidate, documents: Sequence[Document]) -> Iterator[Request]:
        for number, document in enumerate(documents):
            self.tell(f"drafting ground truth with {model.id}", number)
            yield self._request(document, phase)

    def _request(self, document: Document, phase: Phase) -> Request:
        images: tuple[Path, ...] = (self.prepared.images[document.id],) if phase == "a" else ()
        text = self.prepared.texts[document.id]
        prompt = extraction_prompt(self.rules.document_type, FIELDS[self.rules.field], text)
        return Request(id=document.id, prompt=prompt, images=images, max_tokens=EXTRACTION_TOKENS)

    def _take(self, document: Document, phase: Phase, model: Candidate, prediction: Prediction) -> None:
        """Fill what is empty, and write the draft: whatever happens next, it is kept."""
        if prediction.failed:
            self.say(f"{document.path}: {prediction.error}")
            return
        found = parse_extraction(prediction.text, FIELDS[self.rules.field])
        draft = self._drafts.get(document.id, Truth())
        day = draft.date or normalize_date(found.date, self.rules.date_order) or ""
        name = draft.name or "_".join(found.name.split())
        if (day, name) != (draft.date, draft.name):
            draft = replace(draft, text_model=model.id) if phase == "b" else replace(draft, vlm_model=model.id)
        self._drafts[document.id] = replace(draft, date=day, name=name, generated=now())
        self._write(document)

    def _write(self, document: Document) -> None:
        keep_verified(document, self.rules.document_type)
        write_truth(document, self.rules.document_type, self._drafts[document.id])
