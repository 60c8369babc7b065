"""The way to checked ground truth before phase B: find what is there, draft what is missing, have a person confirm it.

A machine of five states asks and tells through `Person`. A text model drafts from the document's text, a vision model
from the picture if that is too little; every draft is written at once, unverified. If no model answers, nothing is
lost: a file that stood there before keeps what it says. Source: docs/select.md.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from loupe.errors import EngineUnavailableError, LoupeError, UsageError
from loupe.features.select.assessment import Asking, warm_up
from loupe.features.select.benchmark import Phase, Rules
from loupe.features.select.documents import Document, Found, Truth, keep_verified, now, read_truth, write_truth
from loupe.features.select.preparing import Prepared
from loupe.features.select.questions import EXTRACTION_TOKENS, FIELDS, extraction_prompt, parse_extraction
from loupe.features.select.serving import Candidate, DeadServerError, Limits, Served, UnavailableModelError
from loupe.metrics.dates import normalize_date
from loupe.servers.processes import NOBODY
from loupe.types import Prediction, Request

#: What to do with ground truth that exists already.
Choice: TypeAlias = Literal["reuse", "regenerate", "ask"]
State: TypeAlias = Literal["choose", "generate all", "generate missing", "review", "ready"]
#: Drafts ground truth: for documents that are handed over, what models read there.
Draft: TypeAlias = Callable[[Sequence[Document]], Mapping[str, Truth]]

_REVIEW = "Review and edit these files, then type 'ok' or press Enter to continue, 'l' to list again, 'q' to quit"


class QuitError(LoupeError):
    """The person does not want to go on; the files stay."""

    exit_code = 3


class Person(Protocol):
    """Who is asked. `answer` gives a line without its end, None at the end of input."""

    def answer(self, question: str) -> str | None:
        """Ask, and wait for a line."""

    def tell(self, line: str) -> None:
        """Say something beside the results."""

    def show(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Show the files with their date and secondary field."""


