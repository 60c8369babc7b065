"""The browser that draws equations: hostile ones, crashes, hangs, no network; and the cache on disk."""

from __future__ import annotations

import asyncio
import http.server
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from loupe.benchmarks.olmocr_bench.equations import MathOutcome, prepare_questions, render_and_match
from loupe.benchmarks.shared.equations.rendering.drawing import LONGEST_EQUATION, Drawing, DrawingCache
from loupe.benchmarks.shared.equations.rendering.renderer import EquationBrowser, Renderer
from loupe.data.hub.katex import katex_folder
from loupe.errors import LoupeError
from tests.support.command_line import loupe
from tests.support.math_renderer import fresh_renderer, need_renderer

pytestmark = pytest.mark.browser
#: 450,000 symbols out of 2,300 characters, within the 1,000 expansions that KaTeX allows.
BOMB = r"\def\a{" + "x" * 500 + "}" + r"\a" * 900


@pytest.fixture(scope="module")
def browser() -> Iterator[EquationBrowser]:
    need_renderer()
    found = EquationBrowser()
    yield found
    found.close()


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A server on loopback, and what it was asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(204)
            self.end_headers()

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}", asked
        found.shutdown()
        thread.join()


def in_page(browser: EquationBrowser, script: str, argument: Any = None) -> Any:
    """Run a script in the page that draws."""
    browser.draw(["x"])
    assert browser._page is not None
    assert browser._loop is not None
    return asyncio.run_coroutine_threadsafe(browser._page.evaluate(script, argument), browser._loop).result(60)


HOSTILE = {
    "macros without end": r"\def\a{\a\a}\a",
    "macros that double": r"\def\a{xx}\def\b{\a\a}\def\c{\b\b}\def\d{\c\c\c\c\c\c\c\c}" + r"\d" * 20,
    "a megabyte": "x+" * 500_000,
    "nesting": "{" * 9_000 + "x" + "}" * 9_000,
    "nested roots": r"\sqrt{" * 2_500 + "x" + "}" * 2_500,
    "an enormous rule": r"\rule{1e9em}{1e9em}x",
    "a lone surrogate": "a\ud800b",
    "a null": "a\x00b",
    "no character of XML": "a\uffffb",
    "markup": r"<img src=x onerror=alert(1)></span><script>document.title='owned'</script>",
    "a quote": "\"');//",
    "an unknown environment": r"\begin{document}x\end{document}",
    "many rows": r"\begin{array}{c}" + r"1\\" * 5_000 + r"\end{array}",
}


