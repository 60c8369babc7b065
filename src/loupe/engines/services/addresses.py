"""Who is asked: the service that the profile names, or another host that the service names for its answer.

A service may say that its answer lies elsewhere (a presigned download). Such an address gets nothing of the profile,
and must lead out: not to a file, not to this machine or its network.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from loupe.data.certificates import open_client
from loupe.engines.services.placeholders import Find, filled_text, is_placeholder
from loupe.engines.shared.hosts import is_ip, is_local
from loupe.errors import EngineError

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

#: What stands in an address: other characters could end the line that it is sent in.
_PLAIN = re.compile(r"[!-~]{1,8000}")
#: IPv6 addresses that a gateway turns into the IPv4 address in their last 32 bits (RFC 6052).
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Address:
    """An address, and whether it is the service's own: scheme, host and port are those of the profile."""

    url: URL
    is_own: bool


def address_of(base_url: str, written: str, find: Find) -> Address:
    """The address that a profile has written: a path of its service, or one placeholder for what the service said.

    Raises EngineError for an address that a service has no business to name.
    """
    from yarl import URL

    base = URL(base_url)
    filled = filled_text(written, find, lambda text: quote(text, safe=""))
    if not _PLAIN.fullmatch(filled):
        raise EngineError("the service names an address that is none")
    if not is_placeholder(written):
        return Address(URL(base_url.rstrip("/") + filled, encoded=True), is_own=True)
    try:
        url = base.join(URL(filled, encoded=True))
        is_own = _origin(url) == _origin(base) and url.user is None
        leads_out = is_own or _leads_out(url, from_here=is_local(base.host))
    except ValueError:
        is_own = leads_out = False
    if not leads_out:
        raise EngineError("the service says that its answer is at an address to which nobody is sent from here")
    return Address(url, is_own)


def _origin(url: URL) -> tuple[str, str, int | None]:
    return url.scheme.lower(), (url.host or "").lower(), url.port


def _leads_out(url: URL, *, from_here: bool) -> bool:
    """Whether an address of another host may be asked. A service on this machine may name others on this machine."""
    if not url.host or url.user is not None:
        return False
    if url.host.replace(".", "").isdigit() and not is_ip(url.host):
        # Systems read `127.1` and `2130706433` as addresses, and aiohttp asks no resolver for them.
        return False
    if is_local(url.host):
        return from_here and url.scheme in ("http", "https")
    return url.scheme == "https" and (not is_ip(url.host) or is_public(url.host))


def is_public(ip: str) -> bool:
    """Whether an IP address is out in the internet, and not this machine, its network or its cloud's own services.

    >>> [is_public(ip) for ip in ("8.8.8.8", "169.254.169.254", "10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe")]
    [True, False, False, False, False]
    """
    found = ipaddress.ip_address(ip)
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if inner is None and found in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(str(inner))
    return found.is_global and not found.is_multicast


def open_elsewhere(connections: int) -> aiohttp.ClientSession:
    """A session for hosts that a service names: no header, no cookie, and no name that stands for an inner address."""
    import aiohttp
    from aiohttp.abc import AbstractResolver, ResolveResult

    class PublicHosts(AbstractResolver):
        """Names as the system has them, if all their addresses are public (or the name is this machine's own)."""

        def __init__(self) -> None:
            self._system = aiohttp.ThreadedResolver()

        async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
            found = await self._system.resolve(host, port, family)
            if not (is_local(host) or all(is_public(each["host"].partition("%")[0]) for each in found)):
                raise EngineError("the service says that its answer is on a host inside this network")
            return found

        async def close(self) -> None:
            await self._system.close()

    connector = {"limit": connections, "resolver": PublicHosts()}
    return open_client(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
