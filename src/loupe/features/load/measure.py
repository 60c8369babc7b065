"""`loupe load`: how fast an engine answers with so many requests in flight. Nothing of it is stored as a run.

Pages, prompts and requests are those of `loupe infer`, each asked once: no retry, no waiting, no second question after
an empty answer, no health check. Method and rules: docs/load.md.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from loupe.benchmarks import benchmark_id, get_benchmark
from loupe.engines.chat.endpoints import chosen_server
from loupe.engines.chat.settings import Settings
from loupe.engines.registry import Profile
from loupe.engines.shared.prices import Usage
from loupe.errors import DatasetError, EngineError, EngineUnavailableError, LoupeError, word
from loupe.inference.progress import Progress
from loupe.inference.prompts import make_request
from loupe.inference.scheduler import Scheduler
from loupe.pipeline.plan import Plan, make_info, samples_of, survey
from loupe.pipeline.stages import policy_of
from loupe.servers.keeper import Keeper, open_profile
from loupe.servers.record import kept_folder
from loupe.types import Engine, Output, Prediction, Request

#: Requests of one level: so many for each place, and at least so many.
ROUNDS, FEWEST = 4, 32
#: The knee has at least this share of the best throughput, among levels with at most this share of errors.
KNEE, MOST_ERRORS = 0.9, 0.01
KNEE_RULE = "the fewest in flight with at least 90 % of the best pages/s, of levels with at most 1 % errors"


class Percentiles(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that 50, 95 and 99 of 100 requests took at most."""

    p50: float
    p95: float
    p99: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Percentiles | None:
        """The percentiles of some requests, None for none."""
        if not seconds:
            return None
        p50, p95, p99 = (float(value) for value in np.percentile(seconds, (50, 95, 99)))
        return cls(p50=p50, p95=p95, p99=p99)


class Level(msgspec.Struct, frozen=True, kw_only=True):
    """One number of requests in flight. Rates are those of the time with all places taken; None: not measured."""

    in_flight: int
    requests: int
    answered: int
    seconds: float
    pages_per_second: float | None
    tokens_per_second: float | None
    latency: Percentiles | None
    first_token: Percentiles | None
    errors: dict[str, int] = {}
    first_error: str = ""

    @property
    def error_share(self) -> float:
        """The share of the requests without an answer."""
        return sum(self.errors.values()) / max(self.requests, 1)


class LoadTest(msgspec.Struct, frozen=True, kw_only=True):
    """All levels of one engine, with what was asked. `knee` is None where no level is one; `repeated`: pages were."""

    benchmark: str
    version: str
    engine: str
    pages: int
    repeated: bool
    streamed: bool
    knee: int | None
    still_growing: bool
    levels: list[Level]
    prompt_digest: str
    settings: dict[str, str]
    facts: dict[str, str]
    rule: str = KNEE_RULE
    cost: float | None = None
    currency: str = ""
    stopped: str = ""


async def measure(
    plan: Plan, sweep: Sequence[int], progress: Progress, *, requests: int | None, stream: bool, keeper: Keeper
) -> LoadTest:
    """Ask the engine of a plan with each number of `sweep` in flight. Raises LoupeError where none can be measured."""
    counts = [requests or max(FEWEST, ROUNDS * number) for number in sweep]
    progress.engine, progress.benchmark, progress.total = plan.label, plan.benchmark, sum(counts)
    benchmark, ident = get_benchmark(plan.benchmark), benchmark_id(plan.benchmark)
    samples = samples_of(benchmark, plan.data, plan.options, plan.limit)
    pages = [
        make_request(sample, profile=plan.profile, benchmark=benchmark, benchmark_id=ident)
        for sample in itertools.islice(samples, sum(counts))
    ]
    if not pages:
        raise DatasetError(
            f"{plan.benchmark}: no samples", hint=f"see its options: loupe bench show {word(plan.benchmark)}"
        )
    info = make_info(plan, benchmark, survey(benchmark, plan.benchmark, plan.data, plan.options, pages=False))
    test = _Test(plan.profile, pages, progress)
    stopped = ""
    for profile in [*_streaming(plan.profile, wanted=stream), plan.profile]:
        wide = msgspec.structs.replace(profile, concurrency=max(sweep))
        async with open_profile(wide, folder=kept_folder("load"), keeper=keeper) as engine:
            progress.tell(chosen_server(engine.facts))
            streams = await test.warm_up(engine)
            if profile is not plan.profile and not streams:
                continue
            test.streamed = profile is not plan.profile
            stopped = await test.levels_of(engine, sweep, counts)
            break
    knee, growing = find_knee(test.levels)
    return LoadTest(
        benchmark=ident,
        version=benchmark.version,
        engine=plan.label,
        pages=len(pages),
        repeated=len(pages) < sum(counts),
        streamed=test.streamed,
        knee=knee,
        still_growing=growing,
        levels=test.levels,
        prompt_digest=info.prompt_digest,
        settings=info.parts,
        facts=dict(engine.facts),
        cost=test.cost,
        currency=plan.profile.price.currency if plan.profile.price and test.cost is not None else "",
        stopped=stopped,
    )


