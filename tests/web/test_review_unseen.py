"""Nothing is decided about what was not seen: keys that come too early, entries that others change, an undo too far."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, Route, expect

from tests.support.served import wait_for
from tests.support.web.review_app import served
from tests.support.web.review_browser import at, opened, press

SETTINGS = '[benchmark]\ntask = "fields"\n[fields]\ntotal = "amount"\nseller = "text"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four samples, each with values and a draft of its own; the drafts say another total."""
    (tmp_path / "loupe.toml").write_text(SETTINGS)
    Image.new("RGB", (90, 60), "white").save(tmp_path / "a.png")
    Image.new("RGB", (60, 90), "white").save(tmp_path / "b.png")
    write(tmp_path, [sample(number) for number in range(4)])
    return tmp_path


def sample(number: int) -> dict[str, Any]:
    draft = {"total": f"{number}.50", "seller": f"Seller {number}"}
    truth = {"status": "draft", "engines": ["e"], "drafts": {"e": draft}}
    return {"id": f"s{number}", "image": "a.png", "reference": {**draft, "total": f"{number}.00"}, "truth": truth}


def write(folder: Path, samples: list[dict[str, Any]]) -> None:
    (folder / "samples.jsonl").write_text("".join(json.dumps(each) + "\n" for each in samples))


def state(folder: Path, number: int) -> tuple[str, str, str]:
    found = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()][number]
    return found["reference"]["total"], found["reference"]["seller"], found["truth"]["status"]


def held(page: Page, address: str) -> list[Route]:
    """What the page asks of this address from now on, unanswered."""
    routes: list[Route] = []
    page.route(address, lambda route: routes.append(route))
    return routes


def asked(page: Page, routes: list[Route]) -> None:
    """Wait until the page has asked."""
    for _ in range(500):
        if routes:
            return
        page.wait_for_timeout(20)
    pytest.fail("the page did not ask")


def release(page: Page, address: str, routes: list[Route]) -> None:
    for route in routes:
        route.continue_()
    page.unroute(address)


def test_a_key_that_comes_while_another_entry_is_opened_is_for_neither(browser: Browser, folder: Path) -> None:
    before = (folder / "samples.jsonl").read_bytes()
    with opened(browser, folder, "--as", "me") as (_, page, _):
        held(page, "**/nothing")  # The browser stops for routes from here on; begun anew each time, it may come late.
        at(page, "s0")
        for key in ("a", "1", "c", "s"):
            changes, entries = held(page, "**/change"), held(page, "**/entry/*")
            press(page, "j", key)
            asked(page, entries)
            release(page, "**/entry/*", entries)
            at(page, "s1")
            release(page, "**/change", changes)
            expect(page.locator("[name=total]")).to_have_value("1.00")
            press(page, "k")
            at(page, "s0")
            assert (folder / "samples.jsonl").read_bytes() == before, key
        press(page, "j", "j", "j")
        at(page, "s3")
        press(page, "k", "p", "k")
        at(page, "s0")
        # What is typed while another entry is on its way belongs to the one that is left.
        entries = held(page, "**/entry/*")
        press(page, "j", "e", "Control+a")
        page.keyboard.insert_text("7")
        press(page, "Enter")
        wait_for(lambda: state(folder, 0)[0] == "7", seconds=10)
        asked(page, entries)
        page.get_by_label("seller").fill("typed late")
        release(page, "**/entry/*", entries)
        at(page, "s1")
        expect(page.locator("[name=seller]")).to_have_value("Seller 1")
        assert state(folder, 0) == ("7", "typed late", "draft")
        assert state(folder, 1) == ("1.00", "Seller 1", "draft")


