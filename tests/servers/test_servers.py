"""The life of a managed server, with real processes: start, crash, hang, restart, stop, and what is left over: nothing.

Rules: docs/protocols/engines.md#servers.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from loupe.errors import EngineUnavailableError, UsageError
from loupe.inference.progress import Progress
from loupe.pipeline import infer
from loupe.servers.keeper import Keeper
from loupe.servers.processes import find
from loupe.servers.record import ServerRecord, left_over
from loupe.servers.server_probes import free_port
from tests.support.command_line import command, complaint, environment, loupe, needs, trusted
from tests.support.served import (
    QUICK,
    TEST_MARK,
    make_benchmark,
    make_plan,
    outcomes,
    ports_in_use,
    read_with,
    record_of,
    started_by_test,
    wait_for,
)

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are counted through /proc"),
    needs("serve"),
]


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After every test: no process of it, no port."""
    mark = secrets.token_hex(8)
    monkeypatch.setenv(TEST_MARK, mark)
    yield
    left, ports = started_by_test(mark), ports_in_use(tmp_path)
    for process in left:
        os.kill(process.pid, signal.SIGKILL)
    assert (left, ports) == ([], [])


# ---- crash and hang


def test_a_server_that_dies_is_started_again_and_only_the_page_that_kills_it_is_lost(tmp_path: Path) -> None:
    words = ["a", "b", "crash-once", "c", "poison", "d", "e", "f"]
    folder = read_with(make_plan(tmp_path, words))
    found = outcomes(folder)
    assert {word: each.outcome for word, each in found.items() if each.outcome != "ok"} == {"poison": "error"}
    assert "died 2 times" in found["poison"].error
    assert [found[word].text for word in words if word != "poison"] == [f"read {w}" for w in words if w != "poison"]
    starts = (folder.path / "server.log").read_text().count("loupe starts: python -P -m loupe serve")
    assert record_of(folder.path).restarts == starts - 1 >= 1


def test_a_server_that_answers_nobody_any_more_is_started_again(tmp_path: Path) -> None:
    folder = read_with(make_plan(tmp_path, ["a", "hang-once", "b"], timeout=4.0))
    assert {word: each.text for word, each in outcomes(folder).items()} == {
        word: f"read {word}" for word in ("a", "hang-once", "b")
    }
    assert record_of(folder.path).restarts >= 1


def test_out_of_memory_ends_the_run_with_the_line_of_the_log_and_no_restart(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailableError, match=r"died: torch\.OutOfMemoryError: CUDA out of memory") as caught:
        read_with(make_plan(tmp_path, ["a", "out-of-memory"]))
    assert caught.value.hint.startswith("less memory: --server-arg=")
    assert record_of(tmp_path / "runs/served/words").restarts == 0


# ---- start


def test_memory_that_is_not_enough_to_start_is_one_line_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "memory").touch()
    with pytest.raises(EngineUnavailableError, match=r"did not start: .*CUDA out of memory") as caught:
        read_with(make_plan(tmp_path, ["a"]))
    assert "\n" not in caught.value.message and caught.value.hint.startswith("less memory")


def test_a_start_that_fails_for_a_reason_of_its_own_names_the_log_and_pass_env(tmp_path: Path) -> None:
    (tmp_path / "variable").touch()
    with pytest.raises(EngineUnavailableError, match=r"did not start: .*MY_SETTING") as caught:
        read_with(make_plan(tmp_path, ["a"]))
    assert caught.value.hint.startswith("read its log: less ") and "pass_env" in caught.value.hint


def test_a_slow_start_is_waited_for_but_not_for_ever(tmp_path: Path) -> None:
    (tmp_path / "wait").touch()
    with pytest.raises(EngineUnavailableError, match=r"was not ready within 0\.3 s") as caught:
        read_with(make_plan(tmp_path, ["a"], startup_timeout=0.3))
    assert "--startup-timeout" in caught.value.hint and "server.log" in caught.value.hint
    plan, progress = make_plan(tmp_path, ["a", "child"]), Progress()

    async def run() -> None:
        with Keeper(QUICK) as keeper:
            reading = asyncio.create_task(infer(plan, progress, keeper=keeper))
            await asyncio.to_thread(wait_for, lambda: progress.note.startswith("starting loupe serve"))
            (tmp_path / "wait").unlink()
            await reading
            assert find(int((tmp_path / "child").read_text())) is not None

    asyncio.run(run())
    # A process that left the server's group and ignores SIGTERM has gone with it.
    assert find(int((tmp_path / "child").read_text())) is None
    assert record_of(plan.path).startup_seconds > 0


def test_interrupted_while_it_waits_for_the_server_it_stops_at_once(tmp_path: Path) -> None:
    (tmp_path / "wait").touch()
    plan, progress = make_plan(tmp_path, ["a"]), Progress()

    async def run() -> None:
        with Keeper(QUICK) as keeper:
            reading = asyncio.create_task(infer(plan, progress, keeper=keeper))
            await asyncio.to_thread(wait_for, lambda: progress.note.startswith("starting"))
            progress.request_stop()
            await asyncio.wait({reading})
            assert reading.cancelled()

    asyncio.run(run())


# ---- ports and reuse


