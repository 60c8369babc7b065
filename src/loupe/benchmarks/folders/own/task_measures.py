"""The measures of a folder: those of its tasks, and over several tasks the mean of their headlines."""

from __future__ import annotations

from collections.abc import Callable

from loupe.benchmarks.folders.own.config import FolderConfig
from loupe.benchmarks.folders.own.typed_fields import scoring_of
from loupe.types import Measure, Values


def measures_of(tasks: tuple[str, ...], config: FolderConfig) -> tuple[Measure, ...]:
    """Every measure, that which ranks first unless the folder names another."""
    own = tuple(measure for task in tasks for measure in scoring_of(task, config).measures)
    return (Measure(name="overall", title="mean of the tasks"), *own) if len(tasks) > 1 else own


def mean_of_headlines(tasks: tuple[str, ...], config: FolderConfig) -> Callable[[Values], Values]:
    """The `overall` of several tasks."""
    names = [scoring_of(task, config).measures[0].name for task in tasks]

    def summarize(values: Values) -> Values:
        """The mean over the tasks that occur (in a slice, or in a draw of the bootstrap): each task counts once."""
        import numpy as np

        present = [np.asarray(values[name], float) for name in names if values.get(name) is not None]
        if not present:
            return {}
        stacked = np.stack(np.broadcast_arrays(*present))
        known = ~np.isnan(stacked)
        count = known.sum(axis=0)
        total = np.where(known, stacked, 0.0).sum(axis=0)
        return {"overall": np.where(count > 0, total / np.maximum(count, 1), np.nan)[()]}

    return summarize
