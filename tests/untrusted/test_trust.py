"""A folder may come from anybody: nothing of it runs, redefines an engine or gets a page until the user trusts it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.chat_server import in_thread
from tests.support.command_line import READER, at_a_terminal, complaint, installed, loupe, make_folder

EVIL = """
from pathlib import Path
from loupe.types import Benchmark, Measure, Sample, Score

Path(__file__).with_name("executed").touch()

def load(root):
    yield Sample(id="a", text="a", truth="a")

def score(sample, prediction):
    return [Score(measure="right", counts=(float(prediction.text == sample.truth), 1.0))]

benchmark = Benchmark(title="B", version="1", task="text", measures=(Measure(name="right"),), load=load, score=score)
"""
RUN = "runs/python-reader.py_right/b"


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A finished run of a benchmark file, as it is after a download: nothing of it was ever run in this home."""
    here = tmp_path / "author"
    here.mkdir()
    (here / "b.py").write_text(EVIL)
    (here / "reader.py").write_text(READER)
    assert loupe("run", "b.py", "-e", "python:reader.py:right", cwd=here).returncode == 0
    assert (here / "executed").exists()
    shutil.rmtree(here / ".config")
    (here / "executed").unlink()
    return here


@pytest.mark.parametrize(
    "words",
    installed(
        [
            ("report", RUN, "-o", "out.html"),
            ("score", RUN),
            ("score", RUN, "-o", "x=1"),
            ("export", RUN),
            ("lint", RUN),
            ("compare", RUN, RUN),
            ("runs",),
            ("reproduce",),
            ("embed", RUN, "--base-url", "http://127.0.0.1:9/v1"),
        ]
    ),
)
def test_opening_a_foreign_run_executes_nothing(foreign: Path, words: tuple[str, ...]) -> None:
    done = loupe(*words, cwd=foreign)
    assert not (foreign / "executed").exists()
    assert "Traceback" not in done.stderr


def test_naming_the_file_once_lets_its_runs_be_scored_again(foreign: Path) -> None:
    error, hint = complaint(loupe("score", RUN, cwd=foreign))
    file = foreign / "b.py"
    assert error.startswith(f"{file} is not trusted, so it is not used: the run names it as its benchmark")
    assert hint == f"read it; if you trust it: loupe trust {file}"
    assert loupe("trust", "b.py", "--yes", cwd=foreign).returncode == 0
    assert loupe("score", RUN, cwd=foreign).returncode == 0


def test_a_file_that_changed_is_trusted_no_more(foreign: Path) -> None:
    assert loupe("trust", "b.py", "--yes", cwd=foreign).returncode == 0
    assert loupe("trust", "--list", cwd=foreign).stdout.splitlines() == [str(foreign / "b.py")]
    with (foreign / "b.py").open("a") as file:
        file.write("\n")
    assert loupe("score", RUN, cwd=foreign).returncode == 2
    assert not (foreign / "executed").exists()
    assert "changed since" in loupe("trust", "--list", cwd=foreign).stdout
    assert loupe("trust", "--remove", "b.py", cwd=foreign).returncode == 0
    assert loupe("trust", "--list", cwd=foreign).stdout == ""


# ---- loupe.toml of the working folder

RUNS_A_SHELL = """
kind = "command"
command = ["sh", "-c", "touch executed; echo no", "{text}"]
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder of somebody's with documents, and a loupe.toml that says more than what data is."""
    make_folder(tmp_path)
    (tmp_path / "loupe.toml").write_text(f"[engines.tesseract]{RUNS_A_SHELL}[engines.rapidocr]{RUNS_A_SHELL}")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    installed(
        [
            ("run", "mydocs", "-e", "tesseract"),
            ("run", "mydocs", "--engines", "pdf_text,rapidocr"),
            ("infer", "mydocs", "-e", "rapidocr"),
            ("engine", "test", "tesseract"),
            ("engine", "show", "tesseract"),
            ("draft", "mydocs", "-e", "tesseract"),
            ("serve", "tesseract", "--port", "0"),
            ("load", "mydocs", "-e", "tesseract"),
            ("demo", "--limit", "1"),
        ]
    ),
    ids=" ".join,
)
def test_an_engine_that_a_folder_redefines_is_refused_and_the_refusal_says_what_would_run(
    here: Path, words: tuple[str, ...]
) -> None:
    done = loupe(*words, cwd=here)
    assert not (here / "executed").exists()
    assert done.returncode == 2, done.stderr
    assert "loupe.toml is not trusted, so it is not used: engine" in done.stderr
    assert "(instead of the one that Loupe has) runs the program sh -c touch executed" in done.stderr
    assert "hint: read it; if you trust it: loupe trust .\n" in done.stderr and "Traceback" not in done.stderr


