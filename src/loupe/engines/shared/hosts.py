"""Tell which hosts are this machine, and which addresses lead away from it."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit


def is_local(host: str | None) -> bool:
    """True if a host is this machine.

    >>> is_local("127.0.0.2"), is_local("localhost"), is_local("127.0.0.1.evil.example")
    (True, True, False)
    """
    return host == "localhost" or (host is not None and is_ip(host) and ipaddress.ip_address(host).is_loopback)


def is_ip(host: str) -> bool:
    """True if a host is an IP address, and no name."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def hosts_beyond(urls: str | Iterable[str]) -> tuple[str, ...]:
    """The hosts of addresses, each once, that are not this machine.

    >>> hosts_beyond(["http://127.0.0.1:8000/v1", "gpu.example:8000/v1", "https://me@api.example", "auto"])
    ('gpu.example', 'api.example')
    >>> hosts_beyond("https://auto/v1")
    ('auto',)
    """
    found: dict[str, None] = {}
    for url in [urls] if isinstance(urls, str) else urls:
        place = url if "://" in url else f"//{url}"
        try:
            host = urlsplit(place.removeprefix("//auto:")).hostname
        except ValueError:
            continue
        if host and host != "0.0.0.0" and url != "auto" and not is_local(host):
            found[host] = None
    return tuple(found)
