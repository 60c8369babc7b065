"""Answers to a test set whose truth nobody has, as the one file that its official server takes."""

from __future__ import annotations

import json
from pathlib import Path

from loupe.benchmarks.registry import benchmark_of_run
from loupe.errors import UsageError, word
from loupe.files.folder import write_file
from loupe.pipeline.plan import open_samples
from loupe.results.exports.answers_and_results import Exported, answered_texts
from loupe.runs.folder import RunFolder


def write_submission(folder: RunFolder, file: Path, *, raw: bool) -> Exported:
    """Write one file with an answer to every question of the run; a question without one gets "".

    Raises UsageError for a benchmark that no server scores, for a run on a part of its data, and for a split whose
    truth is public; DatasetError without the data.
    """
    info = folder.info
    make = benchmark_of_run(info.benchmark).submission
    if make is None:
        raise UsageError(
            f"{folder.path}: no server takes answers to {info.benchmark_id}",
            hint=f"score it: loupe score {word(folder.path)}",
        )
    if info.limit is not None or info.sample is not None or info.stopped:
        raise UsageError(
            f"{folder.path} has read a part of {info.benchmark_id}, and the server wants every answer",
            hint="go on with the same command, without --limit and --sample",
        )
    samples = list(open_samples(info))
    texts = dict(answered_texts(folder, raw=raw))
    rows = make((sample, texts.get(sample.id, "")) for sample in samples)
    write_file(file, (json.dumps(rows, ensure_ascii=False, indent=1) + "\n").encode())
    written = sum(sample.id in texts for sample in samples)
    return Exported(run=str(folder.path), folder=str(file), written=written, failed=len(samples) - written)
