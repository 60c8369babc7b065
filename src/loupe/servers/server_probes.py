"""Questions to a server over HTTP (ready, well, who it is) and to the ports of this machine.

Source: docs/protocols/engines.md#server-start (readiness, warm-up, reuse) and #health-check (health).
"""

from __future__ import annotations

import base64
import io
import random
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from loupe.engines.chat.discovery import Patience as Limits
from loupe.engines.chat.discovery import get_json, identify, probe
from loupe.errors import EngineUnavailableError
from loupe.servers.wanted import Wanted
from loupe.typed import encode_json

if TYPE_CHECKING:
    import aiohttp


HOST = "127.0.0.1"
_LISTENS = "0A"
#: Below the ports that Linux, macOS and Windows give to connections.
_OWN_RANGE = range(20_000, 32_000)


def is_free(port: int) -> bool:
    """True if a server could listen on the port now."""
    with socket.socket() as trial:
        # Connections that have just been closed do not keep anybody from listening.
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """Return a port that nobody uses, by chance.

    Not one that the system gives: it may hand the same to another program, as the end of a connection, before the
    server listens, and large models load for minutes.
    """
    for port in random.SystemRandom().sample(_OWN_RANGE, 50):
        if is_free(port):
            return port
    with socket.socket() as trial:
        trial.bind((HOST, 0))
        given: int = trial.getsockname()[1]
        return given


def is_refused(port: int, *, seconds: float = 0.2) -> bool:
    """True if nobody listens. A server that is only busy still accepts."""
    try:
        with socket.create_connection((HOST, port), timeout=seconds):
            return False
    except ConnectionRefusedError:
        return True
    except OSError:
        return False


def listener(port: int) -> tuple[int, str] | None:
    """Number and name of the process that listens on a port, where the system tells us."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    for entry in Path("/proc").glob("[0-9]*/fd/*") if sockets else ():
        with suppress(OSError):
            if str(entry.readlink()) in sockets:
                process = entry.parents[1]
                return int(process.name), (process / "comm").read_text(errors="replace").strip()
    return None


def _inodes(port: int) -> set[str]:
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with suppress(OSError):
            for line in Path(table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(fields[9])
    return found


Verdict: TypeAlias = Literal["ok", "slow", "dead"]

#: Answers of a server that is there, but whose engine is gone, or that does not get an answer in time itself.
_GONE, _LATE = (502, 503), 504


@asynccontextmanager
async def talk_to(port: int, key: str) -> AsyncIterator[Talk]:
    """A session with the server on a port of this machine."""
    import aiohttp

    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:
        yield Talk(session, port)


class Talk:
    """A session with one server."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self._root = f"http://{HOST}:{port}"

    async def is_ready(self, wanted: Wanted) -> bool:
        """True if all holds that the template asks for.

        Raises EngineUnavailableError if it never will: a key is asked for, or the model is not there.
        """
        for each in wanted.template.ready:
            answer = await get_json(self._session, self._root + each.path, Limits(each.seconds, each.seconds))
            if answer is None:
                return False
            status, body, _ = answer
            if status in (401, 403):
                raise EngineUnavailableError(f"{wanted.template.title} needs a key", hint="use --api-key-file FILE")
            if status != 200:
                return False
            if not each.lists(wanted.name, body):
                if each.missing:
                    hint = each.missing.replace("{model}", wanted.model)
                    raise EngineUnavailableError(f"{wanted.template.title} has no model {wanted.name!r}", hint=hint)
                return False
        return True

    async def warm_up(self, wanted: Wanted, *, seconds: float) -> None:
        """One tiny request, so that the first page does not pay for what the first request costs."""
        url = f"data:image/png;base64,{base64.b64encode(_white_square()).decode()}"
        content = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": "Read this."}]
        await self._complete(wanted, content, tokens=8, seconds=seconds)

    async def health(self, wanted: Wanted, *, shallow: float, deep: float) -> Verdict:
        """Ask the health path, and then for a completion of one token in time.

        An answer that says no (a text without a page, say) is an answer; one that says that the engine is gone is none.
        """
        answer = await get_json(self._session, self._root + wanted.template.health, Limits(shallow, shallow))
        if answer is None or answer[0] != 200:
            return "dead"
        status = await self._complete(wanted, "Hi", tokens=1, seconds=deep)
        if status is None or status == _LATE:
            return "slow"
        return "dead" if status in _GONE else "ok"

    async def kind_and_models(self) -> tuple[str, list[str]]:
        """The kind of server that answers, and the models that it lists; "" if none does."""
        endpoint = await probe(self._session, f"{self._root}/v1")
        if endpoint is None:
            return "", []
        return (await identify(self._session, endpoint)).kind, endpoint.model_ids

    async def _complete(self, wanted: Wanted, content: Any, *, tokens: int, seconds: float) -> int | None:
        """The status of a small completion, None if none came in time or the connection broke."""
        import aiohttp

        messages = [{"role": "user", "content": content}]
        body = encode_json({"model": wanted.name, "messages": messages, "max_tokens": tokens, "temperature": 0})
        headers, timeout = {"Content-Type": "application/json"}, aiohttp.ClientTimeout(total=seconds)
        with suppress(aiohttp.ClientError, TimeoutError, OSError):
            url = f"{self._root}/v1/chat/completions"
            async with self._session.post(
                url, data=body, headers=headers, timeout=timeout, allow_redirects=False
            ) as response:
                await response.read()
                return response.status
        return None


def _white_square() -> bytes:
    """A PNG of 64 by 64 white pixels."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), "white").save(buffer, "PNG")
    return buffer.getvalue()
