"""A benchmark whose headline is not computed still ranks: by the first measure that the runs have, in every output."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from click.testing import Result as Done

import loupe
from loupe.benchmarks.registry import benchmark_of_run
from loupe.cli.compare import command as compare
from loupe.cli.export import command as export
from loupe.cli.run import json_document
from loupe.cli.runs import command as runs_command
from loupe.cli.score import command as score
from loupe.cli.view import command as view
from loupe.data import trust
from loupe.errors import UsageError
from loupe.report.collect import collect
from loupe.report.html import group_context
from loupe.report.tradeoffs import tradeoffs
from loupe.results.headline import format_headline, headline_of
from loupe.results.published import reproduction_sections
from loupe.results.reproduction import reproduce
from loupe.results.sections import result_sections
from loupe.runs.folder import RunFolder
from loupe.types import Estimate, Failure, PublishedRow, Result
from loupe.web.view.run_page import run_context
from loupe.web.view.shelf import Shelf
from loupe.web.view.two_runs import compare_context

#: A formula is scored where the answer has one; the headline needs both.
BENCHMARK = """
from loupe.metrics import character_errors
from loupe.types import Benchmark, Conclusion, Measure, Sample, Score

def load(root):
    return (Sample(id=f"p{n:02}", text="t", truth="a page of words", tags={"half": str(n % 2)}) for n in range(12))

def score(sample, prediction):
    if prediction.failed:
        return []
    edits, length = character_errors(prediction.text.strip("$"), sample.truth)
    found = [Score(measure="text_error", counts=(float(edits), float(length)))]
    found += [Score(measure="layout", counts=(1.0 - edits / length, 1.0))]
    return found + ([Score(measure="formula", counts=(1.0, 1.0))] if "$" in prediction.text else [])

def conclude(rows):
    if any(score.measure == "formula" for row in rows for score in row.scores):
        return Conclusion(failed_are="left out")
    off = "the renderer is off"
    return Conclusion(failed_are="left out", not_computed={"overall": f"needs formula ({off})", "formula": off})

benchmark = Benchmark(
    title="Parts", version="1", task="markdown", load=load, score=score, conclude=conclude,
    measures=(
        Measure(name="overall"), Measure(name="text_error", title="errors in text", higher_is_better=False),
        Measure(name="layout"), Measure(name="formula"),
    ),
    summarize=lambda values: {"overall": (1 - values["text_error"] + values["formula"]) / 2},
)
"""
NOTE = "Headline: text_error, because overall is not computed (needs formula (the renderer is off))."
GOOD, BAD, LESS, WHOLE = "a page of words", "a page of wo", "a page of words", "$a page of wor$"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs without a formula (right, wrong, two answers missing), and one with formulas."""
    root = tmp_path_factory.mktemp("headline")
    (root / "parts.py").write_text(BENCHMARK, encoding="utf-8")
    trust.remember(root / "parts.py")
    for name, text, count in (("good", GOOD, 12), ("bad", BAD, 12), ("less", LESS, 10), ("whole", WHOLE, 12)):
        answers = {f"p{number:02}": text for number in range(count)}
        loupe.score(str(root / "parts.py"), answers, name=name, runs=root / "runs", jobs=1)
    return root


def path(root: Path, name: str) -> Path:
    return root / "runs" / name / "parts"


