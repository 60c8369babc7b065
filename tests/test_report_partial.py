"""Runs over part of a set: every table says so, and no composite of fewer measures stands beside one of all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from loupe.benchmarks.registry import get_benchmark
from loupe.cli.compare import compare_runs, sections
from loupe.report.collect import collect
from loupe.report.page import environment, group_context
from loupe.report.partial_runs import other_composites
from loupe.report.terminal import tab_separated
from loupe.types import Estimate, Result
from tests.command_line import loupe
from tests.report_runs import Toy, misread, toy_pages


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """`whole` has read four lines and four labels, `part` (better on these) and `less` only the four lines."""
    root = tmp_path_factory.mktemp("partial")
    (root / "mixed").mkdir()
    (root / "mixed" / "loupe.toml").write_text(
        '[benchmark]\ntask = "text"\nheadline = "overall"\nlabels = ["a", "b"]\n'
    )
    rows = [{"id": f"t{place}", "text": "x", "reference": f"line {place}"} for place in range(4)]
    rows += [{"id": f"c{place}", "text": "x", "task": "class", "reference": "a"} for place in range(4)]
    (root / "mixed" / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, limit, answers in (
        ("whole", [], ["line 0", "line 1", "line 2", "lime", "a", "a", "b", "b"]),
        ("part", ["--limit", "4"], ["line 0", "line 1", "line 2", "line 3"]),
    ):
        lines = [{"id": row["id"], "text": text} for row, text in zip(rows, answers, strict=False)]
        (root / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        done = loupe("score", "mixed", f"{name}.jsonl", "--name", name, *limit, cwd=root)
        assert done.returncode == 0, done.stderr
    return [root / "runs" / name / "mixed" for name in ("part", "whole")]


def test_a_run_on_fewer_samples_is_marked_and_has_no_mean_of_fewer_tasks(runs: list[Path]) -> None:
    (group,) = collect(runs)
    shown = group_context(group)
    assert [(row.engine, row.rank, row.cells[0].text, row.size) for row in shown["rows"]] == [
        ("whole", "1", "68.75 %", ""),
        ("part", "–", "–", "4 of 8 samples"),
    ]
    assert "No mean of the tasks of part: on its samples" in shown["caption"]
    html = environment().get_template("leaderboard.html").render(group=shown, groups=[shown])
    assert html.count('<span class="badge-alarm">4 of 8 samples</span>') == 1


def test_measures_that_are_made_of_others_without_summarize_are_left_out_too() -> None:
    def result(total: int, **values: float) -> Result:
        found = {name: Estimate(value=value, n=total) for name, value in values.items()}
        return Result(
            benchmark="b", version="1", engine="e", signature="", headline="overall", measures=found, directions={},
            units={}, total=total,
        )  # fmt: skip

    benchmark = get_benchmark("olmocr_bench")
    both = {"arxiv_math": 0.5, "table_tests": 0.5}
    runs = [result(9, overall=0.5, **both), result(4, overall=0.9, arxiv_math=0.9), result(8, overall=0.6, **both)]
    assert other_composites(runs, benchmark.measures, benchmark.summarize) == [(), ("overall",), ()]


def test_compare_says_the_same_and_still_compares_what_both_have_read(runs: list[Path]) -> None:
    compared = compare_runs(runs)
    lines = [line.split("\t") for line in tab_separated(sections(compared))]
    assert lines[1][:5] == ["rank", "engine", "overall", "±", "samples"]
    assert [line[:5] for line in lines[2:4]] == [
        ["1", "whole", "68.75 %", "± 37.50", "8"],
        ["–", "part", "–", "", "4 of 8"],
    ]
    assert "no other run has read as much" in lines[4][0]
    assert lines[5][0] in group_context(collect(runs)[0])["caption"]
    assert lines[5][0].startswith("No mean of the tasks of part: on its samples")
    (pair,) = compared.pairs
    assert pair.samples == 4 and pair.measures["overall"].value_b == 1.0


def test_a_leaderboard_over_part_of_a_published_set_says_so_wherever_it_stands(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 2)
    (group,) = collect([toy.run("good", {sample.id: sample.truth for sample in toy.samples})])
    (entrant,) = group.entrants
    assert entrant.result is not None and group_context(group)["part"] == ""
    object.__setattr__(entrant, "result", msgspec.structs.replace(entrant.result, published_total=1355))
    shown = group_context(group)
    # The first page of `loupe view` has the leaderboard alone.
    html = environment().get_template("leaderboard.html").render(group=shown, groups=[shown])
    assert "Only 2 of the 1,355 samples of toy@1: no number to hold beside published ones." in html


def ranked(toy: Toy, **every: int) -> tuple[list[str], str]:
    runs = [toy.run(name, {one.id: misread(one.truth, step) for one in toy.samples}) for name, step in every.items()]
    (group,) = collect(runs)
    shown = group_context(group)
    return [row.rank for row in shown["rows"]], shown["caption"]


def test_a_difference_is_called_shown_only_where_ranks_differ(tmp_path: Path) -> None:
    ranks, caption = ranked(toy_pages(tmp_path / "two", 6), good=40, poor=5)
    assert ranks == ["1", "2"] and "points, which 6 documents show." in caption and "pairs" not in caption
    # Six documents show one difference (p = 0.03), but not three.
    ranks, caption = ranked(toy_pages(tmp_path / "three", 6), good=40, fair=10, poor=5)
    assert ranks == ["1", "1", "1"] and "corrected over all 3 pairs" in caption
    assert "which 6 documents show" not in caption and "needed: these, were the two compared alone" in caption


def test_samples_that_a_run_did_not_come_to_are_in_no_number_and_nobody_wins(runs: list[Path], tmp_path: Path) -> None:
    root = tmp_path / "runs"
    shutil.copytree(runs[1].parents[1], root)
    file = root / "whole" / "mixed" / "predictions.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:3]))
    (tmp_path / "mixed").symlink_to(runs[1].parents[2] / "mixed")

    scored = loupe("score", "runs/whole/mixed", "--plain", cwd=tmp_path).stdout
    listed = loupe("runs", "--plain", cwd=tmp_path).stdout
    compared = loupe("compare", "runs/whole/mixed", "runs/part/mixed", "--plain", cwd=tmp_path).stdout

    assert "whole on mixed@1" in scored and ", 3 of 8 samples: the rest is not read yet" in scored
    assert "not read\t5 of 8\t62.5 %\tin no number yet" in scored and "scored as empty" not in scored
    assert "only 3 of 8 read" in listed and "failed" not in listed
    assert "wins" not in compared and "is ahead" not in compared
