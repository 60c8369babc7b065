"""The layout `evaluation`: answers, results and a comparison as files for other people's scripts.

    predictions/<model>/<benchmark>/<sample_id>.txt (or .md)
    results/<model>_<benchmark>_eval.json
    eval_comparison_<timestamp>.json

Numbers are fractions (or plain numbers, see `units`), as in `result.json`. docs/suites.md describes every key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from loupe.benchmarks.registry import benchmark_of_run, name_of_run
from loupe.engines.adapters.steps import apply_adapters
from loupe.engines.registry import slug
from loupe.errors import RunError, UsageError, word
from loupe.files.file_names import as_on_any_disk
from loupe.files.folder import Folder
from loupe.results.headline import headline_of
from loupe.results.matrix import make_matrix
from loupe.results.sample_values import sample_values
from loupe.results.scored_here import result_of
from loupe.results.sections import failed_count
from loupe.runs.folder import RunFolder
from loupe.typed import encode_json
from loupe.types import Benchmark, Estimate, Result, SampleScores


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """The files written of one run."""

    run: str
    folder: str
    written: int
    failed: int
    results: str = ""


def answered_texts(folder: RunFolder, *, raw: bool) -> Iterator[tuple[str, str]]:
    """Answered samples with the text that is scored, or with `raw` the one that the engine gave."""
    adapters = [] if raw else folder.info.adapters
    places = folder.prediction_places()
    for sample, prediction in zip(places, folder.read_predictions(places.values()), strict=True):
        if not prediction.failed:
            yield sample, apply_adapters(prediction.text, adapters)


def write_answers(folder: RunFolder, target: Folder, *, raw: bool) -> Exported:
    """One file per answered sample below `target`."""
    suffix = benchmark_of_run(folder.info.benchmark).suffix
    written = folder.export_predictions(answered_texts(folder, raw=raw), suffix, target)
    failed = len(folder.prediction_places()) - written
    return Exported(run=str(folder.path), folder=str(target.path), written=written, failed=failed)


def write_evaluation_layout(paths: Sequence[Path], root: Path, *, raw: bool = False) -> tuple[list[Exported], Path]:
    """Write runs in the layout above, below `root`; returns what was written, and the comparison file.

    Raises UsageError where two runs would get the same names, RunError for a run without scores.
    """
    folders = [RunFolder.open(path) for path in paths]
    results = [_scored(folder) for folder in folders]
    names = [_names(folder) for folder in folders]
    on_disk = [as_on_any_disk("/".join(name)) for name in names]
    for place, name in enumerate(names):
        if on_disk[place] in on_disk[:place]:
            twin = folders[on_disk.index(on_disk[place])].path
            raise UsageError(
                f"{twin} and {folders[place].path} are both {name[0]} on {name[1]}",
                hint="export them one by one, each with an --output of its own",
            )
    exported = []
    for folder, result, (model, benchmark) in zip(folders, results, names, strict=True):
        file = f"results/{model}_{benchmark}_eval.json"
        answers = write_answers(folder, Folder(root) / f"predictions/{model}/{benchmark}", raw=raw)
        _write(root, file, _evaluation(folder, result))
        exported.append(msgspec.structs.replace(answers, results=str(root / file)))
    now = datetime.now(UTC)
    comparison = f"eval_comparison_{now:%Y%m%d_%H%M%S}.json"
    _write(root, comparison, _comparison(folders, results, now))
    return exported, root / comparison


def _scored(folder: RunFolder) -> Result:
    result = result_of(folder)
    if result is None:
        raise RunError(f"{folder.path} has no scores yet", hint=f"score it: loupe score {word(folder.path)}")
    return result


def _names(folder: RunFolder) -> tuple[str, str]:
    return slug(folder.info.engine), slug(name_of_run(folder.info))


def _evaluation(folder: RunFolder, result: Result) -> dict[str, Any]:
    """The whole result, and beside it every sample with its own numbers."""
    benchmark, ranked = benchmark_of_run(folder.info.benchmark), headline_of([result])
    return {
        "model": result.engine,
        "benchmark": result.benchmark,
        "version": result.version,
        "created": folder.info.created,
        "signature": result.signature,
        "num_samples": result.total,
        "num_failed": failed_count(result),
        "headline": ranked.measure,
        "headline_note": ranked.note,
        "metrics": _values(result.measures),
        **msgspec.to_builtins({name: getattr(result, name) for name in _KEPT}),
        "samples": [_sample(benchmark, row) for row in folder.scores()],
    }


#: Parts of `result.json` that stand in the file as they are.
_KEPT = (
    "measures",
    "units",
    "directions",
    "slices",
    "outcomes",
    "failures",
    "diagnostics",
    "speed",
    "warnings",
    "not_computed",
    "scored_here",
    "data_origin",
)


def _sample(benchmark: Benchmark, row: SampleScores) -> dict[str, Any]:
    return {
        "sample_id": row.sample,
        "class": row.outcome,
        "tags": row.tags,
        "metrics": sample_values(
            benchmark.measures_of(score.measure for score in row.scores), row.scores, benchmark.summarize
        ),
        "error": row.error,
    }


def _comparison(folders: Sequence[RunFolder], results: Sequence[Result], now: datetime) -> dict[str, Any]:
    """All models on all benchmarks: every number, and the table of the headlines."""
    listed = zip(folders, results, strict=True)
    models: dict[str, dict[str, Any]] = {}
    for folder, result in listed:
        models.setdefault(result.engine, {})[name_of_run(folder.info)] = {
            "version": result.version,
            "headline": headline_of([result]).measure,
            "headline_note": headline_of([result]).note,
            "metrics": _values(result.measures),
            "num_samples": result.total,
            "num_failed": failed_count(result),
            "signature": result.signature,
            "scored_here": result.scored_here,
            "data_origin": result.data_origin,
        }
    return {
        "timestamp": now.isoformat(timespec="seconds"),
        "models": list(models),
        "benchmarks": list(dict.fromkeys(name_of_run(folder.info) for folder in folders)),
        "results": models,
        "table": msgspec.to_builtins(make_matrix(folders)),
    }


def _values(measures: dict[str, Estimate]) -> dict[str, float | None]:
    return {name: estimate.value for name, estimate in measures.items()}


def _write(root: Path, name: str, document: dict[str, Any]) -> None:
    Folder(root).write(name, msgspec.json.format(encode_json(document), indent=2) + b"\n")
