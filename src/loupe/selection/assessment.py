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

from loupe.benchmarks.selection.prompts import EXTRACTION_TOKENS, VERDICT_TOKENS, verdict_tokens
from loupe.benchmarks.selection.questions import CATEGORY, Phase
from loupe.benchmarks.selection.verdicts import LONGEST, without_thinking
from loupe.engines.openai import Settings
from loupe.engines.shared.http_failures import NotFoundError
from loupe.errors import AccountError, EngineTimeoutError, EngineUnavailableError, LoupeError, RejectedError
from loupe.selection.candidates import Candidate
from loupe.selection.limits import Limits
from loupe.selection.serving import Backend, DeadServerError, Served, UnavailableModelError, open_model
from loupe.servers.keeper import Keeper
from loupe.servers.watch import NOBODY, Watch
from loupe.types import Output, Prediction, Request, Sample

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
                asking = Asking(served, self.limits, tell, self.watch)
                for sample in self.samples:
                    await asking.ask(request_for(sample, model, self.pictures))
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
    except Exception:  # noqa: BLE001  the border, as in `call`: the documents are asked all the same, and show what is wrong
        return


def request_for(sample: Sample, model: Candidate, pictures: dict[str, Path]) -> Request:
    """What the model is sent: the prompt, in phase A the prepared picture, and how long the answer may be."""
    images = (pictures[sample.id],) if sample.id in pictures else ()
    limit = verdict_tokens(thinking=model.thinking) if sample.task == CATEGORY else EXTRACTION_TOKENS
    return Request(id=sample.id, prompt=sample.prompt, images=images, task=sample.task, max_tokens=limit)


@dataclass(slots=True)
class Asking:
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
        try:
            prediction = await call(self.served, request, self.limits.timeout)
        except DeadServerError as error:
            self.status, self.reason = "failed", error.message
            self.predictions.append(_not_asked(request.id, self.status))
            return
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
    """One call as a record; over the limit it is cancelled. Raises DeadServerError where no other would be answered."""
    began = time.perf_counter()
    try:
        async with asyncio.timeout(seconds):
            output = await served.engine.predict(request)
    except (TimeoutError, EngineTimeoutError):
        return _failed(request, "timeout", f"no full answer within {seconds:g} s", began)
    except AccountError as error:
        # It would say the same of every document.
        raise DeadServerError(error.message) from None
    except RejectedError as error:
        return _failed(request, "rejected", error.message, began)
    except LoupeError as error:
        return _failed(request, "error", error.message, began)
    except Exception as error:  # noqa: BLE001  the border: one answer must not end the other models; recorded and counted
        return _failed(request, "error", f"the answer cannot be read ({type(error).__name__}: {error})", began)
    return _answered(request, output, time.perf_counter() - began)


def _answered(request: Request, output: Output, seconds: float) -> Prediction:
    text, reasoning = output.text, output.reasoning
    left_out = ""
    if max(len(text), len(reasoning or "")) > LONGEST:
        left_out = f"only the start of the answer is kept: it had {len(text) + len(reasoning or ''):,} characters"
        # Nobody reads further than that behind the thinking.
        text, reasoning = without_thinking(text)[:LONGEST], reasoning[:LONGEST] if reasoning else reasoning
    outcome: Literal["ok", "empty", "truncated"] = "truncated" if output.finish_reason == "length" else "ok"
    return Prediction(
        sample=request.id,
        text=text,
        error=left_out,
        outcome=outcome if text.strip() else "empty",
        finish_reason=output.finish_reason,
        input_tokens=output.input_tokens,
        output_tokens=output.output_tokens,
        seconds=seconds,
        reasoning=reasoning,
    )


def _failed(request: Request, outcome: Literal["timeout", "rejected", "error"], error: str, began: float) -> Prediction:
    return Prediction(sample=request.id, outcome=outcome, error=error, seconds=time.perf_counter() - began)


def _not_asked(sample: str, status: Status) -> Prediction:
    return Prediction(sample=sample, outcome="error", error=f"not asked: the model is {status}")