@dataclass(slots=True)
class GroundTruth:
    """The flow. `unattended`: nobody is asked to review (`--yes`), so nothing becomes verified."""

    documents: Sequence[Document]
    document_type: str
    choice: Choice
    draft: Draft
    person: Person
    unattended: bool = False
    _found: dict[str, Found] = field(default_factory=dict)
    _replaced: bool = False

    def settle(self) -> dict[str, Truth]:
        """Go through all states; the truth of every positive document.

        Raises QuitError where the person quits or input ends, UsageError for files that say that their document is in
        the wrong folder.
        """
        state = self._scan()
        while state != "ready":
            if state == "choose":
                state = self._choose()
            elif state == "review":
                state = self._review()
            else:
                state = self._generate(missing_only=state == "generate missing")
        return {document.id: truth for document in self._positives if (truth := self._found[document.id].truth)}

    @property
    def _positives(self) -> list[Document]:
        return [document for document in self.documents if document.positive]

    def _scan(self) -> State:
        """Read what is there. A negative document without a file gets one: there is nothing to extract from it."""
        self._read()
        refuse_misplaced(self.documents, self.document_type)
        for document in self._unusable():
            found = self._found[document.id]
            stays = "stays as it is" if found.other_type and not document.positive else "counts as missing"
            self.person.tell(f"{document.truth_file}: {found.problem}; {stays}")
        for document in self.documents:
            if not document.positive and self._found[document.id].missing:
                truth = Truth(verified=True, generated=now())
                write_truth(document, self.document_type, truth)
                self._found[document.id] = Found(truth=truth)
        # A file that cannot be used is there all the same: nobody overwrites it unasked. Where there is none at all,
        # nobody was asked either: those that are missing are made, and nothing else is touched.
        return "choose" if any(not self._found[each.id].missing for each in self._positives) else "generate missing"

    def _read(self) -> None:
        self._found = {document.id: read_truth(document, self.document_type) for document in self.documents}

    def _unusable(self) -> list[Document]:
        return [document for document in self.documents if self._found[document.id].problem]

    def _choose(self) -> State:
        truths = [self._found[document.id].truth for document in self._positives]
        there = [truth for truth in truths if truth is not None]
        answer = {"reuse": "r", "regenerate": "g"}.get(self.choice, "")
        verified = sum(truth.verified for truth in there)
        question = (
            f"{len(there)} of {len(truths)} ground-truth files exist ({verified} verified). "
            "[r]euse / re[g]enerate / [q]uit ?"
        )
        while answer not in ("r", "g"):
            written = self.person.answer(question)
            answer = "q" if written is None else written.strip().casefold() or "r"
            if answer in ("q", "quit"):
                raise QuitError("quit: no model was asked", hint="the ground-truth files stay as they are")
            answer = {"reuse": "r", "regenerate": "g"}.get(answer, answer)
        if answer == "g":
            return "generate all"
        if any(self._found[document.id].missing for document in self._positives):
            return "generate missing"
        return "ready" if len(there) == len(truths) == verified else "review"

    def _generate(self, *, missing_only: bool) -> State:
        """Draft, unverified; what could not be read is listed, with empty fields."""
        wanted = [each for each in self._positives if not missing_only or self._found[each.id].missing]
        drafts = self.draft(wanted)
        self._replaced = not missing_only
        for document in wanted:
            self._found[document.id] = Found(truth=drafts[document.id])
        unread = [document for document in wanted if not (drafts[document.id].date or drafts[document.id].name)]
        for document in unread:
            self.person.tell(f"nothing could be read from {document.path}: fill in {document.truth_file}")
        if not missing_only:
            self._renew_negatives()
        return "review"

    def _renew_negatives(self) -> None:
        """To regenerate is to overwrite what could not be used, too; but never the ground truth of another type."""
        for document in self._unusable():
            if not document.positive and not self._found[document.id].other_type:
                write_truth(document, self.document_type, Truth(verified=True, generated=now()))

    def _review(self) -> State:
        """List, and wait for a word: `ok`, or Enter alone, confirms."""
        self.person.show([self._row(document) for document in self._positives])
        while True:
            answer = "ok" if self.unattended else self.person.answer(f"{_REVIEW}:")
            word = "q" if answer is None else answer.strip().casefold()
            if word in ("q", "quit"):
                raise QuitError("quit before the review was confirmed", hint=self._what_stays())
            if word in ("l", "list"):
                return "review"
            if word in ("ok", "") and self._confirm():
                return "ready"

    def _what_stays(self) -> str:
        if self._replaced:
            return "the drafts stay unverified; verified files that they replaced are kept as NAME.json.old"
        return "the ground-truth files stay as they are"

    def _row(self, document: Document) -> tuple[str, str, str]:
        found = read_truth(document, self.document_type)
        if found.truth is None:
            return str(document.truth_file), f"({found.problem or 'missing'})", ""
        return str(document.truth_file), found.truth.date, found.truth.name

    def _confirm(self) -> bool:
        """Read every file again; with none wrong, mark all as verified that a person was asked to read.

        Raises UsageError where nobody mends them.
        """
        self._read()
        wrong = list(self._problems())
        if wrong and self.unattended:
            hint = "edit these files, or move them away, or --ground-truth regenerate"
            raise UsageError("ground truth cannot be used:", listed=wrong, hint=hint)
        for each in wrong:
            self.person.tell(each)
        if wrong:
            return False
        for document in self.documents:
            truth = self._found[document.id].truth
            if truth is not None and not truth.verified and not self.unattended:
                confirmed = replace(truth, verified=True)
                write_truth(document, self.document_type, confirmed)
                self._found[document.id] = Found(truth=confirmed)
        return True

    def _problems(self) -> Iterable[str]:
        for document in self.documents:
            found = self._found[document.id]
            if found.other_type and not document.positive:
                continue  # What is no document of this type may well be one of another.
            if found.problem:
                yield f"{document.truth_file}: {found.problem}"
            elif found.wrong_folder:
                yield f"{document.truth_file}: isMatch does not agree with the folder"
            elif found.truth is None and document.positive:
                yield f"{document.truth_file} is missing"


def refuse_misplaced(documents: Sequence[Document], document_type: str) -> None:
    """Raise UsageError for ground truth which says that its document is in the wrong folder."""
    files = [each.truth_file for each in documents if read_truth(each, document_type).wrong_folder]
    if files:
        raise UsageError(
            f"isMatch does not agree with the folder of {len(files)} documents:",
            listed=[str(file) for file in files],
            hint=f"move the documents, or correct isMatch: loupe review DIR --type {shlex.quote(document_type)}",
        )


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
                hint="use --gt-textllm ID and --gt-vlm ID, or write the files by hand: loupe review DIR --type TYPE",
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
