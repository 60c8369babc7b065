"""Ask the models of a phase everything, one after the other; no model is ever paired with another.

Every call has its time, errors are counted, and a dead server is brought back once. A model that fails ends only
itself: what it was not asked is wrong, and the next one goes on. Source: docs/select.md.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from loupe.engines.chat.http_failures import NotFoundError
from loupe.engines.chat.settings import Settings
from loupe.errors import AccountError, EngineError, EngineTimeoutError, EngineUnavailableError, LoupeError
from loupe.features.select.benchmark import CATEGORY, Known, Phase, Rules, image_samples, text_samples
from loupe.features.select.documents import Document, Truth
from loupe.features.select.preparing import Prepared
from loupe.features.select.questions import EXTRACTION_TOKENS, LONGEST, VERDICT_TOKENS, verdict_tokens, without_thinking
from loupe.features.select.serving import (
    Backend,
    Candidate,
    DeadServerError,
    Limits,
    ModelList,
    Served,
    UnavailableModelError,
    open_model,
)
from loupe.inference.progress import Progress
from loupe.inference.retries import Policy
from loupe.inference.scheduler import Scheduler, TimeoutsExceededError
from loupe.servers.keeper import Keeper
from loupe.servers.processes import NOBODY, Watch
from loupe.types import Output, Prediction, Request, Sample


@dataclass(slots=True)
class ProgressLine:
    """`show` gets the line each time it changes; `total` calls are to be made."""

    head: str
    total: int
    show: Callable[[str], None]
    _note: str = "loading"
    _began: float = field(default_factory=time.monotonic)
    _loaded: float = 0.0

    def tell(self, done: int, timeouts: int, errors: int) -> None:
        """A call has ended."""
        now = time.monotonic()
        # The first answer says when the model was there at the latest.
        self._loaded = self._loaded or now
        left = (now - self._loaded) / (done - 1) * (self.total - done) if done > 1 else 0.0
        wrong = [f"{timeouts} timeouts"] * bool(timeouts) + [f"{errors} errors"] * bool(errors)
        time_left = [f"about {clock(left)} left"] * (left >= 1)
        self.show(" · ".join([f"{self.head}: {done}/{self.total}", *wrong, *time_left]))

    def note(self, text: str) -> None:
        """What is going on while nothing is answered."""
        self._note = text
        self._waiting()

    @asynccontextmanager
    async def ticking(self) -> AsyncIterator[None]:
        """Say every second how long the first answer is waited for."""
        ticks = asyncio.create_task(self._tick())
        try:
            yield
        finally:
            ticks.cancel()
            with suppress(asyncio.CancelledError):
                await ticks

    async def _tick(self) -> None:
        while not self._loaded:
            self._waiting()
            await asyncio.sleep(1)

    def _waiting(self) -> None:
        waited = time.monotonic() - self._began
        self.show(f"{self.head}: {self._note}" + (f", {clock(waited)}" if waited >= 1 else ""))


def clock(seconds: float) -> str:
    """`M:SS`, from an hour on `H:MM:SS`.

    >>> clock(61.2), clock(3661)
    ('1:01', '1:01:01')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


#: "": assessed to the end.
Status: TypeAlias = Literal["", "failed", "aborted", "unavailable", "interrupted"]

