"""The network of a worker ends at this machine, and at the server that the user named: no page leaves it by accident.

Packages of vendors can send documents to a cloud, by a key in the environment or a line in a file of their own. This
holds from before they load their models, or, if they may fetch them, from then on. It binds Python code of the process
itself, not the processes that it starts: what matters here, and no prison for code that means to escape.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from loupe.errors import EngineUnavailableError, LoupeError
from loupe.types import Output, Request

#: Names under which a machine reaches itself.
_HERE = frozenset({"localhost", "localhost.localdomain", "ip6-localhost", ""})


class Outbound:
    """Connections that this process may make. `refused` names those that it wanted to make and may not."""

    def __init__(self, allowed: Collection[str] = ()) -> None:
        self._names = {name.lower() for name in allowed} | _HERE
        self._addresses: set[str] = set()
        self.refused: list[str] = []
        self._is_closed = False

    def close(self) -> None:
        """From here on, refuse every connection to elsewhere. There is no way back."""
        if self._is_closed:
            return
        self._is_closed = True
        for name in self._names - _HERE:
            # A server that is not there is the matter of whoever asks it.
            with suppress(OSError):
                self._addresses |= {str(found[4][0]) for found in socket.getaddrinfo(name, None)}
        resolve = socket.getaddrinfo

        def getaddrinfo(host: Any, *rest: Any, **more: Any) -> Any:
            self._check(host)
            return resolve(host, *rest, **more)

        socket.getaddrinfo = getaddrinfo
        for name in ("connect", "connect_ex"):
            setattr(socket.socket, name, self._guarded(getattr(socket.socket, name)))

    def _guarded(self, connect: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(this: socket.socket, address: Any) -> Any:
            if isinstance(address, tuple) and address:
                self._check(address[0])
            return connect(this, address)

        return guarded

    def _check(self, host: Any) -> None:
        name = host.decode(errors="replace") if isinstance(host, bytes) else str(host or "")
        if name.lower() in self._names or name in self._addresses or _is_loopback(name):
            return
        self.refused.append(name)
        raise ConnectionRefusedError(f"Loupe lets this package reach this machine only, not {name}")


def _is_loopback(name: str) -> bool:
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


@contextmanager
def loading(outbound: Outbound, *, download: bool, package: str, models: str) -> Iterator[None]:
    """Models are loaded in this block; unless they may be fetched, the network is closed before.

    Raises EngineUnavailableError where they are not here; `models` is the command that fetches them.
    """
    if not download:
        outbound.close()
    try:
        yield
    except LoupeError:
        raise
    except Exception as error:
        if download or not (outbound.refused or _is_offline(error)):
            raise
        reason = f"{type(error).__name__}: {error}"
        raise EngineUnavailableError(
            f"{package} could not load its models, and Loupe downloads nothing without -o download=true: {reason}",
            hint=f"{models}; or -o download=true",
        ) from None


def _is_offline(error: BaseException | None) -> bool:
    """Whether a library wanted a file that is not on this machine, as Hugging Face's say it."""
    while error is not None:
        if type(error).__name__ in ("LocalEntryNotFoundError", "OfflineModeIsEnabled") or "offline mode" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def reading_here(
    read: Callable[[Request], Output], outbound: Outbound, *, package: str, models: str
) -> Callable[[Request], Output]:
    """`read` with the network closed. Raises EngineUnavailableError where it failed for want of the network.

    `models` is the command that fetches the models beforehand.
    """
    outbound.close()

    def answer(request: Request) -> Output:
        outbound.refused.clear()
        try:
            return read(request)
        except LoupeError:
            raise
        except Exception as error:
            if not outbound.refused:
                raise
            raise EngineUnavailableError(
                f"{package} wanted to reach {outbound.refused[0]} while it read a page; Loupe lets it reach this "
                f"machine only ({type(error).__name__})",
                hint=models,
            ) from None

    return answer


def without_proxies(environment: Mapping[str, str], hosts: Collection[str] = ()) -> dict[str, str]:
    """The environment with `hosts` and this machine reached directly, whatever proxy it names for the rest."""
    direct = ["127.0.0.1", "localhost", "::1", *hosts]
    given = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    listed = ",".join(filter(None, [given, *direct]))
    return {**environment, "NO_PROXY": listed, "no_proxy": listed}
