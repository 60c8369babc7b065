"""Checks of a user's benchmark: what it declares, its samples, and its scores of right answers."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from loupe.benchmarks import get_benchmark
from loupe.data.pages import page_size
from loupe.errors import DatasetError, LoupeError, PageError, UsageError
from loupe.pipeline.plan import samples_of, survey
from loupe.scoring.scorer import score_sample
from loupe.typed import decode_json, encode_json
from loupe.types import Benchmark, Prediction, Sample

#: Samples whose images are opened and whose right answers are scored.
_TRIED = 10


def checked_apart(file: Path, data: Path | None) -> list[str]:
    """Return `benchmark_problems`, found in a process of its own: the file may end the process that runs it.

    Raises what `benchmark_problems` raises, and UsageError if that process ends before it has said what it found.
    """
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    out, into = os.pipe()
    child = os.fork()
    if not child:
        os.close(out)
        _report(file, data, into)
    os.close(into)
    ended = None
    try:
        with os.fdopen(out, "rb") as report:
            said = report.read()
        ended = os.waitpid(child, 0)[1]
    finally:
        if ended is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    try:
        found = decode_json(said)
    except msgspec.DecodeError:
        number = os.waitstatus_to_exitcode(ended)
        how = f"with exit code {number}" if number >= 0 else f"by signal {-number}"
        raise UsageError(
            f"{file} ended the process that checked it, {how}", hint="take out of the file what ends the process"
        ) from None
    if isinstance(found, list):
        return found
    error = LoupeError(found["summary"], hint=found["hint"], listed=found["listed"])
    error.exit_code = found["exit_code"]
    raise error


def _report(file: Path, data: Path | None, into: int) -> NoReturn:
    """Write what is found to a descriptor, and end this process."""
    code = 0
    try:
        found: Any = benchmark_problems(file, data)
    except LoupeError as error:
        found = {name: getattr(error, name) for name in ("summary", "hint", "listed", "exit_code")}
    except KeyboardInterrupt:
        found, code = None, 128 + signal.SIGINT
    except SystemExit as end:
        found, code = None, end.code & 0xFF if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:  # noqa: BLE001  the border to a file of the user's, which may raise anything
        traceback.print_exc()
        found, code = None, 70
    if found is not None:
        with os.fdopen(into, "wb") as report:
            report.write(encode_json(found))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(code)


def benchmark_problems(file: Path, data: Path | None) -> list[str]:
    """Everything that is wrong with the benchmark in a file. Raises UsageError if it or its data cannot be read."""
    name = str(file)
    benchmark = get_benchmark(name)
    problems = list(_declared_wrongly(benchmark))
    try:
        survey(benchmark, name, data, {}, pages=False)
    except DatasetError as error:
        return [*problems, error.message]
    said = set()
    for sample in samples_of(benchmark, data, {}, limit=_TRIED):
        for problem in _sample_problems(benchmark, sample):
            # A mistake in `score` is in every sample: it is said with the first one.
            if (what := problem.partition(f"{sample.id!r}: ")[2]) not in said:
                said.add(what)
                problems.append(problem)
    return problems


def _declared_wrongly(benchmark: Benchmark) -> Iterator[str]:
    for field in ("title", "version", "task", "prompt"):
        if not isinstance(getattr(benchmark, field), str):
            yield f"{field}: {getattr(benchmark, field)!r:.60} is not a text"
    names = Counter(measure.name for measure in benchmark.measures)
    if not names:
        yield "measures: there is none"
    for name, times in names.items():
        if times > 1:
            yield f"measures: {name!r} stands there {times} times"
    if benchmark.headline and benchmark.headline not in names:
        yield f"headline: no measure is called {benchmark.headline!r}"


def _sample_problems(benchmark: Benchmark, sample: Sample) -> Iterator[str]:
    if not (sample.images or sample.text):
        yield f"sample {sample.id!r}: neither images nor text"
    for image in sample.images:
        try:
            page_size(image)
        except PageError as error:
            yield f"sample {sample.id!r}: {error.message}"
    answer = Prediction(sample=sample.id, text=benchmark.reference(sample))
    if not answer.text:
        yield f"sample {sample.id!r}: no right answer to score: `reference` gives no text"
        return
    scored = score_sample(benchmark, sample, answer, ())
    if scored.error:
        yield f"sample {sample.id!r}: scoring its right answer: {scored.error}"
    elif not scored.scores:
        yield f"sample {sample.id!r}: its right answer has no score"
