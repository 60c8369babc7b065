"""Classes as tables: which labels were taken for which, and precision, recall and F1 of every label.

From the figures that a folder of one's own keeps in its result (loupe.benchmarks.folders.own.scorers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from loupe.benchmarks.folders.own.folder_benchmark import TRUTH_TAG
from loupe.benchmarks.folders.own.scorers import FIGURE
from loupe.results.sections import format_margin, format_value
from loupe.results.tables.record import Cell, Column, Table
from loupe.typed import convert
from loupe.types import Estimate, Result


class _Figures(msgspec.Struct):
    matrix: dict[str, dict[str, int]]
    labels: dict[str, dict[str, Estimate]]


def class_sections(result: Result) -> list[Table]:
    """The tables of one result for a terminal; nothing for results without classes."""
    states = truth_states(result)
    return [*class_tables(result), *([Table(title="truth of the samples", rows=[(states,)])] if states else [])]


def class_tables(result: Result) -> list[Table]:
    """Ratios by label, then the matrix."""
    try:
        figures = convert(result.figures.get(FIGURE), _Figures)
    except msgspec.ValidationError:
        return []
    answers = list(dict.fromkeys(name for row in figures.matrix.values() for name in row))
    matrix = [(label, *(f"{row.get(name, 0):,}" for name in answers)) for label, row in figures.matrix.items()]
    names = ("precision", "recall", "f1")
    return [
        Table(
            title="precision, recall and F1 of every label",
            header=("label", "precision", "recall", "F1", "samples"),
            rows=[(label, *_cells([each.get(name) for name in names])) for label, each in figures.labels.items()],
        ),
        Table(
            title="confusion matrix: rows are the ground truth, columns the answers",
            header=("truth", *answers),
            rows=matrix or [(f"{len(figures.labels):,} labels: too many for this table",)],
        ),
    ]


class Classes(NamedTuple):
    """The classes of several engines: for each label a row per engine, and a matrix per engine."""

    columns: Sequence[Column | str]
    labels: list[tuple[str, list[tuple[str, Sequence[Cell | str]]]]]
    matrices: list[tuple[str, Table]]


def classes_of(results: Sequence[tuple[str, Result]]) -> Classes | None:
    """The tables of (engine, result) together; None without any class."""
    found = [(engine, tables) for engine, result in results if (tables := class_tables(result))]
    if not found:
        return None
    rows: dict[str, list[tuple[str, Sequence[Cell | str]]]] = {}
    for engine, [ratios, _] in found:
        for label, *cells in ratios.rows:
            rows.setdefault(str(label), []).append((engine, cells))
    return Classes(found[0][1][0].header[1:], list(rows.items()), [(engine, matrix) for engine, [_, matrix] in found])


def _cells(found: Sequence[Estimate | None]) -> list[Cell | str]:
    known = [estimate or Estimate(value=None) for estimate in found]
    shown = [Cell(text=format_value(one.value, "fraction"), margin=format_margin(one, "fraction")) for one in known]
    return [*shown, f"{found[1].n:,}" if found[1] else "0"]


def truth_states(result: Result) -> str:
    """How many samples have verified truth, drafts, and none; "" where all is verified."""
    figures = result.figures.get(TRUTH_TAG)
    counts: Any = figures.get("samples") if isinstance(figures, Mapping) else None
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) if isinstance(counts, Mapping) else ""
