"""`loupe.Run`: the numbers of a run, its samples, the run as a table, and a folder for runs that ask for none."""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from loupe.api import display
from loupe.benchmarks.registry import benchmark_of_run
from loupe.data.extras import install_command
from loupe.errors import MissingToolError, RunError, UsageError, did_you_mean, word
from loupe.files.scratch import scratch_folder
from loupe.pipeline.plan import open_samples
from loupe.results.exports.sample_tables import columns_of, sample_rows, unit_rows
from loupe.results.headline import format_headline, headline_of
from loupe.results.sample_values import sample_values
from loupe.results.scored_here import result_of
from loupe.results.sections import carried_by_few
from loupe.runs.folder import RunFolder
from loupe.runs.info import RunInfo
from loupe.runs.opening import open_run
from loupe.runs.places import Place
from loupe.types import Benchmark, Estimate, Failure, Prediction, Result, Sample, SampleScores, Score

if TYPE_CHECKING:
    import pandas
    import polars
    from PIL.Image import Image


class TemporaryFolder:
    """A new folder below that for temporary files."""

    def __init__(self) -> None:
        if not _parent().is_dir():  # something cleans up there
            _parent.cache_clear()
        self.path = Path(tempfile.mkdtemp(dir=_parent()))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


@functools.cache
def _parent() -> Path:
    """Return the one folder of this process: its lock takes a descriptor, of which a process has few."""
    held = ExitStack()
    atexit.register(held.close)
    return held.enter_context(scratch_folder("loupe-run-"))


_KINDS = ("sample", "unit")


def rows_of(folder: RunFolder, by: str) -> list[dict[str, Any]]:
    """The rows of a run, with the columns of an exported table. Raises UsageError for rows of another kind."""
    if by not in _KINDS:
        raise UsageError(f"by={by!r}: no such rows", hint=f"by={' or '.join(map(repr, _KINDS))}")
    if by == "sample":
        names, found = columns_of([folder]), list(sample_rows(folder))
    else:
        found = list(unit_rows(folder))
        names = list(dict.fromkeys(name for row in found for name in row))
    # Every row has all columns, in one order: a table has no other way to be whole.
    return [{name: row.get(name) for name in names} for row in found]


def to_pandas(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A DataFrame of pandas."""
    return _library("pandas").DataFrame(list(rows))


def to_polars(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A DataFrame of polars."""
    return _library("polars").DataFrame(list(rows), infer_schema_length=None)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        command = install_command("").rsplit(" ", 1)[0]
        command = command.removesuffix(" -e")
        raise MissingToolError(f"{name} is not installed", hint=f"{command} {name}; run.rows() needs nothing") from None


class ScoredSample:
    """One sample of a run: what was read, what should have been, and what that is worth. Files are read when asked."""

    def __init__(self, run: Run, ident: str) -> None:
        self._run = run
        self.id = ident

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value:.3g}" for name, value in self.scores.items())
        return f"<{self.id}: {self.outcome}{', ' if values else ''}{values}>"

    @cached_property
    def prediction(self) -> Prediction:
        """The answer as it is stored, with tokens and seconds."""
        return self._run._prediction(self.id)

    @cached_property
    def row(self) -> SampleScores:
        """The scores as they are stored, unit by unit, with what the benchmark says about them."""
        return self._run._row(self.id)

    @cached_property
    def sample(self) -> Sample:
        """The sample as its benchmark has it. Raises DatasetError if the data is gone."""
        return self._run._sample(self.id)

    @property
    def outcome(self) -> str:
        """The end of it: `ok`, `empty`, `truncated`, `repeated`, or a failure (`loupe.types.FAILED`)."""
        return self.row.outcome

    @property
    def error(self) -> str:
        """The reason that there is no answer, or that it was not scored; "" for most."""
        return self.row.error

    @property
    def tags(self) -> Mapping[str, str]:
        """The tags that results are sliced by."""
        return self.row.tags

    @property
    def text(self) -> str:
        """The answer of the engine, to the letter."""
        return self.prediction.text

    @property
    def reference(self) -> str:
        """The text that should have been read; "" if that is no text (`sample.truth` has it)."""
        return self._run.benchmark_record.reference(self.sample)

    @property
    def units(self) -> Sequence[Score]:
        """Every measurement of this sample: of the page, of its tables, of its facts."""
        return self.row.scores

    @cached_property
    def scores(self) -> dict[str, float]:
        """The value of each measure on this sample alone; what cannot be computed of one sample is left out."""
        benchmark = self._run.benchmark_record
        measures = benchmark.measures_of(score.measure for score in self.row.scores)
        return sample_values(measures, self.row.scores, benchmark.summarize)

    @property
    def image(self) -> Image:
        """The picture of the page, upright and in RGB."""
        from loupe.data.pages import load_page

        if not self.sample.images:
            raise UsageError(f"{self.id} has no picture", hint="its input is sample.text")
        return load_page(self.sample.images[0])

    def _repr_html_(self) -> str:
        return display.sample_html(self)


