"""Seals: keyed digests that only this user's Loupe can make, so nothing that was made elsewhere passes for its work.

The key is a private file among the user's state, made on first use; where that cannot be kept, one in the cache; else
one of this process alone, and whatever was sealed with it counts as made elsewhere afterwards.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
from functools import lru_cache
from pathlib import Path

import msgspec

from loupe.data.user_folders import cache_folder, state_folder
from loupe.errors import LoupeError
from loupe.files.folder import Folder
from loupe.typed import encode_json
from loupe.types import Prediction, SampleScores

#: What a scorer sees of an answer, as in `loupe.scoring.digest`.
_SCORED = ("outcome", "error", "finish_reason", "input_tokens", "output_tokens", "text")
_KEY, _LENGTH = "seal.key", 32
_OF_THIS_PROCESS = secrets.token_bytes(_LENGTH)


def seal(purpose: str, *parts: bytes) -> str:
    """Return the keyed digest of these parts, in hex."""
    digest = hmac.new(_key(), digestmod="sha256")
    for part in (purpose.encode(), *parts):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()


def is_seal(noted: str, purpose: str, *parts: bytes) -> bool:
    """Return whether this user's Loupe noted these parts so."""
    return hmac.compare_digest(noted.encode("utf-8", "replace"), seal(purpose, *parts).encode())


def sealed(row: SampleScores, prediction: Prediction) -> SampleScores:
    """Return the scores of an answer with their seal."""
    return msgspec.structs.replace(row, seal=_seal_of(row, prediction))


def is_sealed(row: SampleScores, prediction: Prediction) -> bool:
    """Return whether this user's Loupe has made these scores, of this answer, and from what their digest says."""
    return hmac.compare_digest(row.seal.encode("utf-8", "replace"), _seal_of(row, prediction).encode())


def _seal_of(row: SampleScores, prediction: Prediction) -> str:
    answer = [getattr(prediction, name) for name in _SCORED], bool(prediction.joined)
    return seal("scores", encode_json(msgspec.structs.replace(row, seal="")), encode_json(answer))


@lru_cache(maxsize=1)
def _key() -> bytes:
    for folder in (state_folder(), cache_folder(to_write=True)):
        with contextlib.suppress(OSError, LoupeError):
            return _kept_in(folder)
    return _OF_THIS_PROCESS


def _kept_in(folder: Path) -> bytes:
    """Return the key in a folder, made there if need be. Raises OSError or LoupeError where none can be kept."""
    if not folder.is_absolute():
        raise OSError(f"{folder}: the working folder may be anybody's")
    files = Folder(folder)
    try:
        return _read(files)
    except FileNotFoundError:
        files.create(private=True)
        with contextlib.suppress(FileExistsError):
            files.write_new(_KEY, secrets.token_bytes(_LENGTH), mode=0o600)
    return _read(files)


def _read(files: Folder) -> bytes:
    with files.open(_KEY) as file:
        facts, key = os.fstat(file.fileno()), file.read(_LENGTH + 1)
    if facts.st_uid != os.geteuid() or facts.st_mode & 0o077 or len(key) != _LENGTH:
        raise OSError(f"{files.path / _KEY} is not private to this user, or is damaged")
    return key
