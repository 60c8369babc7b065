"""`loupe review tests` as a person uses it: in a real browser, with the keyboard alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from loupe.data.hub.katex import katex_folder, read_katex
from loupe.errors import MissingToolError
from tests.support.web.review_app import LINES, make_set
from tests.support.web.review_browser import Reviewing, at, opened, press

HOSTILE = (
    json.dumps(
        {
            "pdf": "a/fox.pdf",
            "page": 1,
            "id": '"><img src=x onerror=alert(1)>',
            "type": "present",
            "text": "</textarea><script>alert(2)</script>\u202e",
            "</script><script>alert(3)//": {"<b>": "&lt;"},
        }
    )
    + "\n",
    '{"pdf": "a/fox.pdf", "page": 1, "id": "bomb", "type": "math", "math": "\\\\def\\\\a{\\\\a\\\\a}\\\\a"}\n',
    '{"pdf": "a/fox.pdf", "page": 1, "id": "link", "type": "math", "math": "\\\\href{javascript:alert(4)}{x}"}\n',
    '{"pdf": "../secret.png", "page": 1, "id": "out", "type": "present", "text": "x"}\n',
    '{"pdf": "a/fox.pdf", no\n',
)

#: Controls that a screen reader could not name.
NAMELESS = """[...document.querySelectorAll('button, input, select, textarea, img')].filter((e) => !e.labels?.length &&
    !e.getAttribute('aria-label') && !e.textContent.trim() && !e.getAttribute('alt')).map((e) => e.outerHTML)"""

TWO_KEYS_AT_ONCE = """for (const key of 'ar')
    document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))"""


@pytest.fixture(scope="module")
def mixed(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Reviewing]]:
    """A page with a review of good, hostile and broken lines, which two tests share: browsers are costly."""
    folder = tmp_path_factory.mktemp("mixed")
    with reviewing(browser, folder, (*LINES[:-1], *HOSTILE)) as review:
        yield folder, review


@contextmanager
def reviewing(browser: Browser, folder: Path, lines: tuple[str, ...] = LINES) -> Iterator[Reviewing]:
    """A page with the review of a test file."""
    with opened(browser, make_set(folder, lines)) as review:
        yield review


def records(folder: Path) -> dict[str, dict[str, Any]]:
    lines = (folder / "tests.jsonl").read_text(encoding="utf-8").split("\n")
    found = [json.loads(line) for line in lines if line.strip() and "no\n" not in line + "\n"]
    return {record["id"]: record for record in found}


def test_a_whole_file_is_reviewed_edited_and_undone_with_the_keyboard_alone(browser: Browser, tmp_path: Path) -> None:
    with reviewing(browser, tmp_path) as (_, page, _):
        at(page, "t1")
        expect(page.locator("#page-image")).to_have_attribute("data-picture", "0")
        expect(page.locator(".mark-box.of-text")).to_have_count(1)
        page.evaluate(TWO_KEYS_AT_ONCE)
        at(page, "t2")
        expect(page.locator("#toast")).to_have_text("t1: verified")
        assert records(tmp_path)["t1"]["checked"] == "verified"
        assert "checked" not in records(tmp_path)["t2"], "the second key came before the second test was to be seen"
        press(page, "r")
        at(page, "t3")
        press(page, "e", "Control+a")
        page.keyboard.insert_text("9.99")
        press(page, "Tab", "Shift+Tab", "Enter")
        expect(page.locator("#undo")).to_have_attribute("title", "Undo (u): t3: Cell edited")
        assert records(tmp_path)["t3"]["cell"] == "9.99"
        press(page, "]")
        expect(page.locator("#undo")).to_have_attribute("title", "Undo (u): t3: Differences allowed edited")
        press(page, "u")
        expect(page.locator("#toast")).to_contain_text("undone")
        press(page, "u")
        expect(page.locator("[name=cell]")).to_have_value("4.20")
        press(page, "u")
        at(page, "t2")
        assert "checked" not in records(tmp_path)["t2"]
        press(page, "e")
        page.keyboard.insert_text(" unwanted")
        press(page, "Escape")
        expect(page.locator("[name=before]")).to_have_value("brown")
        for ident in ("t2", "t3", "t4", "t8", "t6"):
            at(page, ident)
            press(page, "a")
        at(page, "t7")
        press(page, "n")
        at(page, "t7")
        press(page, "r")
        expect(page.locator("#finished")).to_be_visible()
        expect(page.locator("#finished-text")).to_contain_text("6 verified, 2 rejected")
        press(page, "Escape")
        assert [record.get("checked") for record in records(tmp_path).values()].count(None) == 0
        raw = (tmp_path / "tests.jsonl").read_bytes().decode()
        assert raw.splitlines(keepends=True)[5] == LINES[5] and '{"x":[1, 2.50]},"checked":"verified"}\r\n' in raw


def test_filter_place_and_a_half_typed_edit_survive_a_reload(mixed: tuple[Path, Reviewing]) -> None:
    folder, (_, page, heard) = mixed
    press(page, "/")
    page.keyboard.insert_text("头部")
    press(page, "Enter")
    at(page, "照片")
    assert page.locator(".row:visible").count() == 1
    press(page, "e")
    page.keyboard.insert_text("新")
    before = (folder / "tests.jsonl").read_bytes()
    page.reload()
    page.locator("html[data-ready]").wait_for()
    assert heard.warned == 1
    at(page, "照片")
    expect(page.locator("[name=text]")).to_have_value("头部新")
    assert (folder / "tests.jsonl").read_bytes() == before
    assert page.locator(".row:visible").count() == 1
    press(page, "e", "Enter")
    expect(page.locator("#undo")).to_be_enabled()
    assert records(folder)["照片"]["text"] == "头部新"
    press(page, "+", "+")
    expect(page.locator("#zoom-value")).to_have_text(re.compile(r"\d%$"))
    zoomed = page.locator("#page-frame").bounding_box()
    press(page, "0", "z", "w")
    expect(page.locator("#zoom-value")).to_have_text("fit")
    expect(page.locator("#zoom-value")).to_have_attribute(
        "title", re.compile(r"^fits the pane: \d+% of the .* 400 × 300")
    )
    assert zoomed is not None and zoomed["width"] > 500
    press(page, "Escape", "Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert page.evaluate(NAMELESS) == []
    if katex_is_here():
        check_preview(page)


def check_preview(page: Page) -> None:
    """An equation is drawn while it is typed; what KaTeX refuses is said."""
    page.goto(re.sub(r"\?.*", "?line=5", page.url))
    at(page, "t4")
    expect(page.locator("#preview .mfrac")).to_have_count(1)
    press(page, "e", "Control+a")
    page.keyboard.insert_text(r"\sqrt{x}")
    expect(page.locator("#preview .sqrt")).to_have_count(1)
    page.keyboard.insert_text(r"\oops")
    expect(page.locator("#preview")).to_contain_text("Undefined control sequence")
    press(page, "Escape")


def test_two_tabs_and_another_program_are_noticed_and_nobody_is_overwritten(browser: Browser, tmp_path: Path) -> None:
    with reviewing(browser, tmp_path) as (running, page, _):
        second = page.context.new_page()
        second.goto(f"http://127.0.0.1:{running.port}/?line=1")
        second.locator("html[data-ready]").wait_for()
        expect(page.locator("#tabs")).to_contain_text("another tab", timeout=8000)
        at(second, "t1")
        press(second, "e", "Control+a")
        second.keyboard.insert_text("from the second tab")
        press(page, "a")
        at(page, "t2")
        expect(second.locator("#conflict")).to_contain_text("Nothing was overwritten", timeout=8000)
        expect(second.locator("[name=text]")).to_have_value("from the second tab")
        assert records(tmp_path)["t1"]["text"] == "The quick brown fox"
        second.get_by_role("button", name="Save mine anyway").click()
        expect(second.locator("#conflict")).to_be_hidden()
        assert records(tmp_path)["t1"] == {
            **json.loads(LINES[0]), "checked": "verified", "text": "from the second tab"
        }  # fmt: skip
        file = tmp_path / "tests.jsonl"
        file.write_bytes(file.read_bytes().replace(b'brown","after', b'BROWN","after'))
        expect(page.locator("[name=before]")).to_have_value("BROWN", timeout=8000)
        expect(page.locator("#toast")).to_contain_text("another tab or program")
        running.process.terminate()
        press(page, "a")
        expect(page.locator("#trouble")).to_contain_text("does not answer")
        running.process.wait(timeout=20)  # a Ctrl-C while it ends would be a second signal


def test_hostile_texts_are_shown_as_texts_and_what_is_broken_is_named(mixed: tuple[Path, Reviewing]) -> None:
    folder, (_, page, _) = mixed
    page.goto(re.sub(r"\?.*", "?line=9", page.url))
    before = (folder / "tests.jsonl").read_bytes()
    at(page, '"><img src=x onerror=alert(1)>')
    expect(page.locator("[name=text]")).to_have_value("</textarea><script>alert(2)</script>\u202e")
    expect(page.locator(".facts .field-remark")).to_have_text("invisible characters: U+202E")
    expect(page.locator("#head .remark")).to_contain_text("</script><script>alert(3)//")
    assert page.locator("img").count() == 1 and page.locator("#form script").count() == 0
    press(page, "j")
    at(page, "bomb")
    drawn = katex_is_here()
    expect(page.locator("#preview")).to_contain_text("Too many expansions" if drawn else "run: loupe setup math")
    press(page, "j")
    at(page, "link")
    expect(page.locator("#preview")).to_contain_text("\\href" if drawn else "run: loupe setup math")
    assert page.locator("#preview a").count() == 0
    page.goto(re.sub(r"\?.*", "?line=12", page.url))
    at(page, "out")
    expect(page.locator("#page-problem")).to_contain_text("not shown")
    page.goto(re.sub(r"\?.*", "?line=13", page.url))
    expect(page.locator("#head .warning")).to_contain_text("tests.jsonl, line 13: not JSON")
    press(page, "a")
    assert (folder / "tests.jsonl").read_bytes() == before


def katex_is_here() -> bool:
    try:
        read_katex()
    except MissingToolError:
        return False
    return katex_folder().is_dir()
