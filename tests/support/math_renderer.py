"""A renderer of equations with an empty cache of its own; tests skip, loudly, where something that draws is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loupe.benchmarks.olmocr_bench import equations
from loupe.benchmarks.shared.equations.rendering.drawing import DrawingCache
from loupe.benchmarks.shared.equations.rendering.renderer import EquationBrowser, Renderer, check_tools
from loupe.errors import MissingToolError


def need_renderer() -> None:
    """Skip, saying what is missing, where equations cannot be drawn."""
    try:
        check_tools()
    except MissingToolError as error:
        pytest.skip(f"SKIPPED: {error.message}, so no equation was drawn; {error.hint}", allow_module_level=True)


@contextmanager
def fresh_renderer(folder: Path) -> Iterator[Renderer]:
    """The renderer that comparisons use, for a while: nothing was drawn before."""
    need_renderer()
    renderer = Renderer(EquationBrowser(), DrawingCache(folder / "equations.sqlite", "test"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equations, "the_renderer", lambda: renderer)
        yield renderer
    renderer.close()
