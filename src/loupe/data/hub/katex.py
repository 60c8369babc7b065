"""KaTeX 0.16.21, the release that olmOCR-Bench draws equations with: two files, fetched once, never part of Loupe.

They come from the npm package `katex` (MIT licence). Whatever brings them, their content is compared with the digests
below before it is used. Its fonts come along for people's eyes (`loupe review`); scores are made without them.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from loupe.data.cache import cache_root
from loupe.errors import DatasetError, MissingToolError
from loupe.files.folder import Folder

VERSION = "0.16.21"
SCRIPT, STYLE = "katex.min.js", "katex.min.css"
#: sha256 of the files in `dist/` of the package.
DIGESTS = {
    SCRIPT: "863811e2baa0849c77bc92d26d44f4d0a4843c2a8ab52c462017dea57316e4d8",
    STYLE: "f787891b550d554c214aa8902f39ac46df2dbd48fdec500a2040a5dce1e8ab58",
}
#: sha256 of the package.
_PACKAGE = "7764a23b6c42d0a260fc1c8dcfe91d73e07d802dfc0624c08997b33c02dac0cd"
_LARGEST_PACKAGE = 8 << 20
_FONT = re.compile(r"package/dist/fonts/(KaTeX_[A-Za-z0-9]+-[A-Za-z]+\.woff2)")
#: What npm itself takes the address of its registry from. No address stands in Loupe: npm knows its own.
_SETTINGS = ("npm_config_registry", "NPM_CONFIG_REGISTRY")
_BY_HAND = f"put {SCRIPT} and {STYLE} of the npm package katex@{VERSION} in a folder that LOUPE_KATEX_DIR names"


@dataclass(frozen=True, slots=True)
class Katex:
    """The two files, as texts."""

    script: str
    style: str


def katex_folder() -> Path:
    """Where the files are looked for: $LOUPE_KATEX_DIR, else in the user's cache."""
    named = os.environ.get("LOUPE_KATEX_DIR", "")
    return Path(named).expanduser() if named else cache_root() / f"katex-{VERSION}"


def read_katex() -> Katex:
    """The files, compared with their digests. Raises MissingToolError where they are not there or not these."""
    folder = katex_folder()
    texts = {}
    for name, digest in DIGESTS.items():
        try:
            content = (folder / name).read_bytes()
        except OSError:
            raise MissingToolError(f"KaTeX {VERSION} is not in {folder}", hint="loupe setup math") from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise MissingToolError(f"{folder / name} is not that of KaTeX {VERSION}", hint="loupe setup math")
        texts[name] = content.decode()
    return Katex(texts[SCRIPT], texts[STYLE])


def has_fonts() -> bool:
    """Whether KaTeX's fonts are beside the two files."""
    return (katex_folder() / "fonts" / "KaTeX_Main-Regular.woff2").is_file()


def fetch_katex() -> Path:
    """Fetch the package by its name, check it, keep files and fonts; the folder. Nothing is asked if they are there.

    npm does it where it is installed, with the user's own settings; else it comes from the registry that
    npm_config_registry names. Raises DatasetError.
    """
    folder = cache_root() / f"katex-{VERSION}"
    try:
        read_katex()
    except MissingToolError:
        if katex_folder() != folder:
            raise DatasetError(
                f"LOUPE_KATEX_DIR names {katex_folder()}, which has no KaTeX {VERSION}", hint="unset it"
            ) from None
        return _fetch_into(folder)
    if katex_folder() == folder and not has_fonts():
        # Who has no network any more keeps what scores need.
        with contextlib.suppress(DatasetError):
            _fetch_into(folder)
    return katex_folder()


def _fetch_into(folder: Path) -> Path:
    package = _through_npm() or _through_http()
    if hashlib.sha256(package).hexdigest() != _PACKAGE:
        raise DatasetError(f"the download is not the package katex {VERSION}", hint="npm config get registry")
    with tarfile.open(fileobj=io.BytesIO(package), mode="r:gz") as tar:
        for name in DIGESTS:
            stream = tar.extractfile(f"package/dist/{name}")
            assert stream is not None
            Folder(folder).write(name, stream.read())
        for member in tar.getmembers():
            font = _FONT.fullmatch(member.name)
            stream = tar.extractfile(member) if font else None
            if font and stream is not None:
                Folder(folder).write(f"fonts/{font[1]}", stream.read())
    read_katex()
    return folder


def _through_npm() -> bytes | None:
    """The package as `npm pack` brings it; None where there is no npm or it fails."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        words = [npm, "pack", f"katex@{VERSION}", "--silent", "--ignore-scripts", "--pack-destination", folder]
        try:
            subprocess.run(words, cwd=folder, capture_output=True, timeout=300, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        found = next(Path(folder).glob("katex-*.tgz"), None)
        return found.read_bytes() if found and found.stat().st_size <= _LARGEST_PACKAGE else None


def _through_http() -> bytes:
    registry = next((os.environ[name] for name in _SETTINGS if os.environ.get(name)), "")
    if not registry:
        raise DatasetError(
            f"KaTeX {VERSION} is fetched with npm, which is missing or failed",
            hint=f"install npm, or {_BY_HAND}",
        )
    address = f"{registry.rstrip('/')}/katex/-/katex-{VERSION}.tgz"
    if not address.startswith(("https://", "http://")):
        raise DatasetError(f"npm_config_registry is no address: {registry}", hint="npm config get registry")
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            return bytes(answer.read(_LARGEST_PACKAGE))
    except (urllib.error.URLError, OSError) as error:
        raise DatasetError(
            f"KaTeX {VERSION} cannot be fetched: {getattr(error, 'reason', error)}",
            hint=_BY_HAND,
        ) from None
