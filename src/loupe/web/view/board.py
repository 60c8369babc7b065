"""Runs of one benchmark on the same data, side by side: tables from the report, and every sample as a row of a list."""

from __future__ import annotations

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from loupe.benchmarks.published import published_rows
from loupe.pipeline import open_samples
from loupe.report import html
from loupe.report.collect import (
    SAMPLE_LIMIT,
    SampledGroup,
    rightly_empty,
    sample_job,
    shown_outcome,
    shown_value,
    values_of,
)
from loupe.report.drawn_formulas import Formulas
from loupe.report.samples import SampleJob
from loupe.report.stored_facts import FactIndex
from loupe.results.changed_references import CHANGED, is_other_truth
from loupe.results.flag_cells import Flags
from loupe.results.groups import make_group
from loupe.results.missing_data import missing_data
from loupe.results.scored_here import NOT_HERE, marked
from loupe.types import Measure, Sample, SampleScores
from loupe.web.view.run_reader import RunIndex, one_line

JsonObject: TypeAlias = dict[str, Any]
Kept = TypeVar("Kept")

_UNCOMPARED = "No ranks here: with so many samples, loupe compare and loupe report have them."
#: Comparisons that are kept.
_KEPT = 8
#: Folders above a run that its label can have.
_DEEPEST = 9
_NUMBER = re.compile(r"[0-9][0-9a-f.:,_-]*")


@dataclass(frozen=True, slots=True)
class Cell:
    """One answer in a list: its class as shown, the measure that tells of it, its value and what it costs.

    `error` is why there is none, as one line.
    """

    outcome: str
    measure: str
    value: float | None
    cost: float
    error: str = ""

    @property
    def alike(self) -> str:
        """The error without its numbers: times, counts, ids of requests."""
        return _NUMBER.sub("#", self.error)


@dataclass(frozen=True, slots=True)
class Row:
    """One sample in a list; `place` is that in the data."""

    ident: str
    place: int
    tags: dict[str, str]
    cells: list[Cell]


