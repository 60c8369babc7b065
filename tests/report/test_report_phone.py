"""A report of classes on a telephone: words stay whole, and what failed is in sight."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from loupe.report.html import write_report
from tests.support.command_line import loupe
from tests.support.report_browser import opened

pytestmark = pytest.mark.browser

LABELS = ["invoice", "certificate", "reminder", "delivery note", "questionnaire", "bank statement"]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two engines and six labels; the second engine has left out two documents."""
    root = tmp_path_factory.mktemp("phone")
    (root / "own").mkdir()
    (root / "own" / "loupe.toml").write_text(f'[benchmark]\ntask = "class"\nlabels = {json.dumps(LABELS)}\n')
    rows = [
        {"id": f"{place}", "text": "x", "reference": label, "tags": {"n": "1"}} for place, label in enumerate(LABELS)
    ]
    (root / "own" / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, count in (("all_labels.of_one", 6), ("some", 4)):
        lines = [json.dumps({"id": f"{place}", "text": LABELS[place]}) + "\n" for place in range(count)]
        (root / "answers.jsonl").write_text("".join(lines))
        done = loupe("score", "own", "answers.jsonl", "--name", name, cwd=root)
        assert done.returncode == 0, done.stderr
    write_report([root / "runs" / name / "own" for name in ("all_labels.of_one", "some")], root / "report.html")
    return root / "report.html"


def test_words_of_headers_and_names_stay_whole(browser: Browser, report: Path) -> None:
    with opened(browser, report, width=420) as seen:
        seen.page.locator("section.group details").evaluate_all("all => all.forEach(each => { each.open = true; })")
        # As many lines as words (joints of a name count), at 20 pixels each.
        broken = seen.page.locator("thead .short, .leaderboard .engine bdi").evaluate_all(
            "all => all.map(each => [each.textContent, each.getBoundingClientRect().height])"
            ".filter(([name, height]) => height > 24 * name.split(/[ _.]/).length)"
        )
        assert broken == []
        assert seen.text(".failed-short") == "2 of 6 failed"
        assert seen.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        # Where the pages of `loupe view` do not fit, a shade at the edge tells.
        shade = seen.page.locator(".bar nav").evaluate("each => getComputedStyle(each).backgroundAttachment")
        assert shade == "local, local, scroll, scroll"


def test_classes_of_all_engines_stand_in_one_table_with_matrices_folded(browser: Browser, report: Path) -> None:
    with opened(browser, report) as seen:
        table = seen.page.locator("table.classes:visible")
        assert table.count() == 1
        assert table.locator("tbody").count() == 6
        first = table.locator("tbody").first.locator("tr").all_inner_texts()
        assert "all_labels.of_one" in first[0] and "some" in first[1]
        assert seen.page.locator("section.group details:not([open]) > summary").count() >= 2
        assert not seen.page.locator(".failed-short").first.is_visible()


def test_no_header_is_cut_and_every_cell_says_whose_it_is(browser: Browser, report: Path) -> None:
    with opened(browser, report, width=390) as seen:
        seen.page.locator("section.group details").evaluate_all("all => all.forEach(each => { each.open = true; })")
        # Nothing is wider than its box, so nothing has to be pushed aside to be read.
        cut = seen.page.locator("section.group .table-scroll, section.group th, section.group td").evaluate_all(
            "all => all.filter(each => each.scrollWidth > each.clientWidth + 1"
            " || each.getBoundingClientRect().right > 390).map(each => each.textContent.trim())"
        )
        assert cut == []
        unnamed = seen.page.locator("section.group .stack td").evaluate_all(
            "all => all.filter(each => each.textContent.trim() && !each.dataset.of && !each.matches('.error'))"
            ".map(each => each.outerHTML)"
        )
        assert unnamed == []
        named = seen.page.locator(".leaderboard .headline[data-of]").first.evaluate(
            "each => getComputedStyle(each, '::before').content"
        )
        assert named == '"classes (accuracy)"'
