"""Words of before: typed, in settings and in stored runs, they mean what is called otherwise now."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import loupe as api
from loupe.former_names import options_of_now, record_of_now
from loupe.metrics import teds
from loupe.metrics.cdm.drawing.rendering import profile_named
from loupe.runs.folder import RunFolder
from tests.support.command_line import loupe

#: A run that its user called by the word, too.
STORED = '{"options": {"text": "%s"}, "engine": "request001", "signature": "a|opt:text=%s|engine:request001"}'
BEFORE, NOW = ((STORED % (value, value)).encode() for value in ("request001", "punct-quotes"))
READER = "def read(request):\n    return 'he said'\n"
RUN = ("run", "iam_lines", "--data", "lines", "-e", "python:reader.py:read")
SAID = "text=request001 is now called text=punct-quotes"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run under the name of now, `new`, and one whose files have the word of before, `old`."""
    root = tmp_path_factory.mktemp("finished")
    (root / "reader.py").write_text(READER)
    (root / "lines/images").mkdir(parents=True)
    for number in range(3):
        Image.new("RGB", (40, 20), "white").save(root / f"lines/images/{number:05d}.jpg")
    rows = [{"idx": number, "ground_truth": f'he " said {number * "."}'} for number in range(3)]
    (root / "lines/metadata.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("new", "old"):
        done = loupe(*RUN, "-o", "text=punct-quotes", "--name", name, cwd=root)
        assert done.returncode == 0 and "is now called" not in done.stderr, done.stderr
    for file in ("run.json", "scores.jsonl", "result.json"):
        path = root / "runs/old/iam_lines" / file
        stored = path.read_text()
        assert "punct-quotes" in stored
        path.write_text(stored.replace("punct-quotes", "request001"))
    return root


@pytest.fixture
def here(finished: Path, tmp_path: Path) -> Path:
    """The two runs, for one test to do with as it likes."""
    return shutil.copytree(finished, tmp_path, dirs_exist_ok=True)


def test_a_stored_run_is_read_with_the_words_of_now(here: Path) -> None:
    old, new = (RunFolder.open(here / f"runs/{name}/iam_lines") for name in ("old", "new"))
    assert old.info.options == new.info.options == {"text": "punct-quotes"}
    assert "|opt:text=punct-quotes|" in old.info.signature
    found, wanted = old.stored_result(), new.stored_result()
    assert found and wanted
    assert (found.measures, found.slices) == (wanted.measures, wanted.slices)
    assert found.signature.replace("engine:old", "engine:new") == wanted.signature
    assert [row.tags for row in old.scores()] == [row.tags for row in new.scores()]


def test_runs_of_both_names_stand_in_one_column_and_are_compared(here: Path) -> None:
    table = json.loads(loupe("compare", "--json", cwd=here).stdout)
    assert "request001" not in json.dumps(table)
    both = loupe("compare", "runs/old/iam_lines", "runs/new/iam_lines", "--json", cwd=here)
    assert both.returncode == 0 and "request001" not in both.stdout, both.stderr


@pytest.mark.parametrize("value", ["request001", "punct-quotes"])
def test_a_stored_run_goes_on_under_either_name(here: Path, value: str) -> None:
    done = loupe(*RUN, "-o", f"text={value}", "--name", "old", cwd=here)
    assert done.returncode == 0, done.stderr
    assert (SAID in done.stderr.splitlines()) == (value == "request001")
    assert "request001" not in (here / "runs/old/iam_lines/run.json").read_text()


@pytest.mark.parametrize("words", [(), ("-o", "text=request001"), ("-o", "text=punct-quotes")])
def test_a_stored_run_is_scored_and_keeps_its_numbers(here: Path, words: tuple[str, ...]) -> None:
    done = loupe("score", "runs/old/iam_lines", *words, "--json", cwd=here)
    assert done.returncode == 0, done.stderr
    wanted = RunFolder.open(here / "runs/new/iam_lines").stored_result()
    found = RunFolder.open(here / "runs/old/iam_lines").stored_result()
    assert found and wanted and found.measures == wanted.measures
    assert (SAID in done.stderr.splitlines()) == ("text=request001" in words)


def test_a_suite_with_the_word_of_before_runs(here: Path) -> None:
    suite = (
        '[suites.mine]\nbenchmarks = [{ benchmark = "iam_lines", data = "lines", options = { text = "request001" } }]\n'
    )
    (here / ".config/loupe").mkdir(parents=True, exist_ok=True)
    (here / ".config/loupe/suites.toml").write_text(suite)
    done = loupe("run", "--suite", "mine", "-e", "python:reader.py:read", "--runs", "others", cwd=here)
    assert done.returncode == 0 and done.stderr.splitlines().count(SAID) == 1, done.stderr
    (stored,) = (here / "others").glob("*/iam_lines/run.json")
    assert json.loads(stored.read_text())["options"] == {"text": "punct-quotes"}


def test_the_layout_of_before_is_that_of_now(here: Path) -> None:
    done = loupe("export", "runs/new/iam_lines", "--to", "request", "--output", "out", cwd=here)
    assert done.returncode == 0 and (here / "out/results/new_iam_lines_eval.json").is_file()
    assert done.stderr.splitlines()[0] == "--to request is now called --to evaluation"


@pytest.mark.parametrize(
    ("benchmark", "options", "now"),
    [
        ("dp_bench", {"variant": "request001"}, {"variant": "best_table"}),
        ("nanonets_kie", {"variant": "request001"}, {"variant": "normalized"}),
        ("handwritten_forms", {"variant": "request001", "split": "val"}, {"variant": "normalized", "split": "val"}),
        ("ocrbench", {"variant": "request001"}, {"variant": "request001"}),
        ("dp_bench", {"variant": "v1"}, {"variant": "v1"}),
        ("dp_bench", {}, {}),
    ],
)
def test_only_the_values_that_were_renamed_change(
    benchmark: str, options: Mapping[str, str], now: Mapping[str, str]
) -> None:
    assert options_of_now(benchmark, options) == now


def test_a_name_that_a_user_gave_stays_as_it_is() -> None:
    assert record_of_now("iam_lines", BEFORE) == NOW
    assert record_of_now("ocrbench", BEFORE) == BEFORE


def test_the_measure_of_before_is_that_of_now_and_answers_stay() -> None:
    text = "edit_distance_request000 request000"
    stored = {"sample": text, "scores": [{"measure": "edit_distance_request000", "counts": [1.0, 2.0]}], "error": text}
    score = {"measure": "edit_distance_with_blanks", "counts": [1.0, 2.0]}
    assert now_of("unimer_test", stored) == {**stored, "scores": [score]}


def now_of(benchmark: str, record: object) -> Any:
    return json.loads(record_of_now(benchmark, json.dumps(record).encode()))


def test_a_word_of_before_is_understood_in_every_place_of_its_own() -> None:
    numbers = {"edit_distance_request000": {"value": 1.0}, "bleu": {"value": 0.5}}
    slices = {"preparation": {"raw": numbers, "request001": numbers}, "writer": {"request001": numbers}}
    found = now_of("iam_lines", {"slices": slices, "measures": numbers, "headline": "edit_distance_request000"})
    renamed = {"edit_distance_with_blanks": {"value": 1.0}, "bleu": {"value": 0.5}}
    assert found["slices"] == {
        "preparation": {"raw": renamed, "punct-quotes": renamed},
        "writer": {"request001": renamed},
    }
    assert (found["measures"], found["headline"]) == (renamed, "edit_distance_with_blanks")
    row = {"tags": {"writer": "a", "preparation": "request001"}, "scores": [{"measure": "cer", "tags": {}}]}
    row["scores"] = [{"measure": "edit_distance_request000", "tags": {"preparation": "request001"}}]
    assert now_of("iam_lines", row) == {
        "tags": {"writer": "a", "preparation": "punct-quotes"},
        "scores": [{"measure": "edit_distance_with_blanks", "tags": {"preparation": "punct-quotes"}}],
    }


@pytest.mark.parametrize(
    "record",
    [
        {"sample": "a", "text": "request001"},
        {"sample": "a", "text": "edit_distance_request000", "reasoning": "request001"},
        {"sample": "request001", "error": "a|opt:text=request001|", "tags": {"writer": "edit_distance_request000"}},
        {"details": {"text": "request001", "preparation": "request001", "measure": "edit_distance_request000"}},
        {"engine": "edit_distance_request000", "notes": ["edit_distance_request000"], "facts": {"text": "request001"}},
        {"prompts": {"text": "request001"}, "profile": {"text": "request001", "options": {"text": "request001"}}},
    ],
)
def test_a_text_that_is_a_word_of_before_is_never_rewritten(record: object) -> None:
    stored = json.dumps(record).encode()
    assert record_of_now("iam_lines", stored) == stored


@pytest.mark.parametrize(
    "stored", [b'{"options": {"text": "request001"}', b'["request001"]', b'"request001"', b"\xffrequest001"]
)
def test_what_is_no_record_stays_as_it_is(stored: bytes) -> None:
    assert record_of_now("iam_lines", stored) == stored


def test_words_of_before_are_understood_from_python_too(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    asked = {"data": "lines", "option": {"text": "request001"}}
    for run in (
        api.run("iam_lines", lambda page: "he", runs=None, **asked),
        api.score("iam_lines", {"0": "he"}, **asked),
    ):
        assert run.info.options == {"text": "punct-quotes"}


def test_metrics_take_the_words_of_before() -> None:
    table = "<table><tr><th>a</th></tr></table>"
    before: str = "request001"
    assert teds(table, table.replace("th", "td"), variant=before) == 1.0  # type: ignore[arg-type]
    assert profile_named("request").name == "omnidocbench_pdflatex"
