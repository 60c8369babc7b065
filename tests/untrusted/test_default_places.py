"""Links of a stranger at every default place: no command writes, or looks, behind one that the user did not name."""

from __future__ import annotations

import ast
import json
import shutil
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import click
import pytest

import loupe
from loupe.benchmarks.published import published_rows
from loupe.cli import main
from loupe.cli.shared.top import root
from loupe.errors import RunError
from loupe.files.default_places import RUNS, DefaultPlace
from loupe.pipeline.packs import unpack
from loupe.results.reproduction import command_for
from tests.support.command_line import every_command, installed, make_folder
from tests.support.pages import draw_page

NAME = "python-reader.py_right"
RUN = f"runs/{NAME}/mydocs"
READ = ("mydocs", "-e", "python:reader.py:right", "-j", "1")
#: Commands by the default place that they use, and the words that name the same place on purpose.
AT_RUNS = {
    ("run", *READ): ("--runs", "runs"),
    ("infer", *READ[:3]): ("--runs", "runs"),
    ("score", "mydocs", "answers", "-j", "1"): ("--runs", "runs"),
    ("score", "pack.tar.gz", "-j", "1"): ("--runs", "runs"),
    ("unpack", "pack.tar.gz"): ("runs",),
    ("runs",): ("--runs", "runs"),
    ("compare",): ("--runs", "runs"),
    ("view",): (),  # "runs": it would serve until it is stopped
    ("serve", "stop"): (),
    ("demo", "--limit", "1"): (),
    ("reproduce", "rapidocr/omnidocbench"): (),
}
#: Commands that take a run by its name below ./runs.
BY_NAME = installed(
    [
        *(
            (word, f"{NAME}/mydocs")
            for word in ("score", "report", "view", "export", "pack", "compress", "lint", "embed")
        ),
        ("compare", f"{NAME}/mydocs", f"{NAME}/mydocs"),
        ("reproduce", "--run", f"{NAME}/mydocs"),
    ]
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark, a finished run, answers and a pack."""
    here = tmp_path_factory.mktemp("finished")
    make_folder(here)
    (here / "page.py").write_text("def read(request):\n    return 'alpha'\n")
    (here / "scans").mkdir()
    draw_page(here / "scans/a.png", ("alpha",))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        assert main(["run", *READ, "--name", "python-reader.py_right"]) == 0
        assert main(["init", "scans", "--task", "text"]) == 0
        assert main(["pack", RUN, "--with-truth", "-o", "pack.tar.gz"]) == 0
    shutil.copytree(here / RUN / "predictions", here / "answers")
    shutil.move(here / "runs", here / "kept")
    return here


@pytest.fixture
def here(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(finished, tmp_path / "here", symlinks=True)
    (tmp_path / "victim").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "here"


@pytest.mark.parametrize("words", installed(AT_RUNS), ids=" ".join)
def test_a_link_in_place_of_the_runs_is_refused_unless_it_is_named(
    here: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    victim = here.parent / "victim"
    (here / "runs").symlink_to(victim)
    quiet = words in {("serve", "stop"), ("reproduce", "rapidocr/omnidocbench")}  # They show that there is nothing.
    code, said = main(list(words)), capsys.readouterr()
    assert code in ((0, 2, 4) if quiet else (2,)), said.err
    assert not list(victim.iterdir())
    assert said.err.count("\nhint: remove the link (rm runs), or name it: ") == 1 or quiet, said.err
    assert f"error: runs is a link to {victim}; " in said.err or quiet
    if named := AT_RUNS[words]:
        assert main([*words, *named]) == 0, capsys.readouterr().err
        assert list(victim.iterdir()) or words[0] in ("runs", "compare")


@pytest.mark.parametrize("words", BY_NAME, ids=" ".join)
def test_a_run_that_is_named_below_a_link_is_refused(
    here: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "runs").symlink_to("kept")
    assert main(list(words)) == 2
    said = capsys.readouterr()
    assert "error: runs is a link to kept; " in said.err and not said.out
    assert said.err.endswith(f"hint: remove the link, or name the whole path: {RUN}\n")


def test_short_names_are_below_the_runs_that_are_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(here / f"kept/{NAME}", here / "kept/other")
    for words in (
        ("compare", f"{NAME}/mydocs", "other/mydocs", "--runs", "kept"),
        ("compare", "--runs", "kept", f"{NAME}/mydocs", "--baseline", "other/mydocs"),
        ("score", f"{NAME}/mydocs", "--runs", "kept"),
    ):
        assert main(list(words)) == 0, capsys.readouterr().err
    (here / "runs").symlink_to("kept")
    assert main(["score", f"{NAME}/mydocs", "--runs", "runs"]) == 0  # The link is named.
    assert not (here.parent / "victim/other").exists()


def test_the_command_that_reproduces_names_the_runs_as_they_were_named() -> None:
    row = published_rows("omnidocbench", "1.5")[0]
    assert "--runs" not in command_for(row, RUNS) and command_for(row, Path("runs")).endswith("--runs runs")


@pytest.mark.parametrize(
    ("words", "place", "named"),
    [
        (("export", "kept", "--to", "inspect"), "logs", ("-o", "logs")),
        (("export", "kept", "--to", "csv"), "samples.csv", ()),
        (("export", "kept/python-reader.py_right/mydocs"), "kept/python-reader.py_right/mydocs/predictions", ()),
        (("export", "kept", "--to", "evaluation"), "predictions", ()),
        (("report", "kept"), "report.html", ()),
        (("pack", "kept/python-reader.py_right/mydocs"), "python-reader.py_right_mydocs.tar.gz", ()),
        (("data", "pack", "mydocs"), "mydocs.tar", ()),
        (("draft", "scans", "-e", "python:page.py:read"), "scans/.loupe", ("--runs", "drafts")),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_link_in_any_other_default_place_is_refused(
    here: Path, words: tuple[str, ...], place: str, named: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    victim = here.parent / "victim"
    if (here / place).is_dir():
        shutil.rmtree(here / place)
    if "." in place.lstrip(".") and not place.endswith(".loupe"):
        victim = victim / "file"
        victim.write_text("precious")
    (here / place).symlink_to(victim)
    assert main(list(words)) == 2
    said = capsys.readouterr().err
    assert f"{place} is a link to {victim}; " in said and "\nhint: remove the link (rm " in said
    assert victim.read_text() == "precious" if victim.is_file() else not list(victim.iterdir())
    if named:
        assert main([*words, *named]) == 0, capsys.readouterr().err


def test_a_default_place_below_the_runs_is_no_link_either(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "runs").mkdir()
    (here / "runs/python-reader.py_right").symlink_to(here.parent / "victim")
    for words in (("score", "pack.tar.gz"), ("unpack", "pack.tar.gz"), ("unpack", "pack.tar.gz", "runs")):
        assert main(list(words)) == 2
        assert "runs/python-reader.py_right is a link to" in capsys.readouterr().err
    assert not list((here.parent / "victim").iterdir())


def test_python_refuses_the_same_link(here: Path) -> None:
    (here / "runs").symlink_to(here.parent / "victim")
    with pytest.raises(RunError, match="runs is a link to"):
        loupe.run("mydocs", "python:reader.py:right")
    assert not list((here.parent / "victim").iterdir())


def test_doctor_names_the_link(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "runs").symlink_to(here.parent / "victim")
    main(["doctor", "--plain"])
    assert "runs is a link to" in capsys.readouterr().out


def test_documents_that_run_json_does_not_name_are_no_part_of_a_pack(here: Path) -> None:
    def renamed(name: str, data: bytes) -> bytes:
        return json.dumps(json.loads(data) | {"benchmark": "sample_pages"}).encode() if name == "run.json" else data

    _rewritten(here / "pack.tar.gz", here / "planted.tar.gz", renamed)
    with pytest.raises(RunError, match=r"brings documents/, which its run\.json does not name"):
        unpack(here / "planted.tar.gz", here / "runs")
    assert not (here / "runs").exists()


def _rewritten(source: Path, target: Path, change: Callable[[str, bytes], bytes]) -> None:
    with tarfile.open(source) as before, tarfile.open(target, "w:gz") as after:
        for member in before:
            stream = before.extractfile(member)
            assert stream is not None
            data = change(member.name, stream.read())
            member.size = len(data)
            after.addfile(member, BytesIO(data))


def test_every_default_of_a_path_is_a_default_place() -> None:
    wrong = [
        f"loupe {name} {option.opts[0]}"
        for name, command in every_command(root)
        for option in command.params
        if isinstance(option.type, click.Path) and isinstance(option.default, Path)
        if not isinstance(option.default, DefaultPlace)
    ]
    assert not wrong


def test_no_command_makes_up_a_place_by_itself() -> None:
    """A path from a literal is a place that nobody named; `-` is standard output."""
    source = Path(loupe.__file__).parent
    wrong = [
        f"{file.relative_to(source)}:{node.lineno}"
        for folder in ("cli", "api", "pipeline", "runs", "results", "report", "web")
        for file in (source / folder).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Path"
        for part in node.args[:1]
        if isinstance(part, ast.JoinedStr | ast.Constant)
        and not ast.unparse(part).lstrip("f'\"").startswith(("-", "/"))
    ]
    assert not wrong
