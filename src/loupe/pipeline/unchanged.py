"""Whether a run's result still stands: a digest over all it was made from, sealed together with what was made.

Scoring an unchanged run again is then reading its samples once; no score is looked at, no interval drawn.
"""

from __future__ import annotations

import hashlib

from loupe.pipeline.data_origin import unproven_origin
from loupe.pipeline.plan import Survey
from loupe.runs.folder import PREDICTIONS, RunFolder
from loupe.scoring.digest import scorer_digest
from loupe.typed import encode_json
from loupe.types import Benchmark, Result


def standing_result(folder: RunFolder, benchmark: Benchmark, found: Survey) -> Result | None:
    """The stored result, if it was made here and predictions, samples, scorer and scores are as they were then.

    None where a scorer failed, for scoring again tries that again.
    """
    own = folder.sealed_result()
    if own is None or own[0] != made_from(folder, benchmark, found, folder.digest_of(PREDICTIONS)):
        return None
    return None if any(failure.outcome == "scorer" for failure in own[1].failures) else own[1]


def made_from(folder: RunFolder, benchmark: Benchmark, found: Survey, answers: str) -> str:
    """A digest of all that decides about a result; `answers` is the sha256 of the file of predictions."""
    info = folder.info
    facts = [
        scorer_digest(benchmark, info.adapters),
        [found.truth_digest, found.slicing_digest],
        [info.benchmark_id, info.engine, info.signature, info.total, info.limit, info.stopped, list(info.notes)],
        unproven_origin(info),
        answers,
    ]
    return hashlib.sha256(encode_json(facts)).hexdigest()
