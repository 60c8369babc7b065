"""Runs over part of a set: every table says so, and no composite of fewer measures stands beside one of all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from loupe.benchmarks.registry import get_benchmark
from loupe.cli.compare import sections
from loupe.report.collect import collect, sample_jobs
from loupe.report.html import environment, group_context
from loupe.results.comparing.runs import compare_runs
from loupe.results.partial_runs import other_composites
from loupe.results.tables.terminal import tab_separated
from loupe.types import Estimate, Prediction, Result
from tests.support.command_line import loupe
from tests.support.report_runs import Toy, misread, toy_pages

GOOD_AND_POOR = (("good", 40), ("poor", 5))


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
    assert lines[1][:5] == ["rank", "engine", "overall", "95 % interval", "samples"]
    assert [line[:5] for line in lines[2:4]] == [
        ["1", "whole", "68.75 %", "25.08 … 100.00", "8"],
        ["–", "part", "– (its samples have fewer of the measures that it is made of)", "", "4 of 8"],
    ]
    assert "no other run has read as many samples" in lines[4][0]
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
    assert "Only 2 of the 1,355 samples of toy@1: not comparable with published figures." in html


def ranked(toy: Toy, **every: int) -> tuple[list[str], str]:
    """The ranks, and the leaderboard as HTML."""
    runs = [toy.run(name, {one.id: misread(one.truth, step) for one in toy.samples}) for name, step in every.items()]
    (group,) = collect(runs)
    shown = group_context(group)
    html = environment().get_template("leaderboard.html").render(group=shown, groups=[shown])
    return [row.rank for row in shown["rows"]], html


def test_only_differences_that_are_open_ask_for_more_documents(tmp_path: Path) -> None:
    ranks, html = ranked(toy_pages(tmp_path / "two", 6), good=40, poor=5)
    assert ranks == ["1", "2"] and "can show of" not in html and "pairs of" not in html
    # Six documents show one difference (p = 0.03), but not three.
    ranks, html = ranked(toy_pages(tmp_path / "three", 6), good=40, fair=10, poor=5)
    assert ranks == ["1", "1", "1"] and "corrected over all 3 pairs" in html
    assert "What 6 documents can show of CER" in html and ">poor minus good</th>" in html
    assert html.count(" minus good</th>") == 2 and "enough" not in html


def test_engines_that_do_not_differ_take_no_row_of_what_could_be_seen(tmp_path: Path) -> None:
    _, html = ranked(toy_pages(tmp_path, 6), good=40, twin=40, poor=5)
    assert html.count(" minus good</th>") == 1 and "twin minus" not in html
    _, html = ranked(toy_pages(tmp_path / "same", 6), good=40, twin=40)
    assert "can show of" not in html


def test_samples_that_a_run_did_not_come_to_are_in_no_number_and_nobody_wins(runs: list[Path], tmp_path: Path) -> None:
    root = tmp_path / "runs"
    shutil.copytree(runs[1].parents[1], root)
    file = root / "whole" / "mixed" / "predictions.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:3]))
    (tmp_path / "mixed").symlink_to(runs[1].parents[2] / "mixed")

    scored = loupe("score", "runs/whole/mixed", "--plain", cwd=tmp_path).stdout
    listed = loupe("runs", "--plain", cwd=tmp_path).stdout
    compared = loupe("compare", "runs/whole/mixed", "runs/part/mixed", "--plain", cwd=tmp_path).stdout

    assert "whole on mixed@1" in scored and ", 3 of 8 samples: the rest is still unread" in scored
    assert "not read\t5 of 8\t62.5 %\tnot yet scored" in scored and "scored as empty" not in scored
    assert "only 3 of 8 read" in listed and "failed" not in listed
    assert "wins" not in compared and "is ahead" not in compared


def test_what_was_not_asked_is_no_failure_and_what_counts_as_none_is(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 3)
    first = {toy.samples[0].id: toy.samples[0].truth}
    stopped = toy.run("stopped", first, scored=False)
    lost = toy.run("lost", first)
    shown = {}
    for path in (stopped, lost):
        (group,) = collect([path])
        for _ in sample_jobs(group, folder=tmp_path, embed=False):
            pass
        shown[path] = [row["engines"][0][0] for row in group.summary]
    assert shown[stopped] == ["ok", "waiting", "waiting"]
    assert shown[lost] == ["ok", "missing", "missing"]


def test_samples_beyond_a_limit_were_not_asked(runs: list[Path], tmp_path: Path) -> None:
    (group,) = collect(runs)
    for _ in sample_jobs(group, folder=tmp_path, embed=False):
        pass
    place = [entrant.label for entrant in group.entrants].index("part")
    assert [row["engines"][place][0] for row in group.summary] == ["ok"] * 4 + ["unasked"] * 4


def test_an_engine_that_failed_everywhere_has_no_rank_and_is_the_reference_of_nothing(tmp_path: Path) -> None:
    toy = toy_pages(tmp_path, 8)
    bad = toy.run(
        "bad", {one.id: Prediction(sample=one.id, outcome="error", error="exit code 3") for one in toy.samples}
    )
    good, poor = (toy.run(name, {one.id: misread(one.truth, n) for one in toy.samples}) for name, n in GOOD_AND_POOR)
    shown = group_context(collect(toy.runs)[0])
    assert [(row.engine, row.rank) for row in shown["rows"]] == [("good", "1"), ("poor", "2"), ("bad", "–")]
    assert shown["caption"].count("No rank for bad: every sample failed.") == 1
    rooted = compare_runs(toy.runs, to_best=True)
    assert [row.rank for row in rooted.runs] == [1, 2, None] and rooted.baseline == str(good)
    assert [pair.name for pair in rooted.pairs] == ["bad", "poor"] and rooted.winner == str(good)
    assert "No rank for bad: every sample failed." in rooted.notes
    assert "good reaches" in (said := compare_runs([good, bad]).verdict) and "bad failed on every sample" in said
    named = compare_runs([bad, good, poor])
    assert named.baseline == str(bad) and named.pairs[0].measures["cer"].value_a == rooted.runs[0].measures["cer"].value


def test_the_mean_of_one_task_is_no_row_where_samples_are_grouped(tmp_path: Path) -> None:
    (tmp_path / "text").mkdir()
    (tmp_path / "text/loupe.toml").write_text('[benchmark]\ntitle = "x"\ntask = "text"\nheadline = "text_similarity"\n')
    lines = [{"id": f"s{n}", "text": "x", "reference": "one two", "group": f"g{n // 2}"} for n in range(5)]
    other = {"id": "last", "text": "x", "reference": "x^2", "task": "formula"}
    (tmp_path / "text/samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in [*lines, other]))
    answers = [{"id": line["id"], "text": "one two"[: 7 - n]} for n, line in enumerate(lines)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(answer) + "\n" for answer in answers))
    shown = loupe("score", "text", "a.jsonl", "--limit", "5", "--plain", cwd=tmp_path).stdout
    result = json.loads((tmp_path / "runs/a/text/result.json").read_text())["measures"]
    assert (result["overall"]["n"], result["text_similarity"]["n"]) == (3, 5)
    assert "\ntext_similarity ↑" in shown and "overall" not in shown


def test_the_mean_of_one_task_is_no_row_of_its_own(runs: list[Path], tmp_path: Path) -> None:
    text = (runs[0].parents[2] / "mixed" / "loupe.toml").read_text()
    (tmp_path / "mixed").mkdir()
    (tmp_path / "mixed/loupe.toml").write_text(text.replace('"overall"', '"text_similarity"'))
    (tmp_path / "mixed/samples.jsonl").write_bytes((runs[0].parents[2] / "mixed/samples.jsonl").read_bytes())
    for name in ("whole", "part"):
        (tmp_path / f"{name}.jsonl").write_bytes((runs[0].parents[2] / f"{name}.jsonl").read_bytes())
    part = loupe("score", "mixed", "whole.jsonl", "--name", "a", "--limit", "4", "--plain", cwd=tmp_path).stdout
    assert "\ntext_similarity ↑" in part and "overall" not in part
    whole = loupe("score", "mixed", "whole.jsonl", "--name", "b", "--plain", cwd=tmp_path).stdout
    assert "\noverall ↑" in whole
    loupe("score", "mixed", "part.jsonl", "--name", "c", "--limit", "4", cwd=tmp_path)
    paths = [tmp_path / "runs" / name / "mixed" for name in "ac"]
    assert not [row for section in sections(compare_runs(paths)) for row in section.rows if row[0] == "overall"]
    assert "overall" not in [measure.name for measure in group_context(collect(paths)[0])["columns"]]


def test_of_very_many_samples_the_dearest_and_the_first_are_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = toy_pages(tmp_path, 12)
    answers = {sample.id: sample.truth for sample in toy.samples}
    dear = toy.samples[9].id
    toy.run("good", answers | {dear: "x"})
    monkeypatch.setattr("loupe.report.collect.SAMPLE_LIMIT", 4)
    (group,) = collect(toy.runs)
    shown = [job.ident for job in sample_jobs(group, folder=tmp_path, embed=False)]
    assert shown == [*(sample.id for sample in toy.samples[:3]), dear]
    assert "4 of 12 samples are in this report" in group.part and group.part in group_context(group)["note"]
    monkeypatch.setattr("loupe.report.collect.SAMPLE_LIMIT", 12)
    (whole,) = collect(toy.runs)
    assert len(list(sample_jobs(whole, folder=tmp_path, embed=False))) == 12 and not whole.part
