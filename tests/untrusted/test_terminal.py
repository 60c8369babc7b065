"""Every command at a real terminal, among folders and servers whose every string is hostile: nothing of it steers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from loupe.cli.shared.top import root
from loupe.results.control_characters import printable
from tests.support.chat_server import ChatServer, in_thread
from tests.support.command_line import every_command, installed
from tests.support.terminal_attack import MODELS, hostile_reply, make_hostile, on_terminal

#: All that Loupe sends to a terminal beside text: colours of tables, bars and labels, and the movements of a live line.
OURS = re.compile(
    r"\x1b\[(?:0|1|2|36|31|32|1;31|38;5;\d+|38;2;\d+;\d+;\d+|1;36|2;36)m"
    r"|\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|\r\x1b\[K|\r(?!\[red\])"
)
#: What is called with which words; {names} stand for the hostile things of `make_hostile`, {url} for the server.
WORDS = {
    "run": [
        "{folder} -e python:reader.py:read --name new --fresh",
        "{folder} --base-url {url} --retries 0 --fresh",
        "{folder} -e {engine}",
        "{bad} -e python:reader.py:read",
        "{evil}",
    ],
    "infer": ["{folder} --base-url {url} --fresh --name infer"],
    "score": ["{one}", "{broken}"],
    "verify": ["{evil}"],
    "demo": ["--runs {evil} --limit {evil}"],
    "runs": ["", "--json"],
    "compare": ["{one} {two}", "{one} {broken}", "{one} {two} --json"],
    "reproduce": ["{evil}/{evil}", "glm-ocr/ocrbench --run {one}"],
    "view": ["{one} {two} {broken} --no-browser"],
    "report": ["{one} {two} -o {papers}/report.html"],
    "lint": ["{one}"],
    "review folder": ["{folder} --no-browser"],
    "review tests": ["{bad}/samples.jsonl --no-browser"],
    "export": ["{one} {two}", "{one} --to {evil}"],
    "init": ["{papers}", "{papers} --task class", "{folder}"],
    "draft": ["{folder} --base-url {url}", "{papers} -e {engine}"],
    "example models": ["--port 0"],
    "select": [
        "--type {evil} --positive {papers} --negative {papers} --base-url {url} --vlm {evil} --phase a --timeout 10"
    ],
    "data get": ["{evil}"],
    "data list": [""],
    "data verify": ["{folder}", "{evil}"],
    "data pack": ["{folder} -o {papers}/x.tar"],
    "engine list": ["", "--json"],
    "engine show": ["{evil}", "{engine}", "bad"],
    "engine test": ["openai --base-url {url}", "{evil}", "openai --base-url {url} --image {page}"],
    "setup": ["{evil}"],
    "load": ["{folder} --base-url {url} --sweep 1 --requests 2"],
    "serve": ["{evil} --port 0"],
    "compress": ["--image {papers} --dry-run", "{one}"],
    "embed": ["{one} --base-url {url}", "{one} --base-url {url} --model {evil}"],
}
#: Commands that stay until Ctrl-C.
STAYING = {"view", "review folder", "review tests", "example models", "serve"}
COMMANDS = dict(every_command(root))


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with in_thread(hostile_reply, models=MODELS) as found:
        yield found


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("terminal")
    return folder, make_hostile(folder)


def calls(name: str) -> list[str]:
    """How a command is called; one that nobody thought of gets the hostile folder for each argument."""
    arguments = [each for each in COMMANDS[name].params if isinstance(each, click.Argument) and each.required]
    return WORDS.get(name, [" ".join("{folder}" for _ in arguments)])


def filled(words: str, values: dict[str, str]) -> list[str]:
    return [re.sub(r"\{(\w+)\}", lambda found: values[found[1]], word) for word in words.split()]


@pytest.mark.parametrize(("name", "words"), [(name, words) for name in COMMANDS for words in calls(name)])
def test_nothing_foreign_steers_the_terminal(
    there: tuple[Path, dict[str, str]], server: ChatServer, name: str, words: str
) -> None:
    folder, values = there
    given = [*name.split(), *filled(words, values | {"url": server.url})]
    seen = on_terminal(given, folder, seconds=4 if name in STAYING else 60).decode("utf-8", "surrogateescape")
    left = OURS.sub("", seen)
    assert printable(left) == left, re.findall(r".{0,80}[^\x20-\x7e].{0,40}", repr(left))
    assert (seen or name in STAYING) and "this is a bug in loupe" not in seen, seen


def test_every_named_command_is_one() -> None:
    assert {
        " ".join(words) for words in installed(tuple(name.split()) for name in (*WORDS, *STAYING))
    } <= COMMANDS.keys()
