"""The hub's answers about a data set: bounded, of known types, and from the hub itself.

huggingface_hub would read answers of any size, follow links to any host, with the token, and raise whatever its parsing
raises. So only its connection, its token and its errors are used. Protocol: docs/protocols/hf_hub_local.md.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import quote, urljoin, urlsplit

import msgspec

from loupe.errors import DatasetError
from loupe.typed import json_decoder
from loupe.types import UNDECODABLE

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_MOST_BYTES = 64_000_000
#: Pages of a listing; the hub puts up to 1,000 files on one.
_MOST_PAGES = 2_000
_MOST_FILES = 2_000_000
#: Of silence, and of a whole answer, however busily it arrives.
_SECONDS, _MOST_SECONDS = 60.0, 600.0
_OF_ERRORS = frozenset({b"x-error-code", b"x-error-message", b"retry-after"})
Sha1 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$")]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Answer = TypeVar("Answer")


class _Info(msgspec.Struct, frozen=True):
    sha: Sha1


class _Large(msgspec.Struct, frozen=True):
    oid: Sha256


class Entry(msgspec.Struct, frozen=True):
    """A line of the listing: a file with its git digest, and the sha256 of a large one; or a folder."""

    path: str
    type: str
    oid: Sha1
    size: Annotated[int, msgspec.Meta(ge=0, lt=1 << 60)] = 0
    lfs: _Large | None = None


def commit_of(hub: HfApi, repo: str, revision: str) -> str:
    """The commit behind a branch, a tag or a commit."""
    url = f"{hub.endpoint}/api/datasets/{quote(repo)}/revision/{quote(revision, safe='')}"
    return _ask(hub, repo, url, _Info)[0].sha


def entries_of(hub: HfApi, repo: str, commit: str) -> Iterator[Entry]:
    """Every file of a commit. Raises DatasetError for a listing without an end."""
    first = url = f"{hub.endpoint}/api/datasets/{quote(repo)}/tree/{commit}?recursive=true&expand=false"
    seen = {url}
    files = 0
    while url:
        entries, following = _ask(hub, repo, url, list[Entry])
        files += len(entries)
        yield from entries
        url = urljoin(url, following) if following else ""
        if url and urlsplit(url)[:2] != urlsplit(first)[:2]:
            raise _wrong(repo, f"its listing goes on at {urlsplit(url).netloc!r}, which is another host")
        if url in seen or len(seen) > _MOST_PAGES or files > _MOST_FILES:
            raise _wrong(repo, "its listing has no end")
        seen.add(url)


def _ask(hub: HfApi, repo: str, url: str, kind: type[Answer]) -> tuple[Answer, str]:
    """The answer, and the link to the next page of it. Raises DatasetError for one that takes too long."""
    read: Future[tuple[bytearray, str]] = Future()

    def work() -> None:
        try:
            read.set_result(_read(hub, repo, url))
        except BaseException as error:  # noqa: BLE001 - the border of a thread: it is raised where it is awaited
            read.set_exception(error)

    # In a thread: interim answers (HTTP 100) without end never leave the library. It ends with the process.
    threading.Thread(target=work, daemon=True).start()
    try:
        body, following = read.result(_MOST_SECONDS)
    except TimeoutError:
        raise _wrong(repo, f"an answer takes longer than {_MOST_SECONDS:.0f} s") from None
    try:
        with memoryview(body) as view:
            return json_decoder(kind).decode(view), following
    except UNDECODABLE as error:
        raise _wrong(repo, str(error)) from None


def _read(hub: HfApi, repo: str, url: str) -> tuple[bytearray, str]:
    """The body of an answer, and the link in its headers."""
    from huggingface_hub import get_session
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # type: ignore[attr-defined]

    headers = build_hf_headers(token=hub.token, library_name="loupe")
    body = bytearray()
    with get_session().stream("GET", url, headers=headers, timeout=_SECONDS, follow_redirects=True) as response:
        # Without its body, which is of any size, and says nothing that the library needs. Raw: a text must be ASCII.
        kept = [(name, value) for name, value in response.headers.raw if name.lower() in _OF_ERRORS]
        hf_raise_for_status(type(response)(response.status_code, headers=kept, request=response.request))
        for piece in response.iter_bytes(1 << 16):
            body += piece
            if len(body) > _MOST_BYTES:
                raise _wrong(repo, f"an answer is larger than {_MOST_BYTES // 10**6} MB")
        links: Any = response.links
    return body, str(links.get("next", {}).get("url", ""))


def _wrong(repo: str, what: str) -> DatasetError:
    return DatasetError(
        f"{repo}: the hub does not answer as a hub does: {what}", hint="check HF_ENDPOINT, or try later"
    )
