"""The report in a real Chromium: it opens from file://, stays inside its file, and obeys its keys and controls."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from loupe.report.html import write_report
from loupe.types import Prediction, Sample
from tests.support.report_browser import opened
from tests.support.report_runs import Toy, draw_page, misread, toy_pages

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two engines on twelve pages; the second one is worse, failed on page 3, and was cut off on page 4."""
    toy = toy_pages(tmp_path_factory.mktemp("toy"))
    answers = {sample.id: sample.truth for sample in toy.samples}
    toy.run("good", answers)
    worse: dict[str, Prediction | str] = {
        ident: misread(text, 5 + 3 * place) for place, (ident, text) in enumerate(answers.items())
    }
    worse["book/page-0003"] = Prediction(sample="book/page-0003", outcome="timeout", error="no answer within 300 s")
    worse["book/page-0004"] = Prediction(sample="book/page-0004", outcome="truncated", text="Page 4 of")
    toy.run("worse", worse)
    output = toy.root / "report.html"
    write_report(toy.runs, output)
    return output


def test_opens_without_an_error_and_shows_every_engine_and_sample(browser: Browser, report: Path) -> None:
    with opened(browser, report) as seen:
        assert seen.page.locator(".leaderboard tbody .engine bdi").all_inner_texts() == ["good", "worse"]
        assert len(seen.names()) == 12
        assert (
            seen.page.locator(".card img").first.evaluate("image => image.decode().then(() => image.naturalWidth)") > 50
        )


def test_the_worst_samples_come_first_when_asked(browser: Browser, report: Path) -> None:
    with opened(browser, report) as seen:
        seen.page.select_option("#grid-sort", "worst")
        assert seen.names()[0] == "book/page-0003"
        assert set(seen.names()[:3]) == {"book/page-0003", "book/page-0004", "book/page-0000"}


def test_the_filter_finds_samples_by_name_and_by_tag(browser: Browser, report: Path) -> None:
    with opened(browser, report) as seen:
        seen.page.fill("#grid-filter", "0007")
        assert seen.names() == ["book/page-0007"]
        seen.page.fill("#grid-filter", "table zh")
        assert seen.names() == ["book/page-0001", "book/page-0007"]
        assert seen.text("#grid-count") == "2 of 12 samples"


def test_failed_answers_can_be_filtered_and_are_shown_as_failed(browser: Browser, report: Path) -> None:
    with opened(browser, report) as seen:
        seen.page.select_option("#grid-outcome", "failed")
        assert seen.names() == ["book/page-0003"]
        assert "timed out" in seen.text(".card")
        seen.open_sample("book/page-0003")
        assert "Timed out\n\nno answer within 300 s" in seen.text(".pane.failed .failure")