def test_engines_that_the_folder_leaves_alone_are_used_without_a_question(here: Path) -> None:
    done = loupe("run", "mydocs", "-e", "python:reader.py:right", cwd=here)
    assert done.returncode == 0, done.stderr
    rows = loupe("engine", "list", "--plain", cwd=here).stdout.splitlines()
    assert "tesseract\t–\tnot trusted: loupe trust .\tloupe.toml\t" in rows
    assert not (here / "executed").exists()


def test_a_trusted_file_is_used_until_it_changes(here: Path) -> None:
    shown = loupe("trust", ".", "--yes", cwd=here)
    assert shown.returncode == 0
    assert "engine tesseract (instead of the one that Loupe has) runs the program sh -c touch executed" in shown.stderr
    assert '[engines] "rapidocr" = {"kind": "command"' in shown.stderr
    assert loupe("run", "mydocs", "-e", "tesseract", cwd=here).returncode == 0
    assert (here / "executed").exists()
    (here / "executed").unlink()
    (here / "loupe.toml").write_text((here / "loupe.toml").read_text().replace("echo no", "echo yes"))
    again = loupe("run", "mydocs", "-e", "tesseract", cwd=here)
    assert again.returncode == 2 and "loupe.toml has changed since you trusted it" in again.stderr
    assert not (here / "executed").exists()


def test_the_same_words_at_another_place_are_not_trusted(here: Path) -> None:
    assert loupe("trust", ".", "--yes", cwd=here).returncode == 0
    shutil.copytree(here, here / "copy", ignore=shutil.ignore_patterns("copy"))
    done = loupe("run", "mydocs", "-e", "tesseract", cwd=here / "copy", env={"HOME": str(here)})
    assert done.returncode == 2 and not (here / "copy" / "executed").exists()


@pytest.mark.parametrize("words", [("trust", "."), ("trust", "loupe.toml")])
def test_without_a_terminal_nothing_is_trusted_unless_it_is_said(here: Path, words: tuple[str, ...]) -> None:
    error, hint = loupe(*words, cwd=here).stderr.splitlines()[-2:]
    assert (error, hint) == (
        "error: loupe.toml stays untrusted",
        f"hint: trust it without a question: loupe trust {words[1]} --yes",
    )
    assert loupe("run", "mydocs", "-e", "tesseract", cwd=here).returncode == 2


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('kind = "python"\nfunction = "reader.py:right"', "runs the Python code reader.py:right"),
        ('kind = "openai"\nbase_url = "URL"', "sends pages, and the API key if you have set one, to http://127.0.0.1"),
        ('kind = "openai"\nbase_url = "URL"\napi_key_env = "MINE"', "the secret in the environment variable MINE"),
        ('kind = "openai"\nserve = "vllm:m"\nserver_program = "./x"', "starts the program ./x and starts a server of"),
        ('kind = "pdf_text"', "reads with pdf_text"),
        (
            'kind = "environment"\nreader = "x.py"\noptions = {server = "http://far"}',
            "options {'server': 'http://far'}",
        ),
    ],
)
def test_every_engine_of_a_folder_needs_trust_whatever_it_is_called(here: Path, settings: str, said: str) -> None:
    with in_thread() as server:
        (here / "loupe.toml").write_text(f"[engines.mine]\n{settings.replace('URL', server.url)}\n")
        done = loupe("run", "mydocs", "-e", "mine", cwd=here, env={"MINE": "s", "LOUPE_API_KEY": "k"})
        assert done.returncode == 2 and said in done.stderr, done.stderr
        assert server.requests == []


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 2), ("", 2)])
def test_a_terminal_is_asked_once_and_the_command_goes_on(here: Path, answer: str, code: int) -> None:
    for attempt in range(2):
        ended, said = at_a_terminal(here, answer, "run", "mydocs", "-e", "tesseract")
        assert ended == code, said
        assert ("Trust loupe.toml? [y/N]" in said) == (code != 0 or attempt == 0)
        assert said.count("is not trusted") == (code != 0 or attempt == 0)
        assert said.count("error:") == said.count("stays untrusted, so nothing was done") == (code != 0)
    assert (here / "executed").exists() == (code == 0)


def test_what_is_shown_before_the_question_cannot_steer_the_terminal(here: Path) -> None:
    (here / "loupe.toml").write_text(
        '[engines."a\\u001b[2J\\nb\\u202e"]\nkind = "command"\ncommand = "cat \\u001b]0;x\\u0007"\n'
    )
    _, said = at_a_terminal(here, "n", "trust", ".")
    assert "Trust loupe.toml?" in said and "\x1b[2J" not in said and "\x1b]0" not in said and "\x07" not in said
