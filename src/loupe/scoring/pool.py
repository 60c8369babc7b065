"""Scoring on all cores: worker processes that score one sample after the other, each sample on its own account.

A worker reports every sample as it is done, so when it hangs or dies the culprit is known: only that sample becomes an
error (and counts as an empty answer), the rest of its batch goes on in a fresh worker.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field, replace
from itertools import islice
from types import TracebackType
from typing import Any, Generic, TypeVar

import msgspec

from loupe.benchmarks.registry import load_benchmark
from loupe.engines.adapters.steps import check_adapters
from loupe.errors import LoupeError
from loupe.scoring.batches import BatchSizes
from loupe.scoring.child import Scored
from loupe.scoring.digest import score_digest
from loupe.scoring.process import (
    TICK,
    Hands,
    Here,
    NobodyYetError,
    Worker,
    WorkerGoneError,
    WorkerHungError,
    WorkerLostError,
)
from loupe.scoring.scorer import describe, one_line
from loupe.types import Prediction, Sample, SampleScores
from loupe.workers.child import Start

__all__ = ["ScorePool", "score_digest"]

#: Memory that a worker may take; a scorer that wants more fails with MemoryError on that sample.
_MEMORY = 4 << 30
_START_SECONDS = 60.0
#: Machines that may go under the same sample before it is taken for the reason.
_MOST_GONE = 5


Semaphore = TypeVar("Semaphore", threading.Semaphore, asyncio.Semaphore)


@dataclass(slots=True)
class _Job:
    sample: Sample
    prediction: Prediction
    message: bytes
    future: Future[SampleScores]
    lost: str = ""
    since: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class _Places(Generic[Semaphore]):
    """Places for samples in flight: those that are free, and how many there are in all."""

    free: Semaphore
    given: int = 0


class ScorePool:
    """Scores samples of one benchmark in up to `jobs` processes (default: one per core of `hands`); a context manager.

    Workers start when there is something to score: one at first, more when samples wait. Leaving the block normally
    waits for what was submitted; leaving it with an exception drops that. `timeout` is in seconds per sample.
    """

    def __init__(
        self,
        benchmark: str,
        adapters: Sequence[str] = (),
        *,
        jobs: int | None = None,
        timeout: float = 120.0,
        hands: Hands | None = None,
    ) -> None:
        self.benchmark = load_benchmark(benchmark)
        settings = {"benchmark": benchmark, "adapters": list(check_adapters(adapters))}
        self._start = Start(factory="loupe.scoring.child:Scorer", settings=settings, memory=_MEMORY)
        self._hands = hands or Here()
        self._jobs = jobs
        self._timeout = timeout
        self._changed = threading.Condition()
        self._queue: deque[_Job] = deque()
        self._threads: set[threading.Thread] = set()
        self._workers: set[Worker] = set()
        self._starting = 0
        self._ready = 0.0
        self._patience = TICK
        self._idle = 0
        self._sizes = BatchSizes(prepared=self.benchmark.prepare is not None, quick=self._hands.seconds)
        self._state = "open"
        self._broken: LoupeError | None = None
        self._places, self._async_places = _Places(threading.Semaphore(0)), _Places(asyncio.Semaphore(0))

    def submit(self, sample: Sample, prediction: Prediction) -> Future[SampleScores]:
        """Queue one prediction for scoring; blocks while many are in flight, so memory stays bounded."""
        self._give(self._places)
        self._places.free.acquire()
        try:
            future = self._enqueue(sample, prediction)
        except RuntimeError:
            self._places.free.release()
            raise
        future.add_done_callback(lambda _: self._places.free.release())
        return future

    async def score(self, sample: Sample, prediction: Prediction) -> SampleScores:
        """Score one prediction; waits its turn while many are in flight. Raises LoupeError if no worker can start."""
        self._give(self._async_places)
        async with self._async_places.free:
            return await asyncio.wrap_future(self._enqueue(sample, prediction))

    def _give(self, places: _Places[Any]) -> None:
        """As many places as the machines that score now bear; those of a cluster may become more."""
        wanted = 2 * self._sizes.largest * (1 + self.most())
        if wanted > places.given:
            with self._changed:
                more, places.given = max(0, wanted - places.given), max(wanted, places.given)
            for _ in range(more):
                places.free.release()

    def __enter__(self) -> ScorePool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._abort()
        with self._changed:
            self._state = "closed" if self._state == "open" else self._state
            self._changed.notify_all()
        try:
            while threads := self._there():  # Some may start others yet.
                for thread in threads:
                    thread.join()
        except BaseException:
            self._abort()
            raise
        finally:
            self._hands.close()

    def _there(self) -> list[threading.Thread]:
        with self._changed:
            return list(self._threads)

    def _abort(self) -> None:
        """Drop what is queued and kill what is running."""
        with self._changed:
            self._state = "aborted"
            dropped = list(self._queue)
            self._queue.clear()
            for worker in self._workers:
                worker.kill()
            self._changed.notify_all()
        for job in dropped:
            job.future.cancel()

    def _enqueue(self, sample: Sample, prediction: Prediction) -> Future[SampleScores]:
        future: Future[SampleScores] = Future()
        # Of the reasoning, only whether there is any.
        reasoned = (prediction.reasoning or "").strip()[:1] or None
        prediction = msgspec.structs.replace(prediction, reasoning=reasoned, response=None)
        try:
            message = self._hands.pack(sample, prediction, "")
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError) as error:
            future.set_result(describe(sample, prediction, error=f"cannot be sent to a scorer: {one_line(error)}"))
            return future
        with self._changed:
            if self._broken:
                future.set_exception(self._broken)
            elif self._state != "open":
                raise RuntimeError("the pool is closed")
            else:
                self._queue.append(_Job(sample, prediction, message, future))
                self._grow()
                self._changed.notify()
        return future

    def _grow(self) -> None:
        """Start a worker if samples wait; several at once only when as many already run. The lock is held."""
        running = len(self._threads) - self._starting
        if not self._queue or self._idle or len(self._threads) >= self.most() or self._starting >= max(1, running):
            return
        waited = time.monotonic() - max(self._queue[0].since, self._ready)
        if not self._threads or len(self._queue) >= self._sizes.largest * len(self._threads) or waited > self._patience:
            thread = threading.Thread(target=self._serve, name="loupe-scoring", daemon=True)
            self._threads.add(thread)
            self._starting += 1
            thread.start()

    def most(self) -> int:
        """The number of processes that there may be just now."""
        return max(1, self._jobs or self._hands.most())

    def _tick(self) -> None:
        with self._changed:
            self._grow()

    def _serve(self) -> None:
        """A thread's life: one worker, batch after batch."""
        worker: Worker | None = None
        try:
            began = time.monotonic()
            worker = self._new_worker()
            with self._changed:
                self._starting -= 1
                if not self._ready and self.benchmark.prepare is None:
                    # What is scored sooner than another worker starts needs none.
                    self._ready = time.monotonic()
                    self._patience = min(max(TICK, self._ready - began), 4 * TICK)
            while worker and (batch := self._take()):
                worker = self._score(worker, deque(batch))
        finally:
            self._retire(worker)
            with self._changed:
                self._threads.discard(threading.current_thread())

    def _take(self) -> list[_Job]:
        """The next batch, empty when the pool closes."""
        with self._changed:
            while self._state == "open" and not self._broken:
                oldest = time.monotonic() - self._queue[0].since if self._queue else 0.0
                seconds = self._sizes.wait(len(self._queue), oldest) if self._queue else None
                if seconds == 0:
                    break
                self._idle += 1
                self._changed.wait(seconds)
                self._idle -= 1
            self._grow()
            size = self._sizes.next(len(self._queue), len(self._threads))
            taken = [self._queue.popleft() for _ in range(min(size, len(self._queue)))]
        wanted = [job for job in taken if job.future.set_running_or_notify_cancel()]
        return wanted if wanted or not taken else self._take()

    def _score(self, worker: Worker | None, jobs: deque[_Job]) -> Worker | None:
        """Score a batch to its end, with as many workers as that costs; the last one is given back."""
        guilty = False
        together = len(jobs)
        gone = 0
        while jobs and self._state != "aborted":
            if worker is None:
                worker, guilty = self._new_worker(), True
            if worker is None:
                break
            batch = list(islice(jobs, together))
            prepared = False
            try:
                worker.send([job.message for job in batch])
                share = self._preparation(worker) / len(batch)
                prepared = True
                for _ in batch:
                    reply = worker.receive(timeout=self._timeout, tick=self._tick)
                    if reply.machine:
                        worker.note(reply.machine)
                        raise WorkerGoneError(reply.machine)
                    self._finish(jobs[0], reply, share)
                    jobs.popleft()
                    guilty, gone = True, 0
            except WorkerLostError as error:
                self._retire(worker)
                worker = None
                gone = gone + 1 if isinstance(error, WorkerGoneError) else 0
                if 0 < gone < _MOST_GONE:
                    continue
                if not prepared and len(batch) > 1:
                    # Nobody can say which sample the preparation did not survive: each on its own account.
                    together = 1
                # A worker that died before its first answer of this batch may have died idle: one more try.
                elif guilty or isinstance(error, WorkerHungError | WorkerGoneError):
                    self._blame(jobs, str(error))
        for job in jobs:
            job.future.set_exception(self._broken or CancelledError())
        return worker

    def _preparation(self, worker: Worker) -> float:
        """Wait until the batch is prepared, if the benchmark does that, and say how long it took."""
        if self.benchmark.prepare is None:
            return 0.0
        return worker.prepared(timeout=self._timeout, tick=self._tick).seconds

    def _finish(self, job: _Job, reply: Scored, share: float) -> None:
        self._sizes.learn(reply.seconds + share)
        scores = reply.scores or describe(job.sample, job.prediction, error=reply.error)
        job.future.set_result(scores)

    def _blame(self, jobs: deque[_Job], reason: str) -> None:
        """The first job cost its worker: score an empty answer instead, or nothing if that is what cost it."""
        if self._state == "aborted":
            return
        job = jobs[0]
        if job.lost:
            error = f"{job.lost}; an empty answer: {reason}"
            jobs.popleft().future.set_result(describe(job.sample, job.prediction, error=error))
        else:
            jobs[0] = replace(job, lost=reason, message=self._hands.pack(job.sample, job.prediction, reason))

    def _new_worker(self) -> Worker | None:
        """A worker that is ready to score; None, with the pool broken, where the hands say that none will be."""
        reason, failed = "", 0
        while failed < self._hands.attempts:
            if self._state == "aborted" or self._broken:
                return None
            try:
                worker = Worker(self._hands.line())
            except NobodyYetError:
                with self._changed:
                    self._changed.wait(TICK)
                continue
            except (OSError, WorkerLostError) as error:
                reason, failed = one_line(error), failed + 1
                continue
            except LoupeError as error:  # such as a cluster that is gone: no attempt would help
                self._break(error)
                return None
            with self._changed:
                self._workers.add(worker)
            try:
                worker.start(self._start, timeout=_START_SECONDS)
                return worker
            except WorkerLostError as error:
                reason, failed = str(error), failed + 1
                worker.note(reason)
                self._retire(worker)
        self._break(
            LoupeError(f"no scoring process can be started: {reason}", hint="see what is missing: loupe doctor")
        )
        return None

    def _break(self, error: LoupeError) -> None:
        """Fail everything that waits, and whatever comes later."""
        with self._changed:
            self._broken = self._broken or error
            waiting = list(self._queue)
            self._queue.clear()
            self._changed.notify_all()
        for job in waiting:
            if job.future.set_running_or_notify_cancel():
                job.future.set_exception(error)

    def _retire(self, worker: Worker | None) -> None:
        if worker is not None:
            with self._changed:
                self._workers.discard(worker)
            worker.close()
