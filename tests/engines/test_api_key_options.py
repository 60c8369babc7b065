"""Where a key comes from: a file, standard input, or, with a warning, the command line."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from loupe.cli.shared.top import root
from tests.support.chat_server import in_thread
from tests.support.command_line import command, environment, every_command, installed, loupe, make_folder, needs

KEY = "sk-mine-0123456789"
EVERYWHERE = ("run", "infer", "load", "embed", "compress", "select", "serve", "engine test")


def test_every_command_that_takes_a_key_takes_it_from_a_file_and_hands_it_to_nobody() -> None:
    found = {
        name: [p for p in each.params if p.name in ("api_key", "api_key_file")] for name, each in every_command(root)
    }
    having = {name: options for name, options in found.items() if options}
    assert {" ".join(words) for words in installed(tuple(name.split()) for name in EVERYWHERE)} <= having.keys()
    for options in having.values():
        assert len(options) == 2 and not any(option.expose_value for option in options)


def read_with_key(here: Path, *words: str, stdin: str = "", env: dict[str, str] | None = None) -> tuple[Any, set[str]]:
    """`loupe run` with these words, and the keys that the server got."""
    with in_thread("alpha") as server:
        done = subprocess.run(
            command("run", "mydocs", "--base-url", server.url, "--limit", "1", *words),
            cwd=here,
            env=environment(here, env),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done, {request.headers["authorization"] for request in server.requests}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    make_folder(tmp_path)
    (tmp_path / "key").write_text(f"{KEY}\n")
    (tmp_path / "key").chmod(0o600)
    return tmp_path


def assert_nowhere(here: Path, done: Any) -> None:
    files = [path.read_bytes() for path in (here / "runs").rglob("*") if path.is_file()]
    assert files and not any(KEY.encode() in each for each in (*files, done.stdout.encode(), done.stderr.encode()))


def test_a_key_in_a_file_is_sent_without_its_line_end_and_stands_nowhere(here: Path) -> None:
    done, keys = read_with_key(here, "--api-key-file", "key", env={"OPENAI_API_KEY": "sk-other"})
    assert (done.returncode, keys) == (0, {f"Bearer {KEY}"})
    assert "other users" not in done.stderr
    assert_nowhere(here, done)


def test_a_key_on_standard_input_is_its_first_line(here: Path) -> None:
    done, keys = read_with_key(here, "--api-key-file", "-", stdin=f"{KEY}\r\nanother line\n")
    assert (done.returncode, keys) == (0, {f"Bearer {KEY}"})
    assert_nowhere(here, done)


def test_a_key_file_that_others_can_read_is_used_with_a_warning(here: Path) -> None:
    (here / "key").chmod(0o640)
    done, keys = read_with_key(here, "--api-key-file", "key")
    assert keys == {f"Bearer {KEY}"}
    assert "key can be read by other users of this machine; chmod 600 keeps the key to you\n" in done.stderr


def test_a_key_on_the_command_line_is_used_with_a_warning(here: Path) -> None:
    done, keys = read_with_key(here, "--api-key", KEY)
    assert keys == {f"Bearer {KEY}"}
    warning = (
        "--api-key shows the key to other users of this machine (ps); --api-key-file FILE and LOUPE_API_KEY do not"
    )
    assert done.stderr.count(warning) == 1
    assert_nowhere(here, done)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "key: no API key there"),
        (b" \r\n", "key: no API key there"),
        (b"sk-1\nsk-2\n", "key: not an API key"),
        (b"\xff\xfe\x00", "key: not an API key"),
        (None, "--api-key-file key: no such file or directory"),
    ],
)
def test_a_file_without_a_key_is_refused(here: Path, content: bytes | None, message: str) -> None:
    (here / "key").unlink()
    if content is not None:
        (here / "key").write_bytes(content)
        (here / "key").chmod(0o600)
    done = loupe("run", "mydocs", "--base-url", "http://127.0.0.1:9/v1", "--api-key-file", "key", cwd=here)
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, f"error: {message}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--api-key", "-"), "--api-key -: standard input is a file here"),
        (("--api-key", ""), "--api-key: no API key there"),
        (("--api-key-file", "key", "--api-key", "x"), "--api-key and --api-key-file cannot be combined"),
    ],
)
def test_a_key_given_wrongly_is_refused(here: Path, words: tuple[str, ...], message: str) -> None:
    done = loupe("engine", "test", "openai", *words, cwd=here)
    assert done.returncode == 2 and f"error: {message}" in done.stderr.splitlines()


@needs("serve")
def test_serve_warns_too(here: Path) -> None:
    done = loupe("serve", "stop", "--api-key", KEY, cwd=here)
    assert "--api-key-file FILE and LOUPE_SERVE_API_KEY do not" in done.stderr
