"""Record where a data set on this machine came from, as far as this user's Loupe saw it come.

A manifest can name any repository, and its digests only say that the files are those that it lists. So `loupe data get`
and `loupe data unpack` leave a note beside it, sealed together with the manifest (loupe.data.seals).
"""

from __future__ import annotations

import hmac
import os
from pathlib import Path

from loupe.data.hub.manifest import NAME, NOTE
from loupe.data.seals import is_seal, seal
from loupe.errors import LoupeError
from loupe.files.folder import Folder

#: Fetched and checked against the hub's own digests; unpacked from a file that anybody may have made; in a place that
#: the user named; or not noted.
HUB, PACK, NAMED, UNKNOWN = "hub", "pack", "named", "unknown"
_PURPOSE, _OF_PLACE, _OF_DOWNLOAD = "data", "place of data", "download"


def note_origin(root: Path, origin: str) -> None:
    """Note where the data in a folder came from, with the manifest as it is now."""
    folder = Folder(root)
    folder.write(NOTE, f"{origin} {seal(_PURPOSE, origin.encode(), folder.read(NAME))}".encode())


def origin_of(root: Path) -> str:
    """Return where the data in a folder came from: `HUB`, `PACK`, or `UNKNOWN` if Loupe has not noted it here."""
    folder = Folder(root)
    try:
        origin, noted = folder.read(NOTE, limit=1000).decode("ascii").split(" ")
        is_ours = origin in (HUB, PACK) and is_seal(noted, _PURPOSE, origin.encode(), folder.read(NAME))
    except (OSError, ValueError, LoupeError):
        return UNKNOWN
    return origin if is_ours else UNKNOWN


def note_download(folder: Folder, repo: str, revision: str) -> None:
    """Note in a folder that Loupe downloads this commit into it, and so checks every file that arrives."""
    folder.write(NOTE, _seal_of_download(folder, repo, revision).encode())


def is_download(folder: Folder, repo: str, revision: str) -> bool:
    """Return whether this user's Loupe began to download this commit into this folder."""
    try:
        noted = folder.read(NOTE, limit=1000).decode("ascii", "replace")
    except (OSError, LoupeError):
        return False
    return hmac.compare_digest(noted.encode(), _seal_of_download(folder, repo, revision).encode())


def _seal_of_download(folder: Folder, repo: str, revision: str) -> str:
    place = os.fsencode(os.path.realpath(folder.path))
    return seal(_OF_DOWNLOAD, place, repo.encode("utf-8", "replace"), revision.encode("utf-8", "replace"))


def seal_of_place(place: str) -> str:
    """Return what a run notes of the place of its data that its user has named; "" for none."""
    return seal(_OF_PLACE, place.encode("utf-8", "surrogatepass")) if place else ""


def is_named(place: str, noted: str) -> bool:
    """Return whether this user named this place: a `run.json` may come from anybody."""
    return is_seal(noted, _OF_PLACE, place.encode("utf-8", "surrogatepass"))