#: Told of every call that ended: how many, and what went wrong so far.
Tell: TypeAlias = Callable[[int, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What one model answered. `predictions` has one for every sample; those from `asked` on were never sent."""

    model: Candidate
    predictions: list[Prediction] = field(default_factory=list)
    asked: int = 0
    status: Status = ""
    reason: str = ""
    elapsed: float = 0.0
    profile: Settings | None = None
    facts: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessor:
    """Asks one model after the other; `pictures` are the prepared images by document."""

    phase: Phase
    samples: Sequence[Sample]
    pictures: dict[str, Path]
    backend: Backend
    keeper: Keeper
    limits: Limits
    watch: Watch = NOBODY

    async def assess(
        self, model: Candidate, tell: Tell, interrupted: Callable[[Assessment], None] = lambda _: None
    ) -> Assessment:
        """Load the model, warm it up, ask it everything. Raises MissingToolError where no server can be started.

        `interrupted` hears what was answered so far, if somebody ends all this in the middle.
        """
        began = time.monotonic()
        asking = None
        try:
            async with open_model(model, self.phase, self.backend, self.keeper, self.limits, self.watch) as served:
                await warm_up(served, self.pictures[""] if self.phase == "a" else None, self.limits)
                asking = Asking(
                    served, self.limits, lambda each: tell(each.asked, each.timeouts, each.errors), self.watch
                )
                await asking.ask_all(request_for(sample, model, self.pictures) for sample in self.samples)
        except (UnavailableModelError, DeadServerError) as error:
            status: Status = "unavailable" if isinstance(error, UnavailableModelError) else "failed"
            return self._ended(model, began, None, status, error.message)
        except asyncio.CancelledError:
            interrupted(self._ended(model, began, asking, "interrupted", "stopped before its end"))
            raise
        return self._ended(model, began, asking)

    def _ended(
        self, model: Candidate, began: float, asking: Asking | None, status: Status = "", reason: str = ""
    ) -> Assessment:
        """What was answered; `status` is why it ended, where the calls themselves do not say so."""
        status, reason = (asking.status or status, asking.reason or reason) if asking else (status, reason)
        answered = asking.predictions if asking else []
        left = self.samples[len(answered) :]
        return Assessment(
            model=model,
            predictions=[*answered, *(_not_asked(sample.id, status) for sample in left)],
            asked=asking.asked if asking else 0,
            status=status,
            reason=reason,
            elapsed=time.monotonic() - began,
            profile=asking.served.profile if asking else None,
            facts=dict(asking.served.engine.facts) if asking else {},
        )


async def warm_up(served: Served, picture: Path | None, limits: Limits) -> None:
    """One small call that loads the model, with a picture where it is to see some.

    Raises UnavailableModelError where the server has no such model, DeadServerError where it cannot go on.
    """
    images = () if picture is None else (picture,)
    request = Request(id="warm-up", prompt="Answer with one word.", images=images, max_tokens=VERDICT_TOKENS)
    try:
        async with asyncio.timeout(limits.warm_up):
            await served.engine.predict(request)
    except NotFoundError as error:
        raise UnavailableModelError(error.message) from None
    except (TimeoutError, EngineTimeoutError):
        raise UnavailableModelError(f"not loaded within {limits.warm_up:g} s") from None
    except EngineUnavailableError as error:
        raise DeadServerError(error.message) from None
    except Exception:  # noqa: BLE001  the border, as for each call: the documents are asked all the same, and show what is wrong
        return


def request_for(sample: Sample, model: Candidate, pictures: dict[str, Path]) -> Request:
    """What the model is sent: the prompt, in phase A the prepared picture, and how long the answer may be."""
    images = (pictures[sample.id],) if sample.id in pictures else ()
    limit = verdict_tokens(thinking=model.thinking) if sample.task == CATEGORY else EXTRACTION_TOKENS
    return Request(id=sample.id, prompt=sample.prompt, images=images, task=sample.task, max_tokens=limit)


@dataclass(slots=True)
class Asking:
    """The calls of one model so far, and why there are no more. `ended` is told of each one that ended."""

    served: Served
    limits: Limits
    ended: Callable[[Asking], None]
    watch: Watch
    predictions: list[Prediction] = field(default_factory=list)
    status: Status = ""
    reason: str = ""
    timeouts: int = 0
    errors: int = 0
    _progress: Progress = field(default_factory=Progress)

    @property
    def asked(self) -> int:
        """How many calls ended."""
        return len(self.predictions)

    async def ask_all(self, requests: Iterator[Request]) -> None:
        """One call for each, without a second try; after the model was given up, none."""
        engine = replace(self.served.engine, predict=self._predict, healthy=self._healthy)
        policy = Policy(
            retries=0,
            max_rate_waits=0,
            asks_empty_again=False,
            errors_before_check=self.limits.errors_before_check,
            max_timeouts=self.limits.most_timeouts,
        )
        try:
            await Scheduler(engine, policy, self._progress, self._keep).ask_all(requests)
        except TimeoutsExceededError:
            self.status, self.reason = "aborted", f"{self.timeouts} timeouts"
        except AccountError as error:
            self.status, self.reason = "failed", error.message

    async def _predict(self, request: Request) -> Output:
        """One call; over the limit it is cancelled."""
        try:
            async with asyncio.timeout(self.limits.timeout):
                return await self.served.engine.predict(request)
        except TimeoutError:
            raise EngineTimeoutError(f"no full answer within {self.limits.timeout:g} s") from None
        except AccountError:
            raise
        except EngineUnavailableError as error:
            # Whether it can still answer the others shows when it is looked at.
            raise EngineError(error.message) from None

    async def _healthy(self) -> bool:
        """Have a server of ours brought back. If it stays dead, the call at hand counts, and is the last one."""
        try:
            await self.served.revive(self.watch)
        except DeadServerError as error:
            self.status, self.reason = "failed", error.message
            self._progress.request_stop()
        return True

    async def _keep(self, prediction: Prediction) -> None:
        self.predictions.append(_shortened(prediction))
        self.timeouts += prediction.outcome == "timeout"
        self.errors += prediction.failed and prediction.outcome != "timeout"
        if self.status:
            self.reason += f" (last error: {prediction.error})"
        self.ended(self)


def _shortened(prediction: Prediction) -> Prediction:
    """Only so much of an answer as anybody reads; thinking is left out before the rest is cut."""
    text, reasoning = prediction.text, prediction.reasoning or ""
    if max(len(text), len(reasoning)) <= LONGEST:
        return prediction
    return msgspec.structs.replace(
        prediction,
        text=without_thinking(text)[:LONGEST],
        reasoning=reasoning[:LONGEST] or None,
        error=f"only the start of the answer is kept: it had {len(text) + len(reasoning):,} characters",
    )


def _not_asked(sample: str, status: Status) -> Prediction:
    return Prediction(sample=sample, outcome="error", error=f"not asked: the model is {status}")


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
