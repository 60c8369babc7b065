"""An option is the same wherever it stands: its short name, what it takes, and what goes with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
import pytest

from loupe.cli.shared.top import root
from tests.support.chat_server import in_thread
from tests.support.command_line import every_command, installed, loupe, make_folder

COMMANDS: dict[str, dict[str, click.Option]] = {
    path: {max(each.opts, key=len): each for each in command.params if isinstance(each, click.Option)}
    for path, command in every_command(root)
}
#: Options that mean something else in a command, because of what the command is about. Nothing else may differ.
OTHERWISE: Mapping[str, Mapping[str, str]] = {
    "--image": {
        "engine test": "a page, which `run` takes from the benchmark",
        "compress": "a page, or a folder of them",
    },
    "--model": {"size": "a model by name or folder: there is no server"},
    "--timeout": {"select": "one of three, which the ranking names"},
    "--data": {"review tests": "the documents of a file", "compress": "for its dry run"},
    "--base-url": {"select": "one server for all models", "embed": "one server, whose vectors are comparable"},
    "--engine": {"compress": "one engine"},
    "--concurrency": {
        "serve": "pages, on this machine",
        "compress": "a number alone: nothing is learnt from few pages",
    },
    "--field": {"select": "which of three fields it knows"},
    "--by": {"compress": "bins of the curve"},
    "--ground-truth": {"select": "what to do with that which is there"},
    "--to": {"export": "a folder, or a layout", "compare": "a format of tables"},
    "--output": {"export": "a folder", "embed": "a folder"},
    "--negative": {"review folder": "a word about its folder"},
    "--plot": {"compress": "SVG alone"},
    "--json": {"select": "also a file, after hours", "load": "also a file, after hours"},
}
#: What an option needs beside it.
TOGETHER = {
    "--base-url": {"--api-key", "--api-key-file"},
    "--prompt": {"--prompt-file"},
    "--serve": {"--server-arg", "--server-port", "--gpus", "--startup-timeout", "--base-url"},
    "--max-tokens": {"--temperature", "--timeout"},
    "--option": {"--data"},
}
#: Servers of pages, which end with Ctrl-C, print no result.
NO_RESULT = {"view", "review folder", "review tests", "serve", "example models"}


def kind(option: click.Option) -> tuple[object, ...]:
    """What a user has to know of an option to type it."""
    taken = (option.metavar, option.multiple) if not option.is_flag else ()
    return (sorted(option.opts), option.is_flag, *taken)


@pytest.mark.parametrize("name", sorted({name for options in COMMANDS.values() for name in options}))
def test_an_option_is_typed_the_same_everywhere(name: str) -> None:
    found = {path: options[name] for path, options in COMMANDS.items() if name in options}
    usual = {path: kind(option) for path, option in found.items() if path not in OTHERWISE.get(name, {})}
    assert len({str(each) for each in usual.values()}) <= 1, usual


#: `engine test` asks about a page, `engine install` about none, `draft` about a folder that is its own data.
WITHOUT_DATA = {("engine test", "--option"), ("engine install", "--option"), ("draft", "--option")}


def test_what_is_said_to_differ_differs_and_is_there() -> None:
    there = {name for options in COMMANDS.values() for name in options}
    for name in OTHERWISE.keys() & there:
        commands = OTHERWISE[name]
        paths = installed(tuple(path.split()) for path in commands)
        assert all(name in COMMANDS[" ".join(path)] for path in paths), name


@pytest.mark.parametrize("path", sorted(COMMANDS))
def test_a_command_has_what_goes_with_its_options(path: str) -> None:
    options = set(COMMANDS[path])
    assert "--plain" in options
    assert "--json" in options or path in NO_RESULT
    for name, others in TOGETHER.items():
        if name in options and (path, name) not in WITHOUT_DATA:
            assert others <= options, (path, name)


def test_run_takes_what_its_two_halves_take() -> None:
    run, infer, score, draft = (set(COMMANDS[name]) for name in ("run", "infer", "score", "draft"))
    assert infer | score <= run
    until = {"--until", "--until-difference", "--max-pages"}
    assert run - infer == {"--fail-under", "--with-published", "--by", "--by-measure", "--junit", "--markdown", *until}
    # Drafts have no score, truth is what they are to become, and the folder is their data.
    without = {"--allow-unverified", "--strict", "--suite", "--skip-missing", "--data", "--download", "--jobs"}
    assert infer - draft == without


def test_help_of_every_value_says_what_it_is() -> None:
    for path, options in COMMANDS.items():
        for name, option in options.items():
            assert option.help, (path, name)
            plain = option.metavar or isinstance(option.type, click.Choice) or option.is_flag
            assert plain, f"{path} {name}: the help shows {option.type}"


def test_score_and_infer_hold_results_to_the_same_as_run(tmp_path: Path) -> None:
    make_folder(tmp_path)
    reads = ("mydocs", "-e", "python:reader.py:sometimes")
    run = "runs/python-reader.py_sometimes/mydocs"

    assert loupe("infer", *reads, cwd=tmp_path).returncode == 0
    assert loupe("infer", *reads, "--strict", cwd=tmp_path).returncode == 3
    below = loupe("score", run, "--fail-under", "99", "--by", "half", "--plain", cwd=tmp_path)
    assert below.returncode == 1 and "is worse than 99.00 %" in below.stderr, below.stderr
    assert "slices by half" in below.stdout
    assert loupe("score", run, "--fail-under", "50", cwd=tmp_path).returncode == 0
    assert loupe("score", run, "--strict", cwd=tmp_path).returncode == 3
    again = loupe("run", *reads, "--by", "half", "--plain", cwd=tmp_path)
    assert again.returncode == 0 and "slices by half" in again.stdout, again.stderr


def test_an_engine_is_tried_with_any_of_its_settings(tmp_path: Path) -> None:
    with in_thread("read") as server:
        words = ("engine", "test", "openai", "--base-url", server.url, "--max-tokens", "77", "-o", "top_p=0.5")
        done = loupe(*words, cwd=tmp_path)
    assert done.stdout == "read\n", done.stderr
    assert (server.requests[0].body["max_tokens"], server.requests[0].body["top_p"]) == (77, 0.5)
    refused = loupe("engine", "test", "pdf_text", "-o", "nope=1", cwd=tmp_path)
    assert refused.returncode == 2 and "has no setting for -o nope=1" in refused.stderr


def test_review_alone_shows_the_options_of_a_folder() -> None:
    command = dict(every_command(root))["review folder"]
    with click.Context(root, info_name="loupe") as context:
        group = root.get_command(context, "review")
        assert group is not None
        shown = group.get_help(click.Context(group, info_name="loupe review", parent=None))
    names = [option.opts[0] for option in command.params if isinstance(option, click.Option)]
    assert names[-4:] == ["--as", "--port", "--no-browser", "--plain"]
    assert all(f"\n  {option.opts[0]} " in shown for option in command.params if isinstance(option, click.Option))
    assert "Usage: loupe review [OPTIONS] DIR" in shown and "..." not in shown
