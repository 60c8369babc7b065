"""Start the system's Chromium, shut off from the network, with fonts and a folder of its own.

Its process may be killed at any time; the next one clears the folder away.
"""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from functools import lru_cache
from pathlib import Path
from xml.sax.saxutils import escape

from loupe.data.user_folders import cache_folder
from loupe.errors import MissingToolError
from loupe.helpers import environment, said_by

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_MAC = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
#: No network, whatever a page asks for, and no service of the browser's own.
ARGUMENTS = (
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
)
#: The files of Debian's fonts-dejavu-core. KaTeX's own fonts do not load and there is no Times New Roman (Chromium
#: takes no other family for a named one), so upright symbols end at `serif`, slanted ones at what Chromium falls back
#: to. With these files alone boxes are those of the browser that the oracle's outcomes were made with.
FONTS = (
    "DejaVuSans-Bold.ttf",
    "DejaVuSans.ttf",
    "DejaVuSansMono-Bold.ttf",
    "DejaVuSansMono.ttf",
    "DejaVuSerif-Bold.ttf",
    "DejaVuSerif.ttf",
)
#: What `fonts_identity` says of DejaVu 2.37, with which the oracle was made.
TESTED_FONTS = "dejavu-54d90c01"
GENERIC = {"serif": "DejaVu Serif", "sans-serif": "DejaVu Sans", "monospace": "DejaVu Sans Mono"}
_FONT_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.local/share/fonts", "~/.fonts")


@lru_cache(maxsize=1)
def chromium_program() -> str:
    """The browser. Raises MissingToolError where there is none."""
    named = next(filter(None, map(shutil.which, PROGRAMS)), None)
    program = named or next((path for path in _MAC if Path(path).is_file()), None)
    if program is None:
        install = "brew install --cask chromium" if sys.platform == "darwin" else "sudo apt-get install chromium"
        raise MissingToolError("equations are drawn by Chromium, which is not installed", hint=install)
    return program


@lru_cache(maxsize=1)
def chromium_version() -> str:
    """Return the version that the browser reports."""
    try:
        done = said_by([chromium_program(), "--version"])
        done.check_returncode()
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingToolError(
            f"{chromium_program()} does not start: {error}", hint="see what is missing: loupe doctor"
        ) from None
    return done.stdout.strip()


@lru_cache(maxsize=1)
def font_files() -> tuple[Path, ...]:
    """The fonts where all of them are here and the system chooses fonts by fontconfig; else none."""
    if sys.platform == "darwin":
        return ()
    found: dict[str, Path] = {}
    for folder in _FONT_FOLDERS:
        place = glob.escape(os.path.expanduser(folder))  # noqa: PTH111
        there = glob.glob(f"{place}/**/DejaVuS*.ttf", recursive=True)  # noqa: PTH207  skips what may not be read
        for path in map(Path, sorted(there)):
            found.setdefault(path.name, path)
    return tuple(found[name] for name in FONTS) if all(name in found for name in FONTS) else ()


@lru_cache(maxsize=1)
def fonts_identity() -> str:
    """`dejavu-` and a digest of these fonts; where they are not here, what the system has in their place."""
    if files := font_files():
        return "dejavu-" + hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:8]
    names = []
    if matcher := shutil.which("fc-match"):
        for family in ("Times New Roman", "serif"):
            done = said_by([matcher, family])
            names.append(done.stdout.partition(":")[0].strip())
    return "system-" + ("+".join(names) or sys.platform)


def browser_environment() -> dict[str, str]:
    """Little of the user's, no key, and the fonts."""
    return environment() | ({"FONTCONFIG_FILE": str(_font_configuration())} if font_files() else {})


def _font_configuration() -> Path:
    """A fontconfig file in Loupe's cache that knows these fonts and no others."""
    digest = hashlib.sha256(f"{_configuration(Path())}{font_files()}".encode()).hexdigest()[:16]
    folder = cache_folder("fontconfig") / digest
    if not (folder / "fonts.conf").is_file():
        temporary = folder.with_name(f".{digest}.{os.getpid()}.tmp")
        try:
            temporary.mkdir(parents=True, exist_ok=True)
            _fill(temporary, folder)
            temporary.rename(folder)
        except OSError:
            shutil.rmtree(temporary, ignore_errors=True)
            if not (folder / "fonts.conf").is_file():  # else another process was first
                # Without a cache it lies in the temporary folder, gone with this process.
                folder = new_folder()
                _fill(folder, folder)
    return folder / "fonts.conf"


def _fill(folder: Path, final: Path) -> None:
    """Links to the fonts, and the file that names the folder as `final`."""
    (folder / "fonts").mkdir()
    for file in font_files():
        (folder / "fonts" / file.name).symlink_to(file)
    (folder / "fonts.conf").write_text(_configuration(final), encoding="utf-8")


def _configuration(folder: Path) -> str:
    # The folder holds nothing but the fonts: fontconfig 2.15 does not obey `selectfont` (Debian 13).
    lines = [
        '<?xml version="1.0"?>',
        '<!DOCTYPE fontconfig SYSTEM "fonts.dtd">',
        "<fontconfig>",
        f"<dir>{escape(str(folder / 'fonts'))}</dir>",
        f"<cachedir>{escape(str(folder / 'cache'))}</cachedir>",
        # As distributions have it; without, Chromium hints glyphs fully.
        '<match target="pattern"><edit name="hintstyle" mode="append"><const>hintslight</const></edit></match>',
        *(
            f'<alias binding="same"><family>{name}</family><prefer><family>{font}</family></prefer></alias>'
            for name, font in GENERIC.items()
        ),
        "</fontconfig>",
    ]
    return "\n".join(lines) + "\n"


_NAME = re.compile(r"loupe-browser-(\d+)-")
_ATTEMPTS = 50
_PAUSE_SECONDS = 0.1


def new_folder() -> Path:
    """A new folder of this process in the system's temporary folder; those of processes that are gone are removed."""
    root = Path(tempfile.gettempdir())
    for path in root.glob("loupe-browser-*"):
        found = _NAME.match(path.name)
        if found and path.is_dir() and not path.is_symlink() and _is_ours(path) and not _runs(int(found[1])):
            _clear(path)
    # Short, because Chromium puts a socket into it.
    return Path(tempfile.mkdtemp(prefix=f"loupe-browser-{os.getpid()}-"))


def _clear(path: Path) -> None:
    """Remove the folder. Its browser may still be about to notice that nobody is there, and write until then."""
    for _ in range(_ATTEMPTS):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(_PAUSE_SECONDS)


def _is_ours(path: Path) -> bool:
    try:
        return path.stat().st_uid == os.geteuid()
    except OSError:
        return False


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
