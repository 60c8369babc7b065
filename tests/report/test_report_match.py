"""The match on the page, in a real Chromium: pages of our own in OmniDocBench's layout, scored by the real command."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from loupe.report.html import write_report
from tests.support.command_line import loupe
from tests.support.report_browser import opened
from tests.support.report_runs import draw_page

pytestmark = pytest.mark.browser

ATTACK = "<script>document.title='owned'</script><img src=x onerror=alert(1)><svg onload=alert(2)>"
TABLE = "<table><tr><td>fish</td><td>weight</td></tr><tr><td>herring</td><td>12</td></tr></table>"


def block(number: int, category: str, order: int | None, **content: str) -> dict[str, Any]:
    top = 40 + 90 * number
    box = [40, top, 580, top, 580, top + 70, 40, top + 70]
    return {"category_type": category, "poly": box, "order": order, "anno_id": number, "ignore": False, **content}


def page_of(name: str, *blocks: dict[str, Any]) -> dict[str, Any]:
    # As on many real pages, width and height have changed places.
    info = {"image_path": f"{name}.png", "width": 877, "height": 620, "page_attribute": {"language": "english"}}
    return {"page_info": info, "layout_dets": list(blocks), "extra": {"relation": []}}


PAGES = [
    page_of(
        "harbour",
        block(0, "title", 1, text="The harbour book"),
        block(1, "text_block", 2, text="Seven boats lie at the southern quay this morning."),
        block(2, "text_block", 3, text="Nobody has counted the gulls, and nobody wants to."),
        block(3, "table", 4, html=TABLE),
        block(4, "text_block", 5, text="QZXJ 9981 KVWP 4417"),
        block(5, "header", None, text="Port authority of the north"),
    ),
    page_of(
        "attacked", block(0, "text_block", 1, text="A quiet page."), block(1, "text_block", 2, text="Another line.")
    ),
    page_of("long", block(0, "text_block", 1, text="A short page.")),
    page_of("missing", block(0, "text_block", 1, text="Nobody answered this page.")),
]
ANSWERS = {
    "harbour": (
        "# The harbour book\n\nNobody has counted the gulls, and nobody wants to.\n\n"
        "Seven boats lie at the southern quay this morning.\n\nPort authority of the north\n\n"
        + TABLE.replace("12", "1Z")
    ),
    "attacked": f"A quiet page. {ATTACK}\n\nAnother line.{ATTACK}\n\n<table><tr><td>{ATTACK}</td></tr></table>",
    "long": "A short page. " + "spam and eggs " * 75_000,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two engines: one that made a few mistakes, one that wrote everything right but missed the harbour."""
    root = tmp_path_factory.mktemp("omnidoc")
    (root / "data").mkdir()
    (root / "data" / "OmniDocBench.json").write_text(json.dumps(PAGES), encoding="utf-8")
    for page in PAGES:
        texts = (str(each.get("text", "")) for each in page["layout_dets"])
        draw_page(root / "data" / "images" / page["page_info"]["image_path"], " ".join(texts))
    score(root, "careless", ANSWERS)
    score(root, "other", {"harbour": "", "attacked": "A quiet page.\n\nAnother line.", "long": "A short page."})
    return root


def score(root: Path, name: str, answers: Mapping[str, str]) -> None:
    for page, text in answers.items():
        (root / name).mkdir(exist_ok=True)
        (root / name / f"{page}.md").write_text(text, encoding="utf-8")
    done = loupe("score", "omnidocbench@1.5", root / name, "--data", root / "data", "--name", name, cwd=root)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def report(folder: Path) -> Path:
    write_report([folder / "runs" / "careless" / "omnidocbench"], folder / "one.html")
    return folder / "one.html"


def kinds(page: Page) -> list[str]:
    return [str(each.get_attribute("class")) for each in page.locator(".page-frame polygon").all()]


def test_every_area_is_drawn_where_it_is_and_what_nothing_matched_is_marked(browser: Browser, report: Path) -> None:
    with opened(browser, report, after="#s=harbour") as seen:
        seen.page.locator(".match").wait_for()
        assert [each.split()[1] for each in kinds(seen.page)] == [
            "k-title", "k-text", "k-text", "k-table", "k-text", "k-ignored",
        ]  # fmt: skip
        assert [" missing" in each for each in kinds(seen.page)] == [False, False, False, False, True, False]
        frame = seen.page.locator(".page-frame").bounding_box()
        area = seen.page.locator('polygon[data-region="1"]').bounding_box()
        assert frame is not None and area is not None
        scale = (frame["width"] - 2) / 620  # the picture's width, whatever the annotation calls it
        assert area["x"] - frame["x"] == pytest.approx(40 * scale, abs=3)
        assert area["y"] - frame["y"] == pytest.approx(130 * scale, abs=3)
        assert "4 of 5 blocks matched" in seen.text(".match-line")
        assert "nothing matched 1" in seen.text(".legend.areas")


def test_an_area_and_its_piece_are_linked_under_the_pointer_and_by_keyboard(browser: Browser, report: Path) -> None:
    with opened(browser, report, after="#s=harbour") as seen:
        page = seen.page
        page.set_viewport_size({"width": 1440, "height": 640})
        page.locator('polygon[data-region="1"]').hover()
        assert "Seven boats" in page.locator(".unit.linked").inner_text()
        assert page.locator(".link path").count() == 1
        page.locator('polygon[data-region="5"]').hover()
        assert "Port authority" in page.locator(".unit.unscored.linked").inner_text()
        page.wait_for_timeout(100)  # its row was out of sight; the line follows the scrolling
        assert page.locator(".link path").count() == 1
        assert page.evaluate("document.querySelector('.match').scrollTop") > 0
        page.locator('polygon[data-region="0"]').click()
        page.keyboard.press("ArrowDown")
        assert page.locator("polygon.linked").get_attribute("data-region") == "1"
        assert page.evaluate("document.activeElement.dataset.unit") == "1"
        page.locator(".unit").nth(2).hover()
        page.locator(".sample-name").hover()
        assert page.locator(".link").count() == 0 and page.locator(".linked").count() == 0


