"""Connecting to Ray: a running cluster, else one of this machine, with the doors closed that can be closed.

Ray runs whatever its driver sends (docs/security.md), so what is sent, and who may send, is decided here.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from loupe.data.extras import need
from loupe.errors import EngineUnavailableError, UsageError
from loupe.files.scratch import scratch_folder
from loupe.helpers import call_nobody, for_children

#: What `--on` takes: a cluster that is found, or the address of one that clients may use.
RAY, CLIENT = "ray", "ray://"
#: Bytes of a local cluster's object store: pages in flight are few, and what does not fit goes to disk.
_STORE = 512 << 20
_SECONDS_TO_REACH = 30.0
#: Where a local cluster has its sockets, whose paths may have no more than some hundred characters.
_SHORT = Path("/tmp")
#: `uv run` uploads no working folder.
_SETTINGS = {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    # A call after the connection is lost must not join, or start, another cluster.
    "RAY_ENABLE_AUTO_CONNECT": "0",
}


def check_address(address: str) -> None:
    """Raise UsageError for an address that is none, MissingToolError without the extra."""
    if address != RAY and not (address.startswith(CLIENT) and len(address) > len(CLIENT)):
        raise UsageError(f"--on {address}: unknown", hint=f"use --on {RAY}, or --on {CLIENT}HEAD:10001")
    need("ray", extra="ray", purpose=f"--on {RAY}")
    if address != RAY:
        need("grpc", extra="ray", purpose=f"--on {CLIENT}… (Ray's client, ray[client])")


def connect(address: str, passed: Collection[str] = ()) -> tuple[Any, bool]:
    """The module `ray`, connected, and whether the cluster was started here. Leaving the process disconnects.

    A cluster that is started here gets the variables named in `passed`, and no other keys.

    Called in the main thread before anything else runs: the working folder and the mask of new files are those of the
    whole process. Raises EngineUnavailableError where no cluster answers.
    """
    call_nobody("RAY_")
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    with _away_from_here(), _own_signals():
        import ray

        logging.getLogger("ray").setLevel(logging.CRITICAL)
        _hush()
        if not ray.is_initialized():
            started = _start_or_join(ray, address, passed)
            atexit.register(ray.shutdown)
        else:  # The caller of a Python program has connected before.
            started = False
    return ray, started


def _start_or_join(ray: Any, address: str, passed: Collection[str]) -> bool:
    named = address if address != RAY else os.environ.get("RAY_ADDRESS", "")
    quiet = {"log_to_driver": False, "configure_logging": False}
    try:
        if named not in ("", "auto", "local"):
            _reach(named)
            ray.init(address=named, **quiet)
            return False
        if named != "local":
            with suppress(ConnectionError):
                ray.init(address="auto", **quiet)
                return False
        # What any engine may need: each gets its own part of this on its node.
        with _listed(for_children("ray", "servers", "own", "desktop", passed=passed)):
            _start(ray, quiet)
        return True
    except Exception as error:  # noqa: BLE001  Ray raises anything, and a plain Exception where a start takes too long
        said = " ".join(str(error).split())[:200]
        where = f"the Ray cluster at {named}" if named else "a Ray cluster on this machine"
        raise EngineUnavailableError(
            f"{where} cannot be used: {said}", hint="ray status, or unset RAY_ADDRESS for a cluster of this machine"
        ) from None


def _reach(address: str) -> None:
    """Raise OSError if nothing listens at HOST:PORT: Ray would try for many minutes, and write into the display."""
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if host and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS_TO_REACH).close()


def _start(ray: Any, quiet: dict[str, bool]) -> None:
    """A cluster of this machine alone, which ends with this process.

    Its ports are open to the network (Ray has no way to close them), so it takes orders only with a token, which is
    Ray's default from 2.60 on. Its folder is private and goes with the process.
    """
    stack = ExitStack()
    folder = stack.enter_context(scratch_folder("loupe-ray-", _SHORT if _SHORT.is_dir() else None))
    atexit.register(stack.close)
    ray.init(address="local", include_dashboard=False, object_store_memory=_STORE, _temp_dir=str(folder), **quiet)


@contextmanager
def _listed(variables: Mapping[str, str]) -> Iterator[None]:
    """Give the processes that Ray starts meanwhile these variables, and no others that are set now.

    Its dashboard, which runs even where it is off, asks cloud metadata servers where it runs, to report it, but does
    not look first whether reports are off. There is no switch but a proxy.
    """
    from ray._private import services

    start, before = services.start_ray_process, dict(os.environ)
    without = [word for name in before if name not in variables for word in ("-u", name)]
    other = {name: value for name, value in variables.items() if before.get(name) != value}
    nowhere = dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"), "http://127.0.0.1:0")
    dashboard = {**nowhere, "NO_PROXY": "", "no_proxy": ""}

    def started(command: list[str], process_type: str, *rest: Any, **more: Any) -> Any:
        added = {**other, **(more.get("env_updates") or {}), **(dashboard if process_type == "dashboard" else {})}
        words = ["/usr/bin/env", *without, *command]
        return start(words, process_type, *rest, **{**more, "env_updates": added})

    services.start_ray_process = started
    try:
        yield
    finally:
        services.start_ray_process = start


@contextmanager
def _away_from_here() -> Iterator[None]:
    """From a folder that belongs to nobody: Ray has its workers import from the driver's working folder first."""
    before, mask = Path.cwd(), os.umask(0o077)
    path = list(sys.path)
    os.chdir("/")
    try:
        yield
    finally:
        os.chdir(before)
        os.umask(mask)
        # Ray adds places of its own packages.
        sys.path[:] = [*path, *(entry for entry in sys.path if entry not in path)]


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself; here it means to stop well."""
    ours = {}
    if threading.current_thread() is threading.main_thread():
        ours = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)


def _hush() -> None:
    """Silence Ray about its nodes, of which we speak: it would write into the live display, from other machines.

    And it learns no command line, which it would show to all who see the cluster: an API key may stand there.
    """
    with suppress(ImportError, AttributeError):
        import ray._private.utils
        import ray._private.worker

        ray._private.worker._worker_logs_enabled = False
        ray._private.utils.get_entrypoint_name = lambda: "loupe"
