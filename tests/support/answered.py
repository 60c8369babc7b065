"""A run as an engine would leave it, without the engine: its folder, with these answers."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from loupe.benchmarks.registry import get_benchmark
from loupe.pipeline import Plan, make_info, survey
from loupe.runs.folder import claim
from loupe.types import Prediction


def answered_run(plan: Plan, answers: Iterable[Prediction]) -> Path:
    """The folder of a run of `plan` in which these answers came back; not scored."""
    benchmark = get_benchmark(plan.benchmark)
    found = survey(benchmark, plan.benchmark, plan.data, plan.options)
    with claim(plan.path, make_info(plan, benchmark, found)) as run:
        run.write_info(run.info)
        with run.predictions_log() as log:
            log.append(map(msgspec.json.encode, answers))
    return plan.path
