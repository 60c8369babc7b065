"""Tests of olmOCR-Bench in the report, in a real Chromium: a small set of our own, scored by the real command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from loupe.data.hub.katex import katex_folder
from tests.support.command_line import loupe
from tests.support.math_renderer import need_renderer
from tests.support.olmocr_set import EMPTY_PDF
from tests.support.report_browser import opened

need_renderer()

pytestmark = pytest.mark.browser

ATTACK = "<script>document.title='owned'</script><img src=x onerror=alert(1)><svg onload=alert(2)>"
TABLE = (
    "<table><thead><tr><th>fish</th><th colspan=2>weight</th></tr></thead>"
    "<tr><td rowspan=2>herring</td><td>12</td><td>kg</td></tr><tr><td>13</td></tr></table>"
)
TESTS: dict[str, list[dict[str, Any]]] = {
    "harbour": [
        {"type": "present", "id": "gulls", "text": "Nobody has counted the gulls, and nobody wants to."},
        {"type": "present", "id": "boats", "text": "Seven boats"},
        {"type": "absent", "id": "header", "text": "Port authority"},
        {"type": "order", "id": "order", "before": "Seven boats", "after": "The harbour book"},
        {"type": "table", "id": "cell", "cell": "12", "right": "pounds", "top_heading": "weight"},
        {"type": "format", "id": "bold", "text": "The harbour book", "format": "bold"},
        {"type": "footnote", "id": "note", "marker": "1", "appears_before_marker": "gulls"},
    ],
    "formulas": [
        {"type": "math", "id": "root", "math": r"\frac{a+c}{\sqrt{x^2+1}} = \sin y"},
        {"type": "math", "id": "same", "math": "e = mc^2"},
        {"type": "math", "id": "refused", "math": r"\alpha + \beta"},
    ],
    "attacked": [
        {"type": "present", "id": ATTACK, "text": f"calm {ATTACK}"},
        {"type": "table", "id": "cell2", "cell": "quiet", "up": "loud"},
        {"type": "math", "id": "macro", "math": r"\text{<img src=x onerror=alert(3)>}^2"},
    ],
    "unanswered": [{"type": "present", "id": "lost", "text": "Nobody answered this page."}],
}
ANSWERS = {
    "harbour": "# The harbour book\n\nPort authority of the north\n\nSeven boats lie at the quay.\n\n"
    f"Nobody has cuonted the gull, and nobody wants to.\n\n{TABLE}\n",
    "formulas": r"$$\frac{a+b}{\sqrt{x^2+1}} = \sin x$$ and $e = mc^2$ and $\alpha \bad$",
    "attacked": f"{ATTACK} storm {ATTACK}\n\n<table><tr><td>x{ATTACK}</td></tr><tr><td>quiet</td></tr></table>\n\n"
    r"$\text{<img src=x onerror=alert(4)>}$ $\href{javascript:alert(5)}{x}$",
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two engines: one that read something, one that wrote nothing but one page."""
    root = tmp_path_factory.mktemp("facts")
    env = {"LOUPE_KATEX_DIR": str(katex_folder())}
    (root / "data" / "pdfs").mkdir(parents=True)
    for name, tests in TESTS.items():
        (root / "data" / "pdfs" / f"{name}.pdf").write_bytes(EMPTY_PDF)
        category = "arxiv_math" if name == "formulas" else "old_scans"
        with (root / "data" / f"{category}.jsonl").open("a", encoding="utf-8") as file:
            for test in tests:
                file.write(json.dumps({"pdf": f"{name}.pdf", "page": 1, **test}) + "\n")
    for engine, names in (("careful", list(ANSWERS)), ("lazy", ["formulas"])):
        (root / engine).mkdir()
        for name in names:
            (root / engine / f"{name}_pg1_repeat1.md").write_text(ANSWERS[name], encoding="utf-8")
        words = ("score", "olmocr_bench", root / engine, "--data", root / "data", "--name", engine, "-j", "1")
        done = loupe(*words, cwd=root, env=env)
        assert done.returncode == 0, done.stderr
    runs = [root / "runs" / name / "olmocr_bench" for name in ("careful", "lazy")]
    done = loupe("report", *runs, "-o", root / "report.html", cwd=root, env=env)
    assert done.returncode == 0, done.stderr
    return root / "report.html"


