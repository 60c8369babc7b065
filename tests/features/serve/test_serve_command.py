"""`loupe serve` as a user starts it."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

from loupe.engines.registry import load_profile
from loupe.servers.wanted import wanted_server
from tests.support.command_line import command, complaint, environment, loupe, make_folder


def test_serve_answers_until_it_is_told_to_end(tmp_path: Path) -> None:
    make_folder(tmp_path)
    process = subprocess.Popen(
        command("serve", "python:reader.py:right", "--port", "0"),
        cwd=tmp_path,
        env=environment(tmp_path),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            with urllib.request.urlopen(f"{url}/models", timeout=20) as answer:
                assert json.load(answer)["data"][0]["id"] == "python-reader.py_right"
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode == 0


def test_serve_says_where_a_port_is_taken(tmp_path: Path) -> None:
    make_folder(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = loupe("serve", "python:reader.py:right", "--port", port, cwd=tmp_path)
    assert (done.returncode, complaint(done)[1]) == (2, "choose another port: --port 0")


def test_a_run_with_a_server_of_ours_is_signed_so() -> None:
    wanted = wanted_server(load_profile("openai", {"serve": "loupe:rapidocr"})[1])
    assert wanted is not None and wanted.signature == {"server": "loupe"}
