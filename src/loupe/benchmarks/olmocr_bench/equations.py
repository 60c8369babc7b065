"""Compare equations as rendered: the reference must be contained in one of the page's equations.

Protocol: docs/protocols/olmocr_bench.md#comparing-equations. MathML and characters decide nearly all pairs; boxes
are used only for the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from loupe.benchmarks.shared.equations.equation_match import (
    Budget,
    UndecidedError,
    characters,
    embed,
    presentation,
    symbols_of,
)
from loupe.benchmarks.shared.equations.rendering.drawing import Drawing
from loupe.benchmarks.shared.equations.rendering.renderer import check_tools, renderer_versions, the_renderer
from loupe.errors import LoupeError, MissingToolError

__all__ = [
    "MathOutcome",
    "check_tools",
    "in_anything",
    "one_sample",
    "prepare_questions",
    "render_and_match",
    "renderer_versions",
]

#: Equations of a page that a reference is compared with, the likest first. Upstream takes all; pages have up to 300.
MOST_EQUATIONS = 2_000
#: MathML of so many characters is worth remembering; that of a long equation has thirty times as many.
_SHORT = 20_000


@dataclass(frozen=True, slots=True)
class MathOutcome:
    """The outcome of a math test: `matched` is the index of the equation that contains the reference, None if none
    does.

    `not_compared` counts equations that the browser did not survive, or that took too long to search: no matches.
    """

    matched: int | None = None
    not_compared: int = 0


def render_and_match(reference: str, equations: Sequence[str]) -> MathOutcome:
    """Compare the rendered reference with each equation, in the order given.

    A reference that KaTeX refuses, or of which nothing is to be seen, is contained in any equation: upstream finds
    nothing to look for. Raises MissingToolError where there is nothing that renders, LoupeError where the browser
    cannot be started or does not survive the reference.
    """
    if not equations:
        return MathOutcome()
    renderer = the_renderer()
    equations = equations[:MOST_EQUATIONS]
    [sought] = renderer.draw([reference])
    _check_reference(reference, sought)
    if _is_in_anything(sought):
        return MathOutcome(matched=0)
    drawings = renderer.draw(equations)
    glance = _glance(sought, drawings)
    if glance.matched is not None or not glance.open:
        return MathOutcome(glance.matched, glance.lost)
    budget = Budget()
    [measured], not_compared = renderer.draw([reference], measured=True), glance.lost
    _check_reference(reference, measured)
    symbols = symbols_of(measured)
    for place in glance.open:
        [hypothesis] = renderer.draw([equations[place]], measured=True)
        not_compared += bool(hypothesis.lost)
        try:
            if embed(symbols, symbols_of(hypothesis), budget) is not None:
                return MathOutcome(place)
        except UndecidedError:
            not_compared += 1
    return MathOutcome(None, not_compared)


def prepare_questions(questions: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Draw whatever `render_and_match` will ask for on these questions, all together. Raises as it does."""
    asked = [(reference, equations[:MOST_EQUATIONS]) for reference, equations in questions]
    renderer = the_renderer()
    renderer.forget_lost()
    # References first, so that none of them is in one batch with an equation that hangs the browser.
    renderer.prepare(reference for reference, _ in asked)
    renderer.prepare(each for _, equations in asked for each in equations)
    measured: tuple[list[str], list[str]] = [], []
    for reference, equations in asked:
        [sought] = renderer.draw([reference])
        if not equations or sought.lost or _is_in_anything(sought):
            continue
        glance = _glance(sought, renderer.draw(equations))
        if glance.matched is None and glance.open:
            measured[0].append(reference)
            measured[1].extend(equations[place] for place in glance.open)
    for each in measured:
        renderer.prepare(each, measured=True)


def in_anything(references: Iterable[str]) -> dict[str, str]:
    """Return the references that `render_and_match` finds in any equation, with the reason. Raises as it does."""
    references = list(dict.fromkeys(references))
    drawings = zip(references, the_renderer().draw(references) if references else (), strict=True)
    found = {each: drawing for each, drawing in drawings if drawing.lost or _is_in_anything(drawing)}
    return {each: drawing.error or drawing.lost or "nothing of it is to be seen" for each, drawing in found.items()}


def _check_reference(reference: str, drawing: Drawing) -> None:
    if drawing.lost:
        raise LoupeError(
            f"the reference {reference[:80]!r} cannot be rendered: {drawing.lost}",
            hint="see what is missing: loupe doctor",
        )


@contextmanager
def one_sample() -> Iterator[None]:
    """Equations that the browser did not survive are not tried twice for one sample, and again for the next."""
    try:
        renderer = the_renderer()
    except MissingToolError:
        # Said where something has to be drawn; a page without equations needs no tools.
        yield
        return
    with renderer.one_sample():
        yield


@dataclass(slots=True)
class _Glance:
    """The result without boxes: the first match, the equations that could match, and how many were lost."""

    matched: int | None = None
    open: list[int] = field(default_factory=list)
    lost: int = 0


def _is_in_anything(reference: Drawing) -> bool:
    return bool(reference.error) or not characters(reference.texts)


def _glance(reference: Drawing, hypotheses: Sequence[Drawing]) -> _Glance:
    """By MathML (a match) and by characters (no match where one is missing)."""
    found = _Glance()
    inside, needed = _presentation(reference.mathml), Counter(characters(reference.texts))
    for place, hypothesis in enumerate(hypotheses):
        if hypothesis.error or hypothesis.lost:
            found.lost += bool(hypothesis.lost)
        elif inside in _presentation(hypothesis.mathml):
            found.matched = place
            return found
        elif needed <= Counter(characters(hypothesis.texts)):
            found.open.append(place)
    return found


def _presentation(mathml: str) -> str:
    """`presentation`, remembered for MathML that is not long: memory is bounded by both."""
    return _of_short(mathml) if len(mathml) <= _SHORT else presentation(mathml)


_of_short = lru_cache(maxsize=2_000)(presentation)
