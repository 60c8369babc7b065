"""Whether a run's result still stands: a digest over all it was made from, and over what was made.

Scoring an unchanged run again is then reading its samples once; no score is looked at, no interval drawn.
"""

from __future__ import annotations

import hashlib

from loupe.pipeline.plan import Survey
from loupe.runs.folder import PREDICTIONS, RESULT, SCORES, RunFolder
from loupe.scoring.digest import scorer_digest
from loupe.typed import encode_json
from loupe.types import Benchmark, Result

_NAME = "scored.sha256"


def standing_result(folder: RunFolder, benchmark: Benchmark, found: Survey) -> Result | None:
    """The stored result, if predictions, samples, scorer, scores and result are all as they were when it was made."""
    try:
        noted = folder.files.read(_NAME).strip()
    except FileNotFoundError:
        return None
    if noted != _digest(folder, benchmark, found).encode():
        return None
    return folder.result()


def remember_result(folder: RunFolder, benchmark: Benchmark, found: Survey) -> None:
    """Note what the stored result was made from; not where a scorer failed, for scoring again tries that again."""
    result = folder.result()
    if result is None or any(failure.outcome == "scorer" for failure in result.failures):
        return
    folder.files.write(_NAME, _digest(folder, benchmark, found).encode() + b"\n")


def _digest(folder: RunFolder, benchmark: Benchmark, found: Survey) -> str:
    info = folder.info
    facts = [
        scorer_digest(benchmark, info.adapters),
        [found.truth_digest, found.slicing_digest],
        [info.benchmark_id, info.engine, info.signature, info.total, info.limit, info.stopped, list(info.notes)],
        [_file_digest(folder, name) for name in (PREDICTIONS, SCORES, RESULT)],
    ]
    return hashlib.sha256(encode_json(facts)).hexdigest()


def _file_digest(folder: RunFolder, name: str) -> str:
    try:
        with folder.files.open(name) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""
