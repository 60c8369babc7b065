"""A finished run is shown again only as what it is: the answers of its model, which nobody asks a second time."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_server import Received, Reply, in_thread
from tests.support.command_line import loupe, make_folder

FINISHED = r"finished on \d{4}-\d\d-\d\d \d\d:\d\d UTC by (\S+) at (\S+); nothing was asked"


def listing(*names: str) -> dict[str, Any]:
    """The answer of a server with these models to /v1/models."""
    return {"data": [{"id": name} for name in names]}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    make_folder(tmp_path, count=2)
    return tmp_path


@pytest.mark.parametrize("words", [("-e", "vlm"), ("--name", "q"), ("-e", "openai")])
def test_a_finished_run_is_refused_where_the_named_server_has_another_model(here: Path, words: tuple[str, ...]) -> None:
    with in_thread("alpha", models=listing("one")) as one, in_thread("beta", models=listing("other")) as other:
        assert loupe("run", "mydocs", *words, "--base-url", one.url, cwd=here).returncode == 0
        again = loupe("run", "mydocs", *words, "--base-url", one.url, cwd=here)
        assert again.returncode == 0 and "nothing was asked" not in again.stderr
        asked = [("--base-url", other.url), ()]
        for address, env in zip(asked, ({}, {"OPENAI_BASE_URL": other.url}), strict=True):
            done = loupe("run", "mydocs", *words, *address, cwd=here, env=env)
            assert done.returncode == 2 and done.stdout == "", done.stderr
            assert "holds a run with other settings:\n  model: one in the folder, other now" in done.stderr
            assert "use --name NAME to keep both" in done.stderr
        assert not other.requests


def test_of_several_models_the_one_of_a_finished_run_is_enough(here: Path) -> None:
    with in_thread("alpha", models=listing("one")) as one:
        assert loupe("run", "mydocs", "-e", "vlm", "--base-url", one.url, cwd=here).returncode == 0
    for names, code in ((("one", "two"), 0), (("two", "three"), 2)):
        with in_thread("alpha", models=listing(*names)) as server:
            done = loupe("run", "mydocs", "-e", "vlm", "--base-url", server.url, cwd=here)
        assert done.returncode == code, done.stderr
    assert "model: one in the folder, two, three now" in done.stderr


def test_a_finished_run_whose_server_is_gone_says_who_answered_when_and_that_nobody_was_asked(here: Path) -> None:
    dead = "http://127.0.0.1:9/v1"
    with in_thread("alpha", models=listing("one")) as one:
        assert loupe("run", "mydocs", "-e", "openai", "--base-url", one.url, cwd=here).returncode == 0
        address = one.url
    for words, env in ((("-e", "openai"), {}), ((), {"OPENAI_BASE_URL": dead}), (("--base-url", dead), {})):
        done = loupe("run", "mydocs", *words, cwd=here, env=env)
        assert done.returncode == 0, done.stderr
        said = re.search(FINISHED, done.stderr)
        assert said and said.groups() == ("one", address)


def test_a_local_engine_says_nothing_of_the_kind(here: Path) -> None:
    for _ in range(2):
        done = loupe("run", "mydocs", "-e", "python:reader.py:right", cwd=here)
        assert done.returncode == 0 and "nothing was asked" not in done.stderr


def with_key(key: str) -> Any:
    """A server's list of models, for who has the key."""

    def answer(request: Received) -> Any:
        right = request.headers.get("authorization") == f"Bearer {key}"
        return listing("keyed") if right else Reply(status=401, raw=b"{}")

    return answer


@pytest.mark.parametrize("variable", ["LOUPE_API_KEY", "OPENAI_API_KEY"])
def test_a_run_is_named_by_the_model_of_a_server_that_wants_a_key(here: Path, variable: str) -> None:
    with in_thread("alpha", models=with_key("sk-mine")) as server:
        words = ("run", "mydocs", "--base-url", server.url)
        done = loupe(*words, cwd=here, env={variable: "sk-mine"})
        assert done.returncode == 0, done.stderr
        assert (here / "runs/keyed/mydocs/result.json").exists() and not (here / "runs/openai").exists()
        assert loupe(*words, cwd=here, env={variable: "sk-mine"}).returncode == 0
