"""KaTeX, in the releases that benchmarks pin: two files of each, fetched once, never part of Loupe.

olmOCR-Bench draws with 0.16.21, omni_parse_bench reads the MathML of 0.16.22. They come from the npm package `katex`
(MIT licence). Whatever brings them, their content is compared with the digests below before it is used. Fonts come
along for people's eyes (`loupe review`); scores are made without them.
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
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from loupe.data.certificates import check_tls, further_trust
from loupe.data.user_folders import cache_folder
from loupe.errors import DatasetError, DownloadError, MissingToolError
from loupe.files.folder import Folder
from loupe.files.scratch import scratch_folder
from loupe.helpers import environment

SCRIPT, STYLE = "katex.min.js", "katex.min.css"


@dataclass(frozen=True, slots=True)
class Release:
    """One release: sha256 of its files in `dist/`, by name, and of the npm package."""

    version: str
    digests: Mapping[str, str]
    package: str


#: What olmOCR-Bench draws with, and people see in `loupe review`.
DRAWING = Release(
    "0.16.21",
    {
        SCRIPT: "863811e2baa0849c77bc92d26d44f4d0a4843c2a8ab52c462017dea57316e4d8",
        STYLE: "f787891b550d554c214aa8902f39ac46df2dbd48fdec500a2040a5dce1e8ab58",
    },
    "7764a23b6c42d0a260fc1c8dcfe91d73e07d802dfc0624c08997b33c02dac0cd",
)
#: What omni_parse_bench reads equations with.
READING = Release(
    "0.16.22",
    {
        SCRIPT: "e8d885505949f3a5f4abdd5dd0d53696bd1371ad26ffbf4f310dcd77c8cdae89",
        STYLE: "19095127357ed6d29fe0a63a6b000c913a89f7f1963b765dd3715e97c9852e75",
    },
    "e9e0d167db3175481cbadaff38e8d90b130f6a3ddb451a47e43c577fd511f365",
)
RELEASES = (DRAWING, READING)
_LARGEST_PACKAGE = 8 << 20
_FONT = re.compile(r"package/dist/fonts/(KaTeX_[A-Za-z0-9]+-[A-Za-z]+\.woff2)")
#: What npm itself takes the address of its registry from. No address stands in Loupe: npm knows its own.
_SETTINGS = ("npm_config_registry", "NPM_CONFIG_REGISTRY")


@dataclass(frozen=True, slots=True)
class Katex:
    """The two files, as texts."""

    script: str
    style: str


def katex_folder(release: Release = DRAWING) -> Path:
    """Return the folder of the files: $LOUPE_KATEX_DIR (other releases in folders of it), else in the user's cache."""
    named, own = os.environ.get("LOUPE_KATEX_DIR", ""), f"katex-{release.version}"
    if not named:
        return cache_folder(own)
    return Path(named).expanduser() if release is DRAWING else Path(named).expanduser() / own


def read_katex(release: Release = DRAWING) -> Katex:
    """The files, compared with their digests. Raises MissingToolError where they are not there or not these."""
    folder = katex_folder(release)
    texts = {}
    for name, digest in release.digests.items():
        try:
            content = (folder / name).read_bytes()
        except OSError:
            raise MissingToolError(
                f"KaTeX {release.version} is not in {folder}", hint="run: loupe setup math"
            ) from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise MissingToolError(
                f"{folder / name} is not that of KaTeX {release.version}", hint="run: loupe setup math"
            )
        texts[name] = content.decode()
    return Katex(texts[SCRIPT], texts[STYLE])


def has_fonts() -> bool:
    """True if KaTeX's fonts are beside the two files that draw."""
    return (katex_folder() / "fonts" / "KaTeX_Main-Regular.woff2").is_file()


def is_complete() -> bool:
    """True if all releases are here, fonts included."""
    try:
        for release in RELEASES:
            read_katex(release)
    except MissingToolError:
        return False
    return has_fonts()