class Board:
    """The runs of one group at one moment. Everything is made when it is asked for, and taken over from the board of
    `before` as far as it still holds."""

    def __init__(self, runs: Sequence[RunIndex], *, before: Board | None = None, measure: str = "") -> None:
        self.runs = tuple(runs)
        self._measure = measure
        self.ident = board_ident(self.runs[0])
        self.key = board_key(self.ident)
        self.labels = labels(self.runs)
        parts = [(run.key, run.serial, run.revision) for run in self.runs]
        self.stamp = hashlib.sha256(repr(parts).encode()).hexdigest()[:16]
        # One lock for all moments of the same group, because they share what is kept.
        self._lock: threading.RLock = before._lock if before else threading.RLock()
        # Ranks and comparisons of many runs take seconds, for which lists and samples need not wait.
        self._ranking: threading.RLock = before._ranking if before else threading.RLock()
        self._kept: OrderedDict[object, Any] = before._kept if before else OrderedDict()
        self._values: dict[int, dict[str, tuple[SampleScores, str, float | None]]] = before._values if before else {}
        self._group: tuple[object, SampledGroup] | None = before._group if before else None
        self._context: tuple[object, JsonObject] | None = before._context if before else None
        self._samples: tuple[object, dict[str, Sample], str, bool] | None = before._samples if before else None
        self._rows: list[Row] | None = None

    def kept(self, key: object, make: Callable[[], Kept]) -> Kept:
        """What `make` gives for this key, of which the last few are kept: comparisons take seconds."""
        with self._ranking:
            if key not in self._kept:
                self._kept[key] = make()
            self._kept.move_to_end(key)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            found: Kept = self._kept[key]
            return found

    def group(self) -> SampledGroup:
        """The runs best first, as the report's tables take them; those without a result come last."""
        with self._lock:
            key = tuple((run.serial, run.scored if run.result else -1, self.labels[run.key]) for run in self.runs)
            if self._group is None or self._group[0] != key:
                entrants = [run.entrant(self.labels[run.key]) for run in self.runs]
                uncompared = _UNCOMPARED if self.is_large else ""
                group = make_group(entrants, SampledGroup, uncompared=uncompared, measure=self._measure)
                info = group.entrants[0].run.info
                group.published = published_rows(info.benchmark_id, info.version)
                self._group = key, group
            return self._group[1]

    @property
    def is_large(self) -> bool:
        """Whether there are more samples than are shown one by one."""
        return any(run.is_large for run in self.runs)

    @property
    def part_note(self) -> str:
        """What is left out where there are too many samples."""
        if not self.is_large:
            return ""
        total = max(run.total for run in self.runs)
        return (
            f"The first {SAMPLE_LIMIT:,} of {total:,} samples are shown one by one; the tables are of all of them. "
            "loupe report shows those that cost most, loupe compare how sure the differences are."
        )

    def ordered(self) -> list[RunIndex]:
        """The runs in the order of the group."""
        by_path = {run.folder.path: run for run in self.runs}
        return [by_path[entrant.run.path] for entrant in self.group().entrants]

    def context(self) -> JsonObject:
        """What the report's templates show of the group."""
        with self._ranking:
            group = self.group()
            if self._context is None or self._context[0] is not group:
                self._context = group, html.group_context(group)
            return self._context[1] | {"slug": self.key}

    @property
    def pages_note(self) -> str:
        """That engines have read other page images; answers that came from elsewhere say nothing of theirs."""
        infos = [run.folder.info for run in self.runs]
        read = {info.data_digest: info.engine for info in infos if info.profile.get("kind") != "predictions"}
        return "The page images differ between these runs." if len(read) > 1 else ""

    def samples(self) -> dict[str, Sample]:
        """The samples again, by id in the order of the data; none, with a note, where the data is gone."""
        with self._lock:
            run = max((run.folder for run in self.runs), key=lambda folder: folder.info.total)
            largest = run.info
            asked = [(one.folder.info.limit, one.folder.info.sample) for one in self.runs]
            key = largest.benchmark, largest.data, repr(largest.options), repr(asked), largest.total
            if self._samples is None or self._samples[0] != key:
                found: dict[str, Sample] = {}
                note, other, benchmark = "", False, self.group().benchmark
                try:
                    if benchmark is not None:
                        opened = open_samples(*(one.folder.info for one in self.runs))
                        found = {each.id: each for each in islice(opened, SAMPLE_LIMIT if self.is_large else None)}
                        other = not self.is_large and is_other_truth(benchmark, largest)
                except Exception as error:  # noqa: BLE001  whatever half of a data set raises, numbers are shown
                    note = missing_data(run, error)
                self._samples = key, found, note, other
            return self._samples[1]

    @property
    def data_note(self) -> str:
        """Why there are no samples, once they were asked for."""
        return self._samples[2] if self._samples else ""

    @property
    def changed_note(self) -> str:
        """That the samples, once they were asked for, are not those of the scores."""
        return CHANGED if self._samples and self._samples[3] and self.group().results else ""

    def rows(self) -> list[Row]:
        """Every sample that is asked for or answered, in the order of the data."""
        with self._lock:
            if self._rows is None:
                self._rows = self._made_rows()
            return self._rows

    def _made_rows(self) -> list[Row]:
        group, samples, runs = self.group(), self.samples(), self.ordered()
        idents = dict.fromkeys(samples)
        for run in runs if not (self.is_large and samples) else ():
            idents |= dict.fromkeys(islice(run.answers, SAMPLE_LIMIT if self.is_large else None))
        self._forget_others()
        columns = [self._column(group, run, place, idents) for place, run in enumerate(runs)]
        unasked = Cell("unasked", "", None, 0.0)
        others = [Cell("missing" if run.result else "waiting", "", None, 0.0) for run in runs]
        rows = []
        for place, ident in enumerate(idents):
            sample = samples.get(ident)
            tags = dict(sample.tags) if sample else {}
            tags = tags or next((dict(row.tags) for run in runs if (row := run.counts_of(ident)) is not None), {})
            cells = [
                # A run with `--limit` asked for the first of the samples.
                column.get(ident, other if place < run.total else unasked)
                for run, column, other in zip(runs, columns, others, strict=True)
            ]
            rows.append(Row(ident, place, tags, cells))
        return rows

    def _forget_others(self) -> None:
        for gone in self._values.keys() - {run.serial for run in self.runs}:
            del self._values[gone]

    def _column(self, group: SampledGroup, run: RunIndex, place: int, idents: Iterable[str]) -> dict[str, Cell]:
        """The cells of one run. Values of samples that were not scored anew are those of the last time."""
        before, now = self._values.get(run.serial, {}), {}
        costs = group.costs[place].by_sample if place < len(group.costs) else {}
        cells = {}
        with run.reader() as scores_of:
            for ident in idents:
                if (answer := run.answers.get(ident)) is None:
                    continue
                scores, measure, value = scores_of(ident), "", None
                if scores is not None:
                    known = before.get(ident)
                    if known is None or known[0] is not scores:
                        known = (scores, *shown_value(group, values_of(group, scores)))
                    _, measure, value = known
                    if ident in run.scores:  # Others were read for this, and would be held here.
                        now[ident] = known
                broken = scores is not None and bool(scores.error)
                outcome = shown_outcome(answer.outcome, broken=broken, right=rightly_empty(scores))
                error = answer.error or (one_line(scores.error) if scores is not None and outcome == "scorer" else "")
                cells[ident] = Cell(outcome, measure, value, costs.get(ident, 0.0), error)
        self._values[run.serial] = now
        return cells

    def job(self, ident: str, wanted: Sequence[RunIndex], addresses: Sequence[str]) -> tuple[SampleJob, SampledGroup]:
        """All of one sample, with the answers of these runs, and the group that it was made for.

        Raises RunError where files have been written anew since they were looked at.
        """
        for run in wanted:
            run.prediction_of(ident), run.scores_of(ident)
        names = self.labels
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

    @property
    def chosen(self) -> str:
        """The measure that was chosen to rank the runs; "" if none was, or if the benchmark has no such measure."""
        return self._measure if self._measure in self.measures() else ""

    def measures(self) -> dict[str, Measure]:
        """The measures by name."""
        return {measure.name: measure for measure in self.group().measures}


def labels(runs: Sequence[RunIndex]) -> dict[str, str]:
    """What the runs are called: the engine, as much of the folder as tells those of one engine apart, and the mark of
    scores from elsewhere."""
    found = {run.key: run.folder.info.engine for run in runs}
    for depth in range(1, _DEEPEST):
        twice = [run for run in runs if list(found.values()).count(found[run.key]) > 1]
        for run in twice:
            found[run.key] = f"{run.folder.info.engine} ({'/'.join(run.folder.path.parts[-1 - depth : -1])})"
    return {
        run.key: f"{found[run.key]} ({NOT_HERE})" if run.is_of_others else marked(found[run.key], run.result)
        for run in runs
    }


def board_ident(run: RunIndex) -> tuple[str, str, str]:
    """What runs must share to stand side by side: benchmark, version, and what is asked and expected."""
    info = run.folder.info
    return info.benchmark_id, info.version, info.reference_digest


def board_key(ident: tuple[str, str, str]) -> str:
    """What addresses call the group."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", ident[0]).strip("-.")[:40]
    return f"{readable}-{hashlib.sha256(repr(ident).encode('utf-8', 'surrogatepass')).hexdigest()[:6]}"