def invoke(command: Any, *words: object) -> Done:
    done = CliRunner().invoke(command, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def test_compare_ranks_and_gates_by_the_first_measure_that_is_there(there: Path, tmp_path: Path) -> None:
    files = ("--junit", tmp_path / "j.xml", "--markdown", tmp_path / "m.md")
    words = (path(there, "good"), path(there, "bad"), "--fail-on-regression", *files)
    done = invoke(compare, *words, "--plain")
    assert done.exit_code == 1 and "regression: bad: text_error: 20.00 % against 0.00 %" in done.stderr
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [line[:3] for line in lines[1:4]] == [
        ["rank", "engine", "text_error"], ["1", "good", "0.00 %"], ["2", "bad", "20.00 %"]
    ]  # fmt: skip
    assert [NOTE] in lines
    assert NOTE in (tmp_path / "j.xml").read_text() and f"`{NOTE}`" in (tmp_path / "m.md").read_text()
    found = json.loads(invoke(compare, *words, "--json").stdout)
    assert (found["headline"], found["headline_note"]) == ("text_error", NOTE)
    assert [run["rank"] for run in found["runs"]] == [1, 2] and found["winner"] == str(path(there, "good"))
    assert found["runs"][0]["not_computed"]["overall"] == "needs formula (the renderer is off)"
    assert found["pairs"][0]["moved"]["measure"] == "text_error"


def test_one_option_chooses_the_measure_and_names_those_there_are(there: Path) -> None:
    both = (path(there, "good"), path(there, "bad"))
    found = json.loads(invoke(compare, *both, "--by-measure", "layout", "--json").stdout)
    assert found["headline"] == "layout" and found["headline_note"].startswith("Headline: layout, as asked for")
    for wanted, said in {
        "layuot": "did you mean 'layout'?",
        "formula": "not computed in these runs (the renderer",
    }.items():
        error = CliRunner().invoke(compare, [*map(str, both), "--by-measure", wanted]).exception
        assert isinstance(error, UsageError) and said in error.message
        assert error.hint == "choose one of these measures: text_error, layout"


def test_a_slip_in_the_measure_is_refused_wherever_runs_are_listed(there: Path) -> None:
    for command, *words in (
        (runs_command, "--runs", there / "runs"),
        (score, path(there, "good"), path(there, "bad")),
        (view, there / "runs", "--no-browser"),
        (view, path(there, "bad"), "--no-browser"),
    ):
        error = CliRunner().invoke(command, [*map(str, words), "--by-measure", "layuot"]).exception
        assert isinstance(error, UsageError), words
        assert error.message == "no measure 'layuot' in these runs; did you mean 'layout'?"


def test_runs_with_and_without_the_headline_are_compared_by_what_all_have(there: Path) -> None:
    found = json.loads(invoke(compare, path(there, "whole"), path(there, "good"), "--json").stdout)
    assert found["headline"] == "text_error" and [run["rank"] for run in found["runs"]] == [1, 2]
    assert "overall is not computed in every run (needs formula" in found["headline_note"]
    done = invoke(compare, path(there, "whole"), path(there, "good"), "--by-measure", "overall", "--plain")
    assert "–\tgood\t– (needs formula (the renderer is off))" in done.stdout


def test_the_table_of_all_runs_and_their_list_leave_no_run_out(there: Path) -> None:
    done = invoke(compare, "--runs", there / "runs", "--plain")
    head, *rows = (line.split("\t") for line in done.stdout.splitlines() if line)
    assert head == ["engine", "parts@1 text_error ↓"] and {row[0] for row in rows[:4]} == {
        "good",
        "bad",
        "less",
        "whole",
    }
    assert any("Headline: text_error, because overall is not computed in every run" in row[0] for row in rows)
    listed = {row["engine"]: row for row in json.loads(invoke(runs_command, "--runs", there / "runs", "--json").stdout)}
    assert (listed["bad"]["measure"], listed["bad"]["value"], listed["bad"]["note"]) == ("text_error", 0.2, NOTE)
    assert listed["whole"]["measure"] == "overall" and not listed["whole"]["note"]
    shown = invoke(runs_command, "--runs", there / "runs", "--plain")
    assert "text_error 20.00 %" in shown.stdout and NOTE in shown.stderr


def test_one_run_shows_it_in_terminal_json_and_python(there: Path) -> None:
    run = loupe.load_run(path(there, "bad"))
    assert (run.headline, run.headline_note, run.result.headline) == ("text_error", NOTE, "overall")
    assert repr(run).startswith(
        "<Run bad on parts: text_error 20.00 % (no overall: needs formula (the renderer is off))"
    )
    html = run._repr_html_()
    assert "<b>text_error</b>" in html and NOTE in html and "– (needs formula (the renderer is off))" in html
    document = json_document([(run.path, run.result)])
    assert (document["headline"], document["headline_note"]) == ("text_error", NOTE)
    done = invoke(score, run.path, "--plain")
    lines = done.stdout.splitlines()
    assert lines[2].startswith("text_error ↓\t20.00 %") and NOTE in lines
    assert not any(line.startswith("overall ↑\t–") for line in lines)
    assert "overall\tneeds formula (the renderer is off)" in lines
    assert any(line.startswith("# worst samples by text_error") for line in lines)
    table = invoke(score, run.path, path(there, "good"), "--plain").stdout
    assert "text_error 20.00 % (no overall: needs formula" in table


def test_a_floor_holds_for_the_chosen_measure_and_never_for_another(there: Path) -> None:
    done = invoke(score, path(there, "bad"), "--fail-under", "80", "--plain")
    said = "bad: overall – (needs formula (the renderer is off)) is worse than 80.00 %"
    assert done.exit_code == 1 and said in done.stderr and "--by-measure text_error --fail-under X" in done.stderr
    words = ("--by-measure", "text_error", "--fail-under")
    assert invoke(score, path(there, "bad"), *words, "25", "--plain").exit_code == 0
    assert invoke(score, path(there, "bad"), *words, "15", "--plain").exit_code == 1


def test_a_margin_for_the_headline_says_nothing_about_what_ranks_instead(there: Path, tmp_path: Path) -> None:
    words = (path(there, "good"), "--baseline", path(there, "bad"), "--fail-on-regression", "--margin", "99")
    done = invoke(compare, *words, "--plain", "--junit", str(tmp_path / "j.xml"))
    said = "text_error: the margin is for the headline, which is not computed; to give one for text_error: --by-measure"
    assert done.exit_code == 1 and done.stderr.count("regression: ") == 1
    assert f"{said} text_error\n" in done.stderr and "--by-measure" in (tmp_path / "j.xml").read_text()
    assert invoke(compare, *words, "--by-measure", "text_error", "--plain").exit_code == 0


def test_python_compares_by_it_or_by_another_measure(there: Path) -> None:
    found = loupe.compare(path(there, "good"), path(there, "bad"))
    assert (found.headline, found.outcome, found.headline_note) == ("text_error", "worse", NOTE)
    assert NOTE in found._repr_html_() and "<b>text_error</b>" in found._repr_html_()
    assert loupe.compare(path(there, "good"), path(there, "bad"), measure="layout").headline == "layout"
    with pytest.raises(UsageError, match="no measure 'cer'"):
        loupe.compare(path(there, "good"), path(there, "bad"), measure="cer")
    with pytest.raises(UsageError, match="no measure 'cer'"):
        loupe.report([path(there, "good")], there / "r.html", measure="cer")


def test_report_and_view_rank_and_draw_by_it(there: Path, tmp_path: Path) -> None:
    names = ("good", "bad")
    (group,) = collect([path(there, name) for name in names])
    shown = group_context(group)
    assert [(row.rank, row.engine, row.wins) for row in shown["rows"]] == [("1", "good", True), ("2", "bad", False)]
    assert shown["caption"].startswith(NOTE) and shown["axis"] is not None and shown["rows"][1].whisker is not None
    assert shown["columns"][0].name == "text_error" and {engine for engine, _ in shown["losses"]} == {*names}
    for entrant in group.entrants:
        assert entrant.result is not None
        entrant.result.speed["pages_per_second"] = 1.0
    assert [each.measure.name for each in tradeoffs(group)] == ["text_error"]
    (chosen,) = collect([path(there, name) for name in names], "layout")
    assert group_context(chosen)["columns"][0].name == "layout"
    for name in names:
        shutil.copytree(path(there, name), tmp_path / "runs" / name / "parts")
    (board,) = Shelf([tmp_path / "runs"]).look().boards.values()
    assert board.context()["caption"].startswith(NOTE) and board.context()["verdict"].startswith(
        "good wins with 0.00 %"
    )
    assert run_context(board, board.ordered()[1])["headline"].startswith(
        "text_error 20.00 % (no overall: needs formula"
    )
    assert compare_context(board, {})["whole"]["rows"][0]["measure"].name == "text_error"
    (board,) = Shelf([tmp_path / "runs"], "layout").look().boards.values()
    assert board.group().headline == "layout"


def test_a_dash_in_the_report_has_its_reason(there: Path) -> None:
    (group,) = collect([path(there, name) for name in ("whole", "bad")], "overall")
    assert [row.cells[0].note for row in group_context(group)["rows"]] == ["", "needs formula (the renderer is off)"]


def test_beside_published_values_the_dash_has_its_reason(there: Path) -> None:
    row = PublishedRow(benchmark="parts", version="1", name="x", engines=["x"], values={"overall": 0.9}, source="paper")
    run = RunFolder.open(path(there, "bad"))
    found = reproduce(row, benchmark_of_run(run.info.benchmark), [run], there / "runs")
    assert reproduction_sections(found)[0].rows[0][2] == "– (needs formula (the renderer is off))"


def test_exports_name_it(there: Path, tmp_path: Path) -> None:
    done = invoke(export, path(there, "bad"), "--to", "evaluation", "-o", tmp_path, "--json")
    paths = json.loads(done.stdout)
    one = json.loads(Path(paths["runs"][0]["results"]).read_text())
    whole = json.loads(Path(paths["comparison"]).read_text())
    assert (one["headline"], one["headline_note"]) == ("text_error", NOTE)
    assert whole["results"]["bad"]["parts"]["headline_note"] == NOTE
    assert whole["table"]["columns"][0]["measure"] == "text_error"


def test_the_gate_judges_a_run_without_all_answers(there: Path) -> None:
    done = invoke(compare, path(there, "good"), path(there, "less"), "--fail-on-regression", "--json")
    assert done.exit_code == 1
    (found,) = json.loads(done.stdout)["regressions"]
    assert found["why"] == "no answer to 2 samples that good has answered: p10 (missing) and p11 (missing)"


def result(total: int = 10, *, failed: int = 0, **values: float | None) -> Result:
    return Result(
        benchmark="toy", version="1", engine="e", signature="s", headline="overall", directions={}, units={},
        measures={name: Estimate(value=value) for name, value in values.items()}, total=total,
        outcomes={"timeout": failed}, failures=[Failure(sample=str(n), outcome="timeout") for n in range(failed)],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("results", "wanted", "measure"),
    [
        ([result(overall=0.5, text=0.6)], "", "overall"),
        ([result(overall=None, text=None, table=0.3)], "", "table"),
        ([result(overall=0.5, text=0.6), result(overall=None, text=0.6)], "", "text"),
        # A short trial, or a run that mostly failed, does not take the headline from the others.
        ([result(overall=0.5, text=0.6), result(3, overall=None, text=0.6)], "", "overall"),
        ([result(overall=0.5, text=0.6), result(failed=4, overall=None, text=0.6)], "", "overall"),
        ([result(overall=0.5, text=0.6), result(overall=None, text=None)], "", "overall"),
        ([result(failed=4, overall=None, text=0.6)], "", "text"),
        ([result(overall=None, text=None)], "", "overall"),
        ([result(overall=0.5, text=0.6)], "text", "text"),
        ([result(overall=0.5, text=None)], "text", "overall"),
    ],
)
def test_which_measure_ranks(results: list[Result], wanted: str, measure: str) -> None:
    found = headline_of(results, wanted)
    assert found.measure == measure and bool(found.note) == (measure != "overall")


def test_without_any_value_the_reason_stands_beside_the_dash() -> None:
    empty = msgspec.structs.replace(result(failed=10, overall=None), not_computed={})
    assert format_headline(empty) == "overall – (every sample failed)"
    assert result_sections(empty)
