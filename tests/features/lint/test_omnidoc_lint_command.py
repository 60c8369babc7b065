"""`loupe lint --for omnidocbench`: what faults cost, official values beside mended ones, and mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loupe.benchmarks.registry import benchmark_ids, get_benchmark
from loupe.features.lint.adapter_faults import is_linted
from loupe.features.lint.measure import lint
from tests.features.lint.test_omnidoc_lint import CASES, TEXTS, values
from tests.support.command_line import complaint, loupe
from tests.support.omnidocbench.small_pages import page


def write(folder: Path) -> Path:
    chosen = ("latex-table", "md-table", "single-newline")
    pages = [page(f"{name}.jpg", *CASES[name][1]) for name in chosen]
    (folder / "OmniDocBench.json").write_text(json.dumps([*pages, page("gone.jpg", *TEXTS)]), encoding="utf-8")
    (folder / "answers").mkdir()
    for name in chosen:
        (folder / "answers" / f"{name}.md").write_text(
            CASES[name][0].replace("\n", "\r\n"), encoding="utf-8", newline=""
        )
    return folder


def test_costs_are_official_values_with_and_without_a_fault(tmp_path: Path) -> None:
    found = lint(write(tmp_path) / "answers", "omnidocbench", data=tmp_path, jobs=1)
    assert (found.read, found.missing, found.no_truth) == (3, 1, "")
    assert found.official["table_teds"] == pytest.approx(values(*_case("md-table"))["table_teds"] / 2)
    assert found.mended["table_teds"] == pytest.approx(1.0)
    by_name = {fault.name: fault for fault in found.faults}
    assert by_name["latex-table"].mended["table_teds"] == pytest.approx(0.5 + found.official["table_teds"])
    assert by_name["image"].mended == found.official and by_name["image"].places == 0
    pages = {each.page: each for each in found.pages}
    assert pages["md-table"].alone["md-table"] == pages["md-table"].mended
    assert pages["latex-table"].faults == {"latex-table": [3]}
    assert found.pages[0].page == "latex-table"
    done = loupe("score", "omnidocbench", "answers", "--data", ".", "--json", cwd=tmp_path)
    official = {name: each["value"] for name, each in json.loads(done.stdout)["measures"].items()}
    assert {name: official[name] for name in found.official} == pytest.approx(found.official)
    (run,) = (tmp_path / "runs").glob("*/omnidocbench")
    again = lint(run, jobs=1)
    assert (again.official, again.mended, again.pages) == (found.official, found.mended, found.pages)


def _case(name: str) -> tuple[Any, ...]:
    answer, blocks, *_ = CASES[name]
    return answer, *blocks


def test_the_command_shows_official_beside_mended_and_the_costliest_pages(tmp_path: Path) -> None:
    write(tmp_path)
    done = loupe(
        "lint",
        "answers",
        "--for",
        "omnidocbench@1.5",
        "--data",
        ".",
        "-j",
        "1",
        "--top",
        "1",
        "--plain",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert rows[0] == ["# answers for omnidocbench@1.5, 3 pages"]
    assert ["measure", "official", "with all faults fixed", "change"] in rows
    assert next(row for row in rows if row[0] == "table_teds ↑")[2] == "100.00 %"
    assert ["# pages changed by the fix (1 of 3)"] in rows and rows[-2][0] == "latex-table"
    assert "only `official` is a result of the benchmark" in done.stderr
    assert "1 page without an answer" in done.stderr
    strict = loupe(
        "lint", "answers", "--for", "omnidocbench", "--data", ".", "--fail-on-faults", "--json", cwd=tmp_path
    )
    assert strict.returncode == 1 and json.loads(strict.stdout)["read"] == 3


def test_without_ground_truth_faults_are_found_and_costs_are_unknown(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "store").mkdir()
    env = {"LOUPE_DATA": str(tmp_path / "store")}
    words = ("lint", "answers", "--for", "omnidocbench")
    done = loupe(*words, "--plain", cwd=tmp_path, env=env)
    assert done.returncode == 0 and "costs are unknown without ground truth" in done.stderr
    assert "latex-table\t1\t1\tLaTeX tables, which score 0" in done.stdout and "official" not in done.stdout
    strict = loupe(*words, "--fail-on-faults", "--json", cwd=tmp_path, env=env)
    assert strict.returncode == 1 and json.loads(strict.stdout)["read"] == 3


#: Benchmarks whose answers are looked through, in the order of their names.
LINTED = [name for name in benchmark_ids() if is_linted(get_benchmark(name))]
LINT_HINT = f"name a run: loupe runs; answers of a benchmark: loupe lint answers --for {LINTED[0]}"


@pytest.mark.parametrize(
    ("words", "said", "hint"),
    [
        ("nope", "no answers at nope", "run: loupe lint FOLDER --for omnidocbench"),
        ("answers", "answers is not a run", LINT_HINT),
        (
            "answers --for unimer_test",
            "lint has nothing for answers to unimer_test: they are no pages, and no faults of their form are known",
            "see its options: loupe bench show unimer_test",
        ),
        (
            "empty --for omnidocbench --data .",
            "empty: no answer to any page of omnidocbench",
            "name answers after pages: PAGE.md",
        ),
        (
            "answers --for omnidocbench --data empty",
            "empty: no OmniDocBench here; expected OmniDocBench.json with images/",
            "it stands one folder up: --data .",
        ),
        (
            "answers --for omnidocbench --data . -o mode=fixed",
            "answers: faults are measured on official numbers, which mode=fixed does not have",
            "answers in a folder, without -o mode=fixed",
        ),
        (
            "answers --for omnidocbench -o filter=red",
            "filter: 'red' is not attribute=value",
            "-o 'filter=language=english;layout=double_column'",
        ),
    ],
)
def test_a_mistake_is_one_line_and_a_hint(tmp_path: Path, words: str, said: str, hint: str) -> None:
    (write(tmp_path) / "empty").mkdir()
    done = loupe("lint", *words.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert complaint(done) == (said, hint)
