"""Open every page of the built website in Chromium: nothing may be missing, fail, or come from another site.

python -m script.check_docs_site build/site                     # what script/docs runs
python -m script.check_docs_site build/site --pictures DIR      # also screenshots: desktop, telephone, light, dark
"""

import argparse
import sys
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page
from tests.support.report_browser import chromium

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = (1280, 390)
SHOWN = ("README", "docs/cli", "docs/api", "docs/benchmarks", "docs/report", "docs/protocols/omnidocbench", "search")
#: What is wider than the window, other than what scrolls by itself.
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def main() -> int:
    """Check; print what is wrong and return 1, or nothing and 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path)
    parser.add_argument("--pictures", type=Path, metavar="DIR")
    words = parser.parse_args()
    with chromium() as browser:
        trouble = check(browser, words.site)
        if words.pictures:
            take_pictures(browser, words.site, words.pictures)
    print("\n".join(trouble), end="\n" if trouble else "", file=sys.stderr)
    return 1 if trouble else 0


def check(browser: Browser, site: Path) -> list[str]:
    """What is wrong with the pages, opened as files on a telephone, and with the search."""
    trouble: list[str] = []
    start = site.resolve().as_uri() + "/"
    context = browser.new_context(viewport={"width": WIDTHS[-1], "height": 900})
    page = context.new_page()
    page.on("request", lambda request: None if allowed(request.url, start) else trouble.append(f"asks {request.url}"))
    page.on("requestfailed", lambda request: trouble.append(f"{page.url}: missing {request.url}"))
    page.on("pageerror", lambda error: trouble.append(f"{page.url}: {error}"))
    page.goto(f"{start}index.html")
    page.wait_for_url("**/README.html")
    for file in sorted(set(site.rglob("*.html")) - {site / "index.html"}):
        page.goto(file.resolve().as_uri())
        if page.evaluate(TOO_WIDE) > 0:
            trouble.append(f"{page.url}: wider than a telephone")
    page.goto(f"{start}search.html?q=bootstrap")
    if not page.locator("#search-results li").first.text_content():
        trouble.append("the search finds nothing")
    context.close()
    return trouble


def allowed(url: str, start: str) -> bool:
    """Whether a request stays on the site."""
    return url.startswith((start, "data:", "about:"))


def take_pictures(browser: Browser, site: Path, folder: Path) -> None:
    """Screenshots of some pages, each as wide as a desktop and a telephone, light and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for scheme in SCHEMES:
        for width in WIDTHS:
            page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": 1000})
            for name in SHOWN:
                take(page, site / f"{name}.html", folder / f"{name.replace('/', '-')}-{width}-{scheme}.png")
            page.close()


def take(page: Page, file: Path, picture: Path) -> None:
    """One screenshot of the top of a page; the search looks for something."""
    page.goto(file.resolve().as_uri() + ("?q=interval" if file.stem == "search" else ""))
    page.wait_for_timeout(400)
    page.screenshot(path=picture)


if __name__ == "__main__":
    raise SystemExit(main())
