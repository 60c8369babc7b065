"""Explain how an answer was matched with the ground truth of its page: what a benchmark tells, and the report draws.

A benchmark that stores `details` beside its scores may turn them into an `Explanation`: areas of a page, judged units
(blocks, tables, facts), and what was in no score. Formulas, tables, equations and facts have records of their own, made
for the kinds of benchmark that judge them; no record knows a benchmark by its name.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """An area of the page that the ground truth marks: a polygon (x, y, x, y, …) in pixels of the annotated page.

    `order` is its place in the reading order; `scored` is false for what the benchmark never counts.
    """

    polygon: tuple[float, ...]
    category: str
    order: float | None = None
    scored: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """An area of the page as an engine told it: left, top, right, bottom, what it is, how sure the engine was (0 to 1).

    `label` is a kind ("table") or, where lines were told, the text of the line.
    """

    box: tuple[float, float, float, float]
    label: str
    confidence: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaPair:
    """Two formulas in LaTeX that CDM compared as they are drawn, as it got them: the report draws them again.

    `profile` is CDM's. `f1` is None where it was not computed, and `prediction_failure` says why;
    else a failure says why that side was not drawn.
    """

    prediction: str
    reference: str
    profile: str
    f1: float | None = None
    prediction_failure: str = ""
    reference_failure: str = ""

    @property
    def key(self) -> str:
        """A name for this pair: the same for the same formulas, compared in the same way."""
        text = "\0".join((self.profile, self.prediction, self.reference))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One thing that was judged: what should stand there, and the pieces of the answer that were held against it.

    `regions` are indices into those of the page. `compared` and `tables` are (prediction, reference) as the metric got
    them: texts, or HTML of tables. `value` is 0 to 1, 1 being perfect; None where there is nothing to measure.
    """

    element: str
    regions: tuple[int, ...]
    reference: str
    pieces: tuple[str, ...] = ()
    step: str = ""
    distance: float | None = None
    value: float | None = None
    verdict: str = ""
    note: str = ""
    compared: tuple[str, str] | None = None
    tables: tuple[str, str] | None = None
    formulas: FormulaPair | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unscored:
    """A piece of the answer that no score knows, why, and the regions that it was held against (if any)."""

    text: str
    reason: str
    regions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """Something that a reader must know of a score: how often it happened on this page."""

    name: str
    meaning: str
    count: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One answer on one page. Orders are indices of regions, as annotated and as the answer has them.

    `size` is that of the annotated page. Without size and regions, the page is shown as it is.
    """

    size: tuple[float, float] = (0.0, 0.0)
    regions: tuple[Region, ...] = ()
    units: tuple[Unit, ...] = ()
    unscored: tuple[Unscored, ...] = ()
    true_order: tuple[int, ...] = ()
    predicted_order: tuple[int, ...] = ()
    flags: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A text that a test looks for and the nearest one that the answer has, with what stands around that.

    `similarity` and `enough` are 0 to 1; None where there is nothing to measure.
    """

    label: str
    wanted: str
    found: str
    before: str = ""
    after: str = ""
    similarity: float | None = None
    enough: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedCell:
    """A cell of a table as the metric parsed it, from its first to its last row and column (both counted from 0)."""

    row: int
    column: int
    last_row: int
    last_column: int
    text: str
    heading: bool = False
    mark: Literal["", "cell", "related"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedTable:
    """A table of the answer as parsed, with the cell in question and those that it was held against marked."""

    title: str
    cells: tuple[ParsedCell, ...]
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Glyph:
    """Characters of a drawn formula: where they begin, their baseline and width, in pixels.

    Marks: `missing` has no counterpart in the other formula, `extra` is not looked for, `moved` has other neighbours.
    """

    text: str
    x: float
    baseline: float
    width: float
    size: float
    italic: bool = False
    bold: bool = False
    mark: Literal["", "missing", "extra", "moved"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """An SVG path of a drawn formula (a root, a large bracket), placed by a matrix and cut off at a box."""

    path: str
    matrix: tuple[float, ...]
    clip: tuple[float, ...]
    stroke: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnFormula:
    """A formula as it was drawn when it was compared; rules are boxes (x, y, width, height)."""

    width: float
    height: float
    glyphs: tuple[Glyph, ...]
    rules: tuple[tuple[float, ...], ...] = ()
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Equation:
    """One side of a comparison of formulas; `problem` says why it is not drawn."""

    label: str
    latex: str
    drawn: DrawnFormula | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedField:
    """A field of a document: what the truth has, what the answer gives, how right that is (0 to 1), by which rule."""

    name: str
    wanted: str
    given: str
    value: float
    rule: str


#: Words with the texts that they quote: ("", "must stand before "), ("text", "Appendix"), ("latex", "x^2").
Words: TypeAlias = tuple[tuple[Literal["", "text", "latex"], str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One test of an answer: what it asks for in plain words, whether it holds, why not, and what shows it."""

    ident: str
    kind: str
    category: str
    document: str
    passed: bool
    words: Words
    why: str = ""
    comparisons: tuple[Comparison, ...] = ()
    table: ParsedTable | None = None
    equations: tuple[Equation, ...] = ()
