"""Pages that are read in parts by the scheduler: how many are in flight, how far ahead, what stops, what is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from loupe.errors import EngineTimeoutError, EngineUnavailableError, PageError, RejectedError, TransientEngineError
from loupe.inference.divided_pages import MOST_PAGES
from loupe.inference.progress import Progress
from loupe.inference.scheduler import Policy, Scheduler, TimeoutsExceededError
from loupe.types import Division, Engine, Output, Prediction, Request

Answer = Output | Exception


@dataclass
class Book:
    """An engine whose pages have parts `PAGE#NUMBER`, and what was seen of its work."""

    parts: Callable[[str], int]
    answers: Callable[[str], Answer] = lambda part: Output(text=part)
    dividers: int = 2
    divided: list[str] = field(default_factory=list)
    active: set[str] = field(default_factory=set)
    peak: int = 0
    pages_together: int = 0
    ahead: int = 0
    kept: dict[str, Prediction] = field(default_factory=dict)
    on_part: Callable[[str], None] = lambda part: None

    async def divide(self, request: Request) -> Division:
        self.divided.append(request.id)
        self.ahead = max(self.ahead, len(self.divided) - len(self.kept))
        await asyncio.sleep(0)
        if request.id.startswith("broken"):
            raise PageError(f"{request.id}: cannot be decoded")
        if request.id.startswith("odd"):
            raise ValueError("a bug")
        parts = [Request(id=f"{request.id}#{number}") for number in range(self.parts(request.id))]
        return Division(parts=parts, join=_joined)

    async def predict(self, request: Request) -> Output:
        self.active.add(request.id)
        self.peak = max(self.peak, len(self.active))
        self.pages_together = max(self.pages_together, len({part.partition("#")[0] for part in self.active}))
        try:
            self.on_part(request.id)
            await asyncio.sleep(0.001)
            answer = self.answers(request.id)
        finally:
            self.active.discard(request.id)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def read(self, *pages: str, concurrency: int | None = 3, progress: Progress | None = None) -> dict[str, Prediction]:
        async def keep(prediction: Prediction) -> None:
            assert prediction.sample not in self.kept
            self.kept[prediction.sample] = prediction

        policy = Policy(concurrency=concurrency or "auto", backoff=0.001, backoff_cap=0.002, max_timeouts=5)
        engine = Engine(predict=self.predict, divide=self.divide, dividers=self.dividers)
        scheduler = Scheduler(engine, policy, progress or Progress(), keep)
        asyncio.run(asyncio.wait_for(scheduler.ask_all(Request(id=page) for page in pages), 30))
        return self.kept


def _joined(ended: list[Prediction]) -> Output:
    if ended and all(part.failed for part in ended):
        raise EngineTimeoutError("none could be read")
    return Output(text=" ".join(part.text for part in ended if not part.failed), response={"calls": len(ended)})


@pytest.mark.parametrize("concurrency", [1, 3, None])
def test_every_page_has_one_record_with_its_parts_in_order(concurrency: int | None) -> None:
    book = Book(lambda page: int(page[1:]) % 5)
    pages = [f"p{number}" for number in range(40)]
    kept = book.read(*pages, concurrency=concurrency)
    assert {page: record.text for page, record in kept.items()} == {
        page: " ".join(f"{page}#{part}" for part in range(int(page[1:]) % 5)) for page in pages
    }
    assert {record.outcome for record in kept.values()} == {"ok", "empty"}
    assert book.divided == pages


def test_parts_of_several_pages_are_in_flight_and_never_more_than_asked_for() -> None:
    book = Book(lambda page: 2)
    book.read(*(f"p{number}" for number in range(30)), concurrency=6)
    assert book.peak == 6 and book.pages_together >= 3


def test_pages_are_divided_only_as_far_ahead_as_is_needed() -> None:
    book = Book(lambda page: 10)
    book.read(*(f"p{number}" for number in range(60)), concurrency=2)
    assert book.ahead <= 6
    empty = Book(lambda page: 1, dividers=1)
    empty.read(*(f"p{number}" for number in range(300)), concurrency=200)
    assert empty.ahead <= MOST_PAGES


def test_a_page_that_cannot_be_divided_and_one_of_which_nothing_is_read_are_errors_of_their_own() -> None:
    answers = {
        "p1#0": RejectedError("too small"),
        "p2#0": EngineTimeoutError("slow"),
        "p2#1": TransientEngineError("502"),
    }
    book = Book(lambda page: 2, answers=lambda part: answers.get(part, Output(text=part)))
    kept = book.read("p0", "broken", "p1", "odd", "p2")
    assert {page: (record.outcome, record.text) for page, record in kept.items()} == {
        "p0": ("ok", "p0#0 p0#1"),
        "broken": ("error", ""),
        "p1": ("ok", "p1#1"),
        "odd": ("error", ""),
        "p2": ("timeout", ""),
    }
    assert kept["odd"].error == "ValueError: a bug"


def test_a_stop_ends_the_pages_that_were_begun_and_begins_no_others() -> None:
    progress = Progress()
    book = Book(lambda page: 4)
    book.on_part = lambda part: progress.request_stop() if part == "p3#1" else None
    kept = book.read(*(f"p{number}" for number in range(30)), concurrency=2, progress=progress)
    assert all(len(record.text.split()) == 4 for record in kept.values())
    assert {"p0", "p1", "p2", "p3"} <= kept.keys() and len(kept) <= 6


def test_too_many_time_outs_and_a_dead_server_end_the_run_and_keep_whole_pages_only() -> None:
    slow = Book(lambda page: 2, answers=lambda part: Output(text=part) if part < "p2" else EngineTimeoutError("slow"))
    with pytest.raises(TimeoutsExceededError):
        slow.read(*(f"p{number}" for number in range(9)), concurrency=1)
    assert [slow.kept[page].outcome for page in ("p0", "p1", "p2", "p3")] == ["ok", "ok", "timeout", "timeout"]
    assert len(slow.kept) == 4
    dead = Book(
        lambda page: 2, answers=lambda part: EngineUnavailableError("401") if part == "p1#1" else Output(text="a")
    )
    with pytest.raises(EngineUnavailableError):
        dead.read("p0", "p1", "p2", concurrency=1)
    assert list(dead.kept) == ["p0"]
