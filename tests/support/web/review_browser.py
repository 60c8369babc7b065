"""A review as a person has it before them: a real browser on a real server, and nothing that may go wrong unheard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, BrowserContext, Dialog, Page, expect

from tests.support.web.review_app import Served, served


@dataclass
class Heard:
    """What all tabs of a browser said and asked for."""

    trouble: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    warned: int = 0

    def listen(self, context: BrowserContext) -> None:
        """Note what the tabs complain about; a refused change is an answer, not a fault."""
        refused = re.compile(r"status of (409|422|403|404)|ERR_CONNECTION")
        context.on("console", lambda said: None if refused.search(said.text) else self.trouble.append(said.text))
        context.on("weberror", lambda failed: self.trouble.append(str(failed.error)))
        context.on("dialog", self.answer)
        context.on("request", lambda request: self.asked.append(request.url))

    def answer(self, dialog: Dialog) -> None:
        """The browser's own question whether to leave what is not saved is counted; any other dialog is an attack."""
        if dialog.type == "beforeunload":
            self.warned += 1
            dialog.accept()
        else:
            self.trouble.append(dialog.message)
            dialog.dismiss()


class Reviewing(NamedTuple):
    """A served review and the page that shows it."""

    running: Served
    page: Page
    heard: Heard


@contextmanager
def opened(browser: Browser, path: Path, *words: str) -> Iterator[Reviewing]:
    """A page with a review. Afterwards: no script error, no dialog, and no request but to the server itself."""
    with served(path, *words) as running:
        heard = Heard()
        context = browser.new_context(viewport={"width": 1120, "height": 640}, color_scheme="light")
        heard.listen(context)
        page = context.new_page()
        page.goto(running.address)
        page.locator("html[data-ready]").wait_for()
        yield Reviewing(running, page, heard)
        context.close()
        assert heard.trouble == []
        assert [url for url in heard.asked if not url.startswith(f"http://127.0.0.1:{running.port}/")] == []


def at(page: Page, ident: str) -> None:
    """Wait until this entry is open and its page is drawn: before that nothing can be accepted."""
    expect(page.locator(".entry-id")).to_have_text(ident)
    page.locator("html:not([data-drawing])").wait_for()


def press(page: Page, *keys: str) -> None:
    """One key after the other."""
    for key in keys:
        page.keyboard.press(key)
