"""`loupe view` as a person uses it: in a real browser, from the leaderboard to an edited answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, expect

from loupe.pipeline.spent import speed_of
from loupe.results.speed import speed_text
from loupe.runs.folder import RunFolder
from tests.support.report_runs import Toy
from tests.support.web.review_app import Served
from tests.support.web.view_app import begun_run, make_runs, viewed

pytestmark = pytest.mark.browser


@dataclass
class Seen:
    """A tab of the viewer, and what went wrong in it."""

    page: Page
    server: Served
    toy: Toy
    trouble: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        self.page.goto(f"http://127.0.0.1:{self.server.port}{path}")
        self.page.locator("html[data-ready]").wait_for()


@pytest.fixture(scope="module")
def viewer(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    toy = make_runs(tmp_path_factory.mktemp("view"))
    home = tmp_path_factory.mktemp("home")
    with viewed(toy.root / "runs", home=home, trusted=toy.root / "toy.py") as server:
        context = browser.new_context(viewport={"width": 1400, "height": 900})
        seen = Seen(context.new_page(), server, toy)
        seen.page.on("console", lambda message: seen.trouble.append(f"{message.type}: {message.text}"))
        seen.page.on("pageerror", lambda error: seen.trouble.append(str(error)))
        seen.page.on("dialog", lambda dialog: (seen.trouble.append(dialog.message), dialog.dismiss()))
        elsewhere = seen.trouble.append
        seen.page.on(
            "request", lambda asked: None if f"127.0.0.1:{server.port}" in asked.url[:30] else elsewhere(asked.url[:60])
        )
        seen.page.goto(server.address)
        yield seen
        context.close()
        assert [line for line in seen.trouble if not line.startswith("data:")] == []


def test_from_the_leaderboard_to_a_sample_and_on_by_keys(viewer: Seen) -> None:
    page = viewer.page
    viewer.go("/")
    page.get_by_role("link", name="Toy pages").click()
    expect(page.locator(".leaderboard .engine bdi").first).to_have_text("good")
    page.get_by_role("link", name="Samples", exact=True).click()
    page.select_option("select[name=order]", "spread")
    expect(page.locator(".card").first).to_have_attribute("title", "book/page-0004")
    assert "order=spread" in page.url
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("#sample .pane")).to_have_count(3)
    assert "boom <b>" in page.locator("#sample .failure").inner_text()
    page.keyboard.press("j")
    expect(page.locator(".sample-place")).to_have_text("2 of 70")
    page.keyboard.press("2")
    expect(page.locator("#sample .diff")).to_have_count(2)
    page.keyboard.press("g")
    expect(page.locator(".card").first).to_have_attribute("title", "book/page-0004")


def test_no_key_is_lost_while_samples_load_and_what_if_can_be_left_by_keys(viewer: Seen) -> None:
    page, root = viewer.page, board(viewer)
    viewer.go(f"{root}/sample?id=book/page-0000&order=order")
    for _ in range(5):
        page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator(".sample-place")).to_have_text("5 of 70")
    expect(page.locator(".sample-name")).to_have_text("book/page-0004")
    assert "page-0004" in page.url
    page.go_back()
    expect(page.locator(".sample-place")).not_to_have_text("5 of 70")
    page.go_forward()
    expect(page.locator(".sample-place")).to_have_text("5 of 70")
    page.keyboard.press("e")
    expect(page.locator("#what-if-area")).to_be_focused()
    page.keyboard.type("typed")
    page.keyboard.press("Escape")
    expect(page.locator("#what-if-area")).not_to_be_focused()
    assert "what-if" in page.url
    page.keyboard.press("Escape")
    page.wait_for_url("**/sample?id=book%2Fpage-0004&order=order")
    page.keyboard.press("g")
    page.wait_for_url("**/samples?order=order")


def test_a_step_that_fails_is_not_hidden_by_the_sample_before_it(viewer: Seen) -> None:
    page, root = viewer.page, board(viewer)
    viewer.go(f"{root}/sample?id=book/page-0000&order=order")
    expect(page.locator(".sample-place")).to_have_text("1 of 70")
    gone = "**/sample?id=book%2Fpage-0002*"
    page.route(gone, lambda route: route.fulfill(body="<main><p class=notice>gone by now</p></main>"))
    # Both at once: the second is taken while the first is on its way.
    press = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'j', bubbles: true}))"
    page.evaluate(f"{press}; {press}")
    page.wait_for_url("**/sample?id=book%2Fpage-0001*")
    expect(page.locator("#sample")).not_to_have_attribute("aria-busy", "true")
    expect(page.locator("#sample")).to_contain_text("gone by now")
    page.wait_for_load_state("networkidle")
    expect(page.locator("#sample")).to_contain_text("gone by now")
    page.unroute(gone)


def test_hostile_and_right_to_left_answers_are_text(viewer: Seen) -> None:
    root = board(viewer)
    viewer.go(f"{root}/sample?id=book/page-0001")
    expect(viewer.page.locator(".pane .markup strong").first).to_have_text("bold")
    assert viewer.page.title() == "book/page-0001 · Loupe"
    viewer.go(f"{root}/sample?id=book/page-0000")
    assert "هذا كتاب" in viewer.page.locator(".pane.answer").first.inner_text()
    assert viewer.page.locator(".pane.answer .text").first.get_attribute("dir") == "auto"


def board(viewer: Seen) -> str:
    viewer.go("/")
    return viewer.page.locator(".group-title a").get_attribute("href") or ""


def test_a_word_of_a_hundred_thousand_letters_does_not_freeze_the_page(viewer: Seen) -> None:
    page, root = viewer.page, board(viewer)
    with begun_run(viewer.toy, viewer.server) as path:
        line = {"sample": "book/page-0007", "text": "A" * 100_000, "class": "ok"}
        (path / "predictions.jsonl").write_text(json.dumps(line) + "\n")
        viewer.go(root)
        run = page.locator(".run-card a").get_attribute("href") or ""
        viewer.go(f"{root}/sample?id=book/page-0007&a={run[5:]}")
        expect(page.locator("#sample .pane")).to_have_count(2, timeout=10_000)
        for key in "123":
            page.keyboard.press(key)
            # Chromium laid one such word out for minutes.
            took = "() => { const t = performance.now(); document.body.offsetHeight; return performance.now() - t; }"
            assert page.evaluate(took) < 8000


def test_two_runs_side_by_side_largest_regression_first(viewer: Seen) -> None:
    page, root = viewer.page, board(viewer)
    viewer.go(f"{root}/compare")
    expect(page.locator(".duel-title")).to_contain_text("B good against A worse")
    page.select_option("select[name=a]", index=0)
    page.select_option("select[name=b]", index=1)
    expect(page.locator(".duel-title")).to_contain_text("B worse against A good")
    # An answer that failed is as bad as can be; the page where `good` attacked is better in the other run.
    expect(page.locator(".duel-list th a").first).to_have_text("book/page-0004")
    assert page.locator(".scatter .dot.loss").count() > 3
    page.locator(".duel-list th a").first.click()
    expect(page.locator("main.comparing .pane-title bdi")).to_have_text(["Reference", "good", "worse"])


def test_an_edited_answer_moves_the_score_and_can_be_put_back(viewer: Seen) -> None:
    page, root = viewer.page, board(viewer)
    viewer.go(f"{root}/sample?id=book/page-0010")
    page.get_by_role("link", name="What if").click()
    page.locator("#what-if-run").select_option(label="worse")
    page.wait_for_url("**run=worse**")
    page.locator("html[data-ready]").wait_for()
    truth = next(sample.truth for sample in viewer.toy.samples if sample.id == "book/page-0010")
    expect(page.locator("#what-if-area")).not_to_have_value(truth)
    page.locator("#what-if-area").fill(truth)
    page.locator("#what-if-area").press("Control+Enter")
    expect(page.locator("#what-if-numbers tbody td strong").first).to_have_text("0.00 %")
    expect(page.locator("#what-if-numbers .better")).to_have_count(2)
    page.get_by_role("button", name="Put back").click()
    expect(page.locator("#what-if-numbers .verdict-word").first).to_have_text("no change")


def test_the_histogram_of_a_run_stands_on_its_ground_and_has_the_percentiles_of_the_speed_table(viewer: Seen) -> None:
    page, root = viewer.page, board(viewer)
    viewer.go(root)
    viewer.go(page.locator(".leaderboard .engine a").last.get_attribute("href") or "")
    folder = RunFolder.open(next(path for path in viewer.toy.runs if "worse" in str(path)))
    figures = speed_of(folder, folder.prediction_places()).figures
    caption = page.locator(".latency figcaption").inner_text()
    assert f"median {speed_text('latency_p50', figures['latency_p50'])}" in caption
    assert f"p95 {speed_text('latency_p95', figures['latency_p95'])}" in caption
    top, counts = figures["latency_p99"], [0] * 32
    for answer in folder.predictions().values():
        if not answer.failed:
            counts[min(31, int(32 * answer.seconds / top))] += 1
    frame = page.locator(".latency svg").bounding_box()
    boxes = [box for bar in page.locator(".latency rect").all() if (box := bar.bounding_box())]
    assert frame and len(boxes) == 32 and sum(counts) == 69
    for box, count in zip(boxes, counts, strict=True):
        assert box["y"] + box["height"] == pytest.approx(frame["y"] + 120, abs=1.5)
        assert box["height"] == pytest.approx(120 * count / max(counts), abs=1.5)


def test_a_run_that_is_deleted_is_said_to_be_gone_on_its_page_and_in_a_comparison(viewer: Seen) -> None:
    page, root = viewer.page, board(viewer)
    with begun_run(viewer.toy, viewer.server):
        viewer.go(root)
        link = page.locator(".run-card a")
        link.wait_for()
        run = link.get_attribute("href") or ""
        viewer.go(run)
        compare = page.context.new_page()
        compare.goto(f"http://127.0.0.1:{viewer.server.port}{root}/compare?a={run[5:]}")
        expect(compare.locator("select[name=a] option")).to_have_count(3)
    expect(page.locator("#trouble")).to_contain_text("no longer exists", timeout=15_000)
    assert page.locator("#trouble a").get_attribute("href") == "/"
    expect(compare.locator(".notice")).to_contain_text("no longer there", timeout=15_000)
    expect(compare.locator("select[name=a] option")).to_have_count(2)
    compare.close()
    viewer.trouble[:] = [line for line in viewer.trouble if "404" not in line]


def test_a_run_that_begins_and_grows_is_seen_without_a_reload(viewer: Seen) -> None:
    page = viewer.page
    viewer.go("/")
    page.evaluate("window.stayed = true")
    with begun_run(viewer.toy, viewer.server) as path:
        expect(page.locator(".run-card")).to_contain_text("0 of 70", timeout=15_000)
        with (path / "predictions.jsonl").open("a") as file:
            file.write(
                json.dumps({"sample": "book/page-0000", "text": "one", "class": "timeout", "seconds": 1.5}) + "\n"
            )
        expect(page.locator(".run-card")).to_contain_text("1 of 70, 1 failed", timeout=15_000)
        assert page.evaluate("window.stayed") is True
