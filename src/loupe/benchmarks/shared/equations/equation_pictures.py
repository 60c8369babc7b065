"""Equations for people to see: as they were drawn to be compared, with the symbols marked that have no counterpart.

The outcome of a test says only whether all symbols can be assigned. Marked here are the symbols outside
the longest common subsequence of both equations, and inside it the pairs whose neighbours differ
(#comparing-equations).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from rapidfuzz.distance import LCSseq

from loupe.benchmarks.shared.equations.equation_match import DIRECTIONS, Symbols, symbols_of, without_spaces
from loupe.benchmarks.shared.equations.rendering.drawing import Drawing, Picture
from loupe.benchmarks.shared.equations.rendering.renderer import Renderer, the_picture_renderer
from loupe.errors import LoupeError
from loupe.explanation import DrawnFormula, Equation, Glyph, Shape

Mark: TypeAlias = Literal["", "missing", "extra", "moved"]

#: Equations with more symbols are drawn without marks.
_MOST_SYMBOLS = 2_000
#: Equations that may hang the browser or crash it before no more are drawn.
_MOST_LOST = 3


class EquationPictures:
    """Pairs of equations as pictures. Where nothing draws, or no longer, they say so instead."""

    def __init__(self, renderer: Renderer | None = None) -> None:
        self._renderer = renderer
        self._problem = ""
        self._lost = 0

    def pairs(self, pairs: Sequence[tuple[str | None, str]]) -> list[tuple[Equation, ...]]:
        """For each (prediction, reference) the reference and, if there is one, the prediction."""
        drawings = self._draw(list(dict.fromkeys(each for pair in pairs for each in pair if each is not None)))
        return [tuple(_pair(prediction, reference, drawings)) for prediction, reference in pairs]

    def _draw(self, equations: Sequence[str]) -> dict[str, Drawing]:
        if not equations:
            return {}
        if not self._problem:
            try:
                self._renderer = self._renderer or the_picture_renderer()
                drawn = self._renderer.draw(equations, measured=True)
                self._lost += sum(bool(drawing.lost) for drawing in drawn)
                if self._lost >= _MOST_LOST:
                    self._problem = "drawing was given up after equations that hang the browser"
                return dict(zip(equations, drawn, strict=True))
            except LoupeError as error:
                self._problem = f"{error.message}; {error.hint}" if error.hint else error.message
        return {equation: Drawing(lost=self._problem) for equation in equations}


def _pair(prediction: str | None, reference: str, drawings: dict[str, Drawing]) -> Iterator[Equation]:
    wanted = drawings[reference]
    found = drawings[prediction] if prediction is not None else None
    marks: tuple[list[Mark], list[Mark]] | None = None
    if found is not None and wanted.picture and found.picture:
        marks = marks_of(symbols_of(found), symbols_of(wanted))
    yield _equation("Reference", reference, wanted, marks[1] if marks else None)
    if prediction is not None and found is not None:
        yield _equation("Nearest in the answer", prediction, found, marks[0] if marks else None)


def _equation(label: str, latex: str, drawing: Drawing, marks: Sequence[Mark] | None) -> Equation:
    if drawing.error:
        return Equation(label=label, latex=latex, problem=f"KaTeX refuses this: {drawing.error}")
    if drawing.lost or drawing.picture is None:
        return Equation(label=label, latex=latex, problem=f"Not drawn: {drawing.lost or 'there is too much of it'}")
    return Equation(label=label, latex=latex, drawn=_drawn(drawing, drawing.picture, marks))


def marks_of(prediction: Symbols, reference: Symbols) -> tuple[list[Mark], list[Mark]] | None:
    """A mark for each symbol of both; None where there are too many."""
    if max(len(prediction.text), len(reference.text)) > _MOST_SYMBOLS:
        return None
    of_prediction: list[Mark] = ["extra"] * len(prediction.text)
    of_reference: list[Mark] = ["missing"] * len(reference.text)
    pairs = list(_common(prediction.text, reference.text))
    paired = {ours for _, ours in pairs}
    for theirs, ours in pairs:
        fits = _fits(prediction, theirs, reference, ours, paired)
        of_prediction[theirs] = of_reference[ours] = "" if fits else "moved"
    left: dict[str, list[int]] = defaultdict(list)
    for theirs, mark in enumerate(of_prediction):
        if mark == "extra":
            left[prediction.text[theirs]].append(theirs)
    for ours, mark in enumerate(of_reference):
        if mark == "missing" and left[reference.text[ours]]:
            of_prediction[left[reference.text[ours]].pop(0)] = of_reference[ours] = "moved"
    return of_prediction, of_reference


def _common(prediction: str, reference: str) -> Iterator[tuple[int, int]]:
    for part in LCSseq.opcodes(prediction, reference):
        if part.tag == "equal":
            yield from zip(range(part.src_start, part.src_end), range(part.dest_start, part.dest_end), strict=True)


def _fits(prediction: Symbols, theirs: int, reference: Symbols, ours: int, paired: set[int]) -> bool:
    """True if the neighbours of the reference's symbol that are there at all have their characters beside it."""
    for direction in DIRECTIONS:
        asked = reference.neighbours[direction][ours]
        if asked is None or asked not in paired:
            continue
        there = prediction.neighbours[direction][theirs]
        if there is None or prediction.text[there] != reference.text[asked]:
            return False
    return True


def _drawn(drawing: Drawing, picture: Picture, marks: Sequence[Mark] | None) -> DrawnFormula:
    glyphs, place = [], 0
    for text, at in zip(drawing.texts, picture.glyphs, strict=True):
        seen = without_spaces(text)
        if not seen:
            continue
        own: list[Mark] = list(marks[place : place + len(seen)]) if marks else [""] * len(seen)
        place += len(seen)
        # One piece where all characters fare alike, else one for each, as wide as the comparison takes them to be.
        parts = [(text, own[0])] if len(set(own)) == 1 else list(zip(seen, own, strict=True))
        width = at.width / len(parts)
        glyphs += [
            Glyph(
                text=part,
                x=at.x + number * width,
                baseline=at.baseline,
                width=width,
                size=at.size,
                italic=at.italic,
                bold=at.bold,
                mark=mark,
            )
            for number, (part, mark) in enumerate(parts)
        ]
    return DrawnFormula(
        width=picture.width,
        height=picture.height,
        glyphs=tuple(glyphs),
        rules=tuple(picture.rules),
        shapes=tuple(
            Shape(path=shape.path, matrix=shape.matrix, clip=shape.clip, stroke=shape.stroke)
            for shape in picture.shapes
        ),
    )
