"""What the command says to a person who is nearly right: where the thing belongs, what was meant, what changed."""

from __future__ import annotations

import ast
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import loupe as loupe_package
from loupe.cli.shared import chosen_engines
from loupe.cli.shared.flags import Flags
from loupe.data.extras import install_command
from loupe.engines.chat.discovery import choose
from loupe.errors import EngineUnavailableError, did_you_mean
from tests.support.command_line import complaint, installed, loupe, make_folder, trusted

RIGHT = ("-e", "python:reader.py:right")
RUN = "runs/python-reader.py_right/mydocs"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    make_folder(tmp_path)
    return tmp_path


def test_a_slip_in_a_setting_of_the_engine_is_answered_with_its_name(here: Path) -> None:
    error, hint = complaint(loupe("run", "mydocs", "-e", "tesseract", "-o", "psn=6", cwd=here))
    assert error == "mydocs has no option 'psn', and the engine no setting; did you mean 'psm'?"
    assert hint.startswith("options of mydocs: allow_unverified; settings of tesseract: adapters, concurrency, ")
    assert ", psm, " in hint


def test_an_option_that_nobody_has_is_answered_with_those_that_there_are(here: Path) -> None:
    error, hint = complaint(loupe("run", "mydocs", *RIGHT, "-o", "nosuch=1", cwd=here))
    assert error == "mydocs has no option 'nosuch', and the engine no setting"
    assert hint.startswith("options of mydocs: allow_unverified; settings of python:reader.py:right: adapters, ")


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (
            ("o",),
            "no benchmark or folder 'o'; 5 benchmarks begin so: "
            "ocrbench, ocrbench_v2, olmocr_bench, omni_parse_bench, omnidocbench",
            "bench list",
        ),
        (("u",), "no benchmark or folder 'u'; did you mean unimer_test?", "bench list"),
        (("mydoc",), "no benchmark or folder 'mydoc'; did you mean ./mydocs?", "bench list"),
        (("./mydoc",), "no folder ./mydoc; did you mean ./mydocs?", "check the path"),
        (("readr.py",), "no file readr.py; did you mean ./reader.py?", "check the path"),
        (
            ("mydocs", "-e", "tesseract,pdf_text"),
            "no engine 'tesseract,pdf_text': each has an -e of its own",
            "use --engines tesseract,pdf_text",
        ),
    ],
)
def test_a_name_that_is_nearly_right_is_answered_with_what_there_is(
    words: tuple[str, ...], error: str, hint: str, here: Path
) -> None:
    said, advice = complaint(loupe("run", *words, cwd=here))
    assert said == error and hint in advice


def test_a_wrong_value_of_an_option_is_answered_with_the_right_ones(here: Path) -> None:
    error, hint = complaint(loupe("run", "iam_lines", "-e", "tesseract", "-o", "split=tets", cwd=here))
    assert error == "option split=tets: no such value; did you mean 'test'?"
    assert hint == "values: test, validation, train"


def test_ground_truth_without_its_pages_is_not_run(here: Path) -> None:
    item = {"dataset_name": "IIIT5K", "type": "Regular Text Recognition", "id": 1, "image_path": "IIIT5K/1.png"}
    (here / "data").mkdir()
    (here / "data/OCRBench.json").write_text(
        json.dumps([item | {"question": "What is written?", "answers": ["CENTRE"]}])
    )
    error, hint = complaint(loupe("run", "ocrbench", *RIGHT, "--data", "data", cwd=here))
    assert error.startswith("ocrbench: no page image found, not even ") and error.endswith("1.png")
    assert hint == "answers that exist already need no pages: loupe score ocrbench ANSWERS"
    assert not (here / "runs").exists()


def test_a_profile_under_engine_without_s_is_found_out(here: Path) -> None:
    (here / "loupe.toml").write_text('[engine.mine]\nkind = "tesseract"\n')
    error, _ = complaint(loupe("run", "mydocs", "-e", "mine", cwd=here))
    assert error == "no engine 'mine'; loupe.toml has a table [engine.mine], but profiles belong under [engines.NAME]"


def test_a_folder_of_runs_is_taken_and_one_without_any_is_answered(here: Path) -> None:
    loupe("run", "mydocs", *RIGHT, cwd=here)
    loupe("run", "mydocs", *RIGHT, "--name", "other", cwd=here)
    (here / "runs/x").mkdir()
    for words in (("report", "."), ("compare", RUN, "runs/x/mydocs"), ("compare", "runs/x")):
        error, _ = complaint(loupe(*words, cwd=here))
        assert error.startswith("no run at ") and ("did you mean runs?" in error) == (words == ("report", "."))
    done = loupe("report", "runs/python-reader.py_right", "--json", cwd=here)
    assert json.loads(done.stdout)["runs"] == [RUN], done.stderr
    done = loupe("compare", "runs/other", "runs/python-reader.py_right", "--json", cwd=here)
    assert json.loads(done.stdout)["baseline"] == "runs/other/mydocs", done.stderr
    done = loupe("compare", "runs", "--plain", cwd=here)
    assert done.stdout == loupe("compare", "--plain", cwd=here).stdout and len(done.stdout.splitlines()) == 3