@pytest.mark.parametrize("equation", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_equation_is_drawn_or_refused_and_harms_none_beside_it(
    browser: EquationBrowser, equation: str
) -> None:
    [before] = browser.draw(["a^2"], measured=True)
    for measured in (False, True):
        first, found, last = browser.draw(["a^2", equation, "a^2"], measured=measured)
        assert first.texts == last.texts == before.texts
        assert not found.lost
        assert bool(found.error) != bool(found.mathml)
    assert first.boxes == last.boxes == before.boxes
    assert in_page(browser, "() => document.title") == ""


@pytest.mark.parametrize("function", ["katex_page.js", "katex_picture.js"])
def test_characters_that_are_no_text_are_one_drawing_each(function: str) -> None:
    need_renderer()
    numbers = ("0", "9", "AD", "D800", "DC00", "FFFE", "FFFF", "10FFFF")
    browser = EquationBrowser(function=function)
    for measured in (False, True):
        drawings = browser.draw([rf'x+\char"{number} y' for number in numbers], measured=measured)
        assert [drawing.lost for drawing in drawings] == [""] * len(numbers)
        assert [number for number, drawing in zip(numbers, drawings, strict=True) if drawing.error] == ["10FFFF"]
        shown = dict(zip(numbers, ("".join(drawing.texts) for drawing in drawings), strict=True))
        assert shown["D800"] == shown["DC00"] == "x+\ufffdy"
        assert shown["FFFF"] == "x+\uffffy"
    browser.close()


def test_what_cannot_be_read_is_lost_alone_and_drawn_again_for_the_next_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fresh_renderer(tmp_path) as renderer:
        browser = renderer._browser
        right = browser._function
        wrong = "(found => JSON.parse(equations).includes('b') ? '[{\"mathml\": 1}]' : found)"
        browser._function = f"(equations, measured) => {wrong}(({right})(equations, measured))"
        with renderer.one_sample():
            first, second = renderer.draw(["a", "b"])
            assert (first.texts, "cannot be read" in second.lost) == (["a"], True)
            browser._function = right
            assert renderer.draw(["b"]) == [second]
        assert renderer.draw(["b"])[0].texts == ["b"]


def test_a_browser_leaves_nothing_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_renderer()
    monkeypatch.setenv("LOUPE_KATEX_DIR", str(katex_folder()))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name, folder in (("HOME", "home"), ("XDG_CACHE_HOME", "cache")):
        (tmp_path / folder).mkdir()
        monkeypatch.setenv(name, str(tmp_path / folder))
    found = EquationBrowser()
    try:
        assert [drawing.error for drawing in found.draw(["x^2"])] == [""]
    finally:
        found.close()
    left = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")]
    assert {path for path in left if not path.startswith("cache/loupe")} == {"home", "cache"}


def test_macros_do_not_leak_into_the_next_equation(browser: EquationBrowser) -> None:
    defined, used = browser.draw([r"\gdef\mine{x}\mine", r"\mine"])
    assert defined.texts == ["x"]
    assert used.error


def test_nothing_is_fetched_whatever_an_equation_or_the_page_asks_for(
    browser: EquationBrowser, server: tuple[str, list[str]]
) -> None:
    address, asked = server
    names = (r"\href{%s/a}{x}", r"\url{%s/b}", r"\includegraphics{%s/c.png}", r"\htmlStyle{background:url(%s/d)}{x}")
    for drawing in browser.draw([name % address for name in names], measured=True):
        assert not drawing.error
    reached = in_page(browser, "url => fetch(url).then(() => true, () => false)", f"{address}/e")
    image = (
        "url => new Promise(done => { const i = new Image(); i.onload = i.onerror = done; i.src = url; }).then(() => 1)"
    )
    in_page(browser, image, f"{address}/f")
    assert not reached
    assert asked == []


def test_a_crash_is_followed_by_a_new_browser_that_draws_the_batch(browser: EquationBrowser) -> None:
    expected = browser.draw(["a+b", r"\frac{1}{2}"], measured=True)
    assert browser._page is not None
    assert browser._loop is not None
    crash = asyncio.run_coroutine_threadsafe(browser._page.goto("chrome://crash"), browser._loop)
    with pytest.raises(Exception, match=r"crash"):
        crash.result(60)
    assert browser.draw(["a+b", r"\frac{1}{2}"], measured=True) == expected


def test_a_browser_that_is_gone_is_started_again(browser: EquationBrowser) -> None:
    expected = browser.draw(["a+b"])
    assert browser._browser is not None
    assert browser._loop is not None
    asyncio.run_coroutine_threadsafe(browser._browser.close(), browser._loop).result(60)
    assert browser.draw(["a+b"]) == expected


@pytest.mark.slow
def test_an_equation_that_hangs_the_page_is_lost_alone(tmp_path: Path) -> None:
    need_renderer()
    with fresh_renderer(tmp_path) as renderer:
        renderer._browser = EquationBrowser(hangs_after=4)
        bombs = [f"{BOMB}{number}" for number in range(20)]
        began = time.monotonic()
        *lost, last = renderer._browser.draw([*bombs, "a^2"])
        assert (all(each.lost for each in lost), last.texts[:2]) == (True, ["a", "2"])
        assert time.monotonic() - began < 60
        assert render_and_match("a^2", ["b_1", BOMB, "b^2"]) == MathOutcome(None, not_compared=1)
        first, bomb = renderer.draw(["a^2", BOMB])
        assert first.texts[:2] == ["a", "2"]
        assert "did not draw it within" in bomb.lost
        assert render_and_match("a^2", [BOMB, "{a^2}"]).matched == 1
        with pytest.raises(LoupeError, match="reference"):
            render_and_match(BOMB, ["x"])


def test_an_equation_that_is_too_long_is_not_shown_to_the_browser(browser: EquationBrowser) -> None:
    shown, not_shown = browser.draw(["%" * LONGEST_EQUATION, "%" * (LONGEST_EQUATION + 1)])
    assert (bool(shown.mathml), bool(not_shown.error)) == (True, True)


def test_what_was_drawn_once_is_never_drawn_again_failures_included(tmp_path: Path) -> None:
    with fresh_renderer(tmp_path) as first:
        questions = [("x^2", ["x^{2}", r"\wrong{", "y"]), (r"\wrong{", ["y"]), ("ab", ["ba", "cab"])]
        prepare_questions(questions)
        outcomes = [render_and_match(*question) for question in questions]
        expected = first.draw(["x^2", r"\wrong{"])
    assert outcomes == [MathOutcome(0), MathOutcome(0), MathOutcome(1)]
    with fresh_renderer(tmp_path) as second:
        assert [render_and_match(*question) for question in questions] == outcomes
        assert second.draw(["x^2", r"\wrong{"]) == expected
        assert second._browser._thread is None


def test_another_renderer_finds_nothing_of_this_one(tmp_path: Path) -> None:
    ours, theirs = (DrawingCache(tmp_path / "equations.sqlite", name) for name in ("chromium 1", "chromium 2"))
    ours.keep({"x": Drawing(mathml="m"), "y": Drawing(error="e"), "z": Drawing(lost="l")}, measured=False)
    assert ours.find("xyz", measured=False) == {"x": Drawing(mathml="m"), "y": Drawing(error="e")}
    assert ours.find("xyz", measured=True) == {} == theirs.find("xyz", measured=False)
    ours.close()
    theirs.close()


def test_a_damaged_cache_is_begun_anew_and_one_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    path = tmp_path / "equations.sqlite"
    path.write_bytes(b"not a database at all, but long enough to be looked at" * 50)
    cache = DrawingCache(path, "a")
    cache.keep({"x": Drawing(mathml="m")}, measured=False)
    assert cache.find(["x"], measured=False) == {"x": Drawing(mathml="m")}
    cache.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE blobs SET blob = x'0102'")
    connection.close()
    damaged = DrawingCache(path, "a")
    assert damaged.find(["x"], measured=False) == {}
    damaged.close()
    nowhere = DrawingCache(Path(os.devnull) / "equations.sqlite", "a")
    nowhere.keep({"x": Drawing(mathml="m")}, measured=False)
    assert nowhere.find(["x"], measured=False) == {}


def test_threads_may_ask_at_the_same_time(tmp_path: Path) -> None:
    with fresh_renderer(tmp_path) as renderer:
        assert isinstance(renderer, Renderer)
        answers: dict[int, list[Drawing]] = {}
        threads = [
            threading.Thread(target=lambda each=each: answers.update({each: renderer.draw([f"x_{each}", "y"])}))
            for each in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [answers[each][0].texts[:2] for each in range(6)] == [["x", str(each)] for each in range(6)]


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a path that is short enough for a socket."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_a_process_that_is_killed_leaves_nothing_that_the_next_one_does_not_clear_away(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_renderer()
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    program = (
        "import os, signal\n"
        "from loupe.benchmarks.shared.equations.rendering.renderer import EquationBrowser\n"
        "EquationBrowser().draw(['x'])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | {"TMPDIR": str(short)}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert [path.name.rpartition("-")[0].rpartition("-")[0] for path in short.iterdir()] == ["loupe-browser"]
    browser = EquationBrowser()
    browser.draw(["x"])
    [folder] = short.iterdir()
    assert folder.name.startswith(f"loupe-browser-{os.getpid()}-")
    browser.close()
    assert list(short.iterdir()) == []


def test_the_check_of_a_folder_names_math_that_any_equation_would_pass(tmp_path: Path) -> None:
    Image.new("RGB", (40, 30), "white").save(tmp_path / "a.png")
    (tmp_path / "loupe.toml").write_text('[benchmark]\ntask = "facts"\n')
    (tmp_path / "samples.jsonl").write_text('{"id": "a", "image": "a.png", "reference": null}\n')
    maths = {"wrong": "\\nosuchcommand{x}", "blank": "\\quad", "right": "\\frac{a}{b}"}
    common = {"pdf": "a.png", "page": 1, "type": "math", "checked": "verified"}
    rows = [json.dumps(common | {"id": ident, "math": math}) for ident, math in maths.items()]
    (tmp_path / "facts.jsonl").write_text("\n".join(rows) + "\n")
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "LOUPE_KATEX_DIR": str(katex_folder())}
    done = loupe("bench", "check", tmp_path, cwd=tmp_path, env=environment)
    assert done.returncode == 2 and "right:" not in done.stderr + done.stdout
    said = " ".join((done.stdout + done.stderr).split())
    assert "wrong: KaTeX does not draw its equation, so it would hold for every answer with one: KaTeX" in said
    assert "blank: KaTeX does not draw its equation" in said and "2 problems" in said
