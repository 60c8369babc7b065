"""The page of one sample, asked for piece by piece, and what another answer would score.

Drawing, rendering and scoring happen in processes with limits; nothing is saved.
"""

from __future__ import annotations

import asyncio
import base64
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeAlias
from urllib.parse import quote

import msgspec
from starlette.concurrency import run_in_threadpool

from loupe.errors import EngineError, LoupeError
from loupe.report import leaderboard
from loupe.report.collect import values_of
from loupe.report.html import shown_measures
from loupe.report.markup import without_surrogates
from loupe.report.samples import PACKER, PICTURE_LIMIT, SAMPLE_SECONDS, PackedSample, SampleJob, pack, unpacked
from loupe.results.sections import format_value
from loupe.scoring.pool import ScorePool
from loupe.stats.comparison import rows_of
from loupe.stats.estimates import estimate
from loupe.types import Measure, Prediction, Sample, SampleScores
from loupe.web.view.board import Board, Row
from loupe.web.view.grid import largest_values
from loupe.web.view.run_reader import RunIndex
from loupe.workers.pool import ThreadedPool, threaded_pool

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
        """Score this text as the engine's answer: the scores of the sample and of the run.

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


_WORKERS = 2


class Packers:
    """Worker processes that decode and render samples; none before the first one is asked for."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._pool: ThreadedPool | None = None

    def warm(self) -> ThreadedPool:
        """Start a worker before somebody waits for it."""
        if self._pool is None:
            self._pool = self._stack.enter_context(threaded_pool(PACKER, _WORKERS))
            self._pool.submit(SampleJob(ident="", task=""), seconds=SAMPLE_SECONDS)
        return self._pool

    async def payload(self, job: SampleJob) -> bytes:
        """All that the page shows of a sample, as gzipped JSON."""
        packed = await self._pack(job)
        return base64.b64decode(packed.payload)

    async def _pack(self, job: SampleJob) -> PackedSample:
        try:
            return unpacked(await asyncio.wrap_future(self.warm().submit(job, seconds=SAMPLE_SECONDS)))
        except EngineError:
            return await run_in_threadpool(pack, replace(job, plain=True))

    def close(self) -> None:
        """End the processes."""
        self._stack.close()


def payload_job(board: Board, ident: str, runs: Sequence[RunIndex]) -> SampleJob:
    """The work that makes the page of a sample."""
    addresses = [f"{address(board, 'picture', ident)}&n={place}" for place in range(PICTURE_LIMIT)]
    return board.job(ident, runs, addresses)[0]


def drawings(board: Board, ident: str, runs: Sequence[RunIndex]) -> JsonObject:
    """The drawings of the formulas of one sample by their keys, and what kept others from being drawn."""
    _, group = board.job(ident, runs, ())
    blocks = dict(group.formulas.blocks())
    return {"blocks": blocks, "summary": group.formulas.summary()}


def sample_index(board: Board, rows: Sequence[Row], at: int, runs: Sequence[int], links: JsonObject) -> JsonObject:
    """The facts that the script of a sample's page has to know, in the form of the report's index."""
    group, row = board.group(), rows[at]
    shown = runs or range(len(group.entrants))
    return {
        "steps": leaderboard.STEPS,
        "addresses": links,
        "groups": [
            {
                "key": group.key,
                "title": group.title,
                "note": group.note or board.data_note,
                "headline": group.headline,
                "largest": largest_values(board.rows()),
                "engines": [group.entrants[place].label for place in shown],
                "measures": shown_measures(group),
                "samples": [
                    {
                        "id": without_surrogates(row.ident),
                        "tags": {without_surrogates(k): without_surrogates(v) for k, v in row.tags.items()},
                        "engines": [
                            [cell.outcome, cell.measure, cell.value, round(cell.cost, 7)]
                            for cell in (row.cells[place] for place in shown)
                        ],
                    }
                ],
            }
        ],
    }


def address(board: Board, page: str, ident: str) -> str:
    """The address of something of a sample."""
    return f"/b/{board.key}/{page}?id={quote(ident.encode('utf-8', 'surrogatepass'), safe='')}"
