"""Runs of one benchmark on the same data, side by side: tables from the report, and every sample as a row of a list."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from loupe.benchmarks.published import published_rows
from loupe.errors import LoupeError
from loupe.pipeline import open_samples
from loupe.report import page
from loupe.report.collect import Group, make_group, sample_job, values_of
from loupe.report.facts import FactIndex
from loupe.report.flags import Flags
from loupe.report.formulas import Formulas
from loupe.report.samples import SampleJob
from loupe.report.summaries import rightly_empty, shown_outcome, shown_value
from loupe.types import Measure, Sample, SampleScores
from loupe.view.run_index import RunIndex

JsonObject: TypeAlias = dict[str, Any]
Kept = TypeVar("Kept")

#: Comparisons that are kept.
_KEPT = 8


@dataclass(frozen=True, slots=True)
class Cell:
    """One answer in a list: its class as shown, the measure that tells of it, its value and what it costs."""

    outcome: str
    measure: str
    value: float | None
    cost: float


@dataclass(frozen=True, slots=True)
class Row:
    """One sample in a list; `place` is that in the data."""

    ident: str
    place: int
    tags: dict[str, str]
    cells: list[Cell]


class Board:
    """The runs of one group. Everything is made when it is asked for and kept until a file changes."""

    def __init__(self, runs: Sequence[RunIndex]) -> None:
        self.runs = list(runs)
        info = self.runs[0].folder.info
        self.ident = (info.benchmark_id, info.version, info.data_digest)
        self.key = board_key(self.ident)
        self._lock = threading.RLock()
        self._group: tuple[object, Group] | None = None
        self._context: tuple[object, JsonObject] | None = None
        self._rows: tuple[object, list[Row]] | None = None
        self._samples: dict[str, Sample] | None = None
        self._asked = 0
        self._values: dict[str, dict[str, tuple[SampleScores, str, float | None]]] = {}
        self.data_note = ""
        self._kept: OrderedDict[object, Any] = OrderedDict()

    def kept(self, key: object, make: Callable[[], Kept]) -> Kept:
        """What `make` gives for this key, of which the last few are kept: comparisons take seconds."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            found: Kept = self._kept[key]
            return found

    @property
    def stamp(self) -> str:
        """Another text whenever any run has changed."""
        parts = [(run.key, run.revision, run.state) for run in self.runs]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    def group(self) -> Group:
        """The runs best first, as the report's tables take them; those without a result come last."""
        with self._lock:
            key = tuple((run.key, run.scored if run.result else -1) for run in self.runs)
            if self._group is None or self._group[0] != key:
                names = labels(self.runs)
                group = make_group([run.entrant(names[run.key]) for run in self.runs])
                info = group.entrants[0].run.info
                group.published = published_rows(info.benchmark_id, info.version)
                self._group = key, group
            return self._group[1]

    def ordered(self) -> list[RunIndex]:
        """The runs in the order of the group."""
        by_path = {run.folder.path: run for run in self.runs}
        return [by_path[entrant.run.path] for entrant in self.group().entrants]

    def context(self) -> JsonObject:
        """What the report's templates show of the group."""
        with self._lock:
            group = self.group()
            if self._context is None or self._context[0] is not group:
                self._context = group, page.group_context(group)
            return self._context[1] | {"slug": self.key}

    def samples(self) -> dict[str, Sample]:
        """The samples again, by id in the order of the data; none, with a note, where the data is gone."""
        with self._lock:
            largest = max((run.folder.info for run in self.runs), key=lambda info: info.total)
            if self._samples is None or self._asked != largest.total:
                self._samples, self.data_note = {}, ""
                try:
                    if self.group().benchmark is not None:
                        self._samples = {sample.id: sample for sample in open_samples(largest)}
                except (LoupeError, OSError) as error:
                    self.data_note = f"The data was not found, so images and references are missing: {error}"
                self._asked = largest.total
            return self._samples

    def rows(self) -> list[Row]:
        """Every sample that is asked for or answered, in the order of the data."""
        with self._lock:
            key = tuple((run.key, run.revision) for run in self.runs)
            if self._rows is None or self._rows[0] != key:
                self._rows = key, self._made_rows()
            return self._rows[1]

    def _made_rows(self) -> list[Row]:
        group, samples, runs = self.group(), self.samples(), self.ordered()
        idents = dict.fromkeys(samples)
        for run in runs:
            idents |= dict.fromkeys(run.answers)
        columns = [self._column(group, run, place) for place, run in enumerate(runs)]
        waiting = Cell("waiting", "", None, 0.0)
        missing = Cell("missing", "", None, 0.0)
        others = [missing if run.result else waiting for run in runs]
        rows = []
        for place, ident in enumerate(idents):
            sample = samples.get(ident)
            tags = dict(sample.tags) if sample else {}
            tags = tags or next((dict(run.scores[ident].tags) for run in runs if ident in run.scores), {})
            cells = [column.get(ident, other) for column, other in zip(columns, others, strict=True)]
            rows.append(Row(ident, place, tags, cells))
        return rows

    def _column(self, group: Group, run: RunIndex, place: int) -> dict[str, Cell]:
        """The cells of one run. Values of samples that were not scored anew are those of the last time."""
        before, now = self._values.get(run.key, {}), {}
        costs = group.costs[place].by_sample if place < len(group.costs) else {}
        cells = {}
        for ident, answer in run.answers.items():
            scores, measure, value = run.scores.get(ident), "", None
            if scores is not None:
                known = before.get(ident)
                if known is None or known[0] is not scores:
                    known = (scores, *shown_value(group, values_of(group, scores)))
                now[ident], (_, measure, value) = known, known
            broken = scores is not None and bool(scores.error)
            outcome = shown_outcome(answer.outcome, broken=broken, right=rightly_empty(scores))
            cells[ident] = Cell(outcome, measure, value, costs.get(ident, 0.0))
        self._values[run.key] = now
        return cells

    def job(self, ident: str, wanted: Sequence[RunIndex], addresses: Sequence[str]) -> tuple[SampleJob, Group]:
        """All of one sample, with the answers of these runs, and the group that it was made for."""
        names = labels(self.runs)
        group = self.group()
        costs = {entrant.run.path: cost for entrant, cost in zip(group.entrants, group.costs, strict=True)}
        group = replace(
            group,
            entrants=[run.entrant(names[run.key]) for run in wanted],
            costs=[costs[run.folder.path] for run in wanted],
            summary=[],
            flags=Flags(),
            facts=FactIndex(),
            formulas=Formulas(),
        )
        sample = self.samples().get(ident) or Sample(id=ident)
        job = sample_job(group, sample, folder=Path(), embed=False)
        return replace(job, addresses=tuple(addresses[: len(sample.images)])), group

    def measures(self) -> dict[str, Measure]:
        """The measures by name."""
        return {measure.name: measure for measure in self.group().measures}


def labels(runs: Sequence[RunIndex]) -> dict[str, str]:
    """What the runs are called: the engine, and the folder where an engine has several."""
    engines = [run.folder.info.engine for run in runs]
    return {
        run.key: run.folder.info.engine
        if engines.count(run.folder.info.engine) == 1
        else f"{run.folder.info.engine} ({run.folder.path.parent.name})"
        for run in runs
    }


def board_key(ident: tuple[str, str, str]) -> str:
    """What addresses call the group."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", ident[0]).strip("-.")[:40]
    return f"{readable}-{hashlib.sha256(repr(ident).encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"
