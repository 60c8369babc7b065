"""Pages that are read in parts by the scheduler: how many are in flight, how far ahead, what stops, what is lost."""

from __future__ import annotations

import asyncio
import errno
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from loupe.errors import (
    AccountError,
    EngineTimeoutError,
    EngineUnavailableError,
    PageError,
    RejectedError,
    TransientEngineError,
    WriteError,
)
from loupe.inference.divided_pages import MOST_PAGES
from loupe.inference.progress import Progress
from loupe.inference.retries import Policy
from loupe.inference.scheduler import Scheduler, TimeoutsExceededError
from loupe.types import Division, Engine, Joined, Output, Prediction, Request

Answer = Output | Exception
READ = Output(text="read", input_tokens=7)


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
        if request.id.startswith("full"):
            raise OSError(errno.ENOSPC, "x", "/scratch/page.png")
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


def _joined(ended: Sequence[Prediction]) -> Joined:
    read = [part for part in ended if not part.failed]
    late = sum(part.outcome == "timeout" for part in ended)
    output = Output(
        text=" ".join(part.text for part in read),
        input_tokens=sum(part.input_tokens or 0 for part in read),
        response={"calls": len(ended), "classes": [part.outcome for part in ended]},
    )
    if ended and not read:
        return Joined(output=output, outcome="timeout", error="none could be read", uncounted=(0, late))
    return Joined(output=output, lost=late, uncounted=(0, late))


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


def test_a_full_disk_while_a_page_is_divided_ends_the_run_and_fails_no_page() -> None:
    book = Book(lambda page: 2)
    with pytest.raises(WriteError, match=r"/scratch/page\.png cannot be written: the disk is full"):
        book.read("full0", "full1", "full2")
    assert not book.kept


def test_a_stop_ends_the_pages_that_were_begun_and_begins_no_others() -> None:
    progress = Progress()
    book = Book(lambda page: 4)
    book.on_part = lambda part: progress.request_stop() if part == "p3#1" else None
    kept = book.read(*(f"p{number}" for number in range(30)), concurrency=2, progress=progress)
    assert all(len(record.text.split()) == 4 for record in kept.values())
    assert {"p0", "p1", "p2", "p3"} <= kept.keys() and len(kept) <= 6


def test_a_page_is_one_time_out_however_many_of_its_parts_are_late() -> None:
    dense = Book(
        lambda page: 60, answers=lambda part: EngineTimeoutError("slow") if part[:3] == "p0#" else Output(text=part)
    )
    kept = dense.read("p0", "p1", "p2", concurrency=4)
    assert [kept[page].outcome for page in ("p0", "p1", "p2")] == ["timeout", "ok", "ok"]
    # One late part of each page is enough: the sixth of these pages is asked no more.
    partly = Book(lambda page: 2, answers=lambda part: EngineTimeoutError("slow") if part[-2:] == "#0" else READ)
    with pytest.raises(TimeoutsExceededError, match="5 pages timed out"):
        partly.read(*(f"p{number}" for number in range(9)), concurrency=1)
    assert [(record.outcome, record.lost) for record in partly.kept.values()] == [("ok", 1)] * 5


def test_what_was_read_of_unfinished_pages_is_on_record_when_the_run_ends() -> None:
    def refused(part: str) -> Answer:
        return EngineUnavailableError("HTTP 401") if part == "p1#2" else READ

    dead = Book(lambda page: 4, answers=refused)
    with pytest.raises(EngineUnavailableError):
        dead.read("p0", "p1", "p2", concurrency=1)
    record = dead.kept["p1"]
    assert list(dead.kept) == ["p0", "p1"] and (record.outcome, record.text, record.input_tokens) == ("error", "", 14)
    assert record.error == "not read completely (2 of 4 parts): HTTP 401"
    assert (record.response or {})["classes"] == ["ok", "ok", "missing", "missing"]

    progress = Progress()
    hurried = Book(lambda page: 4)
    hurried.on_part = lambda part: progress.stop_now() if part == "p0#2" else None
    kept = hurried.read("p0", "p1", concurrency=1, progress=progress)
    assert list(kept) == ["p0"] and kept["p0"].outcome == "error"
    # The part in flight may be charged, too.
    assert (kept["p0"].response or {})["classes"] == ["ok", "ok", "timeout", "missing"]
    assert kept["p0"].uncounted == (0, 1)


def test_a_used_up_quota_keeps_the_parts_in_flight_and_asks_for_no_others() -> None:
    asked: list[str] = []
    kept: dict[str, Prediction] = {}

    async def divide(request: Request) -> Division:
        return Division(parts=[Request(id=f"{request.id}#{number}") for number in range(2)], join=_joined)

    async def predict(request: Request) -> Output:
        asked.append(request.id)
        if request.id == "p2#0":
            await asyncio.sleep(0.01)
            raise AccountError("the quota is used up")
        await asyncio.sleep(0 if request.id.startswith("p0") else 0.1)
        return READ

    async def keep(prediction: Prediction) -> None:
        kept[prediction.sample] = prediction

    scheduler = Scheduler(Engine(predict=predict, divide=divide), Policy(concurrency=3), Progress(), keep)
    with pytest.raises(AccountError, match="used up"):
        asyncio.run(asyncio.wait_for(scheduler.ask_all(Request(id=f"p{number}") for number in range(50)), 20))
    assert len(asked) <= 6 and {"p0#0", "p0#1", "p1#0", "p1#1", "p2#0"} <= set(asked)
    assert (kept["p0"].outcome, kept["p1"].outcome, kept["p2"].outcome) == ("ok", "ok", "error")
    assert kept["p1"].input_tokens == 14
    assert "0 of 2 parts" in kept["p2"].error or "1 of 2 parts" in kept["p2"].error


def test_parts_are_let_go_of_as_they_end() -> None:
    alive: list[weakref.ref[Request]] = []
    peak = 0

    class Part(Request):
        __slots__ = ("__weakref__",)

    async def divide(request: Request) -> Division:
        parts = [Part(id=f"p#{number}") for number in range(20)]
        alive.extend(map(weakref.ref, parts))
        return Division(parts=parts, join=_joined)

    async def predict(request: Request) -> Output:
        nonlocal peak
        await asyncio.sleep(0)
        gone = sum(each() is None for each in alive)
        peak = max(peak, gone)
        return READ

    async def keep(prediction: Prediction) -> None:
        assert not prediction.failed

    scheduler = Scheduler(Engine(predict=predict, divide=divide), Policy(), Progress(), keep)
    asyncio.run(scheduler.ask_all(iter([Request(id="p")])))
    assert peak >= 18
