"""The website of the documentation (script/docs): every page has its place, and no page asks another site."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.report_browser import chromium

SCRIPT = Path(__file__).parents[2] / "script"
PLAIN = "<!doctype html><title>A page</title>"


def script(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(Path(path).stem, SCRIPT / path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_every_page_is_in_the_navigation_exactly_once() -> None:
    navigation = script("docs_site/navigation.py")
    pages = navigation.pages()
    placed = [page for _caption, listed in navigation.sections() for page in listed]
    placed += [below for page in pages for below in navigation.below(page)]
    assert sorted([navigation.HOME, *placed]) == pages
    assert placed.index("docs/install") < placed.index("docs/report") < placed.index("docs/design")


def test_the_reference_has_what_the_page_names() -> None:
    reference = script("docs_site/reference.py").directives()
    for name in ("loupe.metrics.cer", "loupe.metrics.find_loop", "loupe.benchmarks.get_benchmark"):
        assert f".. autofunction:: {name}\n" in reference
    assert ".. autoclass:: loupe.types.Score\n" in reference


@pytest.mark.browser
def test_a_page_that_asks_another_site_or_for_a_missing_file_is_found(tmp_path: Path) -> None:
    check = script("check_docs_site.py").check
    (tmp_path / "index.html").write_text('<meta http-equiv="refresh" content="0; url=README.html">')
    (tmp_path / "README.html").write_text(PLAIN)
    (tmp_path / "search.html").write_text(f'{PLAIN}<ul id="search-results"><li>found</ul>')
    with chromium() as browser:
        assert check(browser, tmp_path) == []
        (tmp_path / "fonts.html").write_text(f'{PLAIN}<link rel="stylesheet" href="http://127.0.0.1:9/font.css">')
        (tmp_path / "picture.html").write_text(f'{PLAIN}<img src="missing.png">')
        trouble = check(browser, tmp_path)
    assert "asks http://127.0.0.1:9/font.css" in trouble
    assert any(line.endswith("missing.png") for line in trouble)


@pytest.mark.browser
def test_the_table_of_profiles_is_filtered_by_keyboard(tmp_path: Path) -> None:
    head = "<thead><tr><th>profile<th>kind<th>reads<th>runs on<th>proven</thead>"
    rows = (
        ("one", "http", "image, whole PDF", "cloud", "stand-in"),
        ("two", "http", "image", "cloud", "reads"),
        ("three", "rapidocr", "image", "this machine", "reads"),
    )
    cells = ["".join(f"<td>{cell}</td>" for cell in row) for row in rows]
    tables = ("".join(f"<tr>{row}</tr>" for row in part) for part in (cells[:2], cells[2:]))
    sections = "".join(
        f"<section><h2>Group</h2><table>{head}<tbody>{body}</tbody></table></section>" for body in tables
    )
    code = (SCRIPT / "docs_site/static/profiles.js").read_text("utf-8")
    file = tmp_path / "page.html"
    file.write_text(
        f'{PLAIN}<section id="all-profiles"><h1>All</h1>{sections}</section><script>{code}</script>', "utf-8"
    )
    with chromium() as browser:
        page = browser.new_page()
        page.goto(file.as_uri())
        shown = page.locator("tbody tr:visible td:first-child")
        assert shown.all_text_contents() == ["one", "two", "three"]
        page.locator("select[name=reads]").focus()
        page.keyboard.type("whole")
        assert shown.all_text_contents() == ["one"] and page.locator("h2:visible").count() == 1
        assert page.locator("output").text_content() == "1 of 3 profiles"
        page.get_by_role("button", name="Show all").press("Enter")
        page.get_by_label("contains").fill("machine")
        assert shown.all_text_contents() == ["three"]
        page.close()