def at(name: str, *, engine: int = 0, number: int | None = None) -> str:
    return f"#s={name}_pg1_repeat1" + ("" if number is None else f"&f={engine}.{number}")


def test_each_failed_test_says_in_plain_words_what_was_asked_and_why_it_failed(browser: Browser, report: Path) -> None:
    with opened(browser, report, after=at("harbour")) as seen:
        seen.page.locator(".fact").first.wait_for()
        assert "6 of 8 tests failed" in seen.text(".fact-view .match-line")
        texts = {each.locator(".fact-id").inner_text(): each.inner_text() for each in seen.page.locator(".fact").all()}
        assert set(texts) == {"gulls", "header", "order", "cell", "bold", "note"}
        assert "Nobody has counted the gulls, and nobody wants to. must stand on the page." in texts["gulls"]
        assert "alike; 100.0 % is the limit" in texts["gulls"]
        assert "Both texts are there, in the wrong order." in texts["order"]
        assert "12 with pounds right of it and weight as a heading of its column" in texts["cell"]
        assert "Nothing in the answer is bold." in texts["bold"]
        assert "The marker is not there." in texts["note"]
        assert seen.page.locator(".sample-pictures img").count() == 1


def test_the_characters_that_differ_stand_out_in_their_surroundings(browser: Browser, report: Path) -> None:
    with opened(browser, report, after=at("harbour")) as seen:
        found = seen.page.locator(".fact", has_text="gulls, and nobody wants").locator(".found")
        assert "Seven boats" in found.locator(".around").first.inner_text()
        wrong = [(each.evaluate("e => e.tagName"), each.inner_text()) for each in found.locator("del, ins").all()]
        assert ("DEL", "s") in wrong and {kind for kind, _ in wrong} == {"DEL", "INS"}
        header = seen.page.locator(".fact", has_text="must not stand on the page").locator(".found mark")
        assert header.inner_text() == "Port authority"


def test_the_table_is_drawn_as_parsed_with_the_cell_in_question(browser: Browser, report: Path) -> None:
    with opened(browser, report, after=at("harbour")) as seen:
        grid = seen.page.locator(".parsed")
        assert grid.locator(".parsed-cell").all_inner_texts() == ["fish", "weight", "herring", "12", "kg", "13"]
        assert grid.locator(".cell").all_inner_texts() == ["12"]
        assert grid.locator(".related").all_inner_texts() == ["kg"]
        assert grid.locator(".heading").all_inner_texts() == ["fish", "weight"]
        boxes = {each.inner_text(): each.bounding_box() for each in grid.locator(".parsed-cell").all()}
        wide, tall, below, last = (boxes[name] for name in ("weight", "herring", "13", "kg"))
        assert wide and tall and below and last
        assert wide["x"] + wide["width"] == pytest.approx(last["x"] + last["width"], abs=1)
        assert tall["y"] + tall["height"] == pytest.approx(below["y"] + below["height"], abs=1)


def test_both_equations_are_drawn_with_the_symbols_told_apart(browser: Browser, report: Path) -> None:
    with opened(browser, report, after=at("formulas")) as seen:
        seen.page.locator(".formula").first.wait_for()
        root = seen.page.locator(".fact", has_text=r"\frac{a+c}")
        assert root.locator(".formula").count() == 2
        assert root.locator(".formula .missing").evaluate_all("all => all.map(e => e.firstChild.data)") == ["c", "y"]
        assert root.locator(".formula .extra").evaluate_all("all => all.map(e => e.firstChild.data)") == ["b", "x"]
        assert root.locator(".formula rect").count() == 2 and root.locator(".formula path").count() == 2
        boxes = [each.bounding_box() for each in root.locator(".formula").all()]
        assert all(box and 100 < box["width"] < 500 and 40 < box["height"] < 200 for box in boxes)
        refused = seen.page.locator(".fact", has_text=r"\alpha + \beta")
        assert "KaTeX refuses this" in refused.inner_text() and r"\alpha \bad" in refused.inner_text()


