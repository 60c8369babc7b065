"""SIGTERM, SIGHUP and a closed terminal end a run as Ctrl-C does: what is in flight is kept."""

import os
import pty
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.chat_server import ChatServer, Reply, in_thread
from tests.support.command_line import command, environment, make_folder


def begin(tmp_path: Path, url: str, **options: object) -> "subprocess.Popen[str]":
    make_folder(tmp_path)
    words = command(
        "run", "mydocs", "-e", "openai", "--base-url", url, "--model", "test-model", "-n", "2", "--timeout", "30"
    )
    return subprocess.Popen(words, cwd=tmp_path, env=environment(tmp_path), text=True, **options)  # type: ignore[call-overload]


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_asked(server: ChatServer, count: int = 2) -> Callable[[], bool]:
    return lambda: server.active >= count


def kept(tmp_path: Path) -> int:
    return sum(file.read_text().count('"class":"ok"') for file in tmp_path.glob("runs/*/*/predictions.jsonl"))


#: Presses Ctrl-C where a module is imported, from the first one of the command to those that it loads when it runs.
PRESSED = """
import os, signal, sys
module = sys.argv.pop()
press = lambda event, told: event == "import" and told[0] == module and os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(press)
from loupe.__main__ import main
sys.exit(main())
"""


def test_only_the_command_takes_ctrl_c_from_its_process() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        runpy.run_module("loupe.__main__", run_name="imported")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("module", ["loupe.python_process", "click", "loupe.results"])
def test_ctrl_c_while_the_command_is_loaded_is_one_word_and_130(module: str, tmp_path: Path) -> None:
    words = [sys.executable, "-c", PRESSED, "compare", "nowhere", module]
    done = subprocess.run(words, cwd=tmp_path, env=environment(tmp_path), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["int", "term", "hup"]
)
def test_a_signal_lets_what_is_in_flight_finish_and_says_how_to_go_on(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    with in_thread(Reply(text="read", delay=1.0)) as server:
        process = begin(tmp_path, server.url, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        until(is_asked(server))
        process.send_signal(number)
        if number != signal.SIGINT:
            process.send_signal(number)  # as `timeout` and closing terminals do: an echo is no second wish
        _, said = process.communicate(timeout=30)
    assert (process.returncode, kept(tmp_path)) == (code, 2)
    assert "stopped; 2 of 6 samples are read; to continue: loupe run mydocs" in said
    assert "Traceback" not in said


def test_what_was_ignored_at_the_start_stays_ignored(tmp_path: Path) -> None:
    with in_thread(Reply(text="read", delay=0.3)) as server:
        process = begin(
            tmp_path,
            server.url,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            preexec_fn=lambda: [signal.signal(each, signal.SIG_IGN) for each in (signal.SIGHUP, signal.SIGINT)],
        )
        until(is_asked(server))
        for number in (signal.SIGHUP, signal.SIGINT):
            process.send_signal(number)
        process.wait(30)
    assert (process.returncode, kept(tmp_path)) == (0, 6)


def begin_and_close_terminal(folder: Path, server: ChatServer) -> "subprocess.Popen[str]":
    leader, terminal = pty.openpty()
    process = begin(folder, server.url, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True)
    os.close(terminal)
    until(is_asked(server))
    os.close(leader)
    return process


def test_a_closed_terminal_loses_nothing(tmp_path: Path) -> None:
    with in_thread(Reply(text="read", delay=1.0)) as server:
        process = begin_and_close_terminal(tmp_path, server)
        process.send_signal(signal.SIGHUP)
        process.wait(30)
    assert (process.returncode, kept(tmp_path)) == (129, 2)


def test_a_terminal_that_goes_without_a_signal_does_not_end_the_run(tmp_path: Path) -> None:
    with in_thread(Reply(text="read", delay=0.5)) as server:
        process = begin_and_close_terminal(tmp_path, server)
        process.wait(60)
    assert (process.returncode, kept(tmp_path)) == (0, 6)


def test_ctrl_c_in_one_of_several_runs_says_which_one_and_that_it_is_not_scored(tmp_path: Path) -> None:
    make_folder(tmp_path, count=2)
    with in_thread(Reply(delay=0.5)) as server:
        words = command("run", "mydocs", "-e", "openai", "-e", "vlm", "--base-url", server.url, "-n", "2")
        process = subprocess.Popen(
            words, cwd=tmp_path, env=environment(tmp_path), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        until(is_asked(server))
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "run 1 of 2 stopped, 1 not begun; 2 of 2 samples are read, not scored yet; to continue: " in said
