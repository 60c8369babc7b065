"""The page of one sample, as the report has it, asked for piece by piece; drawing and rendering happen in processes."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, TypeAlias
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool

from loupe.errors import EngineError
from loupe.report import leaderboard
from loupe.report.drawing_processes import Drawers, drawers
from loupe.report.markup import without_surrogates
from loupe.report.page import shown_measures
from loupe.report.samples import PACKER, PICTURE_LIMIT, SAMPLE_SECONDS, PackedSample, SampleJob, pack, unpacked
from loupe.web.view.board import Board, Row
from loupe.web.view.grid import largest_values
from loupe.web.view.run_index import RunIndex

JsonObject: TypeAlias = dict[str, Any]

_WORKERS = 2


class Packers:
    """Worker processes that decode and render samples; none before the first one is asked for."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._pool: Drawers | None = None

    def warm(self) -> Drawers:
        """Start a worker before somebody waits for it."""
        if self._pool is None:
            self._pool = self._stack.enter_context(drawers(PACKER, _WORKERS))
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
    """What the page of a sample is made from."""
    addresses = [f"{address(board, 'picture', ident)}&n={place}" for place in range(PICTURE_LIMIT)]
    return board.job(ident, runs, addresses)[0]


def drawings(board: Board, ident: str, runs: Sequence[RunIndex]) -> JsonObject:
    """The drawings of the formulas of one sample by their keys, and what kept others from being drawn."""
    _, group = board.job(ident, runs, ())
    blocks = dict(group.formulas.blocks())
    return {"blocks": blocks, "summary": group.formulas.summary()}


def sample_index(board: Board, rows: Sequence[Row], at: int, runs: Sequence[int], links: JsonObject) -> JsonObject:
    """What the script of a sample's page has to know, in the form of the report's index."""
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
    """Where something of a sample is to be had."""
    return f"/b/{board.key}/{page}?id={quote(ident.encode('utf-8', 'surrogatepass'), safe='')}"