def fetch_katex(release: Release = DRAWING) -> Path:
    """Fetch the package by its name, check it, keep files and fonts; the folder. Nothing is asked if they are there.

    npm does it where it is installed, with the user's own settings; else it comes from the registry that
    npm_config_registry names. Raises DatasetError or MissingToolError.
    """
    named, folder = katex_folder(release), cache_folder(f"katex-{release.version}")
    try:
        read_katex(release)
    except MissingToolError:
        if named != folder:
            raise DatasetError(
                f"{named}, by LOUPE_KATEX_DIR, has no KaTeX {release.version}", hint="unset it"
            ) from None
        return _fetch_into(folder, release)
    if named == folder and release is DRAWING and not has_fonts():
        # Who has no network any more keeps what scores need.
        with contextlib.suppress(DatasetError, MissingToolError):
            _fetch_into(folder, release)
    return named


def _fetch_into(folder: Path, release: Release) -> Path:
    package = _through_npm(release.version) or _through_http(release.version)
    if hashlib.sha256(package).hexdigest() != release.package:
        raise DatasetError(
            f"the download is not the package katex {release.version}",
            hint="check the registry: npm config get registry",
        )
    with tarfile.open(fileobj=io.BytesIO(package), mode="r:gz") as tar:
        for name in release.digests:
            stream = tar.extractfile(f"package/dist/{name}")
            assert stream is not None
            Folder(folder).write(name, stream.read())
        for member in tar.getmembers() if release is DRAWING else ():
            font = _FONT.fullmatch(member.name)
            stream = tar.extractfile(member) if font else None
            if font and stream is not None:
                Folder(folder).write(f"fonts/{font[1]}", stream.read())
    read_katex(release)
    return folder


def _by_hand(version: str) -> str:
    return (
        f"put {SCRIPT} and {STYLE} of the npm package katex@{version} where LOUPE_KATEX_DIR says (docs/data.md#katex)"
    )


def _through_npm(version: str) -> bytes | None:
    """The package as `npm pack` brings it; None where there is no npm or it fails."""
    npm = shutil.which("npm")
    if npm is None:
        return None
    root = cache_folder(to_write=True)
    Folder(root).create()
    with scratch_folder("npm-", root) as folder:
        # A project of its own: npm looks for one, and for its settings, in every folder above.
        Folder(folder).write("package.json", b'{"private": true}\n')
        words = [str(Path(npm).absolute()), "pack", f"katex@{version}", "--silent", "--ignore-scripts"]
        words += ["--prefix", str(folder), "--pack-destination", str(folder)]
        variables = environment("network", "npm")
        try:
            subprocess.run(words, cwd=folder, env=variables, capture_output=True, timeout=300, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        found = next(folder.glob("katex-*.tgz"), None)
        return found.read_bytes() if found and found.stat().st_size <= _LARGEST_PACKAGE else None


def _through_http(version: str) -> bytes:
    registry = next((os.environ[name] for name in _SETTINGS if os.environ.get(name)), "")
    if not registry:
        raise MissingToolError(
            f"KaTeX {version} is fetched with npm, which is missing or failed",
            hint=f"install npm, or {_by_hand(version)}",
        )
    address = f"{registry.rstrip('/')}/katex/-/katex-{version}.tgz"
    if not address.startswith(("https://", "http://")):
        raise DatasetError(
            f"npm_config_registry is no address: {registry}", hint="check the registry: npm config get registry"
        )
    try:
        with urllib.request.urlopen(address, timeout=60, context=further_trust()) as answer:
            return bytes(answer.read(_LARGEST_PACKAGE))
    except (urllib.error.URLError, OSError) as error:
        check_tls(error, address, DownloadError)
        raise DownloadError(
            f"KaTeX {version} cannot be fetched: {getattr(error, 'reason', error)}",
            hint=_by_hand(version),
        ) from None
