"""What CDM needs beside Python: which TeX, which packages and fonts, and the command that installs what is missing."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from loupe.helpers import said_by
from loupe.metrics.cdm.drawing.tex_documents import CJK_FONTS
from loupe.metrics.cdm.profiles import CdmProfile, Program

_DEBIAN: Final = {
    "pdflatex": "texlive-latex-extra",
    "xelatex": "texlive-xetex texlive-lang-chinese fonts-noto-cjk",
    "chinese": "latex-cjk-chinese latex-cjk-chinese-arphic-gkai00mp",
    "gs": "ghostscript",
}
_FEDORA: Final = "sudo dnf install texlive-scheme-full google-noto-sans-cjk-fonts ghostscript"
_MAC: Final = "brew install --cask mactex-no-gui font-noto-sans-cjk-sc && brew install ghostscript"
#: Files whose absence makes formulas of a profile fail, and the set that they are in.
_PACKAGES: Final[dict[Program, tuple[tuple[str, str], ...]]] = {
    "pdflatex": (
        ("geometry.sty", "pdflatex"),
        ("booktabs.sty", "pdflatex"),
        ("multirow.sty", "pdflatex"),
        ("amsmath.sty", "pdflatex"),
        ("amssymb.sty", "pdflatex"),
        ("xcolor.sty", "pdflatex"),
        ("upgreek.sty", "pdflatex"),
        ("CJK.sty", "chinese"),
        ("c70gkai.fd", "chinese"),
    ),
    "xelatex": (
        ("geometry.sty", "pdflatex"),
        ("amsmath.sty", "pdflatex"),
        ("amssymb.sty", "pdflatex"),
        ("xcolor.sty", "pdflatex"),
        ("upgreek.sty", "pdflatex"),
        ("xeCJK.sty", "xelatex"),
        ("ctexhook.sty", "xelatex"),
    ),
}


class MissingTexError(Exception):
    """A program, package or font is not there. `hint` is the command that installs it."""

    def __init__(self, missing: Sequence[str], hint: str) -> None:
        super().__init__(f"CDM needs TeX, and this is missing: {', '.join(missing)}")
        self.missing = tuple(missing)
        self.hint = hint


class BrokenTexError(MissingTexError):
    """TeX or Ghostscript is there and sets or draws nothing at all: what it fails on says nothing of a formula."""

    def __init__(self, program: str, *, fails: str = "sets nothing") -> None:
        Exception.__init__(self, f"CDM needs {program}, which is there, but {fails}")
        self.missing = (program,)
        self.hint = f"see what {program} says of a document of your own"


@dataclass(frozen=True, slots=True)
class TexTools:
    """What was found: a description of the release, or what is missing and what brings it."""

    version: str
    missing: tuple[str, ...] = ()
    hint: str = ""

    def check(self) -> None:
        """Raises MissingTexError where something is missing."""
        if self.missing:
            raise MissingTexError(self.missing, self.hint)


def tex_tools(profile: CdmProfile, renderer: str = "layout") -> TexTools:
    """What a profile needs and this machine has; looked up once in the life of a process."""
    return _tools(profile.program, renderer == "ghostscript")


@lru_cache(maxsize=8)
def _tools(program: Program, ghostscript: bool) -> TexTools:
    missing: dict[str, str] = {}
    if shutil.which(program) is None:
        missing[program] = program
        missing |= {"fonts": "pdflatex"} if program == "xelatex" else {}
    else:
        names = _PACKAGES[program]
        found = _found_files([name for name, _ in names])
        missing |= {name: source for name, source in names if name not in found}
    if program == "xelatex" and not cjk_font():
        missing[f"a font named {' or '.join(CJK_FONTS)}"] = "xelatex"
    if ghostscript and shutil.which("gs") is None:
        missing["gs (Ghostscript)"] = "gs"
    if missing:
        return TexTools("", tuple(missing), _install(set(missing.values()) | {"pdflatex"}))
    parts = [_release(program), *([cjk_font()] if program == "xelatex" else [])]
    parts += [f"Ghostscript {_first_line(['gs', '--version'])}"] if ghostscript else []
    return TexTools(", ".join(parts))


def _install(sets: set[str]) -> str:
    """The command for this machine; where nothing tells which that is, those of all that are known."""
    names = " ".join(_DEBIAN[name] for name in _DEBIAN if name in sets)
    debian = f"sudo apt-get install --no-install-recommends {names}"
    if shutil.which("apt-get") or Path("/etc/debian_version").exists():
        return debian
    if sys.platform == "darwin":
        return _MAC
    if shutil.which("dnf"):
        return _FEDORA
    return (
        f"Debian, Ubuntu: {debian}; Fedora: {_FEDORA}; elsewhere TeX Live 2022 or later in full, and Noto Sans CJK SC"
    )


@lru_cache(maxsize=1)
def cjk_font() -> str:
    """The font that stands in for upstream's, "" where there is none (or no fontconfig to ask)."""
    for font in CJK_FONTS:
        if font in re.split(r"[\n,]", _output(["fc-list", ":", "family"])):
            return font
    return ""


def _found_files(names: Sequence[str]) -> set[str]:
    """Which of these TeX finds."""
    return {Path(line).name for line in _output(["kpsewhich", *names]).splitlines()}


def _release(program: Program) -> str:
    """`pdfTeX 3.14… (TeX Live 2022/Debian)`: another release may set a formula otherwise."""
    return re.sub(r"\s+", " ", _first_line([program, "--version"]))


def _first_line(words: Sequence[str]) -> str:
    return _output(words).partition("\n")[0].strip()


def _output(words: Sequence[str]) -> str:
    if shutil.which(words[0]) is None:
        return ""
    try:
        return said_by(words).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