def test_yours_all_the_same_is_what_you_see_and_what_you_did_not_see_is_not_decided(
    browser: Browser, folder: Path
) -> None:
    samples = [sample(number) for number in range(4)]
    with opened(browser, folder, "--as", "me") as (_, page, _):
        at(page, "s0")
        polls = held(page, "**/state?*")  # so that what others do comes as a surprise
        samples[0]["reference"]["total"] = "99.00"
        write(folder, samples)
        press(page, "a")
        expect(page.locator("#conflict")).to_contain_text("there total: 99.00")
        page.get_by_role("button", name="Save mine anyway").click()
        expect(page.locator("#toast")).to_have_text("s0: your version is saved")
        expect(page.locator("[name=total]")).to_have_value("0.00")
        assert state(folder, 0) == ("0.00", "Seller 0", "verified")
        press(page, "j")
        at(page, "s1")
        samples[1] |= {"image": "b.png", "reference": {"total": "99.00", "seller": "Other"}}
        write(folder, samples)
        press(page, "a")
        page.get_by_role("button", name="Save mine anyway").click()
        expect(page.locator("#toast")).to_contain_text("your version is saved, and not verified")
        expect(page.locator("#page-image")).to_have_attribute("alt", "b.png")
        expect(page.locator("[name=seller]")).to_have_value("Seller 1")
        assert state(folder, 1) == ("1.00", "Seller 1", "draft")
        release(page, "**/state?*", polls)


def test_who_has_the_cookie_alone_can_write_nothing_and_a_page_without_the_token_says_so(
    browser: Browser, folder: Path
) -> None:
    with served(folder) as running, other_server() as (port, cookies), browser.new_context() as context:
        page = context.new_page()
        page.goto(running.address)
        at(page, "s0")
        assert "token" not in page.url, "it is kept, and taken out of the address"
        page.goto(f"http://127.0.0.1:{port}/")
        stolen = cookies[-1]
        assert stolen == running.cookie(), "browsers send cookies to every port"
        _, _, shown = running.ask("/", headers={"Cookie": stolen})
        assert b"s0" in shown and running.token.encode() not in shown
        page.goto(f"http://127.0.0.1:{running.port}/?line=2")
        at(page, "s1")
        press(page, "a")
        at(page, "s2")
        assert state(folder, 1)[2] == "verified"
        page.evaluate("localStorage.clear()")
        page.reload()
        at(page, "s2")
        expect(page.locator("#locked")).to_contain_text("open the address that loupe review printed")
        expect(page.locator("#verify")).to_be_disabled()
        page.goto(running.address + "&line=3")
        at(page, "s2")
        expect(page.locator("#verify")).to_be_enabled()
        context.clear_cookies()
        page.goto(f"http://127.0.0.1:{running.port}/")
        expect(page.locator("p")).to_have_text(
            "this browser has no access: open the address that loupe review printed."
        )


@contextmanager
def other_server() -> Iterator[tuple[int, list[str]]]:
    """Another program on this machine that a browser visits: its port, and the cookies that it gets."""
    cookies: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            cookies.append(self.headers.get("Cookie", ""))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, cookies
        server.shutdown()
        thread.join()


def test_taking_back_a_decision_leaves_what_was_typed_before_it(browser: Browser, folder: Path) -> None:
    with opened(browser, folder, "--as", "me") as (_, page, _):
        at(page, "s0")
        press(page, "e", "Control+a")
        page.keyboard.insert_text("12")
        wait_for(lambda: state(folder, 0)[0] == "12", seconds=10)
        page.keyboard.insert_text(".34")
        wait_for(lambda: state(folder, 0)[0] == "12.34", seconds=10)
        press(page, "Enter", "a")
        at(page, "s1")
        assert state(folder, 0) == ("12.34", "Seller 0", "verified")
        press(page, "u")
        at(page, "s0")
        assert state(folder, 0) == ("12.34", "Seller 0", "draft")
        press(page, "u")
        expect(page.locator("[name=total]")).to_have_value("0.00")
        assert state(folder, 0) == ("0.00", "Seller 0", "draft"), "typed in one go, with a pause"
