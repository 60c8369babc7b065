"""Whether a benchmark of the user's is right: what it declares, its samples, and how it scores the right answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from loupe.benchmarks import get_benchmark
from loupe.data.pages import page_size
from loupe.errors import DatasetError, PageError
from loupe.pipeline.plan import samples_of, survey
from loupe.scoring.scorer import score_sample
from loupe.types import Benchmark, Prediction, Sample

#: Samples whose images are opened and whose right answers are scored.
_TRIED = 10


def benchmark_problems(file: Path, data: Path | None) -> list[str]:
    """Everything that is wrong with the benchmark in a file. Raises UsageError where it or its data cannot be read."""
    name = str(file)
    benchmark = get_benchmark(name)
    problems = list(_declared_wrongly(benchmark))
    try:
        survey(benchmark, name, data, {}, pages=False)
    except DatasetError as error:
        return [*problems, error.message]
    for sample in samples_of(benchmark, data, {}, limit=_TRIED):
        problems += _sample_problems(benchmark, sample)
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
