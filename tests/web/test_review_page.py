"""What stands on the page of a review: notes that cover no control, zoom in pixels, local times, what comes next."""

from __future__ import annotations

import json
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from loupe.web.review.review_target import open_tests
from tests.support.web.review_app import make_set, served
from tests.support.web.review_browser import at, press
from tests.web.test_review_own import FIELDS, ONE, draft, make

VERIFIED = {"status": "verified", "by": "Ada", "at": "2026-11-22T08:01:43Z", "engines": ["tesseract", "a model"]}
VERIFIED |= {"drafts": {"tesseract": ONE, "a model": ONE}}

#: Controls under a note, at any point of it; the note itself is no target.
COVERED = """() => {
    const { left, right, top, bottom } = document.getElementById('toast').getBoundingClientRect(), found = new Set();
    for (let x = left; x <= right; x += 6) for (let y = top; y <= bottom; y += 6) {
        if (x < 0 || y < 0 || x > innerWidth || y > innerHeight) found.add('outside');
        const control = document.elementFromPoint(x, y)?.closest('button, input, select, textarea, a, label, summary');
        if (control) found.add(control.outerHTML);
    }
    return [...found];
}"""


def test_notes_cover_no_control_times_are_local_and_what_comes_next_is_there_to_copy(
    browser: Browser, tmp_path: Path
) -> None:
    done = {"id": "done", "image": "a.png", "reference": ONE, "truth": VERIFIED}
    make(tmp_path, FIELDS, json.dumps(done) + "\n", draft("grid", "table", "<table><tr><td>1</td></tr></table>"))
    with served(tmp_path) as running, browser.new_context(timezone_id="Asia/Tokyo", locale="en-GB") as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.goto(running.address)
        at(page, "grid")
        check_zoom(page)
        press(page, "a")
        expect(page.locator("#finished")).to_be_visible()
        page.get_by_role("button", name="Copy").click()
        expect(page.locator("#copy-next")).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == f"loupe run {tmp_path} -e tesseract"
        press(page, "Escape", "k")
        at(page, "done")
        expect(page.locator("#head .remark")).to_have_text("verified by Ada, 22 Nov 2026, 17:01")
        expect(page.locator("#head time")).to_have_attribute("title", VERIFIED["at"])
        page.locator("[name=total]").fill("9")
        page.reload()
        at(page, "done")
        check_notes(page)
        page.locator("[name=total]").fill(ONE["total"])
        press(page, "Escape", "j")
        at(page, "grid")
        check_notes(page)


def check_zoom(page: Page) -> None:
    """The picture has 300 × 200 pixels."""
    zoom, percent = page.locator("#zoom-value"), round(width(page) / 3)
    expect(zoom).to_have_attribute("title", f"fits the pane: {percent}% of the picture's 300 × 200 pixels")
    expect(zoom).to_have_text("fit")
    press(page, "-")
    while zoom.text_content() != "100%":
        press(page, "-")
    assert width(page) == 300
    press(page, "+", "o")
    expect(zoom).to_have_text("125%")
    press(page, "o", "o", "o", "w")
    expect(zoom).to_have_text("fit")


def width(page: Page) -> int:
    box = page.locator("#page-frame").bounding_box()
    assert box is not None
    return round(box["width"])


def check_notes(page: Page) -> None:
    for wide in (1440, 900, 420):
        page.set_viewport_size({"width": wide, "height": 700})
        for text in (
            "Your unsaved edit is back: Ctrl+S saves it, Esc in its field discards it.",
            "Not saved: " + "x " * 300,
        ):
            page.evaluate("async (text) => { (await import('/static/notes.js')).toast(text, 'bad'); }", text)
            assert page.evaluate(COVERED) == [], (wide, text[:10])


def test_the_next_command_is_that_of_what_was_reviewed(tmp_path: Path) -> None:
    file = make_set(tmp_path / "a set")
    assert open_tests(file).next_command() == f"loupe run olmocr_bench -e ENGINE --data '{file}'"
