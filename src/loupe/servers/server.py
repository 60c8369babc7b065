"""One model server: started, watched, started again, stopped; or one that runs already, and is left alone.

Source: docs/protocols/engines.md#server-start to #server-stop.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from loupe.data.user_folders import cache_folder
from loupe.engines.chat.discovery import as_found
from loupe.errors import EngineUnavailableError
from loupe.files.folder import Folder
from loupe.files.scratch import lent_folder, take_back
from loupe.helpers import PASS_ON
from loupe.servers import log as server_log
from loupe.servers.processes import MARK, USUAL, Patience, Watch, boot, family, find, still_held, stop_processes
from loupe.servers.record import ServerRecord, owner, write_record
from loupe.servers.server_probes import HOST, Verdict, is_free, is_refused, listener, talk_to
from loupe.servers.wanted import Wanted

LOG = "server.log"
#: Asks Linux for a SIGTERM when Loupe dies, so that even `kill -9` ends the server, then becomes the server.
_LAUNCH = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); "
    "os.getppid() == int(sys.argv[1]) and os.execv(sys.argv[2], sys.argv[2:])"
)
_FIRST_POLL = 0.1


class Server:
    """A server on a port of this machine. `record` is what `server.json` of each of its runs says.

    Made by `Keeper`. Processes are started in the thread that calls `start`, which must live as long as they: Linux
    ends them with it.
    """

    def __init__(
        self, wanted: Wanted, record: ServerRecord, *, folder: Folder, key: str, patience: Patience = USUAL
    ) -> None:
        self.wanted = wanted
        self.record = record
        self._folders = [folder]
        self.key = key
        self.patience = patience
        self._log_folder = _log_folder(folder, record.log)
        self._log = self._log_folder.path / LOG
        self._log_start = server_log.size(self._log)
        self._child: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None

    @property
    def external(self) -> bool:
        """True if it is somebody else's: never stopped or started again."""
        return self.record.origin == "external"

    @property
    def base_url(self) -> str:
        """Its address; as one that nobody named where it is somebody else's."""
        return as_found(self.record.url) if self.external else self.record.url

    @property
    def title(self) -> str:
        """The name of this kind of server for people."""
        return self.wanted.template.title

    @property
    def facts(self) -> dict[str, str]:
        """The facts that run.json keeps of it."""
        command = {} if self.external else {"server_command": " ".join(self.record.command)}
        return {"server_origin": self.record.origin, **command}

    def join(self, folder: Folder) -> None:
        """Another run uses it, too; restarts count anew."""
        if folder not in self._folders:
            self._folders.append(folder)
        self._note(restarts=0)

    def is_alive(self) -> bool:
        """True if the server's own process lives; of somebody else's server nobody knows."""
        if self.external:
            return True
        if self._child is not None:
            return self._child.poll() is None
        process = find(self.record.pid)
        return process is not None and process.began == self.record.began

    async def start(self, watch: Watch) -> None:
        """Start the process, wait until it is ready, warm it up.

        Raises EngineUnavailableError, with the reason as far as the log tells, MissingToolError if there is no such
        program, and CancelledError if the person does not want to wait. Then no process of it is left.
        """
        began = time.monotonic()
        self._launch(self.wanted.command(self.record.port))
        try:
            await self._until_ready(watch, began + self.wanted.startup_timeout)
            ready = time.monotonic() - began
            watch.say(f"warming up {self.title}")
            await self._warm_up(watch)
            if not self.is_alive():
                raise self._end_of_start()
        except BaseException:
            await asyncio.to_thread(self.stop, watch.hurry)
            raise
        self._note(state="running", startup_seconds=round(ready, 3), known=self._known())
        watch.say("")

    async def restart(self, watch: Watch) -> None:
        """Stop what is left of it, wait, and start it again with the same command.

        Raises EngineUnavailableError if it was restarted often enough, or if memory ran out: that would happen again.
        """
        await asyncio.to_thread(self.stop, watch.hurry)
        if line := server_log.fatal_line(self._log, self._log_start):
            raise EngineUnavailableError(
                f"{self.title} died: {line}", hint=server_log.memory_hint(self.wanted.template)
            )
        done, waits = self.record.restarts, self.patience.backoff
        if done >= len(waits):
            raise EngineUnavailableError(f"{self.title} died {done + 1} times; given up", hint=f"less {self._log}")
        watch.say(f"{self.title} died; starting it again in {waits[done]:g} s ({done + 1} of {len(waits)})")
        await self._wait(waits[done], watch, until=lambda: False)
        await self._wait(self.patience.release, watch, until=self._is_released)
        self._note(restarts=done + 1)
        await self.start(watch)

    def stop(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """End it with all that it started; somebody else's is left alone. Raises EngineUnavailableError if it lives on.

        Ctrl-C, or `hurry`, kills at once.
        """
        if self.external or not self.record.pid:
            return
        try:
            left = stop_processes(
                self.record.root,
                known=[*self.record.known, *self._known()],
                mark=self.record.mark,
                child=self._child,
                patience=self.patience.stop,
                hurry=hurry,
            )
        finally:
            self._note(state="stopped", stopped=_now())
            if self._folder is not None:
                take_back(self._folder)
        if left:
            listed = " ".join(map(str, left))
            raise EngineUnavailableError(
                f"{self.title} cannot be stopped: processes {listed}", hint=f"kill -9 {listed}"
            )

    async def health(self) -> Verdict:
        """The health of the server; dead, too, if its log says that nothing helps."""
        if not self.is_alive() or server_log.fatal_line(self._log, self._log_start):
            return "dead"
        async with talk_to(self.record.port, self.key) as talk:
            return await talk.health(self.wanted, shallow=self.patience.shallow, deep=self.patience.deep)

    def is_gone(self) -> bool:
        """True if it is dead for certain: no process, its log says so, or nobody listens (a busy server accepts)."""
        if not self.is_alive() or server_log.fatal_line(self._log, self._log_start):
            return True
        return is_refused(self.record.port)

    def what_stays(self) -> list[str]:
        """The things that a stopped server still holds, one line each."""
        held = still_held(pid for pid, _ in [self.record.root, *self.record.known])
        lines = [f"GPU memory is still held by process {pid}, which has ended" for pid in sorted(held)]
        return lines if is_free(self.record.port) else [f"port {self.record.port} is still in use", *lines]

    def note_version(self, version: str) -> None:
        """Keep what the server calls its version."""
        self._note(version=version)

    def _launch(self, command: list[str]) -> None:
        mark = secrets.token_hex(8)
        self._log_start = server_log.size(self._log)
        launcher = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid())] if sys.platform == "linux" else []
        environment = {**self.wanted.child_environment(self.record.port), MARK: mark}
        # A file, not a pipe: a pipe that nobody reads blocks the server.
        with self._log_folder.open_appending(LOG)[0] as output:
            output.write(f"--- {_now()} loupe starts: {' '.join(self.record.command)}\n".encode())
            self._log_start = server_log.size(self._log)
            # Its folder is nobody's: a Python before 3.11 imports from there, and programs look for settings.
            self._folder, lock = lent_folder("server-", cache_folder("server-folders", to_write=True))
            try:
                self._child = subprocess.Popen(
                    [*launcher, *command],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    env=environment,
                    cwd=self._folder,
                    pass_fds=[lock],
                    start_new_session=True,
                )
            finally:
                os.close(lock)
        process = find(self._child.pid)
        self._note(
            state="starting",
            origin="started",
            pid=self._child.pid,
            began=process.began if process else "",
            known=[],
            mark=mark,
            boot=boot(),
            owner=owner(),
            started=_now(),
            stopped="",
        )

    async def _until_ready(self, watch: Watch, deadline: float) -> None:
        pause, began = _FIRST_POLL, time.monotonic()
        async with talk_to(self.record.port, self.key) as talk:
            while True:
                if watch.stopping():
                    raise asyncio.CancelledError
                if not self.is_alive() or server_log.fatal_line(self._log, self._log_start):
                    raise self._end_of_start()
                if await talk.is_ready(self.wanted) and self.is_alive():
                    break
                if time.monotonic() > deadline:
                    raise EngineUnavailableError(
                        f"{self.title} was not ready within {self.wanted.startup_timeout:g} s",
                        hint=f"use --startup-timeout N, or see what it says: less {self._log}",
                    )
                watch.say(f"starting {self.title}, {time.monotonic() - began:.0f} s")
                await asyncio.sleep(pause)
                pause = min(2 * pause, self.patience.poll)
        # Between our look at the port and the server's, somebody else may have taken it.
        holder = await asyncio.to_thread(listener, self.record.port)
        if holder is not None and holder[0] not in family([self.record.root], self.record.mark):
            raise EngineUnavailableError(
                f"port {self.record.port} was taken by {holder[1]} (process {holder[0]})", hint="use --server-port auto"
            )

    async def _warm_up(self, watch: Watch) -> None:
        async with talk_to(self.record.port, self.key) as talk:
            warming = asyncio.create_task(talk.warm_up(self.wanted, seconds=self.patience.warm_up))
            while not warming.done():
                await asyncio.wait({warming}, timeout=_FIRST_POLL)
                if watch.stopping():
                    warming.cancel()
                    raise asyncio.CancelledError

    def _end_of_start(self) -> EngineUnavailableError:
        line, hint = server_log.explain(self._log, self._log_start, self.wanted.template)
        if line:
            return EngineUnavailableError(f"{self.title} did not start: {line}", hint=hint or self._help)
        code = self._child.poll() if self._child is not None else None
        how = f"it ended with signal {-code}" if code is not None and code < 0 else f"it ended with exit code {code}"
        said = server_log.last_lines(self._log, self._log_start)
        shown = "; the end of its log:" if said else ""
        return EngineUnavailableError(f"{self.title} did not start: {how}{shown}", listed=said, hint=self._help)

    @property
    def _help(self) -> str:
        return f"read its log: less {self._log}; {PASS_ON}"

    async def _wait(self, seconds: float, watch: Watch, *, until: Callable[[], bool]) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not await asyncio.to_thread(until):
            if watch.stopping():
                raise asyncio.CancelledError
            await asyncio.sleep(min(_FIRST_POLL, seconds))

    def _is_released(self) -> bool:
        return is_free(self.record.port) and not still_held(pid for pid, _ in [self.record.root, *self.record.known])

    def _known(self) -> list[tuple[int, str]]:
        return sorted(process.key for process in family([self.record.root], self.record.mark).values())

    def _note(self, **changes: object) -> None:
        """Change the record, here and in the folder of every run."""
        self.record = msgspec.structs.replace(self.record, **changes)
        for folder in self._folders:
            if folder.exists():
                log = os.path.relpath(self._log, folder.path) if not self.external else ""
                write_record(folder, msgspec.structs.replace(self.record, log=log))


def _log_folder(folder: Folder, log: str) -> Folder:
    """The folder of a server's log, by the record in the folder of one of its runs; below the same root."""
    place = os.path.normpath(os.path.join(*folder.inside, log or LOG))  # noqa: PTH118  a name, and never a file
    name, _, last = place.rpartition("/")
    return Folder(folder.root) / name if last == LOG and not place.startswith(("/", "..")) else folder


def new_record(wanted: Wanted, port: int, *, external: bool = False) -> ServerRecord:
    """The record of a server that is about to be started, or of one that runs already."""
    return ServerRecord(
        kind=wanted.kind,
        model=wanted.model,
        origin="external" if external else "started",
        state="running" if external else "starting",
        command=[] if external else wanted.shown(port),
        url=f"http://{HOST}:{port}/v1",
        port=port,
        identity=wanted.identity,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
