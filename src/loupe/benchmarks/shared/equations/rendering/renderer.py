"""Draw equations: from memory, from disk, or in a browser that starts only when it is needed.

One browser with one page draws batch after batch; it is restarted when it crashes or hangs.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import re
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from loupe.benchmarks.shared.equations.rendering.chromium import (
    ARGUMENTS,
    browser_environment,
    chromium_program,
    chromium_version,
    fonts_identity,
    new_folder,
)
from loupe.benchmarks.shared.equations.rendering.drawing import Drawing, DrawingCache, refused_unseen
from loupe.data.extras import need
from loupe.data.hub.katex import DRAWING, READING, Release, read_katex
from loupe.data.user_folders import cache_folder
from loupe.errors import LoupeError, MissingToolError
from loupe.helpers import environment
from loupe.typed import encode_json, json_decoder

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Playwright


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
        """Keep what is lost, or was lost in preparing, for one sample; the next one tries again."""
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
    """Return the versions of what makes MathML, by name, empty if it cannot."""
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
    """Return the versions of what draws, by name, empty for what is not here. Whatever can move a box is part of it."""
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


#: A call to the page draws so many equations, and so many characters unless one equation has more.
_BATCH, _BATCH_CHARACTERS = 200, 20_000
#: Seconds after which a page is taken to hang: a batch takes less than one, the longest equation three. What hangs
#: defines macros that expand to millions of symbols.
HANGS_AFTER = 30.0
#: An equation of a batch that hung gets a part of that time alone. After so many hangs, or crashes, whatever one call
#: has not drawn is lost: a page with many bombs costs a minute, and its other tests count.
_ALONE = 1 / 3
_MOST_HANGS, _MOST_CRASHES = 4, 20
#: Only what defines macros has ever hung or crashed a page, so it is drawn last: no other equation is lost with it.
_DEFINES = re.compile(r"\\(?:[egx]?def|(?:re)?newcommand|providecommand|let|futurelet)(?![a-zA-Z])")
_STOPS_AFTER = 10.0
_PAGE = """<!DOCTYPE html>
<html><head><style>
body { display: flex; justify-content: center; align-items: center; height: 100vh; margin: 0;
  background-color: white; color: black; }
