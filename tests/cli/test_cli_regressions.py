"""`loupe compare --baseline RUN --fail-on-regression`: what a CI job fails on, and what it may not fail on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from loupe.cli.shared.gate import parse_margin
from loupe.errors import UsageError
from loupe.results.comparing.records import Compared, Pair
from loupe.results.comparing.regressions import regressions
from loupe.stats.comparison import Difference
from tests.support.command_line import complaint, loupe, make_folder

BASE, SAME, WORSE, ONE = (f"runs/{name}/mydocs" for name in ("base", "same", "worse", "one"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs on twelve texts: two that are right, one that is wrong everywhere, one that fails on a single page."""
    root = tmp_path_factory.mktemp("regressions")
    make_folder(root, count=12)
    for name, function in {"base": "right", "same": "right", "worse": "wrong", "one": "sometimes"}.items():
        done = loupe("run", "mydocs", "-e", f"python:reader.py:{function}", "--name", name, cwd=root)
        assert done.returncode == 0, done.stderr
    return root


def test_a_run_that_is_worse_than_the_baseline_ends_with_1_and_says_what_it_lost(finished: Path) -> None:
    done = loupe("compare", WORSE, "--baseline", BASE, "--fail-on-regression", cwd=finished)
    assert done.returncode == 1
    assert "regression: worse: text_similarity: " in done.stderr
    assert loupe("compare", WORSE, "--baseline", BASE, cwd=finished).returncode == 0


def test_the_baseline_is_what_the_others_are_compared_with_wherever_it_stands(finished: Path) -> None:
    done = loupe("compare", WORSE, "--baseline", BASE, "--fail-on-regression", "--json", cwd=finished)
    found = json.loads(done.stdout)
    assert (found["baseline"], [pair["run"] for pair in found["pairs"]]) == (BASE, [WORSE])
    assert {each["measure"] for each in found["regressions"]} >= {"text_similarity"}
    assert loupe("compare", BASE, "--baseline", WORSE, "--fail-on-regression", cwd=finished).returncode == 0


@pytest.mark.parametrize(("run", "margin"), [(SAME, None), (SAME, "27"), (ONE, "99")])
def test_what_may_be_chance_and_what_lies_within_the_margin_passes(finished: Path, run: str, margin: str) -> None:
    words = ["--margin", margin] if margin else []
    done = loupe("compare", run, "--baseline", BASE, "--fail-on-regression", *words, cwd=finished)
    assert done.returncode == 0, done.stderr


def test_a_sample_without_an_answer_is_a_regression_that_is_named(finished: Path, tmp_path: Path) -> None:
    files = ("--junit", str(tmp_path / "j.xml"), "--markdown", str(tmp_path / "m.md"))
    done = loupe("compare", ONE, "--baseline", BASE, "--fail-on-regression", *files, cwd=finished)
    said = "no answer to 1 sample that base has answered: p3 (error)"
    assert done.returncode == 1 and f"regression: one: {said}" in done.stderr.splitlines()
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()[0]
    assert [case.get("name") for case in suite.iter("testcase") if case.find("error") is not None] == ["sample p3"]
    assert f"- `one`: `{said}`" in (tmp_path / "m.md").read_text().splitlines()
    # A job that asked for no gate gets no red test.
    assert loupe("compare", ONE, "--baseline", BASE, *files[:2], cwd=finished).returncode == 0
    assert not list(ElementTree.parse(tmp_path / "j.xml").getroot().iter("error"))


def test_a_margin_asks_for_proof_so_what_may_be_chance_fails_it(finished: Path) -> None:
    done = loupe("compare", ONE, "--baseline", BASE, "--fail-on-regression", "--margin", "30", cwd=finished)
    assert done.returncode == 1 and "and the margin is 30.00 points" in done.stderr


@pytest.mark.parametrize("margin", ["1", "26"])
def test_identical_answers_prove_no_more_than_their_number_does(finished: Path, margin: str) -> None:
    """Of the documents that were not read, 26 % may be lost: twelve like these would show it in 39 of 40 cases."""
    done = loupe("compare", SAME, "--baseline", BASE, "--fail-on-regression", "--margin", margin, cwd=finished)
    count = {"1": 368, "26": 13}[margin]
    said = f"12 samples or groups of them are too few to exclude a loss of {margin}.00 points, even if none gets worse"
    assert done.returncode == 1 and f"{said} (at least {count} are needed)" in done.stderr


@pytest.mark.parametrize("words", [("--margin", "1"), ("--fail-on-regression", "--margin", "-1")])
def test_a_margin_without_its_question_or_below_zero_is_refused(finished: Path, words: tuple[str, ...]) -> None:
    done = loupe("compare", ONE, "--baseline", BASE, *words, cwd=finished)
    assert done.returncode == 2 and "--margin" in complaint(done)[0]


def test_a_baseline_that_is_not_there_is_no_pass(finished: Path) -> None:
    done = loupe("compare", BASE, SAME, "--baseline", "runs/gone/mydocs", "--fail-on-regression", cwd=finished)
    assert done.returncode == 2 and complaint(done)[0].startswith("no run at runs/gone/mydocs")
    done = loupe("compare", "--fail-on-regression", cwd=finished)
    assert done.returncode == 2 and complaint(done)[0] == "--fail-on-regression needs a RUN to compare"


def test_a_baseline_is_one_run_and_no_folder_of_several(finished: Path) -> None:
    done = loupe("compare", SAME, "--baseline", "runs", "--fail-on-regression", cwd=finished)
    assert done.returncode == 2
    assert complaint(done) == ("--baseline runs is a folder of 4 runs", f"name one of them: --baseline {BASE}")
    done = loupe("compare", SAME, "--baseline", "runs/worse", "--json", cwd=finished)
    assert done.returncode == 0 and json.loads(done.stdout)["baseline"] == WORSE


