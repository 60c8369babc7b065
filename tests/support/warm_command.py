"""The command in processes forked from one that has imported its modules: start-up is paid once, not 2,000 times.

Each command is a process of its own, with its own working folder, environment, standard streams and exit code. What
only a fresh interpreter shows (its start, its imports, variables that it reads) is tested with `python -m loupe`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from typing import NoReturn

#: Variables that count when an interpreter starts.
OF_THE_INTERPRETER = ("PYTHON", "LC_", "LANG", "MALLOC", "LD_")
#: Packages whose modules most commands import, from the root on.
_IMPORTED = (
    "cli",
    "pipeline",
    "results",
    "stats",
    "report",
    "benchmarks",
    "inference",
    "scoring",
    "data",
    "runs",
    "metrics",
)
_lock = threading.Lock()
_mother: tuple[subprocess.Popen[bytes], socket.socket] | None = None


def interpreter_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that a fork cannot change any more."""
    return {key: value for key, value in environment.items() if key.startswith(OF_THE_INTERPRETER)}


def run(
    arguments: list[str], *, cwd: str, environment: dict[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run `loupe ARGUMENTS` to its end, as `subprocess.run(capture_output=True, text=True)` does.

    Raises `subprocess.TimeoutExpired` after `timeout` seconds.
    """
    message = json.dumps([arguments, cwd, environment], ensure_ascii=True).encode()
    pipes = [os.pipe() for _ in range(3)]
    with contextlib.ExitStack() as ends:
        out, err, state = (ends.enter_context(os.fdopen(read, "rb")) for read, _ in pipes)
        try:
            with _lock:
                connection = _mother_socket()
                socket.send_fds(connection, [len(message).to_bytes(4, "little")], [write for _, write in pipes])
                connection.sendall(message)
        finally:
            for _, write in pipes:
                os.close(write)
        pid = int(state.readline())
        late = threading.Timer(timeout, _kill, [pid])
        late.start()
        found: list[bytes] = []
        reader = threading.Thread(target=lambda: found.append(err.read()))
        reader.start()
        printed = out.read()
        reader.join()
        status = state.readline()
        late.cancel()
    words = ["loupe", *arguments]
    if late.finished.is_set() and int(status or -9) == -signal.SIGKILL:
        raise subprocess.TimeoutExpired(words, timeout, printed, found[0])
    return subprocess.CompletedProcess(words, int(status), _text(printed), _text(found[0]))


def _text(printed: bytes) -> str:
    return printed.decode().replace("\r\n", "\n").replace("\r", "\n")


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _mother_socket() -> socket.socket:
    """The connection to the process that forks; it is started by the first command of this process."""
    global _mother
    if _mother is None:
        ours, hers = socket.socketpair()
        # -P: nothing is imported from this folder. Pipes, as those of a command: its streams are made when this starts.
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(hers.fileno())],
            pass_fds=[hers.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            # Without the mark of the test that happens to start it: it outlives that test.
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_LOUPE_TEST_MARK": ""},
        )  # fmt: skip
        hers.close()
        _mother = process, ours
        atexit.register(_end)
    return _mother[1]


def _end() -> None:
    if _mother is not None:
        _mother[1].close()
        _mother[0].wait()


def _import_all() -> None:
    """Import what commands import; a module whose extra is missing here stays out."""
    import loupe

    for package in _IMPORTED:
        for module in pkgutil.walk_packages([f"{loupe.__path__[0]}/{package}"], f"loupe.{package}."):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


def _serve(connection: socket.socket) -> list[str]:
    """Fork for each request until the connection ends; returns in a forked command, with its arguments."""
    while True:
        size, descriptors, _, _ = socket.recv_fds(connection, 4, 3)
        if not size:
            os._exit(0)
        message = bytearray()
        while len(message) < int.from_bytes(size, "little"):
            message += connection.recv(1 << 20)
        if os.fork() == 0:
            connection.close()
            arguments, folder, environment = json.loads(message)
            if (pid := os.fork()) == 0:
                return _become(arguments, folder, environment, descriptors)
            _tell_end(pid, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _tell_end(pid: int, descriptors: list[int]) -> NoReturn:
    """Say who runs the command, and how it ended; a fork has one parent to wait for it, and that is not the test."""
    for descriptor in descriptors[:2]:
        os.close(descriptor)
    os.write(descriptors[2], b"%d\n" % pid)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(descriptors[2], b"%d\n" % status)
    os._exit(0)


def _become(arguments: list[str], folder: str, environment: dict[str, str], descriptors: list[int]) -> list[str]:
    for stream, descriptor in enumerate(descriptors[:2], start=1):
        os.dup2(descriptor, stream)
    for descriptor in descriptors:
        os.close(descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    return arguments


if __name__ == "__main__":
    _import_all()
    gc.collect()
    gc.freeze()
    sys.argv = ["loupe", *_serve(socket.socket(fileno=int(sys.argv[1])))]
    from loupe.__main__ import main

    code = main()
    threading._shutdown()  # type: ignore[attr-defined]  # what an interpreter does at its end, without taking it apart
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