def test_a_port_that_somebody_else_has_is_refused_by_name(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        with pytest.raises(UsageError, match=rf"port {port} is taken by .* \(process {os.getpid()}\)") as caught:
            read_with(make_plan(tmp_path, ["a"], server_port=port))
    assert caught.value.hint == "choose another port: --server-port auto, or --server-port N"
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_running_server_is_used_by_the_next_run_and_by_others_who_leave_it_alone(tmp_path: Path) -> None:
    port = free_port()
    with Keeper(QUICK) as keeper:
        first = read_with(make_plan(tmp_path, ["a"], server_port=port), keeper=keeper)
        second = read_with(make_plan(tmp_path, ["a"], name="second", server_port=port), keeper=keeper)
        other = read_with(make_plan(tmp_path, ["a"], name="other", server_port=port))
        records = [record_of(folder.path) for folder in (first, second, other)]
        assert [record.origin for record in records] == ["started", "started", "external"]
        assert records[0].pid == records[1].pid and find(records[0].pid) is not None
        assert records[1].log == "../../served/words/server.log"
        assert other.info.facts["server_origin"] == "external" and "running already" in other.info.notes[0]
        assert first.info.facts["server_version"] and "server_command" in first.info.facts
        with pytest.raises(UsageError, match=rf"port {port} is taken by python.*which serves python:"):
            read_with(make_plan(tmp_path, ["a"], name="third", server_port=port, model="another"))
        # Another server takes the place of the first, and its port.
        next_one = read_with(
            make_plan(tmp_path, ["a"], name="next", server_port=port, server_args=["--timeout=9"]), keeper=keeper
        )
        assert find(records[0].pid) is None and record_of(next_one.path).origin == "started"
    assert [record_of(folder.path).state for folder in (first, second)] == ["stopped", "stopped"]


# ---- Loupe killed, Loupe interrupted


def start_loupe(folder: Path, *, program: str = "") -> subprocess.Popen[str]:
    """`loupe infer` of three words in a process of its own; returns while the first is held by the server."""
    make_benchmark(folder, ["hold", "b", "c"])
    profile = {"kind": "openai", "serve": f"loupe:python:{folder / 'faulty.py'}:read", "server_port": "auto"}
    lines = [f"{key} = {json.dumps(value)}" for key, value in {**profile, "server_program": program}.items()]
    (folder / "loupe.toml").write_text("\n".join(["[engines.served]", "concurrency = 1", *lines]))
    trusted(folder / "loupe.toml")
    words = command("infer", "./words.py", "-e", "served", "--plain")
    process = subprocess.Popen(words, cwd=folder, env=environment(folder), stderr=subprocess.PIPE, text=True)
    wait_for(lambda: (folder / "holding").exists() or process.poll() is not None)
    assert process.poll() is None, process.communicate()[1]
    return process


def kill_loupe(folder: Path, *, program: str = "") -> ServerRecord:
    """Kill a `loupe infer` with SIGKILL while its server holds a page; returns what it knew of the server."""
    with start_loupe(folder, program=program) as process:
        process.kill()
        process.communicate()
    return record_of(folder / "runs/served/words")


def test_a_killed_loupe_takes_its_server_with_it(tmp_path: Path) -> None:
    kill_loupe(tmp_path)
    wait_for(lambda: not started_by_test(os.environ[TEST_MARK]))


def test_a_server_that_outlived_a_killed_loupe_is_found_used_again_and_stopped(tmp_path: Path) -> None:
    stubborn = str(tmp_path / "stubborn")
    survivor = kill_loupe(tmp_path, program=stubborn)
    assert survivor.is_left_over() and find(survivor.pid) is not None
    (tmp_path / "go").touch()
    folder = read_with(make_plan(tmp_path, ["hold", "b", "c"], server_program=stubborn))
    assert [each.outcome for each in outcomes(folder).values()] == ["ok"] * 3
    record = record_of(folder.path)
    assert (record.origin, record.pid, record.state) == ("left over", survivor.pid, "stopped")


def test_a_server_that_outlived_a_killed_loupe_is_stopped_before_another_one_starts(tmp_path: Path) -> None:
    survivor = kill_loupe(tmp_path, program=str(tmp_path / "stubborn"))
    folder = read_with(make_plan(tmp_path, ["a"], name="others", server_args=["--timeout=50"]))
    assert find(survivor.pid) is None and record_of(folder.path).origin == "started"
    assert list(left_over(tmp_path / "runs")) == []


def test_one_ctrl_c_finishes_what_is_in_flight_and_stops_the_server(tmp_path: Path) -> None:
    with start_loupe(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.readline()
        (tmp_path / "go").touch()
        said += process.communicate(timeout=60)[1]
    assert process.returncode == 130 and said.startswith("finishing 1 in flight; again to stop now\n")
    assert "stopped; 1 of 3 samples are read" in said and "Traceback" not in said
    assert record_of(tmp_path / "runs/served/words").state == "stopped"


def test_a_second_ctrl_c_kills_the_server_that_would_not_listen(tmp_path: Path) -> None:
    with start_loupe(tmp_path, program=str(tmp_path / "stubborn")) as process:
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        # Politeness would take half a minute.
        said += process.communicate(timeout=25)[1]
    assert process.returncode == 130 and "stopping now\n" in said and "Traceback" not in said


# ---- command lines


def test_a_program_that_is_not_installed_is_one_line_with_what_brings_it(tmp_path: Path) -> None:
    make_benchmark(tmp_path, ["a"])
    (tmp_path / "bin").mkdir()
    done = loupe("infer", "./words.py", "--serve", "vllm:some/model", cwd=tmp_path, env={"PATH": str(tmp_path / "bin")})
    message, hint = complaint(done)
    assert message == "vLLM is not installed: no program 'vllm'" and hint.startswith("install it: pip install vllm")
    assert done.returncode == 4 and list((tmp_path / "runs").iterdir()) == []