def test_too_few_samples_pass_without_a_margin_and_fail_with_one(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    for name, function in {"few": "right", "few2": "wrong"}.items():
        loupe("run", "mydocs", "-e", f"python:reader.py:{function}", "--name", name, "--limit", "3", cwd=tmp_path)
    words = ("compare", "runs/few2/mydocs", "--baseline", "runs/few/mydocs", "--fail-on-regression")
    done = loupe(*words, cwd=tmp_path)
    assert done.returncode == 0 and "too few samples to tell" in done.stderr
    done = loupe(*words, "--margin", "5", cwd=tmp_path)
    assert done.returncode == 1 and "too few to exclude a loss" in done.stderr


def test_a_run_that_has_not_scored_all_of_the_baseline_fails_and_the_files_are_written(
    finished: Path, tmp_path: Path
) -> None:
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    loupe("run", "mydocs", "-e", "python:reader.py:right", "--name", "few", "--limit", "7", cwd=tmp_path)
    for name in ("answers", "scorer"):
        shutil.copytree(tmp_path / SAME, tmp_path / f"runs/{name}/mydocs")
    answers = tmp_path / "runs/answers/mydocs/predictions.jsonl"
    answers.write_text("".join(answers.read_text().splitlines(keepends=True)[:5]))
    assert loupe("score", "runs/answers/mydocs", cwd=tmp_path).returncode == 0
    scores = tmp_path / "runs/scorer/mydocs/scores.jsonl"
    first, *others = scores.read_text().splitlines()
    broken = json.dumps(json.loads(first) | {"scores": [], "error": "out of memory", "digest": ""})
    scores.write_text("".join(f"{line}\n" for line in (broken, *others)))
    lacking = {"few": ("5 samples", "p7 (missing), p8 (missing)"), "answers": ("7 samples", "p5 (missing)")}
    for name, (count, first) in {**lacking, "scorer": ("1 sample", "p0 (scorer)")}.items():
        words = ("compare", f"runs/{name}/mydocs", "--baseline", BASE)
        for margin in ((), ("--margin", "99")):
            done = loupe(
                *words, "--fail-on-regression", *margin, "--junit", "j.xml", "--markdown", "m.md", cwd=tmp_path
            )
            assert done.returncode == 1, name
            assert f"no answer to {count} that base has answered: {first}" in done.stderr
            assert "<error" in (tmp_path / "j.xml").read_text() and first in (tmp_path / "m.md").read_text()
            for written in ("j.xml", "m.md"):
                (tmp_path / written).unlink()
        assert loupe(*words, cwd=tmp_path).returncode == 0
    done = loupe("compare", BASE, "--baseline", "runs/few/mydocs", "--fail-on-regression", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def compared(found: Difference, *, higher_is_better: bool = True) -> Compared:
    return Compared(
        benchmark="toy",
        version="1",
        headline="score",
        baseline="old",
        units={"score": "fraction"},
        directions={"score": higher_is_better},
        differing={},
        runs=[],
        pairs=[Pair(run="new", engine="new", name="new", samples=50, shared=50, measures={"score": found})],
    )


@pytest.mark.parametrize(
    ("shared", "said"),
    [(7058, "no bound of a loss is known for this measure"), (5, "too few to exclude a loss of 1.00 points")],
)
def test_a_measure_without_a_bound_is_not_called_too_few_samples(shared: int, said: str) -> None:
    same = Difference(value_a=0.5, value_b=0.5, difference=0.0, p=1.0, p_holm=1.0, shared=shared)
    [found] = regressions(compared(same), 0.01)
    assert said in found.why


def difference(low: float, high: float, p: float) -> Difference:
    middle = (low + high) / 2
    return Difference(
        value_a=0.5 + middle, value_b=0.5, difference=middle, low=low, high=high, p=p, p_holm=p, shared=50
    )


@pytest.mark.parametrize(
    ("found", "higher", "margin", "fails"),
    [
        (difference(-0.04, -0.02, 0.001), True, None, True),
        (difference(-0.04, -0.02, 0.001), False, None, False),  # fewer errors
        (difference(0.02, 0.04, 0.001), False, None, True),
        (difference(-0.04, 0.01, 0.2), True, None, False),
        (difference(-0.04, -0.02, 0.001), True, 0.05, False),  # clearly worse, by less than allowed
        (difference(-0.04, 0.01, 0.2), True, 0.03, True),
        (difference(-0.01, 0.04, 0.2), False, 0.03, True),
        (difference(0.01, 0.04, 0.001), True, 0.0, False),
        (msgspec.structs.replace(difference(-0.01, 0.02, 0.4), worst_low=-0.06), True, 0.05, True),
        (msgspec.structs.replace(difference(-0.01, 0.02, 0.4), worst_high=0.06), False, 0.05, True),
        (msgspec.structs.replace(difference(-0.01, 0.02, 0.4), worst_low=-0.06), False, 0.05, False),
    ],
)
def test_the_bad_end_of_the_interval_decides_about_a_margin(
    found: Difference, higher: bool, margin: float | None, fails: bool
) -> None:
    assert bool(regressions(compared(found, higher_is_better=higher), margin)) == fails


def test_a_margin_in_percent_is_none_of_a_measure_in_another_unit() -> None:
    assert parse_margin("1 %", "fraction") == 0.01 and parse_margin("1", "number") == 1
    with pytest.raises(UsageError, match="--margin 1%: this measure is no percentage"):
        parse_margin("1%", "number")


def test_a_headline_that_cannot_be_compared_is_no_pass() -> None:
    (found,) = regressions(compared(Difference(value_a=0.5)))
    assert (found.measure, found.why) == ("score", "cannot be compared: the two runs have no sample in common")
