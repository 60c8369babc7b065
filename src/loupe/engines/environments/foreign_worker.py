"""Runs in an engine's own environment: loads a reader, then reads one page after the other. It knows nothing of Loupe.

Only the standard library, Python 3.9 or newer. docs/engines/environments.md describes the frames and what a reader is.
Frames travel on a socket of their own, so packages may print what they like. When it ends, so does this process.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import ipaddress
import json
import os
import platform
import queue
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

HEAD = struct.Struct("!Q")
#: A longer message than this is none of Loupe's, in bytes.
LARGEST = 64 * 10**6
#: What `outcome` of an exception may say of its page, and the word that goes back for it.
OUTCOMES = ("rejected", "transient", "busy", "unavailable", "timeout", "usage")
refused: list[str] = []
#: Not empty once memory has run out: another process reads the next page.
exhausted: list[bool] = []


def main(descriptor: int) -> None:
    """Load, then answer until the other side closes the connection."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    os.set_inheritable(descriptor, False)
    die_with_parent()
    connection = socket.socket(fileno=descriptor)
    inbox: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=receive, args=(connection.makefile("rb"), inbox), daemon=True).start()
    start = json.loads(inbox.get())
    limit_memory(start["memory"])
    if not start["download"]:
        close_network(start["hosts"])
    try:
        loaded = load(start["reader"], start["options"])
    except (Exception, SystemExit) as error:  # noqa: BLE001  the border to somebody else's code
        failed = described(error, start)
        connection.sendall(framed({**failed, "error": "the engine cannot be loaded: " + failed["error"]}))
        return
    close_network(start["hosts"])
    read, told = loaded if isinstance(loaded, tuple) else (loaded, {})
    connection.sendall(framed({"facts": {**facts(start["packages"]), **told}}))
    process = os.getpid()
    while True:
        page = SimpleNamespace(**json.loads(inbox.get()))
        connection.sendall(HEAD.pack(0))  # taken: from here on, a death is the fault of this page
        answer = answered(read, page, start)
        if os.getpid() != process:
            os._exit(0)  # a reader that forked: only one of the two may answer
        connection.sendall(answer)
        if exhausted:
            os._exit(0)


def load(path: str, options: dict[str, Any]) -> Any:
    """The function that the reader's `load(options)` returns, or the function with facts for run.json."""
    spec = importlib.util.spec_from_file_location("loupe_reader", path)
    if spec is None or spec.loader is None:
        raise ImportError(path + " is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules["loupe_reader"] = module
    # Nothing is written beside a file of the user's.
    sys.dont_write_bytecode, usual = True, sys.dont_write_bytecode
    spec.loader.exec_module(module)
    sys.dont_write_bytecode = usual
    return module.load(options)


def facts(packages: list[str]) -> dict[str, str]:
    """Return what is recorded of the environment; a run is continued with the same only."""
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in packages}}


def answered(read: Callable[[Any], Any], page: Any, start: dict[str, Any]) -> bytes:
    """The frame that answers one page: what was read, or what went wrong."""
    del refused[:]
    try:
        found = read(page)
        return framed(found if isinstance(found, dict) else {"pages" if isinstance(found, list) else "text": found})
    except (Exception, SystemExit) as error:  # noqa: BLE001  the border to somebody else's code
        return framed(described(error, start))


def plain_number(value: Any) -> Any:
    """Numbers and lists of NumPy and of others like it."""
    return value.tolist() if hasattr(value, "tolist") else value.item()


def described(error: BaseException, start: dict[str, Any]) -> dict[str, Any]:
    """An exception as it is sent: in one line, with its place in the reader."""
    if isinstance(error, MemoryError):
        exhausted.append(True)
        has = f"{start['memory'] / 1e9:.3g} GB of memory" if start["memory"] else "the memory that there is"
        return {"error": f"the page needs more than {has}"}
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == start["reader"]]
    place = "".join(f"{os.path.basename(frame.filename)}:{frame.lineno}: " for frame in frames[-1:])  # noqa: PTH119
    message = f"{type(error).__name__}: {error}".rstrip(": ")
    outcome = getattr(error, "outcome", "")
    told = outcome if outcome in OUTCOMES else ""
    if told:
        place, message = "", str(error)
    if refused:
        message += f" (it wanted to reach {refused[0]}, which Loupe does not let it)"
        told = told or ("unavailable" if start["strict_network"] else "")
    return {"error": " ".join((place + message).split())[:2000] or "unknown", "outcome": told}


def framed(message: dict[str, Any]) -> bytes:
    """A message as it travels; JSON in ASCII, so that no half character breaks it."""
    data = json.dumps(message, default=plain_number).encode("ascii")
    return HEAD.pack(len(data)) + data


def receive(stream: Any, inbox: queue.SimpleQueue[bytes]) -> None:
    """Take every message at once; end this process, whatever it does, when there is nobody left to answer."""
    while True:
        head = stream.read(HEAD.size)
        size = HEAD.unpack(head)[0] if len(head) == HEAD.size else LARGEST + 1
        message = stream.read(size) if size <= LARGEST else b""
        if size > LARGEST or len(message) < size:
            os._exit(0)
        inbox.put(message)


def die_with_parent() -> None:
    """Ask Linux for a kill when the parent dies: what is stuck in C code would not notice."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def limit_memory(limit: int | None) -> None:
    """Refuse this process, and what it starts, more memory than this, in bytes. Only Linux enforces it."""
    if limit:
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = [value for value in (limit, soft, hard) if value != resource.RLIM_INFINITY]
        resource.setrlimit(resource.RLIMIT_DATA, (min(wanted), hard))


def is_here(name: str) -> bool:
    """True if a name or an address is this machine's own."""
    try:
        return ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return name in ("localhost", "")


def close_network(hosts: list[str]) -> None:
    """From here on, Python code of this process reaches this machine and `hosts` only (`*.example.org` too)."""
    if hasattr(socket, "loupe_closed"):
        return
    socket.loupe_closed = True  # type: ignore[attr-defined]
    resolve = socket.getaddrinfo
    addresses: set[str] = set()

    def check(host: Any) -> None:
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "")
        allowed = any(name == each or (each[:1] == "*" and name.endswith(each[1:])) for each in hosts)
        if not (allowed or name in addresses or is_here(name)):
            refused.append("the network" if name.endswith(".invalid") else name)
            raise ConnectionRefusedError("Loupe does not let this package reach " + name)

    def getaddrinfo(host: Any, *rest: Any, **more: Any) -> Any:
        check(host)
        found = resolve(host, *rest, **more)
        addresses.update(str(each[4][0]) for each in found)
        return found

    def guarded(connect: Callable[..., Any]) -> Callable[..., Any]:
        def checked(this: socket.socket, address: Any) -> Any:
            if isinstance(address, tuple) and address:
                check(address[0])
            return connect(this, address)

        return checked

    socket.getaddrinfo = getaddrinfo
    for name in ("connect", "connect_ex"):
        setattr(socket.socket, name, guarded(getattr(socket.socket, name)))


if __name__ == "__main__":
    main(int(sys.argv[1]))
