"""How every page looks in the states that people see: nothing cut, nothing over another, no squashed row, no pale text.

One browser opens each page once, and changes its width and its theme; `tests/support/web/looks.js` judges what is
there. With `LOUPE_PICTURES=DIR`, a picture of each is left there.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page

import loupe
from loupe.report.html import write_report
from loupe.web.review import app as review_server
from loupe.web.review.review_target import open_folder, open_tests
from loupe.web.view import app as view_server
from tests.support.web import states
from tests.support.web.review_app import LINES, make_set

pytestmark = pytest.mark.browser

LOOKS = (Path(states.__file__).parent / "looks.js").read_text(encoding="utf-8")
WIDTHS, THEMES = (1280, 390), ("light", "dark")
BOARDS = ("winner", "tie", "one", "failures", "headless", "gone", "names", "hebrew", "many", "fields", "labels")
PARTS = ("", "/slices", "/samples", "/compare")
NOTEBOOK = (
    "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
    "<style>html{color-scheme:light dark}body{background:light-dark(#fff,#111)}</style>"
)

Serve = Callable[[asyncio.Event, Callable[[str], None]], Coroutine[Any, Any, None]]


@contextmanager
def served_here(serve: Serve) -> Iterator[str]:
    """The address of a server of Loupe in a thread of this process."""
    ready: Future[str] = Future()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serving() -> None:
        running.append((asyncio.get_running_loop(), asyncio.Event()))
        await serve(running[0][1], ready.set_result)

    thread = threading.Thread(target=lambda: asyncio.run(serving()), daemon=True)
    thread.start()
    try:
        yield ready.result(60)
    finally:
        loop, stop = running[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(30)
        assert not thread.is_alive()


class Looked:
    """A tab, the states on disk, and the addresses of the servers that show them."""

    def __init__(self, page: Page, root: Path, view: str) -> None:
        self.page, self.root, self.view = page, root, view.partition("/?")[0]
        self.trouble: list[str] = []
        #: Class with a layout of its own → kinds of elements that have it, and where the last one was seen.
        self.kinds: dict[str, dict[str, str]] = {}
        self.pictures = os.environ.get("LOUPE_PICTURES")
        page.on("console", lambda said: self.trouble.append(said.text))
        page.on("pageerror", lambda error: self.trouble.append(str(error)))
        page.goto(view)
        self.boards = dict(
            page.eval_on_selector_all(
                ".group-title a", "all => all.map(each => [each.textContent.split(' ').at(-1), each.pathname])"
            )
        )

    def open(self, address: str, wait: str = "html[data-ready]") -> None:
        """Open an address, and all that folds on its page."""
        self.page.goto(address)
        self.page.locator(wait).first.wait_for()
        self.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")

    def faults(self, name: str) -> list[str]:
        """What is wrong with the open page in both widths and themes."""
        found = []
        for theme in THEMES:
            scheme: Literal["light", "dark"] = "dark" if theme == "dark" else "light"
            self.page.emulate_media(color_scheme=scheme)
            for width in WIDTHS:
                self.page.set_viewport_size({"width": width, "height": 900})
                looked = self.page.evaluate(LOOKS)
                found += [f"{name}, {width} px, {theme}: {fault}" for fault in looked["faults"]]
                for each, kinds in looked["kinds"].items():
                    self.kinds.setdefault(each, {}).update(dict.fromkeys(kinds, name))
                if self.pictures:
                    self.page.screenshot(path=Path(self.pictures) / f"{name}-{width}-{theme}.png", full_page=True)
        return found + self.trouble


@pytest.fixture(scope="module")
def looked(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Looked]:
    root = tmp_path_factory.mktemp("states")
    states.toys(root)
    for make, name in ((states.own, "own"), (states.matched, "match")):
        (root / name).mkdir()
        make(root / name)
    (root / "gone" / "samples.jsonl").unlink()
    roots = sorted(path for path in root.glob("*/runs"))
    context = browser.new_context()
    with served_here(lambda stop, ready: view_server.serve(roots, port=0, on_ready=ready, stop=stop)) as address:
        yield Looked(context.new_page(), root, address)
    context.close()


def sound(faults: list[str]) -> None:
    """Name every fault, not the first one only."""
    assert not faults, "\n".join(["", *faults])


def runs_below(folder: Path) -> list[Path]:
    return sorted(path.parent for path in folder.rglob("run.json"))


@pytest.mark.parametrize("name", ["all", "many", "one"])
def test_reports(looked: Looked, name: str) -> None:
    """All states in one report; one with many engines has another layout, and one of a single engine no columns."""
    shown = [path for path in looked.root.iterdir() if path.name == name or (name == "all" and path.name != "many")]
    file = looked.root / f"{name}.html"
    write_report([run for path in sorted(shown) for run in runs_below(path / "runs")], file)
    looked.open(file.as_uri())
    sound(looked.faults(f"report-{name}"))
    if name != "all":
        return
    groups = looked.page.evaluate(
        "JSON.parse(document.getElementById('index').textContent).groups.map(each => [each.key, each.samples[0].id])"
    )
    faults = []
    for key, ident in groups:
        looked.page.goto(f"{file.as_uri()}#s={quote(ident, safe='')}&b={quote(key, safe='')}")
        looked.page.locator("#sample .sample-numbers table").first.wait_for()
        looked.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        faults += looked.faults(f"report-sample-{key.partition('@')[0]}")
    sound(faults)
    assert len(groups) == 11


@pytest.mark.parametrize("board", ["1.5", *BOARDS])
def test_view(looked: Looked, board: str) -> None:
    """Every page of a benchmark: leaderboard, slices, samples, compare, a run, a sample, an edited answer."""
    place = f"{looked.view}{looked.boards[board]}"
    faults = []
    for part in PARTS:
        looked.open(place + part)
        faults += looked.faults(f"view-{board}{part.replace('/', '-')}")
        if part == "":
            run = looked.page.locator(".leaderboard .engine a").last.get_attribute("href")
        if part == "/samples" and looked.page.locator(".card").count():
            sample = looked.page.locator(".card").nth(1).get_attribute("href") or ""
    looked.open(f"{looked.view}{run}")
    faults += looked.faults(f"view-{board}-run")
    if board in ("winner", "failures", "names", "hebrew", "fields", "1.5"):
        looked.open(f"{looked.view}{sample}", "#sample .sample-numbers table")
        faults += looked.faults(f"view-{board}-sample")
    if board in ("winner", "names", "hebrew"):
        looked.open(f"{looked.view}{sample.replace('/sample?', '/what-if?')}")
        faults += looked.faults(f"view-{board}-what-if")
    sound(faults)


def test_view_of_all_benchmarks_and_of_what_is_not_there(looked: Looked) -> None:
    looked.open(looked.view)
    faults = looked.faults("view-home")
    looked.open(f"{looked.view}/b/nothing")
    looked.trouble[:] = [said for said in looked.trouble if "404" not in said]
    sound(faults + looked.faults("view-not-there"))


@pytest.mark.parametrize("kind", ["fields", "class", "table", "tests"])
def test_review(looked: Looked, tmp_path: Path, kind: str) -> None:
    if kind == "tests":
        begins = {"pdf": "photo.png", "page": 1, "type": "present"}
        long = [json.dumps({**begins, "id": f"l{n}", "text": f"{states.BEGINNING * 2}{n}"}) + "\n" for n in range(3)]
        file = make_set(tmp_path, (*long, *LINES))
        review, data = open_tests(file), tmp_path / "pdfs"
    else:
        data = states.drafted(tmp_path / "own", kind)
        review = open_folder(data, document_type=None, by="Ada")
    with ExitStack() as stack:
        address = stack.enter_context(
            served_here(lambda stop, ready: review_server.serve(review, data, port=0, on_ready=ready, stop=stop))
        )
        looked.open(address)
        looked.page.locator("html:not([data-drawing])").wait_for()
        faults = looked.faults(f"review-{kind}")
        looked.page.set_viewport_size({"width": 390, "height": 900})
        looked.page.locator("#list-open").click()
        faults += looked.faults(f"review-{kind}-list")
        looked.page.goto("about:blank")  # A page whose server has gone complains.
    sound(faults)


def test_notebook(looked: Looked) -> None:
    runs = [loupe.Run(looked.root / "own" / "runs" / engine / "fields") for engine in ("good", "poor")]
    named = [loupe.Run(path) for path in runs_below(looked.root / "names" / "runs")]
    shown: list[Any] = [
        *(runs[1], runs[1].samples, runs[1].samples[0], loupe.compare(*runs)),
        *(named[0], named[0].samples, named[0].samples[0], loupe.compare(*named), loupe.benchmarks()),
    ]
    faults = []
    for place, each in enumerate(shown):
        looked.page.goto("about:blank")
        looked.page.set_content(NOTEBOOK + each._repr_html_())
        faults += looked.faults(f"notebook-{place}")
    sound(faults)


def test_a_class_with_a_layout_of_its_own_is_on_one_kind_of_element(looked: Looked) -> None:
    """Runs last: `wins` was a row of a table, and a bar in a picture."""
    assert len(looked.kinds) > 60
    assert {name: kinds for name, kinds in looked.kinds.items() if len(kinds) > 1} == {}
