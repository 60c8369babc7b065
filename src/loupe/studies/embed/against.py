"""Two runs compared by the queries that both were asked: differences with intervals and p-values, paired by query.

Method: docs/statistics.md. The scores by query stand in `retrieval.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from loupe.errors import DatasetError, word
from loupe.files.folder import Folder
from loupe.stats.analysis import Analysis
from loupe.stats.comparison import Difference, compare
from loupe.studies.embed.retrieval import KEPT, Retrieval
from loupe.typed import json_decoder
from loupe.types import UNDECODABLE, Measure, SampleScores, Score


class _Stored(msgspec.Struct):
    per_query: dict[str, dict[str, dict[str, float]]]


def differences(here: Retrieval, folder: Path, name: str = "retrieval.json") -> Mapping[str, Mapping[str, Difference]]:
    """These scores minus those of another folder, by system and measure, over the queries of both.

    Raises DatasetError where the other folder has no scores, or no query is the same.
    """
    try:
        there = json_decoder(_Stored).decode(Folder(folder).read(name)).per_query
    except (*UNDECODABLE, OSError):
        raise DatasetError(
            f"{folder}: no {name} that can be read", hint=f"make it: loupe embed {word(folder)} --queries FILE"
        ) from None
    shared = [system for system in here.per_query if system in there]
    if not any(here.per_query[system].keys() & there[system].keys() for system in shared):
        raise DatasetError(f"{folder}: it shares no queries with this run", hint="both need the same --queries")
    analysis = Analysis([Measure(name=measure) for measure in KEPT])
    return {system: compare(analysis, _rows(here.per_query[system]), _rows(there[system])) for system in shared}


def _rows(queries: Mapping[str, Mapping[str, float]]) -> list[SampleScores]:
    return [
        SampleScores(
            sample=query,
            scores=[Score(measure=name, counts=(value, 1.0)) for name, value in values.items() if name in KEPT],
        )
        for query, values in queries.items()
    ]
