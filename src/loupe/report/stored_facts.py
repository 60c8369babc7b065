"""Facts and judged fields as the report stores them, and an index of all facts over all pages.

Bounded and plain: texts are cut, cells and glyphs counted, numbers rounded; the page draws them as text and as SVG
elements, never as markup.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import msgspec

from loupe.engines.adapters.steps import apply_adapters
from loupe.explanation import Comparison, DrawnFormula, Equation, Fact, JudgedField, ParsedTable
from loupe.report.markup import without_surrogates
from loupe.types import Benchmark, Prediction, Sample, SampleScores

#: Fields of one answer that are shown, and characters of one value.
FIELD_LIMIT = 300
FIELD_TEXT_LIMIT = 2_000


def fields_of(
    benchmark: Benchmark | None, sample: Sample, prediction: Prediction | None, adapters: Sequence[str]
) -> tuple[JudgedField, ...]:
    """The fields of one answer as it was scored; none if the benchmark tells none or the truth is gone.

    Raises whatever the benchmark does in judging them.
    """
    if benchmark is None or benchmark.fields is None or prediction is None or sample.truth is None:
        return ()
    text = "" if prediction.failed else apply_adapters(prediction.text, tuple(adapters))
    return tuple(benchmark.fields(sample, msgspec.structs.replace(prediction, text=text)))


def packed_fields(fields: Sequence[JudgedField]) -> list[list[Any]]:
    """Rows of name, what the truth has, what the answer gives, value (1: full marks) and rule."""
    return [
        [_cut(field.name), _cut(field.wanted), _cut(field.given), field.value, field.rule]
        for field in fields[:FIELD_LIMIT]
    ]


def _cut(text: str) -> str:
    return without_surrogates(text if len(text) <= FIELD_TEXT_LIMIT else text[:FIELD_TEXT_LIMIT] + "…")


JsonObject: TypeAlias = dict[str, Any]

#: Tests of one answer that are shown, failed ones first; `scores.jsonl` has them all.
FACT_LIMIT = 500
#: Characters of one text, and of all texts of one answer.
TEXT_LIMIT = 2_000
BUDGET = 300_000
#: Cells of tables, and pieces of drawn formulas, of one answer.
CELLS = 8_000
CELL_TEXT = 200
PIECES = 20_000
#: Tests in the index of all pages, and characters of what it says of each.
INDEX_LIMIT = 40_000
WORDS_LIMIT = 220


@dataclass(slots=True)
class FactIndex:
    """All tests of a group, so that the page can list them without opening a sample.

    `problem` says of which sample the tests cannot be shown, and why ("" if all can).
    """

    rows: list[list[Any]] = field(default_factory=list)
    hidden: int = 0
    problem: str = ""

    def of_answer(
        self,
        benchmark: Benchmark | None,
        sample: Sample,
        prediction: Prediction | None,
        scores: SampleScores,
        adapters: Sequence[str],
    ) -> tuple[Fact, ...]:
        """The tests of one answer as it was scored; none if the benchmark tells none or the truth is gone."""
        if benchmark is None or benchmark.facts is None or prediction is None or sample.truth is None:
            return ()
        try:
            text = "" if prediction.failed else apply_adapters(prediction.text, tuple(adapters))
            return tuple(benchmark.facts(sample, msgspec.structs.replace(prediction, text=text), scores))
        except Exception as error:  # noqa: BLE001  one sample whose tests cannot be shown must not end a report
            self.problem = f"The tests of {sample.id} cannot be shown: {error}"
            return ()

    def add(self, engine: int, sample: int, facts: Sequence[Fact]) -> None:
        """Note the tests of one answer; `sample` counts the samples of the group."""
        for number, fact in enumerate(_first_failed(facts)):
            if len(self.rows) >= INDEX_LIMIT and fact.passed:
                self.hidden += 1
                continue
            self.rows.append(
                [
                    sample,
                    engine,
                    number,
                    int(fact.passed),
                    *map(without_surrogates, (fact.kind, fact.category, fact.document, fact.ident)),
                    without_surrogates(_short(_plain(fact))),
                    without_surrogates(_short(fact.why)),
                ]
            )

    def packed(self) -> JsonObject:
        """The rows that the page reads: sample, engine, number, passed, kind, category, document, id, words, why."""
        failed = [row for row in self.rows if not row[3]][:INDEX_LIMIT]
        passed = [row for row in self.rows if row[3]][: INDEX_LIMIT - len(failed)]
        hidden = self.hidden + len(self.rows) - len(failed) - len(passed)
        return {"rows": sorted([*failed, *passed], key=lambda row: row[:3]), "hidden": hidden}


def _first_failed(facts: Sequence[Fact]) -> list[Fact]:
    return sorted(facts, key=lambda fact: fact.passed)


def _plain(fact: Fact) -> str:
    return "".join(f"“{text}”" if role else text for role, text in fact.words)


def _short(text: str) -> str:
    return text if len(text) <= WORDS_LIMIT else text[:WORDS_LIMIT] + "…"


def packed_facts(facts: Sequence[Fact]) -> JsonObject | None:
    """The tests of one answer, failed ones first; None if there are none."""
    if not facts:
        return None
    packer = _Packer()
    shown = _first_failed(facts)[:FACT_LIMIT]
    return {"list": [packer.fact(fact) for fact in shown], "hidden": len(facts) - len(shown)}


@dataclass(slots=True)
class _Packer:
    """Counts what one answer may still show."""

    texts: int = BUDGET
    cells: int = CELLS
    pieces: int = PIECES

    def fact(self, fact: Fact) -> JsonObject:
        packed: JsonObject = {
            "id": without_surrogates(fact.ident),
            "kind": without_surrogates(fact.kind),
            "category": without_surrogates(fact.category),
            "passed": fact.passed,
            "words": [[role, self._cut(text)] for role, text in fact.words],
        }
        if fact.passed:
            return packed
        packed |= {
            "why": self._cut(fact.why),
            "comparisons": [self._comparison(each) for each in fact.comparisons],
            "equations": [self._equation(each) for each in fact.equations],
            "table": self._table(fact.table) if fact.table is not None and self.cells > 0 else None,
        }
        return packed

    def _cut(self, text: str, limit: int = TEXT_LIMIT) -> str:
        room = max(0, min(limit, self.texts))
        self.texts -= min(len(text), room)
        return without_surrogates(text if len(text) <= room else text[:room] + "…")

    def _comparison(self, each: Comparison) -> JsonObject:
        return {
            "label": each.label,
            "wanted": self._cut(each.wanted),
            "found": self._cut(each.found),
            "before": self._cut(each.before),
            "after": self._cut(each.after),
            "similarity": each.similarity,
            "enough": each.enough,
        }

    def _table(self, table: ParsedTable) -> JsonObject:
        # The cell in question and what it was compared with come first, so that no limit hides them.
        order = sorted(table.cells, key=lambda cell: (cell.mark == "", cell.row, cell.column))
        shown = sorted(order[: self.cells], key=lambda cell: (cell.row, cell.column))
        self.cells -= len(shown)
        return {
            "title": table.title,
            "hidden": table.hidden + len(order) - len(shown),
            "cells": [
                [
                    cell.row,
                    cell.column,
                    cell.last_row,
                    cell.last_column,
                    self._cut(cell.text, CELL_TEXT),
                    int(cell.heading),
                    cell.mark,
                ]
                for cell in shown
            ],
        }

    def _equation(self, each: Equation) -> JsonObject:
        drawn, problem = None, each.problem
        if each.drawn is not None:
            pieces = len(each.drawn.glyphs) + len(each.drawn.rules) + len(each.drawn.shapes)
            self.pieces -= pieces
            drawn = _drawn(each.drawn) if self.pieces >= 0 else None
            problem = "" if drawn else "Not rendered: this page has too many formulas."
        return {"label": each.label, "latex": self._cut(each.latex), "problem": self._cut(problem), "drawn": drawn}


def _drawn(formula: DrawnFormula) -> JsonObject:
    return {
        "size": [formula.width, formula.height],
        "glyphs": [
            [
                without_surrogates(glyph.text),
                round(glyph.x, 2),
                glyph.baseline,
                round(glyph.width, 2),
                glyph.size,
                int(glyph.italic) + 2 * int(glyph.bold),
                glyph.mark,
            ]
            for glyph in formula.glyphs
        ],
        "rules": [list(rule) for rule in formula.rules],
        "shapes": [
            [shape.path, [round(value, 5) for value in shape.matrix], list(shape.clip), int(shape.stroke)]
            for shape in formula.shapes
        ],
    }
