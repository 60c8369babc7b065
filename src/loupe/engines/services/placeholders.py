"""Fill the placeholders of an `http` profile, and decide which hosts may be asked.

Each placeholder is replaced once, and what was put in is not looked at again.

A service may say that its answer lies elsewhere (a presigned download). Such an address gets nothing of the profile,
and must lead out: not to a file, not to this machine or its network.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from loupe.data.certificates import open_client
from loupe.engines.shared.hosts import is_ip, is_local
from loupe.errors import EngineError

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL


#: `{page}` alone is the file of a multipart body.
FILE = "{page}"
#: Placeholders as messages show them.
SHOWN = "{page:base64}, {page:data_url}, {page:name}, {page:type}, {prompt}, {model}, {secret:NAME}, {submit:PATH}, …"
#: Placeholders of what was answered before, which hold a path, and what else they may be.
ANSWERED = ("upload", "submit", "poll")
_NAMES = {"page": ("base64", "data_url", "name", "type"), "secret": None, "submit_header": None}
_PLACEHOLDER = re.compile(r"\{((?:page|secret|submit_header|upload|submit|poll):[^{}]*|prompt|model)\}")
_ANY = re.compile(r"\{([a-z_]+(?::[^{}]*)?)\}")

#: What a placeholder stands for.
Find = Callable[[str], Any]


def names_in(value: Any) -> Iterator[str]:
    """The placeholders in the texts of a value, to any depth, without the file of a multipart body."""
    if isinstance(value, str):
        yield from (found for found in _ANY.findall(value) if value != FILE)
    elif isinstance(value, dict):
        for each in value.values():
            yield from names_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from names_in(each)


def secrets_in(value: Any) -> set[str]:
    """The names of secrets that the texts of a value ask for."""
    return {name.removeprefix("secret:") for name in names_in(value) if name.startswith("secret:")}


def check_placeholders(value: Any) -> None:
    """Raises ValueError for a placeholder that there is not."""
    for name in names_in(value):
        kind, _, rest = name.partition(":")
        if not _PLACEHOLDER.fullmatch(f"{{{name}}}") or (_NAMES.get(kind) and rest not in (_NAMES[kind] or ())):
            raise ValueError(f"no placeholder {{{name}}}; there are {SHOWN}")


def is_placeholder(text: str) -> bool:
    """True if a text is nothing but one placeholder."""
    return _PLACEHOLDER.fullmatch(text) is not None


def filled(value: Any, find: Find) -> Any:
    """A value with its placeholders replaced; a text that is nothing but one placeholder becomes what that stands for.

    >>> filled({"n": "{submit:n}", "t": ["is {submit:n}"]}, lambda name: 3)
    {'n': 3, 't': ['is 3']}
    """
    if isinstance(value, str):
        alone = _PLACEHOLDER.fullmatch(value)
        return _known(find, alone[1]) if alone else filled_text(value, find)
    if isinstance(value, dict):
        return {key: filled(each, find) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [filled(each, find) for each in value]
    return value


def filled_text(text: str, find: Find, quote: Callable[[str], str] = str) -> str:
    """A text with its placeholders replaced, each in `quote` unless the text is nothing but that one.

    Raises EngineError where the service has not said what one stands for.
    """
    quote = str if is_placeholder(text) else quote
    return _PLACEHOLDER.sub(lambda found: quote(_as_text(find, found[1])), text)


def _known(find: Find, name: str) -> Any:
    value = find(name)
    if value is None:
        raise EngineError(f"the service's answer has nothing at {name!r}, which the next request needs")
    return value


def _as_text(find: Find, name: str) -> str:
    value = _known(find, name)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise EngineError(f"the service's answer has no text at {name!r}, which the next request needs")
    return str(value)


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
    """True if an address of another host may be asked. A service on this machine may name others on this machine."""
    if not url.host or url.user is not None:
        return False
    if url.host.replace(".", "").isdigit() and not is_ip(url.host):
        # Systems read `127.1` and `2130706433` as addresses, and aiohttp asks no resolver for them.
        return False
    if is_local(url.host):
        return from_here and url.scheme in ("http", "https")
    return url.scheme == "https" and (not is_ip(url.host) or is_public(url.host))


def is_public(ip: str) -> bool:
    """True if an IP address is out in the internet, and not this machine, its network or its cloud's own services.

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
