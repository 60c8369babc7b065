"""Read what the hub says about a data set: the commit behind a branch, and every file with its size and digest.

Through huggingface_hub (extra `data`), which knows the mirror (HF_ENDPOINT), the token (HF_TOKEN, or the login of the
machine), and offline mode. Protocol: docs/data.md.
"""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from loupe.data.certificates import check_tls, further_trust
from loupe.data.extras import install_hint
from loupe.data.hub.answers import commit_of, entries_of
from loupe.data.hub.manifest import safe_path, shown_path
from loupe.data.hub.patience import PASSING, Patience, retry_after_seconds
from loupe.errors import DatasetError, DownloadError, MissingToolError
from loupe.helpers import call_nobody
from loupe.types import DataSet

if TYPE_CHECKING:
    from huggingface_hub import HfApi

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file as the hub lists it: `sha256` of large files, the git blob's `sha1` of the others."""

    path: str
    size: int
    sha256: str
    sha1: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A data set at one commit: the files that were asked for, and how to get them."""

    repo: str
    revision: str
    files: tuple[RemoteFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def list_files(
    dataset: DataSet, *, revision: str = "", patterns: Iterable[str] = (), patience: Patience | None = None
) -> Listing:
    """The files of a data set at `revision` (a branch, tag or commit), pinned to its commit.

    Raises DatasetError if it cannot be had, or nothing fits the patterns.
    """
    hub = _hub()
    patience = patience or Patience()
    wanted = tuple(patterns) or dataset.patterns
    asked = revision or dataset.revision
    commit = _patiently(dataset, asked, patience, lambda: commit_of(hub, dataset.repo, asked))
    entries = _patiently(dataset, asked, patience, lambda: _tree(hub, dataset.repo, commit))
    found = tuple(entry for entry in entries if any(fnmatch.fnmatchcase(entry.path, glob) for glob in wanted))
    if not found:
        shown = ", ".join(sorted({entry.path for entry in entries})[:8]) or "none"
        raise DatasetError(
            f"{dataset.repo} has no file that fits {' '.join(wanted)} at {commit[:12]} (its files: {shown}, …)",
            hint=f"download it: loupe data get {dataset.id} --include 'GLOB'",
        )
    return Listing(dataset.repo, commit, found)


def file_url(repo: str, revision: str, path: str) -> str:
    """Return the address that a file is fetched from, at the mirror if HF_ENDPOINT names one."""
    from huggingface_hub import hf_hub_url

    return hf_hub_url(repo, path, repo_type="dataset", revision=revision, endpoint=_endpoint())


def request_headers() -> dict[str, str]:
    """Headers of a file request; with the token, where there is one. Never put them in a message."""
    from loupe import __version__

    headers = {"User-Agent": f"loupe/{__version__}", "Accept-Encoding": "identity"}
    token = _token()
    return headers | ({"Authorization": f"Bearer {token}"} if token else {})


def _token() -> str:
    """Return the user's token, "" without one, or if the folder of their login may not be read."""
    from huggingface_hub import get_token

    try:
        return get_token() or ""
    except OSError:
        return ""


def refused(dataset: DataSet, status: int) -> DatasetError:
    """Return the error if the hub gives no data: 401 and 403 want terms accepted or a token, 404 is not there."""
    if status in (401, 403):
        message = f"{dataset.repo}: the hub refuses access (HTTP {status}); the data set is gated, private or not there"
        return DatasetError(message, hint=f"accept its terms at {dataset.page}, then: export HF_TOKEN=…")
    if status == 404:
        return DatasetError(
            f"{dataset.repo}: no such data set, revision or file on the hub (HTTP 404)", hint=dataset.page
        )
    kind = DownloadError if status >= 500 else DatasetError
    return kind(f"{dataset.repo}: the hub answers HTTP {status}", hint="try again with the same command")


def _endpoint() -> str | None:
    # Read here and not by the library, which keeps what it found when it was first imported.
    return os.environ.get("HF_ENDPOINT", "").rstrip("/") or None


def _hub() -> HfApi:
    call_nobody("HF_")
    try:
        from huggingface_hub import HfApi, get_session, set_client_factory
    except ImportError:
        raise MissingToolError(
            "fetching data needs huggingface_hub, which is not installed", hint=install_hint("data")
        ) from None
    if (trusted := further_trust()) is not None:
        # Of httpx or httpx2, whichever the library uses, as the library itself makes it.
        usual = get_session()
        kind, hooks = type(usual), usual.event_hooks
        set_client_factory(lambda: kind(event_hooks=hooks, follow_redirects=True, timeout=None, verify=trusted))
    return HfApi(endpoint=_endpoint(), token=_token() or False, library_name="loupe")


def _tree(hub: HfApi, repo: str, commit: str) -> list[RemoteFile]:
    """Every file. Raises DatasetError for paths that cannot all be files of one folder."""
    found: dict[str, RemoteFile] = {}
    for entry in entries_of(hub, repo, commit):
        if entry.type == "file":
            path = safe_path(entry.path, repo)
            if path in found:
                raise DatasetError(f"{repo}: the hub lists {shown_path(path)} twice")
            sha256 = entry.lfs.oid if entry.lfs else ""
            found[path] = RemoteFile(path, entry.size, sha256, "" if sha256 else entry.oid)
    for path in found:
        if above := next((parent for parent in map(str, PurePosixPath(path).parents) if parent in found), None):
            raise DatasetError(f"{repo}: {shown_path(path)} lies below a file, {shown_path(above)}")
    return list(found.values())


def _patiently(dataset: DataSet, revision: str, patience: Patience, ask: Callable[[], T]) -> T:
    """The answer to a question about the data set; busy and unreachable hubs are asked again."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled, RevisionNotFoundError

    # Of httpx or httpx2, whichever the library uses; neither is ours to import.
    http_error: type[BaseException] = HfHubHTTPError.__bases__[0]
    for attempt in range(1, patience.attempts + 1):
        retry_after = None
        try:
            return ask()
        except RevisionNotFoundError:
            raise DatasetError(f"{dataset.repo} has no revision {revision!r}", hint=dataset.page) from None
        except OfflineModeIsEnabled:
            raise DownloadError(
                f"{dataset.repo}: HF_HUB_OFFLINE forbids asking the hub", hint="unset HF_HUB_OFFLINE"
            ) from None
        except HFValidationError as error:
            raise DatasetError(f"{dataset.repo!r}: {error}") from None
        except HfHubHTTPError as error:
            status = error.response.status_code
            if status not in PASSING:
                raise refused(dataset, status) from None
            retry_after, why = retry_after_seconds(error.response.headers.get("Retry-After")), f"HTTP {status}"
        except (http_error, OSError) as error:
            check_tls(error, "the hub", DownloadError)
            why = type(error).__name__
            if attempt >= patience.unreached:
                break
        pause = patience.pause(attempt, retry_after)
        if pause is None:
            break
        time.sleep(pause)
    raise DownloadError(f"{dataset.repo}: the hub cannot be asked ({why}, {attempt} attempts)", hint=_unreachable())


def _unreachable() -> str:
    return "check the network and HF_ENDPOINT (now: " + (_endpoint() or "not set") + "); the same command tries again"