def test_a_resting_pointer_chooses_nothing_and_arrows_begin_at_the_first_block(browser: Browser, report: Path) -> None:
    with opened(browser, report) as seen:
        page = seen.page
        # Where the pointer will rest on an area once the page of the sample is open.
        page.goto(page.url + "#s=harbour")
        area = page.locator('polygon[data-region="1"]').bounding_box()
        assert area is not None
        middle = area["x"] + area["width"] / 2, area["y"] + area["height"] / 2
        page.keyboard.press("g")
        page.mouse.move(*middle)
        page.mouse.down()
        page.mouse.up()
        page.evaluate("location.hash = '#s=harbour'")
        page.locator(".unit").first.wait_for()
        page.wait_for_timeout(200)
        assert page.locator(".linked").count() == 0 and page.evaluate("document.querySelector('.match').scrollTop") == 0
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.dataset.unit") == "0" and page.evaluate("scrollY") == 0
        page.mouse.move(middle[0] + 3, middle[1] + 3)
        assert "Seven boats" in page.locator(".unit.linked").inner_text()


def test_reading_orders_are_arrows_and_wrong_steps_stand_out(browser: Browser, report: Path) -> None:
    with opened(browser, report, after="#s=harbour") as seen:
        arrows = seen.page.locator
        assert arrows(".arrow.wrong").count() == 2 and arrows(".arrow.true").count() == 0
        seen.page.get_by_role("button", name="Both").click()
        assert arrows(".arrow.true").count() == 3
        assert "2 of 2 steps of the reading order are wrong" in seen.text(".match-line")
        seen.page.get_by_role("button", name="Hidden").click()
        assert arrows(".arrow").count() == 0


def test_tables_stand_side_by_side_and_the_changed_cell_says_how(browser: Browser, report: Path) -> None:
    with opened(browser, report, after="#s=harbour") as seen:
        changed = seen.page.locator(".grid td[data-change]")
        assert changed.all_inner_texts() == ["12", "12Z"]
        assert changed.nth(1).locator("del").inner_text() == "2" and changed.nth(1).locator("ins").inner_text() == "Z"
        changed.nth(0).hover()
        assert seen.page.locator(".grid .lit").count() == 2


def test_faulty_only_hides_what_is_right_and_other_views_still_work(browser: Browser, report: Path) -> None:
    with opened(browser, report, after="#s=harbour") as seen:
        before = seen.page.locator(".unit:visible").count()
        seen.page.get_by_role("button", name="Faulty only").click()
        assert seen.page.locator(".unit:visible").count() < before
        seen.page.keyboard.press("1")
        assert seen.page.locator(".pane").count() == 2 and seen.page.locator(".overlay").count() == 0
        seen.page.keyboard.press("4")
        seen.page.keyboard.press("z")
        assert seen.page.locator("#zoom .overlay polygon").count() == 6
        seen.page.keyboard.press("Escape")
        seen.page.keyboard.press("1")
        seen.page.keyboard.press("j")
        seen.page.locator(".pane").first.wait_for()
        assert seen.page.locator(".match").count() == 0  # the view that was chosen stays


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_answers_are_text_in_the_match_too(browser: Browser, report: Path, scheme: Any) -> None:
    with opened(browser, report, scheme=scheme, after="#s=attacked") as seen:
        assert "<script>" in seen.text(".match")
        assert seen.page.locator(".match script, .match img, .match svg").count() == 0
        for details in seen.page.locator(".match summary").all():
            details.click()
        assert seen.page.title() == "attacked · Loupe"


def test_a_megabyte_of_answer_is_cut_and_stays_quick(browser: Browser, report: Path) -> None:
    with opened(browser, report, after="#s=long") as seen:
        assert "more characters" in seen.text(".match")
        assert len(seen.text(".match")) < 20_000
        seen.page.get_by_text("As compared", exact=True).click()
        seen.page.locator(".unit .diff").wait_for(timeout=3_000)
    assert report.stat().st_size < 400_000


def test_nothing_is_wider_than_a_narrow_window(browser: Browser, report: Path) -> None:
    with opened(browser, report, width=390, after="#s=harbour") as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
        seen.page.locator('polygon[data-region="3"]').click()
        assert seen.page.evaluate("document.activeElement.querySelectorAll('.grid').length") == 2


def test_engines_have_their_own_match(browser: Browser, folder: Path) -> None:
    write_report([folder / "runs" / name / "omnidocbench" for name in ("careless", "other")], folder / "two.html")
    with opened(browser, folder / "two.html", after="#s=harbour") as seen:
        missing = {}
        for name in ("careless", "other"):
            seen.page.locator(".match").get_by_role("button", name=name).click()
            missing[name] = seen.page.locator("polygon.missing").count()
        assert missing == {"careless": 1, "other": 5}
        assert seen.page.evaluate("document.activeElement.textContent") == "other"


def test_flags_losses_and_official_figures_need_no_script(browser: Browser, report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    text = page.locator("main#overview").inner_text()
    assert "missing-prediction" in text and "table-on-tableless-page" in text
    assert "headline missing as empty" in text and "text_block_Edit_dist" in text
    assert "faulty samples cost" in text and "harbour" in page.locator(".dearest").inner_text()
    assert page.locator(".flags a[href='#s=attacked']").count() >= 1
    context.close()
