"""The scoring process: takes pickled samples on standard input, gives back one line of scores for each, in order.

It is a plain subprocess rather than `multiprocessing`: the caller's main module is not run again, start-up costs one
interpreter, and whatever a scorer prints goes nowhere. It ends when its standard input does, so no parent leaves it
behind.
"""

from __future__ import annotations

import os
import pickle
import time

import msgspec

from loupe.data.bounds import lower_limit, outlive_signals
from loupe.data.messages import die_with_parent, frame, inbox_of
from loupe.errors import no_room
from loupe.files.scratch import clear_away, sweep
from loupe.typed import msgpack_decoder
from loupe.types import Prediction, Sample, SampleScores


class Start(msgspec.Struct):
    """First message to a worker: what to score with. `memory` is in bytes, 0 for no limit."""

    benchmark: str
    adapters: list[str]
    memory: int = 0


class Ready(msgspec.Struct):
    """First message of a worker; `error` says why it cannot score."""

    error: str = ""


class Reply(msgspec.Struct):
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


def main() -> None:
    """Score until standard input ends."""
    outlive_signals()
    die_with_parent()
    tasks, answers = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.dup2(nowhere, 1)
    inbox = inbox_of(os.fdopen(tasks, "rb"))
    start = msgpack_decoder(Start).decode(inbox.get())
    from loupe.benchmarks.registry import load_benchmark
    from loupe.metrics.cdm.drawing.limited_processes import FOLDERS
    from loupe.scoring.scorer import one_line, prepare_samples, score_sample

    try:
        benchmark = load_benchmark(start.benchmark)
        _limit_memory(start.memory)
    except Exception as error:  # noqa: BLE001  a worker's border: the parent says it to the user
        _send(answers, msgspec.msgpack.encode(Ready(error=one_line(error))))
        return
    os.dup2(nowhere, 2)
    for prefix in FOLDERS:
        sweep(prefix)
    _send(answers, msgspec.msgpack.encode(Ready()))
    while True:
        messages = [inbox.get() for _ in range(batch_size(inbox.get()))]
        if benchmark.prepare:
            began = time.perf_counter()
            found = (_unpacked(message) for message in messages)
            pairs = [(task[0], task[1]) for task in found if not isinstance(task, Exception) and not task[2]]
            prepare_samples(benchmark, pairs, start.adapters)
            _send(answers, msgspec.msgpack.encode(Prepared(seconds=time.perf_counter() - began)))
        for message in messages:
            began = time.perf_counter()
            task = _unpacked(message)
            if isinstance(task, Exception):
                full = no_room(task)
                reply = Reply(error=one_line(task), machine=full.message if full else "")
            else:
                scores = score_sample(benchmark, task[0], task[1], start.adapters, lost=task[2])
                reply = Reply(scores=scores, seconds=time.perf_counter() - began)
            _send(answers, _packed(reply))
        clear_away()


def batch_head(size: int) -> bytes:
    """The message before the samples of a batch."""
    return size.to_bytes(8, "big")


def batch_size(head: bytes) -> int:
    """Return how many samples follow this message."""
    return int.from_bytes(head, "big")


def _unpacked(message: bytes) -> tuple[Sample, Prediction, str] | Exception:
    """Sample, prediction, and how this sample has cost a worker before; or why they cannot be read."""
    try:
        sample, prediction, lost = pickle.loads(message)
    except Exception as error:  # noqa: BLE001  it is the error of this sample
        return error
    return sample, prediction, lost


def _packed(reply: Reply) -> bytes:
    """The reply as bytes."""
    from loupe.scoring.scorer import one_line

    try:
        return msgspec.msgpack.encode(reply)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:  # an error of its sample
        return msgspec.msgpack.encode(Reply(error=one_line(error)))


def _send(descriptor: int, message: bytes) -> None:
    data = memoryview(frame(message))
    while data:
        data = data[os.write(descriptor, data) :]


def _limit_memory(limit: int) -> None:
    """Make a scorer that eats memory fail with MemoryError, where the system enforces it (Linux)."""
    import resource

    if limit:
        lower_limit(resource.RLIMIT_DATA, limit)
