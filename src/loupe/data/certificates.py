"""Choose the certificate authorities to trust, and say what is wrong if a server's certificate is not.

Source: docs/engines/openai.md#certificates. OpenSSL reads SSL_CERT_FILE and SSL_CERT_DIR itself. Requests and curl have
names of their own for the same, which most people with a company's authority have set: these are trusted, too.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loupe.errors import LoupeError

if TYPE_CHECKING:
    import ssl

    import aiohttp

_FILE, _FOLDER = "SSL_CERT_FILE", "SSL_CERT_DIR"
#: A file of certificates in PEM, or a folder of them.
_FURTHER = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
#: Codes of OpenSSL (x509_vfy.h): expired or not valid yet; for another name or address.
_DATES, _NAMES = (9, 10), (62, 64)
_DEEPEST = 20


def _own_variables() -> tuple[str, ...]:
    return os.environ.get(_FILE, ""), os.environ.get(_FOLDER, "")


_AT_FIRST = _own_variables()


def open_client(*, connector: dict[str, Any] | None = None, **options: Any) -> aiohttp.ClientSession:
    """Return an HTTP session that trusts the authorities of this machine and those that a variable names."""
    import aiohttp

    trusted: Any = further_trust() or True
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusted, **(connector or {})), **options)


def further_trust() -> ssl.SSLContext | None:
    """Return what is trusted if that is more than OpenSSL's variables named when this process began; else None."""
    import ssl  # a command that asks nobody does without

    own = _own_variables()
    known = {os.path.realpath(path) for path in (*own, *ssl.get_default_verify_paths()) if path}
    found = (os.environ.get(name, "") for name in _FURTHER)
    further = tuple(path for path in found if path and os.path.realpath(path) not in known)
    return _context(further, own) if further or own != _AT_FIRST else None


@functools.lru_cache(maxsize=2)
def _context(further: tuple[str, ...], _: tuple[str, ...]) -> ssl.SSLContext:
    import ssl

    context = ssl.create_default_context()
    for path in further:
        # What cannot be read is named where a certificate is not trusted: nobody else needs it.
        with contextlib.suppress(OSError):
            context.load_verify_locations(**{"capath" if Path(path).is_dir() else "cafile": path})
    return context


def check_tls(error: BaseException, place: str, kind: type[LoupeError]) -> None:
    """Raise `kind`, with a hint that helps, if an error of an HTTP library is about the TLS of `place`."""
    if told := _told(error, place):
        raise kind(told[0], hint=told[1]) from None


def _told(error: BaseException, place: str) -> tuple[str, str] | None:
    """Return what is wrong with the TLS of a place, and a hint; None if the error is about something else."""
    import ssl  # a command that asks nobody does without

    address = re.match(r"https?://[^/?#@]+", place)
    place = address[0] if address else place
    # aiohttp's own error is one of these, too, and does not say why.
    causes = [one for one in _causes(error) if isinstance(one, ssl.SSLError)]
    found = next((one for one in causes if hasattr(one, "verify_message")), next(iter(causes), None))
    if found is None:
        said = str(error)
        found = ssl.SSLCertVerificationError(said) if "CERTIFICATE_VERIFY_FAILED" in said else None
    if isinstance(found, ssl.SSLCertVerificationError):
        code, why = getattr(found, "verify_code", 0), getattr(found, "verify_message", "") or "verification failed"
        message = f"the certificate of {place} is not trusted: {why}"
        if code in _DATES:
            return message, "renew the certificate of the server, or correct the clock of this machine"
        if code in _NAMES:
            return message, "use the name that the certificate is for, or a certificate for this name"
        return message, f"name the authority that signed it: export SSL_CERT_FILE=FILE.pem{_missing_file()}"
    if found is not None:
        reason = (getattr(found, "reason", "") or str(found)).replace("_", " ").lower()
        return f"no TLS connection to {place}: {reason}", "use http:// if the server has no TLS, or correct its TLS"
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what caused it, as far as libraries tell."""
    waiting, seen = [error], 0
    while waiting and seen < _DEEPEST:
        one, seen = waiting.pop(0), seen + 1
        yield one
        names = ("certificate_error", "os_error", "reason", "__cause__", "__context__")
        further = (getattr(one, name, None) for name in names)
        waiting += [each for each in further if isinstance(each, BaseException)]


def _missing_file() -> str:
    """Return a remark if a file of certificates is missing or holds none: OpenSSL ignores it in silence."""
    import ssl

    for name in (_FILE, *_FURTHER):
        path = os.environ.get(name, "")
        if not path or Path(path).is_dir():
            continue
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
        except OSError as error:
            return f" ({name} is {path}: {'no certificate in it' if isinstance(error, ssl.SSLError) else 'not there'})"
    return ""
