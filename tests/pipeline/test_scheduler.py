"""The scheduler: one prediction for every sample, whatever the engine does.

Protocol: docs/protocols/engines.md#outcomes, #retries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import pytest

from loupe.errors import (
    AccountError,
    EngineError,
    EngineTimeoutError,
    EngineUnavailableError,
    RejectedError,
    TransientEngineError,
)
from loupe.inference.progress import Progress
from loupe.inference.retries import Policy
from loupe.inference.scheduler import Scheduler, TimeoutsExceededError
from loupe.types import Engine, Output, Prediction, Request

QUICK = Policy(concurrency=4, retries=2, backoff=0.001, backoff_cap=0.002, health_poll=0.001, health_limit=0.05)
Answer = Output | Exception


def requests(count: int) -> Iterator[Request]:
    return (Request(id=f"s{index}") for index in range(count))


async def ask(
    answers: Callable[[str, int], Answer],
    *,
    count: int = 1,
    policy: Policy = QUICK,
    healthy: Callable[[], Awaitable[bool]] | None = None,
    progress: Progress | None = None,
) -> dict[str, Prediction]:
    """Run the scheduler on an engine that answers by sample id and number of the try (from 1)."""
    tries: dict[str, int] = {}
    kept: dict[str, Prediction] = {}

    async def predict(request: Request) -> Output:
        tries[request.id] = tries.get(request.id, 0) + 1
        await asyncio.sleep(0)
        answer = answers(request.id, tries[request.id])
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def keep(prediction: Prediction) -> None:
        assert prediction.sample not in kept
        kept[prediction.sample] = prediction

    engine = Engine(predict=predict, healthy=healthy)
    await Scheduler(engine, policy, progress or Progress(), keep).ask_all(requests(count))
    return kept


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        (Output(text="read"), "ok"),
        (Output(text="read", finish_reason="stop"), "ok"),
        (Output(text=" \n"), "empty"),
        (Output(text="cut o", finish_reason="length"), "truncated"),
        (Output(text="the same words again. " * 60, finish_reason="length"), "repeated"),
    ],
)
def test_an_answer_is_classified(output: Output, outcome: str) -> None:
    kept = asyncio.run(ask(lambda sample, attempt: output))
    assert (kept["s0"].outcome, kept["s0"].text) == (outcome, output.text)


@pytest.mark.parametrize("output", [Output(text=""), Output(text="<think>a page", reasoning=None)])
def test_an_answer_cut_off_before_it_began_is_no_answer(output: Output) -> None:
    kept = asyncio.run(ask(lambda sample, attempt: replace(output, finish_reason="length", output_tokens=9)))
    found = kept["s0"]
    assert (found.outcome, found.failed, found.text, found.attempt) == ("unfinished", True, "", 1)
    assert (found.reasoning, found.output_tokens) == (output.text or None, 9)


@pytest.mark.parametrize(
    ("error", "outcome", "attempts"),
    [
        (EngineTimeoutError("no answer in 1 s"), "timeout", 1),
        (RejectedError("image too large"), "rejected", 1),
        (EngineError("the process died"), "error", 1),
        (TransientEngineError("502"), "error", 3),
        (ValueError("a bug of the engine"), "error", 1),
    ],
)
def test_a_failure_ends_as_its_class_with_its_reason(error: Exception, outcome: str, attempts: int) -> None:
    kept = asyncio.run(ask(lambda sample, attempt: error))
    assert (kept["s0"].outcome, kept["s0"].attempt) == (outcome, attempts)
    assert str(error) in kept["s0"].error


def test_a_passing_fault_is_retried_until_it_succeeds() -> None:
    faults = {1: TransientEngineError("503"), 2: TransientEngineError("429", rate=True, retry_after=0.0)}
    kept = asyncio.run(ask(lambda sample, attempt: faults.get(attempt, Output(text="read"))))
    assert (kept["s0"].outcome, kept["s0"].attempt) == ("ok", 3)


def test_being_told_to_wait_uses_up_no_retry() -> None:
    def answers(sample: str, attempt: int) -> Answer:
        return TransientEngineError("429", rate=True, retry_after=0.0) if attempt <= 10 else Output(text="read")

    assert asyncio.run(ask(answers))["s0"].outcome == "ok"


def test_waiting_for_a_busy_server_ends_some_day() -> None:
    policy = Policy(concurrency=1, backoff=0.0, max_rate_waits=5)
    kept = asyncio.run(
        ask(lambda sample, attempt: TransientEngineError("429", rate=True, retry_after=0.0), policy=policy)
    )
    assert (kept["s0"].outcome, kept["s0"].attempt) == ("error", 6)


@pytest.mark.parametrize("rate", [True, False])
def test_a_pause_that_nobody_waits_for_ends_the_run_whatever_the_fault(rate: bool) -> None:
    error = TransientEngineError("HTTP 500", rate=rate, retry_after=100_000.0)
    with pytest.raises(AccountError, match=r"asks to wait 100,000 s, longer than the 300 s"):
        asyncio.run(asyncio.wait_for(ask(lambda sample, attempt: error, healthy=is_healthy), 5))


async def is_healthy() -> bool:
    return True


def test_an_empty_answer_of_a_server_is_asked_for_once_more() -> None:
    answers = {1: Output(text=""), 2: Output(text="read")}
    assert asyncio.run(ask(lambda sample, attempt: answers[attempt], healthy=is_healthy))["s0"].outcome == "ok"
    kept = asyncio.run(ask(lambda sample, attempt: Output(text=""), healthy=is_healthy))
    assert (kept["s0"].outcome, kept["s0"].attempt) == ("empty", 2)


def test_every_sample_ends_exactly_once_and_the_counters_agree() -> None:
    def answers(sample: str, attempt: int) -> Answer:
        number = int(sample[1:])
        if number % 7 == 0:
            return RejectedError("no")
        return TransientEngineError("500") if number % 5 == 0 and attempt == 1 else Output(text=sample, output_tokens=2)

    progress = Progress()
    kept = asyncio.run(ask(answers, count=200, progress=progress, healthy=is_healthy))
    assert set(kept) == {f"s{index}" for index in range(200)}
    assert (progress.done, progress.outcomes["rejected"], progress.in_flight) == (200, 29, 0)
    assert progress.output_tokens == 2 * 171


def test_three_errors_in_a_row_stop_the_sending_until_the_server_is_healthy_again() -> None:
    asked: list[str] = []
    checks = 0

    async def healthy() -> bool:
        nonlocal checks
        checks += 1
        return checks >= 3

    def answers(sample: str, attempt: int) -> Answer:
        asked.append(sample)
        return TransientEngineError("connection refused") if checks < 3 else Output(text="read")

    policy = Policy(concurrency=1, retries=5, backoff=0.0, health_poll=0.001)
    kept = asyncio.run(ask(answers, count=5, healthy=healthy, policy=policy))
    assert checks == 3 and asked[:4] == ["s0"] * 4
    assert {prediction.outcome for prediction in kept.values()} == {"ok"}


def test_a_server_that_stays_down_ends_the_run_with_the_exit_code_for_missing_things() -> None:
    async def down() -> bool:
        return False

    with pytest.raises(EngineUnavailableError, match="health check") as error:
        asyncio.run(ask(lambda sample, attempt: TransientEngineError("refused"), count=9, healthy=down))
    assert error.value.exit_code == 4


def test_a_refused_key_ends_the_run_at_once() -> None:
    with pytest.raises(EngineUnavailableError, match="401"):
        asyncio.run(ask(lambda sample, attempt: EngineUnavailableError("401"), count=9))


def test_after_a_used_up_quota_a_pause_ends_without_a_look_at_the_server() -> None:
    looks = 0

    async def healthy() -> bool:
        nonlocal looks
        looks += 1
        return False

    def answers(sample: str, attempt: int) -> Answer:
        busy = TransientEngineError("429", rate=True, retry_after=60.0)
        return AccountError("the quota is used up") if sample == "s3" else busy

    policy = Policy(concurrency=4, errors_before_check=1, health_poll=0.001, health_limit=0.05)
    with pytest.raises(AccountError, match="used up"):
        asyncio.run(asyncio.wait_for(ask(answers, count=4, healthy=healthy, policy=policy), 20))
    assert looks == 0


def test_the_end_of_one_pause_takes_back_no_other_note() -> None:
    progress, notes = Progress(), list[str]()

    def answers(sample: str, attempt: int) -> Answer:
        if sample == "s0" and attempt == 1:
            return TransientEngineError("429", rate=True, retry_after=6.0)
        if sample == "s1" and attempt == 1:
            return TransientEngineError("502")
        if sample == "s1":
            notes.append(progress.note)
            progress.request_stop()
        return Output(text="read")

    asyncio.run(ask(answers, count=2, progress=progress, policy=Policy(concurrency=2, backoff=0.01)))
    assert notes == ["the server asks to wait 6 s"] and progress.note == ""


def test_fifty_timeouts_give_the_benchmark_up_and_keep_what_was_read() -> None:
    policy = Policy(concurrency=2, max_timeouts=5)

    def answers(sample: str, attempt: int) -> Answer:
        return EngineTimeoutError("slow") if int(sample[1:]) >= 3 else Output(text="read")

    progress = Progress()
    with pytest.raises(TimeoutsExceededError, match=r"[56] requests timed out"):
        asyncio.run(ask(answers, count=50, policy=policy, progress=progress))
    assert progress.outcomes["ok"] == 3 and 5 <= progress.outcomes["timeout"] <= 6


def test_asking_to_stop_finishes_what_is_in_flight_and_starts_nothing() -> None:
    progress = Progress()

    def answers(sample: str, attempt: int) -> Answer:
        if sample == "s5":
            progress.request_stop()
        return Output(text="read")

    kept = asyncio.run(ask(answers, count=100, progress=progress))
    assert 6 <= len(kept) <= 5 + QUICK.concurrency + 1


def test_stopping_now_gives_up_what_is_in_flight() -> None:
    async def hang() -> dict[str, Prediction]:
        progress = Progress()
        kept: dict[str, Prediction] = {}

        async def predict(request: Request) -> Output:
            if request.id == "s0":
                return Output(text="read")
            await asyncio.Event().wait()
            raise AssertionError

        async def keep(prediction: Prediction) -> None:
            kept[prediction.sample] = prediction
            asyncio.get_running_loop().call_later(0.01, progress.stop_now)

        await Scheduler(Engine(predict=predict), QUICK, progress, keep).ask_all(requests(20))
        return kept

    assert set(asyncio.run(hang())) == {"s0"}
