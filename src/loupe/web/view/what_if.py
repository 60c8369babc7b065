"""What another answer would score: by the official scorer, in a process with its limits, and nothing is saved."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, TypeAlias

import msgspec
from starlette.concurrency import run_in_threadpool

from loupe.errors import LoupeError
from loupe.report.collect import values_of
from loupe.results.sections import format_value
from loupe.scoring.pool import ScorePool
from loupe.stats.comparison import rows_of
from loupe.stats.estimates import estimate
from loupe.types import Measure, Prediction, Sample, SampleScores
from loupe.web.view.board import Board
from loupe.web.view.run_index import RunIndex

JsonObject: TypeAlias = dict[str, Any]

#: Scorers of so many benchmarks stay started.
_KEPT = 2
_SECONDS = 30.0
#: Below this a change is none: numbers are shown with fewer digits.
_SAME = 5e-7


class SupersededError(Exception):
    """Somebody has gone on typing: only the last text of a sample in one tab is scored."""


class WhatIf:
    """Scores edited answers, one at a time."""

    def __init__(self) -> None:
        self._pools: OrderedDict[tuple[str, tuple[str, ...]], tuple[ScorePool, ExitStack]] = OrderedDict()
        self._one = asyncio.Semaphore(1)
        self._latest: dict[tuple[str, str, str], object] = {}

    async def score(self, board: Board, run: RunIndex, sample: Sample, text: str, *, tab: str = "") -> JsonObject:
        """What the sample and the run would score with this text as the engine's answer.

        Raises SupersededError where another text of the sample came from the same tab while this one was waiting.
        """
        place, mine = (run.key, sample.id, tab), object()
        self._latest[place] = mine
        async with self._one:
            if self._latest.get(place) is not mine:
                raise SupersededError
            del self._latest[place]
            pool = await run_in_threadpool(self._pool, run)
            scores = await pool.score(sample, Prediction(sample=sample.id, text=text))
        if scores.error:
            raise LoupeError(f"scoring failed: {scores.error}")
        return await run_in_threadpool(compared, board, run, scores)

    def _pool(self, run: RunIndex) -> ScorePool:
        key = (run.folder.info.benchmark, tuple(run.folder.info.adapters))
        if key not in self._pools:
            stack = ExitStack()
            self._pools[key] = stack.enter_context(ScorePool(*key, jobs=1, timeout=_SECONDS)), stack
        self._pools.move_to_end(key)
        while len(self._pools) > _KEPT:
            self._pools.popitem(last=False)[1][1].close()
        return self._pools[key][0]

    def close(self) -> None:
        """End the scoring processes, whatever they are doing."""
        for _, stack in self._pools.values():
            stack.__exit__(asyncio.CancelledError, asyncio.CancelledError(), None)
        self._pools.clear()


def compared(board: Board, run: RunIndex, scores: SampleScores) -> JsonObject:
    """Numbers before and after, of the sample and of the whole run."""
    group = board.group()
    before = run.counts_of(scores.sample)
    old = values_of(group, before) if before is not None else {}
    sample = _lines(group.measures, old, values_of(group, scores))
    if not run.holds_scores:
        return {"sample": sample, "run": []}
    analysis = group.analysis.without_draws()

    def whole(rows: Mapping[str, SampleScores]) -> dict[str, float]:
        found = estimate(analysis, rows_of(rows.values()))
        return {name: one.value for name, one in found.items() if one.value is not None}

    changed = msgspec.structs.replace(scores, group=before.group if before else scores.group)
    after = {**run.scores, scores.sample: changed}
    total = _lines(group.measures, whole(run.scores), whole(after), samples=len(after))
    return {"sample": sample, "run": [line for line in total if line["changed"] or line["name"] == group.headline]}


def _lines(
    measures: tuple[Measure, ...], before: dict[str, float], after: dict[str, float], *, samples: int = 0
) -> list[JsonObject]:
    lines = []
    for measure in measures:
        old, new = before.get(measure.name), after.get(measure.name)
        if old is None and new is None:
            continue
        change = None if old is None or new is None else new - old
        lines.append(
            {
                "name": measure.name,
                "title": f"{measure.title or measure.name} {'↑' if measure.higher_is_better else '↓'}",
                "before": format_value(old, measure.unit, of=samples),
                "after": format_value(new, measure.unit, of=samples),
                "change": _change(change, measure),
                "changed": change is None or abs(change) > _SAME,
                "better": change is not None and measure.merit(change) > _SAME,
            }
        )
    return lines


def _change(change: float | None, measure: Measure) -> str:
    if change is None:
        return ""
    if abs(change) <= _SAME:
        return "no change"
    if measure.unit != "fraction":
        return f"{change:+.4g}"
    # As many decimals as the values beside it have.
    return f"{100 * change:+.2f} points" if abs(change) >= 0.00005 else f"{'+-'[change < 0]} less than 0.01 points"