def test_samples_that_all_engines_failed_and_those_on_which_they_differ_can_be_filtered(
    browser: Browser, tmp_path: Path
) -> None:
    toy = toy_pages(tmp_path / "toy", 3)
    truths = {sample.id: sample.truth for sample in toy.samples}
    same, lost, other = truths
    failed = Prediction(sample=lost, outcome="timeout", error="no answer")
    toy.run("good", truths | {lost: failed})
    toy.run("worse", truths | {lost: failed, other: misread(truths[other], 5)})
    write_report(toy.runs, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as seen:
        seen.page.select_option("#grid-outcome", "failed_by_all")
        assert seen.names() == [lost]
        seen.page.select_option("#grid-outcome", "differ")
        assert seen.names() == [other]
        seen.page.select_option("#grid-engine", "0")
        assert seen.names() == [other]
        seen.page.select_option("#grid-outcome", "ok")
        assert seen.names() == [same, other]


def test_keys_lead_through_the_report(browser: Browser, report: Path) -> None:
    with opened(browser, report) as seen:
        keyboard = seen.page.keyboard
        keyboard.press("/")
        seen.page.locator("#grid-filter:focus").wait_for()
        keyboard.press("Escape")
        keyboard.press("j")
        keyboard.press("j")
        keyboard.press("Enter")
        seen.page.locator(".sample-name", has_text="book/page-0001").wait_for()
        keyboard.press("j")
        seen.page.locator(".sample-name", has_text="book/page-0002").wait_for()
        keyboard.press("k")
        seen.page.locator(".sample-name", has_text="book/page-0001").wait_for()
        keyboard.press("?")
        assert seen.page.locator("#help").is_visible()
        keyboard.press("Escape")
        assert seen.page.locator("#help").is_hidden()
        keyboard.press("Escape")
        seen.page.locator("#overview").wait_for(state="visible")
        assert seen.page.evaluate("document.activeElement.title") == "book/page-0001"


def test_a_sample_shows_image_reference_answers_difference_and_raw_text(browser: Browser, report: Path) -> None:
    with opened(browser, report) as seen:
        seen.open_sample("book/page-0002")
        assert seen.page.locator(".zoom img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 620
        assert seen.page.locator(".pane-title bdi").all_inner_texts() == ["Reference", "good", "worse"]
        seen.page.click("[data-mode=difference]")
        assert "No difference in words." in seen.text(".pane:nth-child(1)")
        assert seen.page.locator(".pane:nth-child(2) del").count() > 3
        seen.page.click("[data-unit=characters]")
        assert "characters the same" in seen.text(".pane:nth-child(2)")
        seen.page.click("[data-mode=raw]")
        assert seen.text(".pane:nth-child(2) .raw").startswith("Page 2 of")
        assert "CER" in seen.text(".numbers")


def test_an_address_opens_its_sample_directly(browser: Browser, report: Path) -> None:
    with opened(browser, report, after="#s=book%2Fpage-0005") as seen:
        seen.page.locator(".sample-name", has_text="book/page-0005").wait_for()


def test_dark_mode_follows_the_system_and_the_button(browser: Browser, report: Path) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, report, scheme="dark") as seen:
        assert seen.page.evaluate(background) == "rgb(20, 23, 26)"
        seen.page.click("#theme")
        assert seen.page.evaluate(background) == "rgb(250, 250, 248)"


def test_printing_hides_the_controls_and_is_light(browser: Browser, report: Path) -> None:
    with opened(browser, report, scheme="dark") as seen:
        seen.page.emulate_media(media="print")
        assert seen.page.locator(".controls").is_hidden()
        assert seen.page.locator(".leaderboard").is_visible()
        assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert len(seen.page.pdf()) > 10_000


@pytest.mark.parametrize("width", [400, 900, 1440])
def test_nothing_sticks_out_at_any_width(browser: Browser, report: Path, width: int) -> None:
    with opened(browser, report, width=width) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        seen.open_sample("book/page-0004")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


def test_works_without_the_data_folder_and_says_so(browser: Browser, tmp_path: Path) -> None:
    toy = toy_pages(tmp_path / "toy", 3)
    toy.run("good", {sample.id: sample.truth for sample in toy.samples})
    (toy.root / "samples.jsonl").unlink()
    write_report(toy.runs, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as seen:
        assert "Pages and references are missing" in seen.text(".warning")
        seen.open_sample("book/page-0001")
        assert "The reference is missing" in seen.text(".pane.reference")
        assert "harbour book" in seen.text(".pane.answer")


def test_works_without_the_benchmark_and_says_so(browser: Browser, tmp_path: Path) -> None:
    toy = toy_pages(tmp_path / "toy", 3)
    toy.run("good", {sample.id: sample.truth for sample in toy.samples})
    (toy.root / "toy.py").unlink()
    write_report(toy.runs, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as seen:
        assert f"To bring them: copy toy.py to {toy.root}/toy.py" in seen.text(".warning")
        assert "0.00 %" in seen.text(".leaderboard .headline .value")
        assert len(seen.names()) == 3


def test_linked_images_that_are_gone_leave_the_thumbnail_and_a_hint(browser: Browser, tmp_path: Path) -> None:
    toy = toy_pages(tmp_path / "toy", 2, pages=2)
    toy.run("good", {sample.id: sample.truth for sample in toy.samples})
    write_report(toy.runs, tmp_path / "report.html", carry=0)
    for image in (toy.root / "pages").iterdir():
        image.rename(tmp_path / image.name)
    context = browser.new_context()
    page = context.new_page()
    page.goto((tmp_path / "report.html").as_uri() + "#s=book%2Fpage-0001")
    page.locator("figure .notice", has_text="was not found beside this file").wait_for()
    assert page.locator(".zoom img").get_attribute("src", timeout=1000).startswith("data:image/webp")
    context.close()


def test_linked_images_are_loaded_from_the_data_folder(browser: Browser, tmp_path: Path) -> None:
    samples = [
        Sample(id="page #1 100%", images=(draw_page(tmp_path / "toy" / "a b#1 %20.png", "Words"),), truth="Words")
    ]
    toy = Toy(root=tmp_path / "toy", samples=samples)
    toy.run("good", {"page #1 100%": "Words"})
    write_report(toy.runs, tmp_path / "out" / "report.html", carry=0)
    with opened(browser, tmp_path / "out" / "report.html") as seen:
        seen.open_sample("page #1 100%")
        assert seen.page.locator(".zoom img").get_attribute("src") == "../toy/a%20b%231%20%2520.png"
        assert seen.page.locator(".zoom img").evaluate("image => image.decode().then(() => image.naturalWidth)") == 620


def test_several_benchmarks_are_several_sections_with_one_grid(browser: Browser, tmp_path: Path) -> None:
    toys = [toy_pages(tmp_path / name, 3) for name in ("one", "two")]
    runs = [toy.run("good", {sample.id: sample.truth for sample in toy.samples}) for toy in toys]
    info = runs[1] / "run.json"
    info.write_text(info.read_text(encoding="utf-8").replace("3f2a9c1e", "77777777"), encoding="utf-8")
    write_report(runs, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as seen:
        assert seen.page.locator("section.group").count() == 2
        seen.page.select_option("#grid-group", "1")
        seen.open_sample("book/page-0001")
        seen.page.reload()
        seen.page.locator(".sample-name", has_text="book/page-0001").wait_for()
        assert seen.page.evaluate("location.hash").endswith("&b=toy%401%2B777777")


def test_1500_samples_are_in_the_grid_soon_and_made_as_they_come_into_sight(browser: Browser, tmp_path: Path) -> None:
    toy = toy_pages(tmp_path / "toy", 1500, pages=2, size=(80, 110))
    toy.run("good", {sample.id: sample.truth for sample in toy.samples})
    write_report(toy.runs, tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html") as seen:
        assert seen.text("#grid-count") == "1,500 samples"
        assert seen.page.locator(".card").count() <= 240
        seen.page.evaluate("location.hash = '#s=book%2Fpage-1499'")
        seen.page.locator(".sample-name", has_text="book/page-1499").wait_for()
        seen.page.keyboard.press("Escape")
        seen.page.locator(".card[title='book/page-1499']:focus").wait_for()


def test_a_difference_is_shown_whole_and_an_enlarged_page_has_a_button_that_closes_it(
    browser: Browser, report: Path
) -> None:
    with opened(browser, report) as seen:
        seen.open_sample("book/page-0001")
        seen.page.click("[data-mode=difference]")
        cut = "panes => panes.filter((pane) => pane.scrollHeight > pane.clientHeight).length"
        assert seen.page.locator(".pane-body").evaluate_all(cut) == 0
        seen.page.click(".zoom")
        seen.page.click(".zoom-close")
        assert seen.page.locator("dialog[open]").count() == 0
        assert seen.page.locator(".numbers [title=cer]").inner_text() == "CER"
