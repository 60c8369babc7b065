"""The measures of a folder: those of its tasks, and over several tasks the mean of their headlines."""

from __future__ import annotations

from collections.abc import Callable

from loupe.benchmarks.folders.own.config import FolderConfig
from loupe.benchmarks.folders.own.typed_fields import scoring_of
from loupe.benchmarks.shared.mean_of_parts import mean_of_parts
from loupe.types import Measure, Values


def measures_of(tasks: tuple[str, ...], config: FolderConfig) -> tuple[Measure, ...]:
    """Every measure, that which ranks first unless the folder names another."""
    own = tuple(measure for task in tasks for measure in scoring_of(task, config).measures)
    return (Measure(name="overall", title="mean of the tasks"), *own) if len(tasks) > 1 else own


def mean_of_headlines(tasks: tuple[str, ...], config: FolderConfig) -> Callable[[Values], Values]:
    """The `overall` of several tasks: the mean over those that occur."""
    names = [scoring_of(task, config).measures[0].name for task in tasks]

    def summarize(values: Values) -> Values:
        overall = mean_of_parts(values, names)
        return {} if overall is None else {"overall": overall}

    return summarize