def test_a_run_that_cannot_be_read_is_named_and_costs_only_itself(here: Path) -> None:
    paths = [f"runs/{name}/mydocs" for name in ("a", "b", "c", "d", "e")]
    for name in ("a", "b"):
        loupe("run", "mydocs", *RIGHT, "--name", name, cwd=here)
    for path in paths[2:]:
        shutil.copytree(here / paths[0], here / path)
    (here / paths[2] / "run.json").write_text("{")
    (here / paths[3] / "scores.jsonl").write_text('{"sample":"p0","scores":"x"}\n')
    (here / paths[4] / "predictions.jsonl").write_bytes(b'{"sample":3}\n')
    compared = loupe("compare", paths[2], *paths, "--json", cwd=here)
    reported = loupe("report", *paths, "--json", cwd=here)
    for done in (compared, reported):
        assert done.returncode == 2 and "Traceback" not in done.stderr
        assert list(json.loads(done.stdout)["left_out"]) == paths[2:]
        assert [line.startswith("left out: runs/") for line in done.stderr.splitlines()][:3] == [True] * 3
    assert json.loads(compared.stdout)["baseline"] == paths[0] and f"compared with {paths[0]}" in compared.stderr
    assert json.loads(reported.stdout)["runs"] == paths[:2]
    error, _ = complaint(loupe("compare", paths[0], paths[2], cwd=here))
    assert error.startswith("runs/c/mydocs/run.json: ")


def test_without_a_server_the_hint_names_only_what_would_help(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chosen_engines, "find_server", lambda _: choose([]))
    monkeypatch.setattr(chosen_engines, "find_spec", lambda name: None)
    for flags, end in (
        (Flags(model="m"), "/v1"),
        (Flags(), f"-e rapidocr, which comes with: {install_command('rapidocr')}"),
    ):
        with pytest.raises(EngineUnavailableError) as caught:
            chosen_engines.choose_engines(flags)
        assert caught.value.hint.endswith(end)


def test_changed_data_is_said_in_words(here: Path) -> None:
    loupe("run", "mydocs", *RIGHT, cwd=here)
    samples = here / "mydocs/samples.jsonl"
    samples.write_text(samples.read_text().replace("alpha", "alphb"))
    assert "  data: pages or references changed since: " in loupe("run", "mydocs", *RIGHT, cwd=here).stderr


def test_a_broken_folder_names_the_command_that_finds_all_problems(here: Path) -> None:
    with (here / "mydocs/samples.jsonl").open("a") as file:
        file.write('{"id": \n')
    assert complaint(loupe("run", "mydocs", *RIGHT, cwd=here))[1].endswith("loupe bench check mydocs")


@pytest.mark.parametrize(("group",), installed([("data",), ("bench",), ("engine",), ("example",)]))
def test_a_group_alone_shows_its_help(tmp_path: Path, group: str) -> None:
    done = loupe(group, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(f"Usage: loupe {group} ")


def test_bench_show_prints_the_prompt_that_is_asked_by_default(tmp_path: Path) -> None:
    shown = json.loads(loupe("bench", "show", "nanonets_kie", "--json", cwd=tmp_path).stdout)["prompt"]
    assert shown.startswith("Extract the following ['date', 'doc_no_receipt_no'")
    assert loupe("bench", "show", "ocrbench", cwd=tmp_path).stdout.count("(each sample's own question)") == 1


def test_bench_show_counts_the_samples_of_a_folder_and_shows_no_empty_lines(here: Path) -> None:
    (here / "mydocs/loupe.toml").write_text("[benchmark]\nignore_case = true\n")
    shown = loupe("bench", "show", "mydocs", cwd=here).stdout.splitlines()
    assert "samples    6" in shown and "tasks      text (6)" in shown and "settings   ignore_case = true" in shown
    assert not any(line.split()[1:] == [] for line in shown)
    assert json.loads(loupe("bench", "show", "mydocs", "--json", cwd=here).stdout)["tasks"] == ["text (6)"]


def test_the_doctor_reads_the_profiles_here_and_at_home(here: Path) -> None:
    (here / "loupe.toml").write_text('[engines.bad]\nkind = "tesseract"\npms = 6\n')
    trusted(here / "loupe.toml")
    (here / ".config/loupe/engines").mkdir(parents=True)
    (here / ".config/loupe/engines/good.toml").write_text('kind = "tesseract"\n')
    shown = loupe("doctor", "--plain", cwd=here).stdout
    assert "profile\tbad\tno\tloupe.toml [engines.bad]: unknown key 'pms'; did you mean 'psm'?" in shown
    assert "profile\tgood\tyes\ttesseract, from " in shown


def test_a_name_that_is_near_to_none_gets_no_suggestion() -> None:
    assert did_you_mean("nope", ["openai", "tesseract"]) == ""
    assert did_you_mean("opnai", ["openai", "tesseract"]) == "; did you mean 'openai'?"


def test_paths_in_commands_to_paste_are_quoted() -> None:
    """A stranger's folder may be called `x; rm -rf ~`, and a hint is there to be pasted."""
    bare = []
    root = Path(loupe_package.__file__).parent
    for file in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            for value in unquoted(node) if isinstance(node, ast.JoinedStr) else ():
                bare.append(f"{file.relative_to(root)}:{node.lineno}: {value}")
    assert bare == []


def unquoted(text: ast.JoinedStr) -> Iterator[str]:
    """Paths that stand behind `loupe COMMAND ` in a text as they are."""
    command = False
    for part in text.values:
        if isinstance(part, ast.Constant):
            command = command or re.search(r"\bloupe [a-z]+ ", str(part.value)) is not None
        elif command and isinstance(part, ast.FormattedValue):
            shown = ast.unparse(part.value)
            if re.fullmatch(r"(?:\w+\.)*(?:path|folder|parent|root|target|answers|place|to)(?:\[\d\])?", shown):
                yield shown
