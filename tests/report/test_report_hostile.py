"""Hostile answers in a real Chromium: whatever a model writes, nothing runs, nothing loads, nothing hangs."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser

from loupe.report.html import write_report
from loupe.types import Prediction, Sample
from tests.support.report_browser import Opened, opened
from tests.support.report_runs import Toy, draw_page

pytestmark = pytest.mark.browser

SCRIPT = "window.hurt = 1; alert(1)"
LONG = 1_000_000
FORBIDDEN = "script, iframe, object, embed, form, style, base, meta, link"

#: Characters without a glyph: soft hyphen, marks of direction, line ends, fillers, and what only shapes its neighbours.
UNSEEN = "\xad\u061c\u115f\u180e\u200b\u200e\u200f\u2028\u202a\u2060\u2064\u2069\u3164\ufeff\ufff0\U000e0041"
HOSTILE = {
    "script": f"before <script>{SCRIPT}</script> after",
    "closing script": f"</script><script>{SCRIPT}</script>",
    "comment": f"<!-- <script> --><!--<script>{SCRIPT}</script>",
    "image": f"<img src=x onerror='{SCRIPT}'> ![x](http://203.0.113.1/x.png)",
    "svg": f"<svg onload='{SCRIPT}'><script>{SCRIPT}</script></svg>",
    "mutation": f"<math><mtext></form><form><mglyph><style></math><img src onerror='{SCRIPT}'>",
    "link": "[click](javascript:window.hurt=1) [y](http://203.0.113.1/) ![z](javascript:window.hurt=1)",
    "anchor": f"<a href='javascript:{SCRIPT}' onclick='{SCRIPT}'>x</a> <a href='http://203.0.113.1/'>y</a>",
    "frame": f"<iframe srcdoc='<script>{SCRIPT}</script>'></iframe><object data=x><embed src=x>",
    "style": "<style>body{display:none} @import '//203.0.113.1/x.css'</style><p style='position:fixed'>x</p>",
    "base": "<base href='http://203.0.113.1/'><meta http-equiv=refresh content='0;url=http://203.0.113.1/'>",
    "stylesheet": "<link rel=stylesheet href='http://203.0.113.1/x.css'>",
    "ids": "<form id=overview><input name=body></form><div id=sample>x</div><p class=bar>y</p>",
    "table": "<table><tr><td colspan=100000 rowspan=100000 onclick=x>cell</td></tr></table>",
    "template": "{{ 7 * 7 }} {% raw %} ${7*7} &lt;script&gt; <!-- samples -->",
    "unseen": "".join(f"A\u05d0{char}" for char in UNSEEN) + " \u05d0\u200c\u05d1",
    "bidi": "price \u202e000,1 \u2066x\u202d\u200b\ufeff",
    "control": "a\0b\x08c\x1b[31m\u2028\u2029",
    "no space": "x" * LONG,
    "no space at all": "\u4e00" * LONG,
    "tabs": "\t\n" * (LONG // 2),
    "nuls": "\0" * 100_000,
    "random": "".join(random.Random(1).choices("ab ", k=LONG)),
    "quotes": ">" * 5000 + " deep",
    "lists": "- " * 5000 + "deep",
    "nested lists": "\n".join("  " * depth + "- a" for depth in range(700)),
    "tables": "<table><tr><td>" * 5000,
    "divs": "<div>" * 100_000,
    "bold": "<b><i>" * 20_000,
    "stars": "**a_b" * 40_000,
    "images": "![a](" * 40_000,
    "dollars": "$" * 100_000 + "$$x" * 30_000,
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every hostile text once as an answer, against a reference of another kind."""
    root = tmp_path_factory.mktemp("hostile")
    image = draw_page(root / "page.png", "A page")
    other = "".join(random.Random(2).choices("ab ", k=LONG))
    samples = [
        Sample(id=name, images=(image,), truth=other if name == "random" else "A harmless page.") for name in HOSTILE
    ]
    toy = Toy(root=root, samples=samples)
    toy.run("hostile", {name: Prediction(sample=name, text=text) for name, text in HOSTILE.items()})
    write_report(toy.runs, root / "report.html")
    return root / "report.html"


