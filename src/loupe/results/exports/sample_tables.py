"""Runs as one table of samples, CSV or Parquet: for spreadsheets, data frames and SQL. docs/exports.md lists columns.

CSV marks what a spreadsheet would run. Parquet keeps every text as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from loupe.benchmarks.registry import benchmark_of_run
from loupe.engines.adapters.steps import apply_adapters
from loupe.errors import RunError, word
from loupe.files.folder import Folder
from loupe.results.references import references_of
from loupe.results.sample_values import sample_values
from loupe.results.scored_here import result_of, where_scored
from loupe.results.tables.spreadsheet_cells import Cell, csv_lines
from loupe.runs.folder import RunFolder
from loupe.types import Prediction, SampleScores

#: Columns that every table has, in this order; those of measures, tags and diagnostics follow.
TEXTS = ("run", "engine", "benchmark", "version", "sample", "group", "class", "error", "text", "reference")
NUMBERS = ("seconds", "input_tokens", "output_tokens")
#: The last column: `here`, or that the scores came from elsewhere.
SCORED = "scored"
#: Rows in memory at once.
_ROWS = 500


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The file, and how many samples are in it."""

    file: str
    samples: int


def scored(folder: RunFolder) -> RunFolder:
    """The run. Raises RunError where it has no scores."""
    if result_of(folder) is None:
        raise RunError(f"{folder.path} has no scores yet", hint=f"score it: loupe score {word(folder.path)}")
    return folder


def sample_rows(folder: RunFolder, *, raw: bool = False) -> Iterator[dict[str, Cell]]:
    """A row for each scored sample, with its answer as it was scored, or with `raw` as the engine gave it."""
    benchmark = benchmark_of_run(folder.info.benchmark)
    references = references_of(folder)
    places = folder.prediction_places()
    constant = _origin(folder)
    with folder.reader() as read:
        for row in folder.scores():
            prediction = read(places[row.sample]) if row.sample in places else Prediction(outcome="missing")
            values = sample_values(
                benchmark.measures_of(score.measure for score in row.scores), row.scores, benchmark.summarize
            )
            yield {
                **constant,
                **_marks(row),
                **_answer(prediction, [] if raw else folder.info.adapters),
                "reference": references.get(row.sample),
                **{f"measure.{name}": value for name, value in values.items()},
                **_tags(row.tags),
                **{f"diagnostic.{name}": value for name, value in row.diagnostics.items()},
            }


def unit_rows(folder: RunFolder) -> Iterator[dict[str, Cell]]:
    """A row for each unit that was measured (page, table, fact), with the columns that it shares with its sample."""
    benchmark, constant = benchmark_of_run(folder.info.benchmark), _origin(folder)
    for row in folder.scores():
        for score in row.scores:
            value = sample_values(benchmark.measures_of([score.measure]), [score]).get(score.measure)
            measured = {"unit": score.unit, "measure": score.measure, "value": value}
            yield {**constant, **_marks(row), **measured, **_tags({**row.tags, **score.tags})}


def _origin(folder: RunFolder) -> dict[str, Cell]:
    info = folder.info
    origin = {"run": str(folder.path), "engine": info.engine}
    scored = where_scored(result_of(folder))
    return {**origin, "benchmark": info.benchmark_id, "version": info.version, SCORED: scored}


def _marks(row: SampleScores) -> dict[str, Cell]:
    return {"sample": row.sample, "group": row.group, "class": row.outcome, "error": row.error}


def _tags(tags: Mapping[str, str]) -> dict[str, Cell]:
    return {f"tag.{name}": text for name, text in tags.items()}


def _answer(prediction: Prediction, adapters: Sequence[str]) -> dict[str, Cell]:
    return {
        "text": None if prediction.failed else apply_adapters(prediction.text, adapters),
        "seconds": prediction.seconds or None,
        "input_tokens": prediction.input_tokens,
        "output_tokens": prediction.output_tokens,
    }


def columns_of(folders: Sequence[RunFolder]) -> list[str]:
    """The columns of a table of these runs: measures as benchmarks declare them, tags and diagnostics by name."""
    measures: dict[str, None] = {}
    tags: set[str] = set()
    diagnostics: set[str] = set()
    for folder in folders:
        result = result_of(scored(folder))
        measures |= dict.fromkeys(result.measures if result else ())
        for row in folder.scores():
            tags |= row.tags.keys()
            diagnostics |= row.diagnostics.keys()
    further = [f"measure.{name}" for name in measures]
    further += [f"tag.{name}" for name in sorted(tags)] + [f"diagnostic.{name}" for name in sorted(diagnostics)]
    return [*TEXTS, *NUMBERS, *further, SCORED]


def write_csv(folders: Sequence[RunFolder], file: Path, *, raw: bool = False) -> Written:
    """Write all samples of the runs as CSV. Raises RunError for a run without scores."""
    columns = columns_of(folders)
    count = 0
    with Folder(file.parent).draft(file.name) as draft:
        draft.file.write(csv_lines([columns]))
        for folder in folders:
            for rows in _parts(sample_rows(folder, raw=raw)):
                count += len(rows)
                draft.file.write(csv_lines([row.get(name) for name in columns] for row in rows))
        draft.replace()
    return Written(file=str(file), samples=count)


def _parts(rows: Iterator[dict[str, Cell]]) -> Iterator[list[dict[str, Cell]]]:
    while part := list(islice(rows, _ROWS)):
        yield part


def write_parquet(folders: Sequence[RunFolder], file: Path, *, raw: bool = False) -> Written:
    """Write all samples of the runs as Parquet. Raises MissingToolError without pyarrow."""
    from loupe.data.extras import need

    need("pyarrow", extra="data", purpose="Parquet")
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {**dict.fromkeys((*TEXTS, SCORED), pa.string()), "input_tokens": pa.int64(), "output_tokens": pa.int64()}
    schema = pa.schema(
        [
            (name, kinds.get(name, pa.string() if name.startswith("tag.") else pa.float64()))
            for name in columns_of(folders)
        ]
    )
    count = 0
    with Folder(file.parent).draft(file.name) as draft:
        with pq.ParquetWriter(draft.file, schema, compression="zstd") as writer:
            for folder in folders:
                for rows in _parts(sample_rows(folder, raw=raw)):
                    count += len(rows)
                    writer.write_table(pa.Table.from_pylist([_storable(row) for row in rows], schema=schema))
        draft.replace()
    return Written(file=str(file), samples=count)


def _storable(row: Mapping[str, Cell]) -> dict[str, Cell]:
    """Without halves of characters, which UTF-8 does not have, and numbers that 64 bits do not hold."""
    return {name: _storable_cell(value) for name, value in row.items()}


def _storable_cell(value: Cell) -> Cell:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return None if isinstance(value, int) and value.bit_length() > 63 else value
