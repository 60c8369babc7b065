"""Watches a process of Loupe from inside, by an audit hook, and writes down what a foreign folder must never cause.

It stands first on the path of every process that the harness starts, so that the workers of Loupe load it, too.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_LOOPBACK = ("127.", "::1", "localhost")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_DEVICES = ("/dev/null", "/dev/shm", "/proc/self/")


class Guard:
    """What is allowed below `world`, and where is noted what was not."""

    def __init__(self, log: str, world: str) -> None:
        self._log = os.path.realpath(log)
        self._world = os.path.realpath(world)
        self._canary = f"{self._world}/canary"

    def install(self) -> None:
        started = self._started
        watched: dict[str, Callable[..., None]] = {
            "subprocess.Popen": self._popen,
            "os.exec": lambda path, args, env: started(path, args),
            "os.posix_spawn": lambda path, args, env: started(path, args),
            "os.spawn": lambda mode, path, args, env: started(path, args),
            "os.system": lambda command: started("a shell", [command]),
            "pty.spawn": lambda args: started("a terminal", args),
            "os.fork": lambda: started("fork", []),
            "os.forkpty": lambda: started("forkpty", []),
            "ctypes.dlopen": self._library,
            "ctypes.dlsym": self._symbol,
            "ctypes.dlsym/handle": self._symbol,
            "socket.connect": lambda socket, address: self._connect(address),
            "socket.sendto": lambda socket, address: self._connect(address),
            "socket.getaddrinfo": lambda host, *_: self._connect((host,)),
            "import": self._module,
            "exec": self._code,
            "open": self._open,
            "os.rename": lambda old, new, old_fd, new_fd: (self._entry(old, old_fd), self._entry(new, new_fd)),
            "os.link": lambda old, new, old_fd, new_fd: self._entry(new, new_fd),
            "os.symlink": lambda old, new, fd: self._entry(new, fd),
            "os.remove": self._entry,
            "os.rmdir": self._entry,
            "os.mkdir": lambda path, mode, fd: self._entry(path, fd),
            "os.chmod": lambda path, mode, fd: self._entry(path, fd),
            "os.chown": lambda path, user, group, fd: self._entry(path, fd),
        }

        def hook(event: str, args: tuple[Any, ...]) -> None:
            if event in watched:
                watched[event](*args)

        sys.addaudithook(hook)

    def _note(self, kind: str, what: object) -> None:
        line = json.dumps({"kind": kind, "what": str(what)[:500], "pid": os.getpid()}) + "\n"
        file = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC)
        os.write(file, line.encode("utf-8", "replace"))
        os.close(file)

    def _started(self, program: object, args: object) -> None:
        self._note("process", f"{program} {args}")
        raise PermissionError(1, "no process is started here", str(program))

    def _popen(self, program: object, args: Any, cwd: object, env: object) -> None:
        """Workers of our own alone, which are watched in their turn, also where they ignore their environment."""
        words = [os.fsdecode(word) for word in args] if isinstance(args, list | tuple) else [os.fsdecode(args)]
        place = words.index("-c") + 1 if "-c" in words else 0
        if not (words[0] == sys.executable and place and "from loupe." in words[place]):
            self._started(program or words[0], words)
        flags = set(words[1 : place - 1])
        if not {"-P", "-I"} & flags:
            self._note("path", f"a worker has the working directory on its path: {words[:4]}")
        if {"-E", "-I"} & flags:
            args[place] = f"exec(open({__file__!r}).read(), {{'__file__': {__file__!r}}}); {words[place]}"

    def _library(self, name: object) -> None:
        if name and self._inside(os.fsdecode(name)):  # type: ignore[arg-type]
            self._note("import", f"the library {name!r}")

    def _symbol(self, _: object, name: object) -> None:
        if str(name) in ("system", "popen", "execve", "execv", "execvp", "posix_spawn", "fork"):
            self._note("process", f"the C function {name}")

    def _connect(self, address: object) -> None:
        host = address[0] if isinstance(address, tuple) and address else ""
        host = host.decode("ascii", "replace") if isinstance(host, bytes) else host
        if host and not str(host).startswith(_LOOPBACK):
            self._note("network", address)
            raise PermissionError(1, "no address but loopback", str(host))

    def _module(self, name: str, file: object, *_: object) -> None:
        if isinstance(file, str | bytes) and self._inside(os.fsdecode(file)):
            self._note("import", f"{name} from {os.fsdecode(file)!r}")

    def _code(self, code: Any) -> None:
        if self._inside(getattr(code, "co_filename", "<")):
            self._note("import", f"runs {code.co_filename!r}")

    def _inside(self, name: str) -> bool:
        if name.startswith("<"):
            return False
        path = os.path.realpath(name)
        return path.startswith(f"{self._world}/") and ("/" in name or Path(path).exists())

    def _open(self, path: object, mode: object, flags: object) -> None:
        writes = isinstance(flags, int) and flags & _WRITES
        # A relative name without a mode may belong to a directory descriptor, which the event does not tell.
        if writes and isinstance(path, str | bytes) and (mode is not None or os.fsdecode(path).startswith("/")):
            self._write(os.path.realpath(os.fsdecode(path)), path)

    def _entry(self, path: object, descriptor: int = -1) -> None:
        if descriptor != -1 or not isinstance(path, str | bytes):
            return
        folder, _, name = os.path.abspath(os.fsdecode(path)).rpartition("/")  # noqa: PTH100  the last name may be a link
        self._write(f"{os.path.realpath(folder or '/')}/{name}", path)

    def _write(self, real: str, path: object) -> None:
        below = real == self._world or real.startswith(f"{self._world}/")
        if below and not real.startswith(f"{self._canary}"):
            return
        if real == self._log or real.startswith(_DEVICES) or (not below and "/__pycache__" in real):
            return
        self._note("write", f"{path!r} is {real}")
        if not below:
            raise PermissionError(13, "outside of the world of this case", os.fsdecode(path))  # type: ignore[arg-type]


if "OMP_HOSTILE_LOG" in os.environ:
    Guard(*(os.environ[f"OMP_HOSTILE_{name}"] for name in ("LOG", "WORLD"))).install()
