"""Equations to symbols by KaTeX: many at once, each only once on a machine.

Protocol: docs/protocols/omni_parse_bench.md#symbols.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

from loupe.benchmarks.omni_parse_bench.equations.math_spans import MathSpan
from loupe.benchmarks.omni_parse_bench.equations.mathml_symbols import Symbols, symbols_of_mathml
from loupe.benchmarks.shared.equations.rendering.drawing import Drawing
from loupe.benchmarks.shared.equations.rendering.renderer import the_mathml_renderer

_AROUND = '<math xmlns="http://www.w3.org/1998/Math/MathML">{}</math>'


def read_equations(equations: Sequence[tuple[str, bool]]) -> list[Symbols | None]:
    """The symbols of each (LaTeX, whether it is a display); None for what KaTeX refuses.

    Raises MissingToolError where KaTeX cannot run, LoupeError where the browser cannot be started, GradingError where
    the official program raises.
    """
    drawn = the_mathml_renderer().draw([_asked(latex, display) for latex, display in equations])
    return [_symbols(drawing) for drawing in drawn]


def read_spans(spans: Sequence[MathSpan]) -> tuple[list[Symbols], int]:
    """The symbols of the equations of a page, none for what does not render; and how many cost the browser."""
    latex = [span for span in spans if not span.markup]
    drawn = the_mathml_renderer().draw([_asked(span.source, span.display) for span in latex]) if latex else []
    by_span = dict(zip(latex, drawn, strict=True))
    found = [
        symbols_of_mathml(_AROUND.format(span.source)) if span.markup else _symbols(by_span[span]) for span in spans
    ]
    return [symbols or () for symbols in found], sum(bool(drawing.lost) for drawing in drawn)


def prepare_equations(equations: Iterable[tuple[str, bool]]) -> None:
    """Read them all together, so that each is there when it is asked for."""
    asked = [_asked(latex, display) for latex, display in equations]
    if asked:
        renderer = the_mathml_renderer()
        renderer.forget_lost()
        renderer.prepare(asked)


@contextmanager
def one_sample() -> Iterator[None]:
    """Equations that the browser did not survive are not tried twice for one sample, and again for the next."""
    with the_mathml_renderer().one_sample():
        yield


def _asked(latex: str, display: bool) -> str:
    """As the page that reads expects it: how it is set, then the LaTeX."""
    return ("D" if display else "I") + latex


def _symbols(drawing: Drawing) -> Symbols | None:
    return None if drawing.error or drawing.lost else _of_mathml(drawing.mathml)


_of_mathml = lru_cache(maxsize=8_192)(symbols_of_mathml)