#equation-container { padding: 0; font-size: 24px; }
</style></head><body><div id="equation-container"></div></body></html>"""

T = TypeVar("T")


class _LostError(Exception):
    """The page gave no answer that can be read: it crashed, hung, or holds what is no drawing."""

    def __init__(self, reason: str, cause: Literal["crash", "hang", "unreadable"]) -> None:
        super().__init__(reason)
        self.cause = cause


@dataclass(slots=True)
class _Patience:
    """The number of hangs and crashes that one call still bears."""

    hangs: int = _MOST_HANGS
    crashes: int = _MOST_CRASHES

    def spend(self, cause: str) -> None:
        self.hangs -= cause == "hang"
        self.crashes -= cause == "crash"

    @property
    def spent(self) -> bool:
        return self.hangs <= 0 or self.crashes <= 0


class _Loop(asyncio.SelectorEventLoop):
    """An event loop whose processes get the variables on our list: playwright hands all of ours to its driver."""

    temporary: Path

    async def subprocess_exec(self, *words: Any, env: Mapping[str, str] | None = None, **options: Any) -> Any:
        added = {name: value for name, value in (env or {}).items() if name.startswith(("PW_LANG_", "PW_CLI_"))}
        listed = {**environment(), **added, "TMPDIR": str(self.temporary)}
        return await super().subprocess_exec(*words, env=listed, **options)


class EquationBrowser:
    """Draws equations. The browser starts with the first one; `close`, or the end of the program, ends it.

    `function` is the file of what the page runs: katex_page.js to compare by symbols and boxes, katex_mathml.js by
    MathML, katex_picture.js to be looked at.
    """

    def __init__(
        self, *, hangs_after: float = HANGS_AFTER, function: str = "katex_page.js", release: Release = DRAWING
    ) -> None:
        self._hangs_after = hangs_after
        self._release = release
        self._asking = threading.Lock()
        self._loop: _Loop | None = None
        self._thread: threading.Thread | None = None
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._page: Page | None = None
        self._folder: Path | None = None
        self._function = files(__package__).joinpath(function).read_text(encoding="utf-8")

    def draw(self, equations: Sequence[str], *, measured: bool = False) -> list[Drawing]:
        """Draw each equation; with boxes if `measured`. Raises LoupeError if no browser can be started."""
        with self._asking:
            return self._wait(self._draw(equations, measured))

    def close(self) -> None:
        """End the browser and the thread; the next call starts others."""
        with self._asking:
            if self._loop is None or self._thread is None:
                return
            self._wait(self._stop(everything=True))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None
            atexit.unregister(self.close)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            self._loop = _Loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="loupe-equations", daemon=True)
            self._thread.start()
            atexit.register(self.close)
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _draw(self, equations: Sequence[str], measured: bool) -> list[Drawing]:
        drawings = [Drawing(error=refused_unseen(equation)) for equation in equations]
        shown = [place for place, drawing in enumerate(drawings) if not drawing.error]
        shown.sort(key=lambda place: _DEFINES.search(equations[place]) is not None)
        patience = _Patience()
        for batch in _batches(equations, shown):
            drawn = await self._batch([equations[place] for place in batch], measured, patience, self._hangs_after)
            for place, drawing in zip(batch, drawn, strict=True):
                drawings[place] = drawing
        return drawings

    async def _batch(self, equations: list[str], measured: bool, patience: _Patience, seconds: float) -> list[Drawing]:
        """A batch; after a crash once more; then, or if it hung, each equation alone: only the guilty one is lost."""
        for _ in range(2):
            if patience.spent:
                return [Drawing(lost="not drawn: too many others hung or crashed the browser")] * len(equations)
            try:
                return await self._ask(equations, measured, seconds)
            except _LostError as error:
                reason = str(error)
                patience.spend(error.cause)
                if error.cause != "unreadable":
                    await self._stop()
                if error.cause != "crash":
                    break
        if len(equations) == 1:
            return [Drawing(lost=reason)]
        alone = self._hangs_after * _ALONE
        return [drawing for each in equations for drawing in await self._batch([each], measured, patience, alone)]

    async def _ask(self, equations: list[str], measured: bool, seconds: float) -> list[Drawing]:
        from playwright.async_api import Error

        page = self._page or await self._start()
        asked = encode_json(equations).decode()
        try:
            call = page.evaluate(
                f"([equations, measured]) => ({self._function})(equations, measured)", [asked, measured]
            )
            answer = await asyncio.wait_for(call, seconds)
        except TimeoutError:
            raise _LostError(f"the browser did not draw it within {seconds:g} s", "hang") from None
        except Error as error:
            raise _LostError(f"the browser was lost: {error.message.splitlines()[0]}", "crash") from None
        try:
            return json_decoder(list[Drawing]).decode(answer)
        except msgspec.DecodeError as error:
            raise _LostError(f"what the browser drew cannot be read: {error}", "unreadable") from None

    async def _start(self) -> Page:
        """A browser with a page that knows KaTeX, and no way to the network."""
        need("playwright", extra="math", purpose="drawing equations")
        from playwright.async_api import Error, async_playwright

        katex = read_katex(self._release)
        if self._playwright is None or self._folder is None:
            assert self._loop is not None
            self._folder = self._loop.temporary = new_folder()
            self._playwright = await async_playwright().start()
        try:
            self._browser = await self._launch(self._playwright)
            context = await self._browser.new_context(
                viewport={"width": 800, "height": 400}, offline=True, service_workers="block", accept_downloads=False
            )
            await context.route("**/*", lambda route: route.abort())
            page = await context.new_page()
            await page.set_content(_PAGE)
            await page.add_style_tag(content=katex.style)
            await page.add_script_tag(content=katex.script)
        except Error as error:
            await self._stop()
            raise LoupeError(
                f"no page for equations: {error.message.splitlines()[0]}", hint="see what is missing: loupe doctor"
            ) from None
        page.on("crash", lambda _: None)
        self._page = page
        return page

    async def _launch(self, playwright: Playwright) -> Browser:
        """With Chromium's sandbox where it can have one: as root it refuses, in many containers it cannot."""
        from playwright.async_api import Error

        own = dict.fromkeys(
            ("TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), str(self._folder)
        )  # it leaves files in each
        program, environment = chromium_program(), browser_environment() | own
        for sandbox in (False,) if _is_root() else (True, False):
            try:
                return await playwright.chromium.launch(
                    executable_path=program,
                    args=ARGUMENTS,
                    env=dict(environment),
                    chromium_sandbox=sandbox,
                    handle_sigint=False,
                )
            except Error as error:
                failure = error
        raise failure

    async def _stop(self, *, everything: bool = False) -> None:
        browser, self._browser, self._page = self._browser, None, None
        with contextlib.suppress(Exception):
            if browser is not None:
                await asyncio.wait_for(browser.close(), _STOPS_AFTER)
        if everything and self._playwright is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self._playwright.stop(), _STOPS_AFTER)
            self._playwright = None
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _batches(equations: Sequence[str], shown: Sequence[int]) -> Iterator[list[int]]:
    """Places of equations that are drawn in one call."""
    batch: list[int] = []
    characters = 0
    for place in shown:
        length = len(equations[place])
        if batch and (len(batch) == _BATCH or characters + length > _BATCH_CHARACTERS):
            yield batch
            batch, characters = [], 0
        batch.append(place)
        characters += length
    if batch:
        yield batch


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
