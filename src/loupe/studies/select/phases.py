"""A selection from start to end: documents made ready once, then each phase on its own, model after model.

Source: docs/select.md. No model is ever paired with another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from loupe.benchmarks.folders.selection.documents import Document
from loupe.benchmarks.folders.selection.questions import Known, Phase, Rules, image_samples, text_samples
from loupe.benchmarks.folders.selection.truth_files import Truth
from loupe.errors import LoupeError
from loupe.servers.keeper import Keeper
from loupe.servers.watch import Watch
from loupe.studies.select.assessment import Assessment, Assessor
from loupe.studies.select.limits import Limits
from loupe.studies.select.model_lists import Candidate, ModelList
from loupe.studies.select.progress_line import ProgressLine
from loupe.studies.select.ready_documents import Prepared
from loupe.studies.select.serving import Backend, Served, open_model
from loupe.types import Sample

#: Under this name the picture of the warm-up stands among those of the documents.
WARM_UP = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """All that both phases share. `show` gets a line that says what is going on, `say` one that stays."""

    documents: Sequence[Document]
    rules: Rules
    prepared: Prepared
    folder: Path
    backend: Backend
    keeper: Keeper
    limits: Limits
    show: Callable[[str], None]
    say: Callable[[str], None]

    def known(self, truths: Mapping[str, Truth]) -> dict[str, Known]:
        """Text and ground truth of every document, for phase B."""
        return {
            document.id: _known(self.prepared.texts[document.id], truths.get(document.id))
            for document in self.documents
        }

    def samples(self, phase: Phase, known: Mapping[str, Known]) -> list[Sample]:
        """What every model of a phase is asked."""
        if phase == "a":
            return list(image_samples(self.documents, self.rules))
        return list(text_samples(self.documents, known, self.rules))

    def assess(
        self, phase: Phase, samples: Sequence[Sample], models: ModelList, interrupted: Callable[[Assessment], None]
    ) -> Iterator[Assessment]:
        """Assess the models of a phase one after the other; each is handed over as it ends, so that it can be kept.

        `interrupted` hears of the one that Ctrl-C ends. Raises MissingToolError where no server of theirs can be
        started.
        """
        pictures = {**self.prepared.images, WARM_UP: self.warm_up_picture()}
        still_running = ""
        for number, model in enumerate(models.models, 1):
            line = ProgressLine(f"[{number}/{len(models.models)}] {model.id}", len(samples), self.show)
            assessor = Assessor(
                phase=phase,
                samples=samples,
                pictures=pictures,
                backend=self.backend,
                keeper=self.keeper,
                limits=self.limits,
                watch=Watch(say=line.note),
            )
            assessment = asyncio.run(_assess(assessor, model, line, interrupted))
            if still_running:
                assessment = replace(assessment, facts={**assessment.facts, "beside": still_running})
            yield assessment
            # Memory is free before the next model, and stopping this one is no part of its time.
            still_running = self._close(model) or still_running

    def _close(self, model: Candidate) -> str:
        """Stop the model's server; why it runs on, if it does: that must not end the others."""
        try:
            self.keeper.close()
        except LoupeError as error:
            self.say(f"{model.id}: {error.message}; it takes memory from the models that follow ({error.hint})")
            return error.message
        return ""

    @asynccontextmanager
    async def open_model(self, phase: Phase, model: Candidate) -> AsyncIterator[Served]:
        """A model by itself, for drafts; its server is stopped at the end."""
        try:
            async with open_model(model, phase, self.backend, self.keeper, self.limits) as served:
                yield served
        finally:
            await asyncio.to_thread(self._close, model)

    def warm_up_picture(self) -> Path:
        """A small white page."""
        from PIL import Image

        path = self.folder / "warm-up.jpg"
        if not path.exists():
            Image.new("RGB", (64, 64), "white").save(path, "JPEG")
        return path


def _known(text: str, truth: Truth | None) -> Known:
    if truth is None:
        return Known(text=text)
    drafters = () if truth.verified else tuple(dict.fromkeys(filter(None, (truth.text_model, truth.vlm_model))))
    return Known(text=text, date=truth.date, name=truth.name, unverified=not truth.verified, drafters=drafters)


async def _assess(
    assessor: Assessor, model: Candidate, line: ProgressLine, interrupted: Callable[[Assessment], None]
) -> Assessment:
    async with line.ticking():
        return await assessor.assess(model, line.tell, interrupted)