def find_knee(levels: Sequence[Level]) -> tuple[int | None, bool]:
    """The knee by `KNEE_RULE`, and whether it is the largest number tried, so that more might still be faster."""
    rates = {
        level.in_flight: level.pages_per_second
        for level in levels
        if level.pages_per_second is not None and level.error_share <= MOST_ERRORS
    }
    if not rates:
        return None, False
    knee = min(number for number, rate in rates.items() if rate >= KNEE * max(rates.values()))
    return knee, knee == max(level.in_flight for level in levels) and len(levels) > 1


@dataclass(slots=True)
class _Test:
    """The pages, asked one after the other, level after level; they begin anew when they run out."""

    profile: Profile
    pages: list[Request]
    progress: Progress
    levels: list[Level] = field(default_factory=list)
    streamed: bool = False
    cost: float | None = 0.0
    _next: int = 0
    _is_warm: bool = False

    async def warm_up(self, engine: Engine) -> bool:
        """Ask for one page, which counts in the cost alone, once; returns whether its answer was streamed."""
        if self._is_warm:
            return False
        try:
            output = await engine.predict(self.pages[0])
        except EngineUnavailableError:
            raise
        except EngineError:
            return False
        self._is_warm = True
        paid = Usage(
            input_tokens=output.input_tokens,
            output_tokens=output.output_tokens,
            discarded_tokens=output.discarded_tokens,
            charged=dict(output.charged) if output.charged else None,
        )
        self._pay([paid])
        return output.first_token is not None or bool((output.response or {}).get("streamed"))

    async def levels_of(self, engine: Engine, sweep: Sequence[int], counts: Sequence[int]) -> str:
        """Measure every level; returns why it ended early, "" if it did not."""
        for number, count in zip(sweep, counts, strict=True):
            self.progress.note = f"{number} in flight"
            try:
                self.levels.append(await self._level(engine, number, count))
            except LoupeError as error:
                if not self.levels:
                    raise
                return f"{number} in flight: {error.message}"
            if self.progress.stopping:
                return "interrupted"
            if not self.levels[-1].answered:
                return f"{number} in flight: nothing was answered"
        return ""

    def _take(self, count: int, sent: list[float]) -> Iterator[Request]:
        for _ in range(count):
            request = self.pages[self._next % len(self.pages)]
            self._next += 1
            sent.append(time.monotonic())
            yield request

    async def _level(self, engine: Engine, number: int, count: int) -> Level:
        sent: list[float] = []
        ended: list[tuple[float, Prediction]] = []
        firsts: list[float] = []

        async def predict(request: Request) -> Output:
            output = await engine.predict(request)
            if output.first_token is not None:
                firsts.append(output.first_token)
            return output

        async def keep(prediction: Prediction) -> None:
            # Only figures are wanted: a level of large answers is not held.
            figures = msgspec.structs.replace(prediction, text="", reasoning=None, response=None)
            ended.append((time.monotonic(), figures))

        policy = replace(policy_of(self.profile), concurrency=number, retries=0, max_rate_waits=0)
        # Without a health to look at, the scheduler neither stops the sending nor asks again after an empty answer.
        once = replace(engine, predict=predict, healthy=None)
        began = time.monotonic()
        await Scheduler(once, policy, self.progress, keep).ask_all(self._take(count, sent))
        if not ended:
            raise EngineError("no request has ended")
        self._pay([Usage.of(prediction) for _, prediction in ended])
        return _level(number, ended, firsts, began=began, full_until=sent[-1])

    def _pay(self, usages: Sequence[Usage]) -> None:
        price = self.profile.price
        costs = [price.of(usage) if price else None for usage in usages]
        known = [cost for cost in costs if cost is not None]
        self.cost = self.cost + sum(known) if self.cost is not None and len(known) == len(costs) else None


def _level(
    number: int,
    ended: Sequence[tuple[float, Prediction]],
    firsts: Sequence[float],
    *,
    began: float,
    full_until: float,
) -> Level:
    """The figures of a level. Rates are those of the time until the last request was sent: all places were taken."""
    answered = [(moment, each) for moment, each in ended if not each.failed]
    failed = [each for _, each in ended if each.failed]
    window = full_until - began
    within = [each for moment, each in answered if moment <= full_until]
    counted = any(each.output_tokens is not None for _, each in answered)
    measured = window > 0 and len(ended) > number
    tokens = sum(each.output_tokens or 0 for each in within)
    return Level(
        in_flight=number,
        requests=len(ended),
        answered=len(answered),
        seconds=max(moment for moment, _ in ended) - began,
        pages_per_second=len(within) / window if measured else None,
        tokens_per_second=tokens / window if measured and counted else None,
        latency=Percentiles.of([_seconds(each) for _, each in answered]),
        first_token=Percentiles.of(firsts),
        errors=dict(Counter(each.outcome for each in failed)),
        first_error=failed[0].error if failed else "",
    )


def _seconds(prediction: Prediction) -> float:
    """How long a page took. One that is read in parts ends with the last; `seconds` may be those of one step."""
    usage = Usage.of(prediction)
    return usage.seconds if usage.began is None or usage.ended is None else usage.ended - usage.began


def _streaming(profile: Profile, *, wanted: bool) -> list[Profile]:
    """The profile with streamed answers, where its kind can have them."""
    if not wanted or not isinstance(profile, Settings):
        return []
    more = {"stream": True, "stream_options": {"include_usage": True}}
    return [msgspec.structs.replace(profile, extra_body={**profile.extra_body, **more})]