class Samples(Sequence[ScoredSample]):
    """The samples of a run in the order of the benchmark: by number, by id, or one after another."""

    def __init__(self, run: Run, idents: Sequence[str]) -> None:
        self._run = run
        self._idents = idents

    def __len__(self) -> int:
        return len(self._idents)

    @overload
    def __getitem__(self, place: int | str) -> ScoredSample: ...
    @overload
    def __getitem__(self, place: slice) -> Samples: ...
    def __getitem__(self, place: int | str | slice) -> ScoredSample | Samples:
        if isinstance(place, slice):
            return Samples(self._run, self._idents[place])
        if isinstance(place, str):
            if place not in self._run._scored:
                raise UsageError(f"{self._run.path} has no sample {place!r}{did_you_mean(place, self._idents)}")
            return ScoredSample(self._run, place)
        return ScoredSample(self._run, self._idents[place])

    def __iter__(self) -> Iterator[ScoredSample]:
        return (ScoredSample(self._run, ident) for ident in self._idents)

    def __repr__(self) -> str:
        return f"<{len(self):,} samples of {self._run.path}>"

    def _repr_html_(self) -> str:
        return display.samples_html(self)


class Run:
    """A finished run: `run["cer"].value`, `.low` and `.high` (95 % interval), `.n`; its failures, samples and tables.

    >>> import loupe
    >>> run = loupe.run("sample_pages", engine="pdf_text", limit=12, runs=None)
    >>> run["text_similarity"].n, run.engine, run.benchmark
    (12, 'pdf_text', 'sample_pages')
    >>> [sample.id for sample in run.samples if sample.outcome == "ok"]
    ['handbook-1', 'handbook-2']
    """

    def __init__(self, path: str | os.PathLike[str], kept: TemporaryFolder | None = None) -> None:
        self._folder = open_run(Path(path))
        self._kept = kept  # a temporary folder goes with the last object that holds it
        found = result_of(self._folder)
        if found is None:
            raise RunError(
                f"{self._folder.path} has no scores yet", hint=f"score it: loupe score {word(self._folder.path)}"
            )
        self.result: Result = found

    @property
    def path(self) -> Path:
        """The folder of the run."""
        return self._folder.path

    @property
    def info(self) -> RunInfo:
        """All that defines the run: the content of its `run.json`."""
        return self._folder.info

    @property
    def benchmark(self) -> str:
        """The id of the benchmark."""
        return self.result.benchmark

    @property
    def engine(self) -> str:
        """The name of the engine, or that of the run."""
        return self.result.engine

    @property
    def headline(self) -> str:
        """The measure that ranks engines: the headline of the benchmark, or the first one that was computed.

        `.headline_note` says why it is another one, and `.result.headline` is the benchmark's own.
        """
        return headline_of([self.result]).measure

    @property
    def headline_note(self) -> str:
        """The reason that another measure than the headline ranks this run, in one sentence; "" if none does."""
        return headline_of([self.result]).note

    @property
    def signature(self) -> str:
        """Benchmark, samples, engine, settings and versions behind the numbers, in one line."""
        return self.result.signature

    @property
    def measures(self) -> Mapping[str, Estimate]:
        """Every measure with value, interval and n."""
        return self.result.measures

    def __getitem__(self, measure: str) -> Estimate:
        if measure not in self.measures:
            known = ", ".join(self.measures)
            raise UsageError(
                f"{self.path} has no measure {measure!r}{did_you_mean(str(measure), self.measures)}",
                hint=f"measures: {known}",
            )
        return self.measures[measure]

    @property
    def failures(self) -> Sequence[Failure]:
        """Samples without an answer, and those whose scoring failed; they count as empty answers."""
        return self.result.failures

    @property
    def scored_here(self) -> bool:
        """False if the scores came from elsewhere, with a pack say: `loupe score` makes them anew."""
        return self.result.scored_here

    @property
    def warnings(self) -> Sequence[str]:
        """Warnings that belong beside the numbers."""
        return [*self.result.warnings, *filter(None, [carried_by_few(self.result)])]

    @cached_property
    def samples(self) -> Samples:
        """The samples, whose files are read only when they are asked for."""
        return Samples(self, list(self._scored))

    def metrics(self, prefix: str = "") -> dict[str, float]:
        """The numbers as a flat dict for any tracker: `cer`, `cer_low`, `cer_high`, `cer_n`, …, `samples`, `failed`.

        What was not computed is left out. The names are the benchmark's, and stay as they are.
        """
        found: dict[str, float] = {}
        for name, one in self.measures.items():
            numbers = {name: one.value, f"{name}_low": one.low, f"{name}_high": one.high}
            found |= {key: float(value) for key, value in numbers.items() if value is not None}
            found[f"{name}_n"] = float(one.n)
        found |= {"samples": float(self.result.total), "failed": float(len(self.failures))}
        return {prefix + name: value for name, value in found.items()}

    def rows(self, by: Literal["sample", "unit"] = "sample") -> list[dict[str, Any]]:
        """One flat dict for each sample, or for each unit that was measured (page, table, fact).

        The columns are those of `loupe export --to csv` (docs/exports.md); what is not known is None.
        """
        return rows_of(self._folder, by)

    def to_pandas(self, by: Literal["sample", "unit"] = "sample") -> pandas.DataFrame:
        """The rows as a DataFrame of pandas. Raises MissingToolError if it is not installed."""
        return to_pandas(self.rows(by))

    def to_polars(self, by: Literal["sample", "unit"] = "sample") -> polars.DataFrame:
        """The rows as a DataFrame of polars. Raises MissingToolError if it is not installed."""
        return to_polars(self.rows(by))

    @cached_property
    def benchmark_record(self) -> Benchmark:
        """The benchmark itself. Raises UntrustedError for a Python file that you never ran here."""
        return benchmark_of_run(self.info.benchmark)

    @cached_property
    def _scored(self) -> Mapping[str, Place]:
        return self._folder.score_places()

    @cached_property
    def _answered(self) -> Mapping[str, Place]:
        return self._folder.prediction_places()

    @cached_property
    def _opened(self) -> dict[str, Sample]:
        return {sample.id: sample for sample in open_samples(self.info)}

    def _row(self, ident: str) -> SampleScores:
        return self._folder.read_scores(self._scored[ident])

    def _prediction(self, ident: str) -> Prediction:
        return self._folder.read_prediction(self._answered[ident])

    def _sample(self, ident: str) -> Sample:
        return self._opened[ident]

    def __repr__(self) -> str:
        return f"<Run {self.engine} on {self.benchmark}: {format_headline(self.result)}, {self.result.total:,} samples>"

    def _repr_html_(self) -> str:
        return display.run_html(self)


def load_run(path: str | os.PathLike[str]) -> Run:
    """Return the run in a folder, as `loupe.run` or the command line left it.

    Raises RunError if there is none, or if it is not scored.

    >>> import loupe, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = loupe.score("sample_pages", {"prose": "A page of prose."}, runs=folder)
    ...     load_run(kept.path).engine
    'answers'
    """
    return Run(path_of(path))


def path_of(run: Run | str | os.PathLike[str]) -> Path:
    """Return the folder of a run. Raises UsageError for anything else."""
    if isinstance(run, str | os.PathLike):
        return Path(run)
    if not isinstance(run, Run):
        raise UsageError(f"{type(run).__name__} is not a run", hint="pass a Run, or its folder; several one by one")
    return run.path
