"""Hints lead somewhere: every command in a hint is one that exists, and works in the state in which it is given."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import loupe as loupe_package
from loupe.cli import main
from loupe.cli.shared.top import root
from tests.support.command_line import make_folder

RIGHT = "python:reader.py:right"
RUN, OTHER = "runs/python-reader.py_right/mydocs", "runs/python-reader.py_wrong/mydocs"
#: A command up to the mark that ends it in a sentence; `.loupe td` is a rule of CSS.
COMMAND = re.compile(r"(?<![\w.])loupe ((?:--help|[a-z]+)(?: [^\s;,`)]+)*)")
#: Verbs of sentences about Loupe: "this loupe reads 1".
PROSE = ("reads", "starts")
#: What a person has to fill in.
PLACEHOLDER = re.compile(r"[A-Z_/.]{2,}(?:\.\w+)?|…|\.\.\.")
SOURCE = Path(loupe_package.__file__).parent


def written() -> Iterator[tuple[str, str]]:
    """Every command in a text of the source, with its place; what is filled in is X. Docstrings are no hints."""
    for file in sorted(SOURCE.rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        tree = ast.parse(source if "loupe " in source.replace("from loupe ", "") else "")
        nodes = list(ast.walk(tree))
        inside = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        inside |= {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node in nodes:
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            if id(node) in inside or not isinstance(node, ast.JoinedStr | ast.Constant):
                continue
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)
            for found in COMMAND.finditer(text):
                yield f"{file.relative_to(SOURCE)}:{node.lineno}", found[1]


def mistake_in(words: list[str]) -> str:
    """What is wrong with the name or the options of a command; "" for none, and for a verb of a sentence."""
    command: click.Command = root
    context = click.Context(root)
    if words[0] in PROSE:
        return ""
    while isinstance(command, click.Group) and words and words[0] != "--help":
        filled_in = words[0] == "X" or PLACEHOLDER.fullmatch(words[0]) or Path(words[0]).exists()
        found = command.get_command(context, words[0])
        if found is None and command.name == "review" and (filled_in or words[0].startswith("-")):
            found, words = command.get_command(context, "folder"), ["folder", *words]
        if found is None:
            return "" if words[0] == "X" else f"no {words[0]}"
        command, words = found, words[1:]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {"--help"}
    return ", ".join(word for word in words if re.match("--?[a-z]", word) and word.partition("=")[0] not in known)


@pytest.mark.parametrize(
    ("command", "mistake"),
    [
        ("exprot RUN --to csv", "no exprot"), ("revieww DIR", "no revieww"), ("bench lst", "no lst"),
        ("review nosuch DIR --nosuch", "no nosuch"), ("review DIR --nosuch", "--nosuch"),
        ("bench --nosuch", "no --nosuch"), ("review --nosuch", "--nosuch"),
        ("review tests FILE.jsonl --type X", "--type"), ("export RUN --too csv", "--too"),
        ("review", ""), ("review --help", ""), ("review X --type TYPE", ""), ("review tests FILE.jsonl", ""),
        ("bench X", ""), ("export RUN --to csv", ""), ("reads 1", ""),
    ],
)  # fmt: skip
def test_a_wrong_command_is_a_mistake(command: str, mistake: str) -> None:
    assert mistake_in(command.split()) == mistake


def test_every_command_in_a_text_exists_with_its_options() -> None:
    found = list(written())
    assert len(found) > 200
    assert [(place, command) for place, command in found if mistake_in(command.split())] == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents, two runs and one without scores, a folder of scans, an empty one, and answers in a folder."""
    here = tmp_path_factory.mktemp("hints")
    make_folder(here)
    (here / "empty").mkdir()
    (here / "answers").mkdir()
    (here / "answers/p0.txt").write_text("alpha")
    (here / "scans").mkdir()
    shutil.copy(SOURCE / "benchmarks/sample_pages_data/form.jpg", here / "scans")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        assert main(["run", "mydocs", "-e", RIGHT]) == main(["run", "mydocs", "-e", "python:reader.py:wrong"]) == 0
        assert main(["infer", "mydocs", "-e", RIGHT, "--name", "unscored"]) == 0
    return here


@pytest.mark.parametrize(
    "words",
    [
        "run nosuch -e pdf_text",
        "run ./nofolder",
        "run scans -e pdf_text",
        "run mydocs scans -e pdf_text --fail-under 0.5",
        f"run mydocs -e {RIGHT} --nosuch",
        "infer mydocs -e nosuch",
        "score nothing",
        "score",
        "compare nothing",
        f"compare {RUN}",
        "compare",
        "report nothing",
        f"export {RUN} {OTHER} --to ./x",
        "export nothing",
        "pack nothing",
        "reproduce nosuch",
        "reproduce glm-ocr/nosuch",
        "reproduce nosuch/omnidocbench",
        f"reproduce --run {RUN}",
        "init mydocs",
        "draft scans",
        "review scans",
        "bench show omnidocbnch",
        "engine show nosuch",
        "data get nosuch",
        "nosuch",
        "runs --runs empty",
    ],
)
def test_the_command_of_a_hint_works_where_it_is_given(
    words: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(here / "home"))
    main(shlex.split(words))
    followed = 0
    for line in "".join(capsys.readouterr()).splitlines():
        for found in COMMAND.finditer(line.replace(str(folder), str(here))):
            command = shlex.split(found[1])
            followed += 1
            if command[0] in ("review", "view", "demo") or any(PLACEHOLDER.fullmatch(word) for word in command):
                assert mistake_in(command) == ""
                continue
            code = main(command)
            assert code == 0, f"{line}\n{found[0]}: {code}: {capsys.readouterr().err}"
    assert followed, f"{words}: no command in the hint"
