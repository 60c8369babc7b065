"""The fields of an answer as the report stores them: bounded texts, the value of each, and the rule that decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from loupe.engines.adapters.steps import apply_adapters
from loupe.explanation import JudgedField
from loupe.report.markup import without_surrogates
from loupe.types import Benchmark, Prediction, Sample

#: Fields of one answer that are shown, and characters of one value.
FIELD_LIMIT = 300
TEXT_LIMIT = 2_000


def fields_of(
    benchmark: Benchmark | None, sample: Sample, prediction: Prediction | None, adapters: Sequence[str]
) -> tuple[JudgedField, ...]:
    """The fields of one answer as it was scored; none where the benchmark tells none or the truth is gone.

    Raises whatever the benchmark does in judging them.
    """
    if benchmark is None or benchmark.fields is None or prediction is None or sample.truth is None:
        return ()
    text = "" if prediction.failed else apply_adapters(prediction.text, tuple(adapters))
    return tuple(benchmark.fields(sample, msgspec.structs.replace(prediction, text=text)))


def packed_fields(fields: Sequence[JudgedField]) -> list[list[Any]]:
    """Rows of name, what the truth has, what the answer gives, value (1: full marks) and rule."""
    return [
        [_cut(field.name), _cut(field.wanted), _cut(field.given), field.value, field.rule]
        for field in fields[:FIELD_LIMIT]
    ]


def _cut(text: str) -> str:
    return without_surrogates(text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + "…")
