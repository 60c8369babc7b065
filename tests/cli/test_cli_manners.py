"""What holds for every command: help at once, two lines for an error, codes that a script can read."""

from __future__ import annotations

import os
import pickle
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import click
import pytest
from click.testing import CliRunner
from PIL import Image

from loupe import __version__
from loupe.cli.shared.errors import describe, report_error
from loupe.cli.shared.top import root
from loupe.engines.shared.redaction import MARK, Redaction
from loupe.errors import LoupeError
from loupe.results.control_characters import printable
from loupe.types import Outcome
from tests.support.command_line import complaint, loupe

SUMMARIES = {name: summary for rows in root.sections().values() for name, summary in rows.items()}
COMMANDS = list(SUMMARIES)
HEAVY = ("numpy", "rich", "aiohttp", "msgspec", "PIL", "pypdfium2", "rapidocr", "asyncio")


def test_version_is_the_packages(tmp_path: Path) -> None:
    done = loupe("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"loupe {__version__}\n")


def test_without_arguments_the_help_is_shown(tmp_path: Path) -> None:
    bare, asked = loupe(cwd=tmp_path), loupe("--help", cwd=tmp_path)
    assert (bare.returncode, bare.stdout) == (0, asked.stdout)
    assert all(f"\n  {name} " in asked.stdout for name in COMMANDS)


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_help_and_version_import_nothing_heavy(words: tuple[str, ...], tmp_path: Path) -> None:
    code = (
        "import sys; from loupe.cli import main; main(sys.argv[1:]);"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    words = (sys.executable, "-c", code, *words)
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_help_of_many_options_fits_a_screen_and_help_all_explains_each() -> None:
    def shown(*words: str) -> str:
        return CliRunner().invoke(root, words, prog_name="loupe", terminal_width=80).output

    command = root.get_command(click.Context(root), "run")
    assert command is not None
    visible = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    names = {each.opts[-1] for each in visible}
    common, every = shown("run", "--help"), shown("run", "--help-all")
    assert len(common.splitlines()) <= 60 and "More options, explained by --help-all:" in common
    explained = set(re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", every))
    assert names | {"--help-all"} <= explained | {"--help"}
    assert names <= set(re.findall(r"--[\w-]+", common)), "nothing is left out in silence"
    assert "\nThe server of --serve:\n  --" in every and "  --server-arg ARG" not in common


def test_help_takes_less_than_a_quarter_of_a_second_of_cpu(tmp_path: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    loupe("--help", cwd=tmp_path)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.25


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_the_first_line_of_its_help(name: str) -> None:
    command = root.get_command(click.Context(root), name)
    first = re.split(r"\n\s*\n", command.help)[0]
    assert command.name == name
    assert " ".join(first.split()) == SUMMARIES[name]


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (("rnu",), "no command 'rnu'; did you mean 'run'?", "see the options: loupe --help"),
        (("xyzzy",), "no command 'xyzzy'", "see the options: loupe --help"),
        (("bench", "lst"), "no command 'lst'; did you mean 'list'?", "see the options: loupe bench --help"),
        (("--versoin",), "no such option '--versoin'; did you mean '--version'?", "see the options: loupe --help"),
        (("runs", "--jsn"), "no such option '--jsn'; did you mean '--json'?", "see the options: loupe runs --help"),
        (
            ("run", "--help-al"),
            "no such option '--help-al'; did you mean one of: '--help', '--help-all'?",
            "see the options: loupe run --help",
        ),
        (("run",), "missing argument 'BENCHMARK'", "see the options: loupe run --help"),
        (("run", "nope"), "no benchmark or folder 'nope'", "list the benchmarks: loupe bench list"),
        (
            ("run", "sample_pags"),
            "no benchmark or folder 'sample_pags'; did you mean 'sample_pages'?",
            "list the benchmarks: loupe bench list",
        ),
        (
            ("run", "sample_pages@9"),
            "sample_pages has no version '9' here, only '1'",
            "see its options: loupe bench show sample_pages",
        ),
        (
            ("run", "sample_pages", "-e", "rapidoc"),
            "no engine 'rapidoc'; did you mean 'rapidocr'?",
            "list the engines: loupe engine list; profiles of your own are ~/.config/loupe/engines/NAME.toml",
        ),
        (
            ("engine", "show", "rapidoc"),
            "no engine 'rapidoc'; did you mean 'rapidocr'?",
            "list the engines: loupe engine list; profiles of your own are ~/.config/loupe/engines/NAME.toml",
        ),
        (
            ("run", "sample_pages", "--limit", "0"),
            "invalid value for '--limit': 0 is not in the range x>=1",
            "see the options: loupe run --help",
        ),
        (
            ("run", "sample_pages", "--redo", "bad"),
            "invalid value for '--redo': 'bad' is not one of " + ", ".join(map(repr, get_args(Outcome))),
            "see the options: loupe run --help",
        ),
        (("score", "nope"), "no run at nope", "list your runs: loupe runs"),
        (("report", "nope"), "no run at nope", "list your runs: loupe runs"),
        (("compare", "nope"), "no run at nope", "list your runs: loupe runs"),
        (("compare", "nope", "none"), "no run at nope", "list your runs: loupe runs"),
        (("export", "nope"), "no run at nope", "list your runs: loupe runs"),
    ],
)
def test_a_wrong_word_costs_two_lines_and_exit_code_2(
    words: tuple[str, ...], error: str, hint: str, tmp_path: Path
) -> None:
    done = loupe(*words, cwd=tmp_path)
    assert complaint(done) == (error, hint)
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\nbenchmark = Benchmark(\n", "mine.py:2: SyntaxError: '(' was never closed"),
        ("x = 1\n\n1 / 0\n", "mine.py:3: ZeroDivisionError: division by zero"),
        ("import os\nimport nosuchmodule\n", "mine.py:2: ModuleNotFoundError: No module named 'nosuchmodule'"),
        ("import json\njson.loads('{')\n", "mine.py:2: JSONDecodeError: "),
        ("x = '\0'\n", "mine.py: "),
    ],
    ids=["syntax", "zero", "import", "deep", "nul"],
)
def test_a_mistake_in_a_benchmark_file_is_named_with_its_line(source: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(source)
    done = loupe("bench", "show", "mine.py", cwd=tmp_path)
    assert done.returncode == 2
    error, hint = complaint(done)
    assert error.startswith(message)
    assert hint == "fix the file, or see CONTRIBUTING.md for one to copy"


def test_a_folder_and_the_sample_pages_take_no_other_data(tmp_path: Path) -> None:
    done = loupe("infer", "sample_pages", "-e", "pdf_text", "--data", ".", cwd=tmp_path)
    assert complaint(done) == ("sample_pages_data: a folder is its own data", "leave out --data")


def test_a_bug_keeps_its_traceback_and_asks_for_a_report(tmp_path: Path) -> None:
    code = "import sys, loupe.runs.folder as folder\nfrom loupe.__main__ import main\n"
    code += "folder.find_runs = lambda *_: 1 / 0\nsys.argv = ['loupe', 'runs']\nsys.exit(main())"
    (tmp_path / "runs").mkdir()
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert "Traceback" in done.stderr and "this is a bug in loupe: ZeroDivisionError" in done.stderr
    assert "please report it" in done.stderr


def test_debug_shows_the_traceback_of_an_expected_error(tmp_path: Path) -> None:
    done = loupe("score", "nope", cwd=tmp_path, env={"LOUPE_DEBUG": "1"})
    assert done.returncode == 2
    assert "Traceback" in done.stderr and done.stderr.endswith(
        "error: no run at nope\nhint: list your runs: loupe runs\n"
    )


def test_a_closed_pipe_ends_the_command_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "loupe", "--help"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, b"")


def test_colour_is_for_terminals_only(tmp_path: Path) -> None:
    assert "\x1b" not in loupe("score", "nope", cwd=tmp_path).stderr
    assert "\x1b" not in loupe("doctor", cwd=tmp_path).stdout


def test_text_of_others_cannot_steer_the_terminal() -> None:
    assert printable("a\x1b[2Jb\x07\r\nc\td\x9b") == "a�[2Jb��\nc\td�"


def test_an_error_of_the_file_system_names_the_file() -> None:
    found = describe(PermissionError(13, "Permission denied", "/some/where"))
    assert found is not None
    assert (found.message, found.exit_code) == ("/some/where: permission denied", 2)


def test_what_is_listed_goes_into_json_and_loses_its_keys(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = LoupeError("two are wrong:", hint="ask KEY-12345678", listed=["a: KEY-12345678", "b"])
    with pytest.raises(LoupeError) as raised, Redaction(("KEY-12345678",)).errors():
        raise wrong
    message, code = report_error(raised.value, "run")
    shown = capsys.readouterr().err
    assert (message, code) == (f"two are wrong: a: {MARK}; b", 2) and f"\n  a: {MARK}\n  b\n" in shown
    assert "KEY-" not in shown + str(wrong) + "".join(wrong.__notes__)
    assert str(pickle.loads(pickle.dumps(wrong))) == str(wrong) == f"two are wrong:\n  a: {MARK}\n  b"


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its words."""
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*path, name))


def test_every_command_takes_plain_and_short_options_are_the_same_everywhere() -> None:
    commands = dict(leaves(root))
    options = {name: [tuple(each.opts) for each in command.params] for name, command in commands.items()}
    assert len(commands) > 30
    assert [name for name, found in options.items() if ("--plain",) not in found] == []
    assert [name for name, found in options.items() if ("--output",) in found or ("--jobs",) in found] == []


def test_a_command_without_tables_is_plain_when_asked(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    Image.new("RGB", (40, 40), "white").save(tmp_path / "pages" / "a.png")
    made = loupe("init", "pages", "--task", "text", "--plain", cwd=tmp_path)
    assert (made.returncode, (tmp_path / "pages" / "loupe.toml").is_file()) == (0, True)
    error, _ = complaint(loupe("export", "nowhere", "--to", "evaluation", "-o", "there", "--plain", cwd=tmp_path))
    assert "nowhere" in error
