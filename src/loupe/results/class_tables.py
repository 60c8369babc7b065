"""Classes as tables: which labels were taken for which, and precision, recall and F1 of every label.

From the figures that a folder of one's own keeps in its result (loupe.benchmarks.folders.own.scorers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from loupe.benchmarks.folders.own.folder_benchmark import TRUTH_TAG
from loupe.benchmarks.folders.own.scorers import FIGURE
from loupe.results.sections import Section, format_margin, format_value
from loupe.typed import convert
from loupe.types import Estimate, Result


class Table(NamedTuple):
    """Heads of the columns behind the first one, and rows: (label, cells)."""

    columns: list[str]
    rows: list[tuple[str, list[str]]]


class _Figures(msgspec.Struct):
    matrix: dict[str, dict[str, int]]
    labels: dict[str, dict[str, Estimate]]


def class_sections(result: Result) -> list[Section]:
    """The tables of one result for a terminal; nothing for results without classes."""
    found = class_tables(result)
    sections = [
        Section(title=title, header=(head, *table.columns), rows=[(label, *cells) for label, cells in table.rows])
        for title, head, table in found
    ]
    states = truth_states(result)
    return [*sections, *([Section(title="truth of the samples", rows=[(states,)])] if states else [])]


def class_tables(result: Result) -> list[tuple[str, str, Table]]:
    """(title, head of the first column, table): ratios by label, then the matrix."""
    try:
        figures = convert(result.figures.get(FIGURE), _Figures)
    except msgspec.ValidationError:
        return []
    answers = list(dict.fromkeys(name for row in figures.matrix.values() for name in row))
    matrix = Table(
        answers, [(label, [f"{row.get(name, 0):,}" for name in answers]) for label, row in figures.matrix.items()]
    )
    if not figures.matrix:
        matrix = Table([], [(f"{len(figures.labels):,} labels: too many for this table", [])])
    names = ("precision", "recall", "f1")
    ratios = [(label, _cells([each.get(name) for name in names])) for label, each in figures.labels.items()]
    return [
        ("precision, recall and F1 of every label", "label", Table(["precision", "recall", "F1", "samples"], ratios)),
        ("confusion matrix: rows are the ground truth, columns the answers", "truth", matrix),
    ]


class Classes(NamedTuple):
    """The classes of several engines: for each label a row per engine, and a matrix per engine."""

    columns: list[str]
    labels: list[tuple[str, list[tuple[str, list[str]]]]]
    matrices: list[tuple[str, Table]]


def classes_of(results: Sequence[tuple[str, Result]]) -> Classes | None:
    """The tables of (engine, result) together; None without any class."""
    found = [(engine, tables) for engine, result in results if (tables := class_tables(result))]
    if not found:
        return None
    rows: dict[str, list[tuple[str, list[str]]]] = {}
    for engine, [(_, _, ratios), _] in found:
        for label, cells in ratios.rows:
            rows.setdefault(label, []).append((engine, cells))
    matrices = [(engine, table) for engine, [_, (_, _, table)] in found]
    return Classes(found[0][1][0][2].columns, list(rows.items()), matrices)


def _cells(found: Sequence[Estimate | None]) -> list[str]:
    shown = []
    for estimate in found:
        known = estimate or Estimate(value=None)
        margin = format_margin(known, "fraction")
        margin = f"[{margin}]" if "…" in margin else margin
        shown.append(f"{format_value(known.value, 'fraction')} {margin}".rstrip())
    recall = found[1]
    return [*shown, f"{recall.n:,}" if recall else "0"]


def truth_states(result: Result) -> str:
    """How many samples have verified truth, drafts, and none; "" where all is verified."""
    figures = result.figures.get(TRUTH_TAG)
    counts: Any = figures.get("samples") if isinstance(figures, Mapping) else None
    return ", ".join(f"{count:,} {name}" for name, count in counts.items()) if isinstance(counts, Mapping) else ""
