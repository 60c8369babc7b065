"""Equations to drawings: from memory, from disk, or from the browser, which starts only when it is needed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

from loupe.benchmarks.shared.equations.rendering.browser import EquationBrowser
from loupe.benchmarks.shared.equations.rendering.chromium import (
    chromium_program,
    chromium_version,
    fonts_identity,
)
from loupe.benchmarks.shared.equations.rendering.drawing import Drawing
from loupe.benchmarks.shared.equations.rendering.drawing_cache import DrawingCache
from loupe.data.extras import need
from loupe.data.hub.katex import DRAWING, READING, read_katex
from loupe.data.user_folders import cache_folder
from loupe.errors import MissingToolError

#: Drawings that are kept in memory, the longest of them in characters of MathML (others are on disk), and how many are
#: taken through it at a time.
_REMEMBERED = 4_000
_LONGEST_REMEMBERED = 20_000
_AT_A_TIME = 250
#: A picture is worth less patience than a score.
_PICTURE_SECONDS = 10.0


class Renderer:
    """Drawings of equations; the same ones are drawn once."""

    def __init__(self, browser: EquationBrowser, cache: DrawingCache) -> None:
        self._browser = browser
        self._cache = cache
        self._remembered: OrderedDict[tuple[str, bool], Drawing] = OrderedDict()
        # What was lost is lost for one sample only, as this may be the machine's fault; and which of it was asked for.
        self._lost: dict[tuple[str, bool], Drawing] = {}
        self._asked: set[tuple[str, bool]] = set()

    @contextmanager
    def one_sample(self) -> Iterator[None]:
        """What is lost, or was lost in preparing, stays so for one sample; the next one tries again."""
        self._asked.clear()
        try:
            yield
        finally:
            for key in self._asked:
                self._lost.pop(key, None)

    def forget_lost(self) -> None:
        """Try again whatever was lost."""
        self._lost.clear()

    def prepare(self, equations: Iterable[str], *, measured: bool = False) -> None:
        """Draw whatever is not on disk yet, in large batches, without holding it all. Raises as `draw`."""
        wanted = list(dict.fromkeys(equations))
        for start in range(0, len(wanted), _AT_A_TIME):
            self.draw(wanted[start : start + _AT_A_TIME], measured=measured)

    def draw(self, equations: Sequence[str], *, measured: bool = False) -> list[Drawing]:
        """The drawing of each equation, with boxes if `measured`.

        Raises MissingToolError where something that draws is missing, LoupeError if the browser cannot be started.
        """
        found = {each: self._remembered[each, measured] for each in equations if (each, measured) in self._remembered}
        lost = [each for each in dict.fromkeys(equations) if (each, measured) in self._lost]
        found |= {each: self._lost[each, measured] for each in lost}
        missing = [each for each in dict.fromkeys(equations) if each not in found]
        if missing:
            found |= self._cache.find(missing, measured=measured)
        new = [each for each in missing if each not in found]
        if new:
            drawn = dict(zip(new, self._browser.draw(new, measured=measured), strict=True))
            self._cache.keep(drawn, measured=measured)
            found |= drawn
        for equation, drawing in found.items():
            if drawing.lost:
                self._lost[equation, measured] = drawing
                self._asked.add((equation, measured))
            else:
                self._remember((equation, measured), drawing)
        return [found[each] for each in equations]

    def close(self) -> None:
        """End the browser and let go of the cache."""
        self._browser.close()
        self._cache.close()

    def _remember(self, key: tuple[str, bool], drawing: Drawing) -> None:
        if len(drawing.mathml) > _LONGEST_REMEMBERED:
            return
        self._remembered[key] = drawing
        self._remembered.move_to_end(key)
        if len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)


@lru_cache(maxsize=1)
def the_renderer() -> Renderer:
    """The one of this process. Raises MissingToolError where something that draws is missing."""
    return Renderer(EquationBrowser(), DrawingCache(cache_folder() / "equations.sqlite", _identity()))


@lru_cache(maxsize=1)
def the_picture_renderer() -> Renderer:
    """The one of this process that draws pictures to be looked at. Raises as `the_renderer`."""
    browser = EquationBrowser(hangs_after=_PICTURE_SECONDS, function="katex_picture.js")
    return Renderer(browser, DrawingCache(cache_folder() / "equations.sqlite", f"{_identity()}|picture 1"))


@lru_cache(maxsize=1)
def the_mathml_renderer() -> Renderer:
    """The one of this process that makes MathML alone; neither browser nor fonts can move it. Raises as above."""
    check_mathml_tools()
    browser = EquationBrowser(function="katex_mathml.js", release=READING)
    return Renderer(browser, DrawingCache(cache_folder() / "equations.sqlite", f"katex {READING.version}|mathml 1"))


def check_mathml_tools() -> None:
    """As `check_tools`, for MathML."""
    need("playwright", extra="math", purpose="comparing equations as rendered")
    read_katex(READING)
    chromium_program()


def mathml_versions() -> dict[str, str]:
    """What makes MathML, by name, empty where it cannot."""
    try:
        check_mathml_tools()
    except MissingToolError:
        return {"katex": ""}
    return {"katex": READING.version}


def _identity() -> str:
    return "|".join(f"{name} {version}" for name, version in sorted(_complete_versions().items()))


def check_tools() -> None:
    """Raise MissingToolError, saying what is missing and what brings it, unless equations can be drawn here."""
    need("playwright", extra="math", purpose="comparing equations as rendered")
    read_katex()
    chromium_program()


def renderer_versions() -> dict[str, str]:
    """What draws, by name, empty for what is not here. Whatever can move a box is part of it."""
    try:
        return dict(_complete_versions())
    except MissingToolError:
        return {
            "katex": _version_or_nothing(_katex_version),
            "chromium": _version_or_nothing(chromium_version),
            "fonts": fonts_identity(),
        }


@lru_cache(maxsize=1)
def _complete_versions() -> dict[str, str]:
    check_tools()
    return {"katex": _katex_version(), "chromium": chromium_version(), "fonts": fonts_identity()}


def _katex_version() -> str:
    read_katex()
    return DRAWING.version


def _version_or_nothing(version: Callable[[], str]) -> str:
    try:
        return version()
    except MissingToolError:
        return ""