@pytest.fixture(scope="module")
def seen(browser: Browser, report: Path) -> Iterator[Opened]:
    with opened(browser, report) as found:
        yield found


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_does_no_harm_in_any_view(seen: Opened, name: str) -> None:
    seen.page.goto(seen.page.url.partition("#")[0] + f"#s={quote(name)}")
    seen.page.locator(".sample-name", has_text=re.compile(f"^{name}$")).wait_for()
    for button in ("rendered", "difference", "raw"):
        seen.page.click(f"[data-mode={button}]")
        assert seen.page.evaluate("window.hurt") is None
    seen.page.click("[data-mode=difference]")
    seen.page.click("[data-unit=characters]")
    seen.page.click("[data-mode=rendered]")
    assert seen.page.locator(".pane").count() == 2
    assert seen.page.evaluate("getComputedStyle(document.body).display") == "block"
    assert seen.page.locator(f"#sample :is({FORBIDDEN})").count() == 0
    assert seen.page.locator("#sample a[href]:not([href^='#'])").count() == 0
    assert seen.page.evaluate("window.hurt") is None
    assert seen.trouble == []


def test_the_policy_stops_what_the_sanitiser_might_miss(browser: Browser, report: Path) -> None:
    page = browser.new_page()
    page.goto(report.as_uri())
    refused: list[str] = []
    page.on("console", lambda message: refused.append(message.text))
    page.evaluate(
        "html => { document.body.innerHTML += html }", f"<img src=data:, onerror='{SCRIPT}'><img src=//203.0.113.1>"
    )
    page.evaluate("fetch('http://203.0.113.1/').catch(() => 0)")
    assert page.evaluate("window.hurt") is None
    assert sum("Content Security Policy" in text for text in refused) >= 3
    page.close()


def test_hostile_names_tags_errors_and_references_are_text(browser: Browser, tmp_path: Path) -> None:
    evil = f"</script><img src=x onerror='{SCRIPT}'>\u202e&amp;"
    samples = [
        Sample(id=evil, images=(draw_page(tmp_path / "p.png", "x"),), truth=evil, tags={evil: evil, "kind": "a"})
    ]
    samples.append(Sample(id="../../b", truth=evil, tags={evil: "other"}, prompt=evil))
    toy = Toy(root=tmp_path, samples=samples)
    toy.run(evil, {evil: evil, "../../b": Prediction(sample="../../b", outcome="error", error=evil)})
    write_report(toy.runs, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as seen:
        assert seen.names() == [evil, "../../b"]
        for place in (0, 1):
            seen.page.locator(".card").nth(place).click()
            seen.page.locator("#sample .pane").first.wait_for()
            assert seen.page.evaluate("window.hurt") is None
            seen.page.keyboard.press("g")
            seen.page.locator("#overview").wait_for(state="visible")
        seen.page.locator(".failures a").click()
        seen.page.locator(".sample-name", has_text="../../b").wait_for()


def test_invisible_and_reordering_characters_are_shown_as_what_they_are(browser: Browser, report: Path) -> None:
    with opened(browser, report) as seen:
        seen.open_sample("bidi")
        seen.page.keyboard.press("3")
        assert seen.page.locator(".raw .control").first.inner_text() == "U+202E"


def test_every_character_without_a_glyph_is_shown_and_joiners_where_they_differ(seen: Opened) -> None:
    seen.page.goto(seen.page.url.partition("#")[0] + "#s=unseen")
    seen.page.locator(".sample-name", has_text="unseen").wait_for()
    assert seen.page.evaluate(
        "text => [...text].every((c) => /\\p{Default_Ignorable_Code_Point}|\\p{Zl}|\\p{Zp}/u.test(c))", UNSEEN
    )
    for mode, joiners in (("rendered", []), ("raw", []), ("difference", ["U+200C"])):
        seen.page.click(f"[data-mode={mode}]")
        shown = seen.page.locator(".pane.answer .control").all_inner_texts()
        assert shown == [*(f"U+{ord(char):04X}" for char in UNSEEN), *joiners], mode


def test_a_long_text_is_shown_in_part_with_its_rest_behind_a_button(browser: Browser, report: Path) -> None:
    with opened(browser, report) as seen:
        seen.open_sample("no space")
        assert "first 100,000 of 1,000,000 characters" in seen.text(".pane.answer .notice")
        seen.page.keyboard.press("3")
        seen.page.click("text=Show all 1,000,000 characters")
        assert seen.page.locator(".pane.answer .raw").evaluate("block => block.textContent.length") == LONG


def test_a_difference_too_large_for_its_time_says_that_it_is_approximate(browser: Browser, report: Path) -> None:
    with opened(browser, report) as seen:
        seen.open_sample("random")
        seen.page.keyboard.press("2")
        seen.page.click("[data-unit=characters]")
        assert "approximate" in seen.text(".pane.answer .notice")


def test_a_run_of_invisible_characters_is_one_mark(seen: Opened) -> None:
    seen.page.goto(seen.page.url.partition("#")[0] + "#s=nuls")
    seen.page.locator(".sample-name", has_text="nuls").wait_for()
    seen.page.click("[data-mode=raw]")
    assert seen.page.locator(".raw .control").all_inner_texts() == ["U+0000 × 100,000"]
