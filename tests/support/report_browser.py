"""A real Chromium for the tests of the report; they skip, loudly, where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium from the system."""
    program = next((path for path in map(shutil.which, PROGRAMS) if path), None)
    if program is None:
        pytest.skip(f"SKIPPED: none of {', '.join(PROGRAMS)} is installed, so the report was not opened in a browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Opened:
    """An open report and all that went wrong or left the file so far."""

    page: Page
    trouble: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def text(self, selector: str) -> str:
        """The visible text of the first match."""
        return self.page.locator(selector).first.inner_text()

    def names(self) -> list[str]:
        """The samples of the grid, as they stand."""
        return self.page.locator(".card-name").all_inner_texts()

    def open_sample(self, ident: str) -> None:
        """Open a sample as its card does."""
        self.page.locator(f".card[title='{ident}']").click()
        self.page.locator("#sample .pane").first.wait_for()


@contextmanager
def opened(
    browser: Browser,
    report: Path,
    *,
    scheme: Literal["light", "dark"] = "light",
    width: int = 1440,
    scale: float = 1,
    after: str = "",
) -> Iterator[Opened]:
    """The report in a fresh tab; `scale` is the pixels of the screen for each of CSS.

    Afterwards: no console message, no dialog, no request but file: and data:."""
    context = browser.new_context(
        color_scheme=scheme, viewport={"width": width, "height": 900}, device_scale_factor=scale
    )
    page = context.new_page()
    seen = Opened(page)
    page.on("console", lambda message: seen.trouble.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen.trouble.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (seen.trouble.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: seen.requests.append(request.url))
    page.goto(report.resolve().as_uri() + after)
    page.locator("html[data-ready]").wait_for()
    yield seen
    context.close()
    assert seen.trouble == []
    assert [url[:60] for url in seen.requests if not url.startswith(("file:", "data:"))] == []
