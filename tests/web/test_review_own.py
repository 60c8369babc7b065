"""`loupe review DIR` as a person uses it: drafts of several engines, forms, grids and previews, in a real browser."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page, Route, expect

from loupe.benchmarks.folders.own import check_folder, open_folder
from tests.support.served import wait_for
from tests.support.web.review_app import PDF, Served, served, start
from tests.support.web.review_browser import at, opened, press

FIELDS = """[benchmark]
title = "Bills"
task = "fields"
[fields]
day = "date"
total = "amount"
"<b>seller" = "company"
"""
ONE = {"day": "11.05.2024", "total": "1.234,50", "<b>seller": "株式会社 北風"}
TWO = {**ONE, "total": "1.284,50"}


def drafted(ident: str, pages: str, **truth: Any) -> str:
    reference, state = json.dumps(ONE), json.dumps({"status": "draft", **truth})
    return f'{{"id": "{ident}",  {pages}, "reference": {reference}, "truth": {state}}}\n'


DRAFTS = (
    drafted("agreed", '"image": "a.png"', engines=["one", "two"], drafts={"one": ONE, "two": ONE}),
    drafted(
        "differ",
        '"images": ["fox.pdf#page=1", "a.png"]',
        engines=["one", "two", "three"],
        differs=["total"],
        drafts={"one": ONE, "two": TWO, "three": None},
    ),
    '{"id": "empty", "image": "a.png", "reference": null, "truth": {"status": "draft"}}\n',
    '{"id": "done", "image": "a.png", "reference": {"day": "", "total": "7"}}\n',
)
TABLE = (
    '<table class="x"><thead><tr><th rowspan="2">Item</th><th colspan="2">価格</th></tr>'
    "<tr><th>net</th><th>gross</th></tr></thead><tbody><tr><td>Fish &amp; chips</td><td>1</td><td>x<sup>2</sup></td>"
    "</tr></tbody></table>"
)
HOSTILE = (
    "# سلام\n\n<script>alert(1)</script><img src=x onerror=alert(2)>[x](javascript:alert(3))\n\n"
    "| a | b |\n|-|-|\n| 1 | 2 |"
)
PASTE = """(text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData('text/plain', text);
    const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true });
    document.activeElement.dispatchEvent(event);
}"""


def make(folder: Path, settings: str, *lines: str) -> Path:
    (folder / "loupe.toml").write_text(settings, encoding="utf-8")
    (folder / "samples.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "fox.pdf").write_bytes(PDF)
    Image.new("RGB", (300, 200), "white").save(folder / "a.png")
    return folder


def draft(ident: str, task: str, reference: Any, image: str = "a.png") -> str:
    line = {"id": ident, "image": image, "task": task, "reference": reference, "truth": {"status": "draft"}}
    return json.dumps(line, ensure_ascii=False) + "\n"


def raw(folder: Path) -> list[str]:
    return (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)


def samples(folder: Path) -> dict[str, dict[str, Any]]:
    return {value["id"]: value for value in map(json.loads, raw(folder))}


def go(page: Page, ident: str) -> None:
    page.locator(f'.row[data-id="{ident}"]').click()
    at(page, ident)


def test_drafts_of_several_engines_become_truth_with_the_keyboard_alone(browser: Browser, tmp_path: Path) -> None:
    make(tmp_path, FIELDS, *DRAFTS)
    with opened(browser, tmp_path, "--as", "Ada L.") as (_, page, _):
        at(page, "differ")
        held: list[Route] = []
        page.route("**/page/*", lambda route: held.append(route))
        page.reload(wait_until="commit")
        expect(page.locator("#verify")).to_be_disabled()
        press(page, "a")
        expect(page.locator("#toast")).to_contain_text("still loading")
        expect(page.locator("#reject")).to_be_enabled()
        for route in held:
            route.continue_()
        at(page, "differ")
        expect(page.locator("#verify")).to_be_enabled()
        assert raw(tmp_path) == list(DRAFTS), "nobody can have seen the page"
        page.unroute("**/page/*")
        assert page.locator("#leaf-value").text_content() == "1 of 2"
        expect(page.locator(".takes .chip")).to_have_count(2)
        expect(page.locator("[data-take-all='2']")).to_be_disabled()
        press(page, ".")
        expect(page.locator("#page-image")).to_have_attribute("alt", "a.png")
        press(page, "o")
        expect(page.locator("#page-sheet")).to_have_attribute("style", re.compile(r"rotate\(90deg\)"))
        press(page, "2")
        expect(page.locator("[name=total]")).to_have_value("1.284,50")
        expect(page.locator("#undo")).to_have_attribute("title", "Undo (u): differ: total edited")
        assert samples(tmp_path)["differ"]["reference"] == TWO
        press(page, "u")
        expect(page.locator("[name=total]")).to_have_value("1.234,50")
        press(page, "e")
        expect(page.locator("[name=total]")).to_be_focused()
        press(page, "Alt+2", "Control+a")
        page.keyboard.insert_text("about ten")
        expect(page.locator("[data-field=total] .field-hint")).to_contain_text("kept as a draft, cannot be accepted")
        press(page, "Enter", "a")
        expect(page.locator("[data-field=total] .field-problem")).to_contain_text("'about ten' is no amount")
        expect(page.locator("#toast")).to_have_class(re.compile(r"\bbad\b"))
        # What is pressed next is still a shortcut, and not typed into the ground truth.
        press(page, "a", "g")
        expect(page.locator("[name=total]")).not_to_be_focused()
        expect(page.locator("[name=total]")).to_have_value("about ten")
        press(page, "e", "Control+a")
        page.keyboard.insert_text("1,284.50 €")
        expect(page.locator("[data-field=total] .field-hint")).to_have_text("read as 1284.50")
        press(page, "Enter", "a")
        at(page, "agreed")
        expect(page.locator("#toast")).not_to_have_class(re.compile(r"\bbad\b"))
        found = samples(tmp_path)["differ"]
        assert found["reference"] == {**ONE, "total": "1,284.50 €"}
        assert found["truth"] == {
            **json.loads(DRAFTS[1])["truth"], "status": "verified", "by": "Ada L.", "at": found["truth"]["at"]
        }  # fmt: skip
        assert found["truth"]["at"].endswith("Z")
        press(page, "s")
        at(page, "empty")
        press(page, "a")
        expect(page.locator("#toast")).to_contain_text("accept again")
        assert samples(tmp_path)["empty"]["reference"] is None
        press(page, "a")
        expect(page.locator("#finished-text")).to_contain_text("3 verified, 1 skipped")
        assert samples(tmp_path)["empty"]["reference"] == dict.fromkeys(ONE, "")
        assert samples(tmp_path)["agreed"]["truth"]["status"] == "skipped"
        assert raw(tmp_path)[0].startswith('{"id": "agreed",  "image": "a.png", "reference": {"day"')
        assert raw(tmp_path)[3] == DRAFTS[3], "what nobody touched is as it was"
    assert check_folder(tmp_path) == [] and len(list(open_folder(tmp_path).load())) == 3


def test_what_was_typed_outlives_a_kill_of_the_server(browser: Browser, tmp_path: Path) -> None:
    make(tmp_path, FIELDS, *DRAFTS[2:])
    process = start(tmp_path)
    assert process.stdout is not None
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(Served(process, process.stdout.readline().strip()).address)
        at(page, "empty")
        press(page, "e")
        page.keyboard.insert_text("12. Mai 2024")
        wait_for(lambda: samples(tmp_path)["empty"]["reference"], seconds=10)
        go(page, "done")
        page.locator("[name=total]").fill("78")  # in verified truth nothing is saved before the field is left
        process.kill()
        process.communicate(timeout=20)
        expect(page.locator("#trouble")).to_contain_text("Start it again", timeout=8000)
        with served(tmp_path) as again:
            other = context.new_page()
            other.goto(again.address)
            at(other, "empty")
            expect(other.locator("[name=day]")).to_have_value("12. Mai 2024")
            assert samples(tmp_path)["empty"]["truth"] == {"status": "draft"}
            expect(page.locator("#trouble")).to_be_hidden(timeout=8000)
            press(page, "Enter")
            wait_for(lambda: samples(tmp_path)["done"]["reference"]["total"] == "78", seconds=10)


def test_markdown_and_tables_are_edited_as_what_they_are_and_hostile_ones_do_no_harm(
    browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4\nno")
    big = "<table>" + "".join(f"<tr>{'<td>x</td>' * 100}</tr>" for _ in range(200)) + "</table>"
    lines = [draft("md", "markdown", HOSTILE), draft("grid", "table", TABLE), draft("big", "table", big)]
    lines += [draft("long", "text", "word " * 200_000, "broken.pdf"), draft("out", "text", "x", "../a.png")]
    lines += [draft("new", "table", None)]
    lines += [draft("rows", "table", "| a | b |\n|---|---|\n| x \\| y | 2 |"), draft("class", "class", "letter")]
    make(tmp_path, '[benchmark]\nlabels = ["invoice", "letter"]\n', *lines)
    with opened(browser, tmp_path) as (_, page, _):
        go(page, "md")
        expect(page.locator("#rendered h1")).to_have_text("سلام")
        assert page.locator("#rendered :is(script, img, [href])").count() == 0
        press(page, "e", "Control+End", "Enter")
        page.keyboard.insert_text("| 3 | 四 |")
        expect(page.locator("#rendered td")).to_have_count(4)
        press(page, "Escape")
        wait_for(lambda: samples(tmp_path)["md"]["reference"].endswith("\n| 3 | 四 |"), seconds=10)
        check_grid(page, tmp_path)
        go(page, "rows")
        expect(page.get_by_label("Row 2, column 1")).to_have_value("x | y")
        page.get_by_label("Row 2, column 2").fill("3\n&")
        go(page, "new")
        page.locator("[name=reference]").focus()
        page.evaluate(PASTE, "a1\tb1\r\na2\t<b>\r\n")
        expect(page.get_by_label("Row 2, column 2")).to_have_value("<b>")
        page.get_by_label("Row 2, column 2").focus()
        page.evaluate(PASTE, "x\ty\nz\t")
        pasted = "<table>\n<tr><td>a1</td><td>b1</td>{}</tr>\n<tr><td>a2</td><td>{}</tr>\n{}</table>"
        wider = pasted.format("<td></td>", "x</td><td>y</td>", "<tr><td></td><td>z</td><td></td></tr>\n")
        wait_for(lambda: samples(tmp_path)["new"]["reference"] == wider, seconds=10)
        press(page, "Escape", "u")
        narrow = pasted.format("", "&lt;b&gt;</td>", "")
        wait_for(lambda: samples(tmp_path)["new"]["reference"] == narrow, seconds=10)
        go(page, "big")
        rows = "<table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td>x | y</td><td>3<br>&amp;</td></tr>\n</table>"
        assert samples(tmp_path)["rows"]["reference"] == rows
        expect(page.locator(".no-grid")).to_contain_text("too large for the grid")
        assert page.locator(".grid").count() == 0
        go(page, "long")
        expect(page.locator("#page-problem")).to_contain_text("not a PDF, or a broken one")
        assert len(page.locator("[name=reference]").input_value()) == 1_000_000
        go(page, "out")
        expect(page.locator("#page-problem")).to_contain_text("not shown")
        go(page, "class")
        press(page, "?")
        expect(page.locator("#help")).to_contain_text("delete the row; with Shift the column")
        press(page, "Escape", "1", "a")
        wait_for(lambda: samples(tmp_path)["class"]["truth"]["status"] == "verified", seconds=10)
        assert samples(tmp_path)["class"]["reference"] == "invoice"
        expect(page.locator(".entry-id")).not_to_have_text("class")  # The page moves on once its own answer is there.
        go(page, "class")
        page.get_by_label("letter").click()
        press(page, "ArrowUp", "ArrowDown", "c")
        wait_for(lambda: samples(tmp_path)["class"]["truth"]["status"] == "draft", seconds=10)
        assert samples(tmp_path)["class"]["reference"] == "letter"


def check_grid(page: Page, folder: Path) -> None:
    """Cells, rows and columns change; spans, headers and markup stay; what is added can be taken away again."""
    go(page, "grid")
    expect(page.locator(".grid textarea")).to_have_count(7)
    press(page, "e", "Alt+ArrowRight", "Alt+ArrowDown")
    expect(page.get_by_label("Row 2, column 2")).to_be_focused()
    press(page, "Alt+Shift+ArrowRight")
    page.keyboard.insert_text("<tax>")
    press(page, "Enter")
    page.keyboard.insert_text("0")
    press(page, "Alt+Shift+ArrowDown")
    page.keyboard.insert_text("free")
    press(page, "Escape")
    expected = (
        '<table class="x"><thead><tr><th rowspan="2">Item</th><th colspan="3">価格</th></tr>'
        "<tr><th>net</th><th>&lt;tax&gt;</th><th>gross</th></tr></thead><tbody><tr><td>Fish &amp; chips</td><td>1</td>"
        "<td>0</td><td>x<sup>2</sup></td></tr><tr><td></td><td></td><td>{}</td><td></td></tr></tbody></table>"
    )
    # Escape takes back what was typed into the cell, and nothing else.
    wait_for(lambda: samples(folder)["grid"]["reference"] == expected.format(""), seconds=10)
    page.get_by_label("Row 4, column 3").focus()
    press(page, "Alt+Backspace")
    expect(page.locator('.row[data-id="grid"] .row-text')).to_contain_text("<tax>")
    page.get_by_label("Row 2, column 3").focus()
    press(page, "Alt+Shift+Backspace", "Control+s")
    wait_for(lambda: samples(folder)["grid"]["reference"] == TABLE, seconds=10)
    page.get_by_role("button", name="Source").click()
    expect(page.locator("[name=reference]")).to_have_value(TABLE)
    page.get_by_role("button", name="Grid").click()
