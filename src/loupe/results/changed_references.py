"""Runs whose samples or references were changed after scoring: what is shown is not what the numbers were made with."""

from __future__ import annotations

from pathlib import Path

from loupe.pipeline import survey
from loupe.runs.info import RunInfo
from loupe.types import Benchmark

CHANGED = "Samples or references changed after scoring, so the scores may not match those shown: loupe score RUN"


def is_other_truth(benchmark: Benchmark, info: RunInfo) -> bool:
    """True if the data asks or expects anything else by now; data that is gone is said elsewhere."""
    if not info.truth_digest:
        return False
    try:
        data = Path(info.data) if info.data else None
        return survey(benchmark, info.benchmark, data, info.options, pages=False).truth_digest != info.truth_digest
    except Exception:  # noqa: BLE001  it is said where the samples are read for showing
        return False
