"""Fields of documents in the report: one table of truth and engines, each value right or wrong, and by which rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from loupe.benchmarks.folders.own import open_folder
from loupe.benchmarks.nanonets_kie import benchmark as nanonets
from loupe.report.html import write_report
from loupe.types import Prediction, Sample
from tests.support.command_line import loupe
from tests.support.report_browser import Opened, opened

TRUTH = {
    "seller": "Autohaus Hoffmann GmbH",
    "day": "5 March 2024",
    "total": "1.234,50 EUR",
    "note": "Paid in full",
    "vat": "",
}
TYPES = {"seller": "company", "day": "date", "total": "amount", "note": "text", "vat": "id"}
GOOD = {"seller": "AUTOHAUS HOFMANN", "day": "2024-03-05", "total": "1234.5", "note": "Paid in full", "vat": ""}
POOR = {"seller": "<b>Somebody</b>", "day": "2024-03-06", "total": "", "note": "Paid in fu11", "vat": "DE1"}


def folder(root: Path, *, types: bool = True) -> Path:
    (root / "inv").mkdir()
    fields = "[fields]\n" + "".join(f'{name} = "{kind}"\n' for name, kind in TYPES.items()) if types else ""
    (root / "inv" / "loupe.toml").write_text(f'[benchmark]\ntask = "fields"\nignore_case = true\n{fields}')
    rows = [{"id": str(number), "text": "x", "reference": TRUTH} for number in range(3)]
    (root / "inv" / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return root / "inv"


def judged(root: Path, answer: str) -> dict[str, tuple[float, str]]:
    benchmark = open_folder(root)
    assert benchmark.fields is not None
    found = benchmark.fields(Sample(id="0", truth=TRUTH, task="fields"), Prediction(text=answer))
    return {field.name: (field.value, field.rule) for field in found}


def test_each_field_says_which_rule_decided(tmp_path: Path) -> None:
    found = judged(folder(tmp_path), json.dumps(GOOD))
    assert found == {
        "seller": (1.0, "the same name except for a typo"),
        "day": (1.0, "the same date"),
        "total": (1.0, "the same amount"),
        "note": (1.0, "as written"),
        "vat": (1.0, "empty, as in the ground truth"),
    }
    poor = judged(tmp_path / "inv", json.dumps(POOR))
    assert {name: rule for name, (_, rule) in poor.items()} == {
        "seller": "another name",
        "day": "another date",
        "total": "nothing given",
        "note": "83.3 % alike",
        "vat": "the ground truth is empty",
    }
    assert {rule for _, rule in judged(tmp_path / "inv", "no JSON").values()} == {"the answer is no JSON object"}


def test_without_types_and_in_the_benchmarks_of_fields_it_is_the_similarity(tmp_path: Path) -> None:
    found = judged(folder(tmp_path, types=False), json.dumps({**GOOD, "note": "PAID  in full"}))
    assert found["note"] == (1.0, "the same without case and spacing") and found["day"][1].endswith("% alike")
    assert nanonets.fields is not None
    (field,) = nanonets.fields(Sample(id="0", truth={"date": "5 May"}), Prediction(text='{"date": "5 Mai"}'))
    assert (field.given, field.rule) == ("5 Mai", "80.0 % alike")


@pytest.mark.parametrize("types", [True, False])
def test_scores_are_those_of_the_fields_that_are_shown(tmp_path: Path, types: bool) -> None:
    benchmark = open_folder(folder(tmp_path, types=types))
    sample = Sample(id="0", truth=TRUTH, task="fields")
    for answer in (json.dumps(GOOD), json.dumps(POOR), "[]", ""):
        prediction = Prediction(text=answer)
        scores = benchmark.score(sample, prediction)
        assert isinstance(scores, list) and benchmark.fields is not None
        name = benchmark.headline_measure
        shown = [(field.name, field.value) for field in benchmark.fields(sample, prediction)]
        assert shown == [(score.unit, score.counts[0]) for score in scores if score.measure == name]


def cells(seen: Opened, field: int) -> list[str]:
    return seen.page.locator(f"table.fields tbody tr:nth-child({field}) td").all_inner_texts()


@pytest.mark.browser
def test_the_report_shows_a_table_and_strikes_out_only_what_cost_something(tmp_path: Path, browser: Browser) -> None:
    folder(tmp_path)
    for name, answer in (("good", GOOD), ("poor", POOR)):
        rows = [{"id": str(number), "text": json.dumps(answer)} for number in range(2)]
        rows += [{"id": "2", "error": "late"}] if name == "poor" else [{"id": "2", "text": json.dumps(answer)}]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        assert loupe("score", "inv", f"{name}.jsonl", cwd=tmp_path).returncode == 0
    write_report([tmp_path / "runs" / name / "inv" for name in ("good", "poor")], tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html", after="#s=0") as seen:
        seen.page.locator("table.fields").wait_for()
        assert seen.page.locator("table.fields thead th").all_inner_texts() == ["field", "ground truth", "good", "poor"]
        assert cells(seen, 1)[0] == "Autohaus Hoffmann GmbH"
        assert [text.split() for text in cells(seen, 2)] == [
            ["5", "March", "2024"],
            ["✓", "2024-03-05", "the", "same", "date"],
            ["✗", "2024-03-06", "another", "date"],
        ]
        assert "<b>Somebody</b>" in cells(seen, 1)[2], "an answer is text, never markup"
        struck = seen.page.locator("table.fields :is(del, ins)").all_inner_texts()
        assert struck == ["ll", "11"], "only the note, which lost points and is nearly right"
        seen.page.keyboard.press("2")
        assert seen.page.locator("table.fields").count() == 1
        assert not seen.page.locator("[data-mode=difference]").is_visible()
        seen.page.keyboard.press("3")
        assert seen.page.locator("table.fields").count() == 0 and seen.page.locator(".text.raw").count() == 3
    with opened(browser, tmp_path / "report.html", after="#s=2", width=390, scheme="dark") as seen:
        seen.page.locator("table.fields").wait_for()
        assert "no answer" in cells(seen, 1)[2]
        assert seen.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.browser
def test_a_difference_of_an_answer_with_full_marks_is_not_struck_out(tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "loupe.toml").write_text('[benchmark]\ntask = "text"\nignore_case = true\n')
    row = {"id": "0", "text": "x", "reference": "The Clock of the Harbour"}
    (tmp_path / "text" / "samples.jsonl").write_text(json.dumps(row) + "\n")
    for name, answer in (("right", "THE clock of the Harbour"), ("wrong", "The Clock of the Harvour")):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": "0", "text": answer}) + "\n")
        assert loupe("score", "text", f"{name}.jsonl", cwd=tmp_path).returncode == 0
    write_report([tmp_path / "runs" / name / "text" for name in ("right", "wrong")], tmp_path / "report.html")
    with opened(browser, tmp_path / "report.html", after="#s=0") as seen:
        seen.page.locator(".pane").first.wait_for()
        seen.page.click("[data-mode=difference]")
        lines = seen.page.locator(".text.diff del").evaluate_all(
            "all => all.map(each => getComputedStyle(each).textDecorationLine)"
        )
        assert lines == ["underline", "line-through"]
        assert seen.page.locator(".pane").first.inner_text().count("cost nothing") == 1


def test_why_fields_cannot_be_judged_stands_above_the_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path)
    (tmp_path / "answers.jsonl").write_text(json.dumps({"id": "0", "text": json.dumps(GOOD)}) + "\n")
    done = loupe("score", "inv", "answers.jsonl", "--name", "one", cwd=tmp_path)
    assert done.returncode == 0, done.stderr

    def broken(*_: object) -> None:
        raise ValueError("no such day")

    monkeypatch.setattr("loupe.benchmarks.folders.own.folder_benchmark.judge", broken)
    write_report([tmp_path / "runs" / "one" / "inv"], tmp_path / "report.html")
    assert "cannot be shown: no such day" in (tmp_path / "report.html").read_text()
