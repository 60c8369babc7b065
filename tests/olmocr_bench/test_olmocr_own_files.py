"""olmOCR-Bench with test files of one's own beside the published ones, or in their place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from loupe.report.collect import collect
from loupe.report.leaderboard import columns
from loupe.runs.folder import RunFolder
from tests.support.command_line import complaint, loupe, make_folder
from tests.support.olmocr_set import EMPTY_PDF

#: File → texts that are looked for, one test each.
FILES = {"old_scans": ("boats", "gulls"), "invoices": ("total", "boats"), "overall": ("nets",), "facts": ("tide", "x")}
ANSWERS = {"good": "boats and gulls, the nets and the tide, in total", "poor": "boats and the tide"}
RATES = {"old_scans": (1, 0.5), "invoices": (1, 0.5), "overall.jsonl": (1, 0), "facts": (0.5, 0.5)}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("own")
    (root / "data/pdfs").mkdir(parents=True)
    (root / "data/pdfs/page.pdf").write_bytes(EMPTY_PDF)
    for name, texts in FILES.items():
        tests = [
            {"pdf": "page.pdf", "page": 1, "id": f"{name}_{text}", "type": "present", "text": text} for text in texts
        ]
        (root / f"data/{name}.jsonl").write_text("".join(json.dumps(test) + "\n" for test in tests))
    for name, text in ANSWERS.items():
        (root / name).mkdir()
        (root / name / "page_pg1_repeat1.md").write_text(text)
    done = loupe("score", "olmocr_bench", "good", "poor", "--data", "data", "--plain", "-j", "1", cwd=root)
    assert done.returncode == 0, done.stderr
    (root / "candidates.txt").write_text(done.stdout)
    return root


def test_each_file_is_a_row_of_its_own_in_the_result_and_the_mean_stays(there: Path) -> None:
    for place, name in enumerate(ANSWERS):
        result = json.loads((there / f"runs/{name}/olmocr_bench/result.json").read_text())
        found = {measure: one["value"] for measure, one in result["measures"].items() if one["value"] is not None}
        assert {measure: found[measure] for measure in RATES} == {m: rates[place] for m, rates in RATES.items()}
        parts = [*(rates[place] for rates in RATES.values()), found["baseline"]]
        assert found["overall"] == pytest.approx(sum(parts) / 5) == pytest.approx(result["figures"]["overall"])


def test_failed_tests_are_written_as_a_test_file_that_can_be_run_again(there: Path) -> None:
    runs = [Path(f"runs/{name}/olmocr_bench") for name in ANSWERS]
    done = loupe("export", runs[1], "--to", "failed-tests", "-o", "data2/failed.jsonl", cwd=there)
    assert (done.returncode, done.stdout) == (0, "data2/failed.jsonl\n"), done.stderr
    assert "4 of 8 tests failed" in done.stderr
    written = [json.loads(line) for line in (there / "data2/failed.jsonl").read_text().splitlines()]
    assert {test["id"] for test in written} == {"old_scans_gulls", "invoices_total", "overall_nets", "facts_x"}
    assert written[1] == {"pdf": "page.pdf", "page": 1, "id": "invoices_total", "type": "present", "text": "total"}
    (there / "data2/pdfs").mkdir()
    (there / "data2/pdfs/page.pdf").write_bytes(EMPTY_PDF)
    again = loupe("score", "olmocr_bench", "poor", "--data", "data2", "--name", "again", "--json", cwd=there)
    failed = json.loads(again.stdout)["measures"]["failed"]
    assert failed == {"value": 0.0, "low": None, "high": None, "n": 4, "few_carry_error": False}
    both = loupe("export", *runs, "--to", "failed-tests", "--json", cwd=there)
    assert json.loads(both.stdout) == {"file": "failed_tests.jsonl", "failed": 1, "tests": 8}
    assert json.loads((there / "failed_tests.jsonl").read_text())["id"] == "facts_x"


@pytest.mark.parametrize("tests", [5, [1], "abc", None, [{}], [{"id": [], "passed": True}], [{"id": "a"}]])
def test_tests_that_are_damaged_are_one_line(there: Path, tmp_path: Path, tests: object) -> None:
    run = shutil.copytree(there / "runs/poor/olmocr_bench", tmp_path / "run")
    rows = [json.loads(line) for line in (run / "scores.jsonl").read_text().splitlines()]
    rows[0]["details"]["tests"] = tests
    (run / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = RunFolder.open(run)
    result = folder.stored_result()
    assert result is not None
    folder.write_result(result)  # sealed as it is now
    done = loupe("export", run, "--to", "failed-tests", "-o", tmp_path / "failed.jsonl", cwd=there)
    assert done.returncode == 2 and "the tests of " in complaint(done)[0], done.stderr


def test_failed_tests_of_anything_else_are_refused(there: Path) -> None:
    make_folder(there, count=2)
    assert loupe("run", "mydocs", "-e", "python:reader.py:right", cwd=there).returncode == 0
    said, _ = complaint(loupe("export", "runs/python-reader.py_right/mydocs", "--to", "failed-tests", cwd=there))
    assert said == "runs/python-reader.py_right/mydocs is a run of mydocs, not of olmocr_bench"


def test_each_file_is_a_row_or_column_of_every_table(there: Path) -> None:
    assert "old scans ↑\tbaseline ↑\tfacts ↑\tinvoices ↑\toverall.jsonl ↑" in (there / "candidates.txt").read_text()
    runs = [Path(f"runs/{name}/olmocr_bench") for name in ANSWERS]
    alone = loupe("score", runs[1], "--plain", cwd=there).stdout
    assert "\ninvoices ↑\t50.00 %" in alone and "\noverall.jsonl ↑\t0.00 %" in alone
    pair = loupe("compare", *runs, "--plain", cwd=there).stdout
    assert "\ninvoices\t50.00 %\t100.00 %" in pair and "\nfacts\t50.00 %\t50.00 %" in pair
    (group,) = collect([there / run for run in runs])
    assert [measure.name for measure in columns(group)] == [
        "overall",
        "old_scans",
        "baseline",
        *sorted(RATES)[:2],
        "overall.jsonl",
    ]
    done = loupe("export", *runs, "--to", "evaluation", "-o", "out", cwd=there)
    assert done.returncode == 0, done.stderr
    samples = json.loads(next((there / "out").rglob("*poor*.json")).read_text())["samples"]
    assert samples[0]["metrics"]["invoices"] == 0.5
