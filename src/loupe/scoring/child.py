"""Serve a scoring process: an order is a batch of pickled samples, the answers are their scores, one by one."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Iterator, Sequence

import msgspec

from loupe.benchmarks.registry import load_benchmark
from loupe.errors import no_room
from loupe.files.scratch import clear_away, sweep
from loupe.metrics.cdm.drawing.limited_processes import FOLDERS
from loupe.scoring.scorer import one_line, prepare_samples, score_sample
from loupe.types import Prediction, Sample, SampleScores
from loupe.workers.child import HEAD, frame


class Scored(msgspec.Struct):
    """One scored sample and the seconds it took; `error` instead if the sample or its scores could not travel.

    `machine` says what this machine lacks: another one may score the sample.
    """

    scores: SampleScores | None = None
    seconds: float = 0.0
    error: str = ""
    machine: str = ""


class Prepared(msgspec.Struct):
    """The first answer to a batch: its samples have been prepared together, which took this many seconds."""

    seconds: float = 0.0


class Scorer:
    """Scores batches of a benchmark, read through adapters. Whatever scorers print goes nowhere."""

    def __init__(self, benchmark: str, adapters: Sequence[str]) -> None:
        self._benchmark, self._adapters = load_benchmark(benchmark), adapters
        self.facts: dict[str, str] = {}
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        for prefix in FOLDERS:
            sweep(prefix)

    def answers(self, order: bytes) -> Iterator[bytes]:
        """The scores of a batch, in its order; before them, if the benchmark prepares samples, when that is done."""
        messages = list(_parts(order))
        if self._benchmark.prepare:
            began = time.perf_counter()
            found = (_unpacked(message) for message in messages)
            pairs = [(task[0], task[1]) for task in found if not isinstance(task, Exception) and not task[2]]
            prepare_samples(self._benchmark, pairs, self._adapters)
            yield msgspec.msgpack.encode(Prepared(seconds=time.perf_counter() - began))
        for message in messages:
            began = time.perf_counter()
            task = _unpacked(message)
            if isinstance(task, Exception):
                full = no_room(task)
                scored = Scored(error=one_line(task), machine=full.message if full else "")
            else:
                scores = score_sample(self._benchmark, task[0], task[1], self._adapters, lost=task[2])
                scored = Scored(scores=scores, seconds=time.perf_counter() - began)
            try:
                answer = msgspec.msgpack.encode(scored)
            except (TypeError, ValueError, OverflowError, RecursionError) as error:  # an error of its sample
                answer = msgspec.msgpack.encode(Scored(error=one_line(error)))
            yield answer
        clear_away()


def batch(messages: Sequence[bytes]) -> bytes:
    """Packed samples as one order."""
    return b"".join(map(frame, messages))


def _parts(order: bytes) -> Iterator[memoryview]:
    left = memoryview(order)
    while left:
        (size,) = HEAD.unpack_from(left)
        yield left[HEAD.size : HEAD.size + size]
        left = left[HEAD.size + size :]


def _unpacked(message: memoryview) -> tuple[Sample, Prediction, str] | Exception:
    """Sample, prediction, and how this sample has cost a worker before; or why they cannot be read."""
    try:
        sample, prediction, lost = pickle.loads(message)
    except Exception as error:  # noqa: BLE001  it is the error of this sample
        return error
    return sample, prediction, lost
