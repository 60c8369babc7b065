"""One model on all documents: every call within its time, errors counted, a dead server brought back once.

Source: docs/select.md. A model that fails ends only itself: what it was not asked is wrong, and the next one goes on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from loupe.benchmarks.selection.prompts import EXTRACTION_TOKENS, THINKING_TOKENS, VERDICT_TOKENS
from loupe.benchmarks.selection.questions import CATEGORY, Phase
from loupe.engines.openai import Settings
from loupe.errors import EngineError, EngineTimeoutError, EngineUnavailableError, RejectedError
from loupe.selection.candidates import Candidate
from loupe.selection.limits import Limits
from loupe.selection.serving import Backend, DeadServerError, Served, UnavailableModelError, open_model
from loupe.servers.keeper import Keeper
from loupe.servers.watch import NOBODY, Watch
from loupe.types import Output, Prediction, Request, Sample

#: "": assessed to the end.
Status: TypeAlias = Literal["", "failed", "aborted", "unavailable"]

_WARM_UP_TOKENS = 8
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

    async def assess(self, model: Candidate, tell: Tell) -> Assessment:
        """Load the model, warm it up, ask it everything. Raises MissingToolError where no server can be started."""
        began = time.monotonic()
        try:
            async with open_model(model, self.phase, self.backend, self.keeper, self.limits, self.watch) as served:
                await self._warm_up(served)
                asking = _Asking(served, self.limits, tell, self.watch)
                for sample in self.samples:
                    await asking.ask(request_for(sample, model, self.pictures))
                status, reason = asking.status, asking.reason
                predictions, asked = asking.predictions, asking.asked
                profile, facts = served.profile, dict(served.engine.facts)
        except (UnavailableModelError, DeadServerError) as error:
            status = "unavailable" if isinstance(error, UnavailableModelError) else "failed"
            reason = error.message
            predictions = [_not_asked(sample.id, status) for sample in self.samples]
            asked, profile, facts = 0, None, {}
        return Assessment(
            model=model,
            predictions=predictions,
            asked=asked,
            status=status,
            reason=reason,
            elapsed=time.monotonic() - began,
            profile=profile,
            facts=facts,
        )

    async def _warm_up(self, served: Served) -> None:
        """One small call that loads the model. Raises UnavailableModelError where the server has no such model."""
        images = (self.pictures[""],) if self.phase == "a" else ()
        request = Request(id="warm-up", prompt="Answer with one word.", images=images, max_tokens=_WARM_UP_TOKENS)
        try:
            async with asyncio.timeout(self.limits.warm_up):
                await served.engine.predict(request)
        except RejectedError as error:
            raise UnavailableModelError(error.message) from None
        except (TimeoutError, EngineTimeoutError):
            raise UnavailableModelError(f"not loaded within {self.limits.warm_up:g} s") from None
        except EngineUnavailableError as error:
            raise DeadServerError(error.message) from None
        except EngineError:
            pass  # The first documents will show what is wrong.


def request_for(sample: Sample, model: Candidate, pictures: dict[str, Path]) -> Request:
    """What the model is sent: the prompt, in phase A the prepared picture, and how long the answer may be."""
    images = (pictures[sample.id],) if sample.id in pictures else ()
    verdict = THINKING_TOKENS if model.thinking else VERDICT_TOKENS
    limit = verdict if sample.task == CATEGORY else EXTRACTION_TOKENS
    return Request(id=sample.id, prompt=sample.prompt, images=images, task=sample.task, max_tokens=limit)


@dataclass(slots=True)
class _Asking:
    """The calls of one model so far, and whether there will be more."""

    served: Served
    limits: Limits
    tell: Tell
    watch: Watch
    predictions: list[Prediction] = field(default_factory=list)
    status: Status = ""
    reason: str = ""
    asked: int = 0
    timeouts: int = 0
    errors: int = 0
    _in_a_row: int = 0

    async def ask(self, request: Request) -> None:
        """One call, without a second try; after the model was given up, none."""
        if self.status:
            self.predictions.append(_not_asked(request.id, self.status))
            return
        prediction = await call(self.served, request, self.limits.timeout)
        self.predictions.append(prediction)
        self.asked += 1
        self.timeouts += prediction.outcome == "timeout"
        self.errors += prediction.outcome in ("error", "rejected")
        self.tell(self.asked, self.timeouts, self.errors)
        if self.timeouts >= self.limits.most_timeouts:
            self.status, self.reason = "aborted", f"{self.timeouts} time-outs"
        elif prediction.outcome == "error":
            await self._after_error(prediction)
        elif prediction.outcome != "timeout":
            self._in_a_row = 0

    async def _after_error(self, prediction: Prediction) -> None:
        self._in_a_row += 1
        if self._in_a_row < self.limits.errors_before_check:
            return
        self._in_a_row = 0
        try:
            await self.served.revive(self.watch)
        except DeadServerError as error:
            self.status, self.reason = "failed", f"{error.message} (last error: {prediction.error})"


async def call(served: Served, request: Request, seconds: float) -> Prediction:
    """One call as a record; over the limit it is cancelled."""
    began = time.perf_counter()
    try:
        async with asyncio.timeout(seconds):
            output = await served.engine.predict(request)
    except (TimeoutError, EngineTimeoutError):
        return _failed(request, "timeout", f"no full answer within {seconds:g} s", began)
    except RejectedError as error:
        return _failed(request, "rejected", error.message, began)
    except EngineError as error:
        return _failed(request, "error", error.message, began)
    return _answered(request, output, time.perf_counter() - began)


def _answered(request: Request, output: Output, seconds: float) -> Prediction:
    outcome: Literal["ok", "empty", "truncated"] = "truncated" if output.finish_reason == "length" else "ok"
    return Prediction(
        sample=request.id,
        text=output.text,
        outcome=outcome if output.text.strip() else "empty",
        finish_reason=output.finish_reason,
        input_tokens=output.input_tokens,
        output_tokens=output.output_tokens,
        seconds=seconds,
        reasoning=output.reasoning,
    )


def _failed(request: Request, outcome: Literal["timeout", "rejected", "error"], error: str, began: float) -> Prediction:
    return Prediction(sample=request.id, outcome=outcome, error=error, seconds=time.perf_counter() - began)


def _not_asked(sample: str, status: Status) -> Prediction:
    return Prediction(sample=sample, outcome="error", error=f"not asked: the model is {status}")