def test_the_list_of_all_pages_is_filtered_and_leads_to_the_test(browser: Browser, report: Path) -> None:
    with opened(browser, report, after="#tests") as seen:
        page, links = seen.page, seen.page.locator(".fact-link")
        links.first.wait_for()
        everything = links.count()
        page.locator("#fact-engine").select_option("careful")
        assert 0 < links.count() < everything
        page.locator("#fact-kind").select_option("math")
        assert page.locator("#fact-count").inner_text() == "3 of 4 tests failed"
        page.locator("#fact-failures").uncheck()
        assert links.count() == 4
        page.locator("#fact-category").select_option("arxiv math")
        assert links.count() == 3
        page.locator("#fact-kind").select_option("")
        page.locator("#fact-category").select_option("")
        page.locator("#fact-document").select_option("harbour.pdf")
        page.locator("#fact-failures").check()
        page.locator("#fact-search").fill("pounds")
        assert links.count() == 1
        links.first.click()
        page.locator(".fact").first.wait_for()
        assert page.evaluate("document.activeElement.querySelector('.fact-id').textContent") == "cell"


def test_tests_that_all_engines_failed_and_those_on_which_they_differ_can_be_listed(
    browser: Browser, report: Path
) -> None:
    ids = [*(test["id"] for tests in TESTS.values() for test in tests), *(f"{name}.pdf_baseline" for name in TESTS)]
    passed = {engine: outcomes(report.parent / "runs" / engine / "olmocr_bench") for engine in ("careful", "lazy")}
    by_all = [ident for ident in ids if not any(each[ident] for each in passed.values())]
    differ = [ident for ident in ids if passed["careful"][ident] != passed["lazy"][ident]]
    assert by_all and differ and len(by_all) + len(differ) < len(ids)
    with opened(browser, report, after="#tests") as seen:
        page, links = seen.page, seen.page.locator(".fact-link")
        links.first.wait_for()
        page.locator("#fact-failures").uncheck()
        for value, found in (("all", by_all), ("differ", differ)):
            page.locator("#fact-together").select_option(value)
            assert links.count() == 2 * len(found)
            page.locator("#fact-engine").select_option("careful")
            assert links.count() == len(found)
            page.locator("#fact-engine").select_option("")


def outcomes(run: Path) -> dict[str, bool]:
    lines = map(json.loads, (run / "scores.jsonl").read_text(encoding="utf-8").splitlines())
    return {fact["id"]: fact["passed"] for line in lines for fact in line["details"]["tests"]}


def test_a_page_is_filtered_by_type_engine_and_outcome(browser: Browser, report: Path) -> None:
    with opened(browser, report, after=at("formulas", engine=1, number=0)) as seen:
        page = seen.page
        page.locator(".fact").first.wait_for()
        assert page.locator(".fact-controls").get_by_label("Engine").locator("option:checked").inner_text() == "lazy"
        page.get_by_role("button", name="Only failures").click()
        assert page.locator(".fact.pass").count() == 2
        page.locator(".fact-controls").get_by_label("Type").select_option("baseline")
        assert page.locator(".fact").count() == 1
        page.keyboard.press("Escape")  # the keys of the page are not those of the list that has the focus
        page.keyboard.press("1")
        assert page.locator(".pane").count() == 3 and page.locator(".fact").count() == 0
        page.keyboard.press("5")
        assert page.locator(".fact").count() == 1
        page.keyboard.press("j")
        page.locator(".sample-name", has_text="harbour").wait_for()
        assert page.locator(".fact").count() > 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_answers_and_tests_are_text(browser: Browser, report: Path, scheme: Any) -> None:
    with opened(browser, report, scheme=scheme, after=at("attacked")) as seen:
        seen.page.locator(".fact").first.wait_for()
        drawn = seen.page.locator(".formula text").evaluate_all("all => all.map(e => e.firstChild.data)")
        assert "<script>" in seen.text(".fact-view") and "onerror" in "".join(drawn)
        assert seen.page.locator(".fact-view :is(script, img, a, foreignObject)").count() == 0
        for details in seen.page.locator(".fact-view summary").all():
            details.click()
        assert seen.page.title() == "attacked_pg1_repeat1 · Loupe"


def test_nothing_is_wider_than_a_narrow_window(browser: Browser, report: Path) -> None:
    for after in (at("harbour"), at("formulas"), at("unanswered"), "#tests"):
        with opened(browser, report, width=390, after=after) as seen:
            seen.page.locator(":is(.fact, .fact-link):visible").first.wait_for()
            assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
