"""Answers and references of single samples, as the text that a person or another program may look at."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from loupe.benchmarks.registry import benchmark_of_run
from loupe.engines.adapters.steps import apply_adapters
from loupe.errors import LoupeError
from loupe.pipeline import open_samples
from loupe.runs.folder import RunFolder
from loupe.typed import encode_json
from loupe.types import Benchmark, Sample


def shown_reference(benchmark: Benchmark, sample: Sample) -> str:
    """The text that an answer is compared with; where the truth is no text, its JSON says more than nothing."""
    if sample.truth is None:
        return ""
    text = benchmark.reference(sample)
    if text or isinstance(sample.truth, str):
        return text
    return msgspec.json.format(encode_json(sample.truth, enc_hook=str), indent=2).decode()


def references_of(folder: RunFolder, wanted: Collection[str] | None = None) -> dict[str, str]:
    """The references of a run's samples by id, or of those `wanted`; none where its data is not on this machine."""
    found: dict[str, str] = {}
    try:
        benchmark = benchmark_of_run(folder.info.benchmark)
        for sample in open_samples(folder.info):
            if wanted is None or sample.id in wanted:
                found[sample.id] = shown_reference(benchmark, sample)
            if wanted is not None and len(found) == len(wanted):
                break
    except (LoupeError, OSError):
        return found
    return found


def answers_of(folder: RunFolder, wanted: Collection[str]) -> dict[str, str]:
    """The answers to some samples, as they were scored; "" where there is none."""
    places = folder.prediction_places()
    there = {sample: places[sample] for sample in wanted if sample in places}
    texts = folder.read_predictions(there.values())
    return {
        sample: "" if one.failed else apply_adapters(one.text, folder.info.adapters)
        for sample, one in zip(there, texts, strict=True)
    }
