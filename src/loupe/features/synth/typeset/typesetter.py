"""The typesetter, typst from its wheel, which reads one folder and nothing else; and the faces that it sets pages in.

A page is set in the face that its seed chose or not at all: another one would be another page.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from loupe.data.digests import file_digest
from loupe.data.extras import need
from loupe.errors import UsageError
from loupe.features.synth.texts import language

_URW, _DEJAVU = "fonts-urw-base35", "fonts-dejavu-core"


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """A font in one style. `wide` is its width to that of Libertinus, `x_height` a share of the size.

    `package` is Debian's ("": the face is part of the typesetter).
    """

    family: str
    x_height: float
    wide: float = 1.0
    weight: int = 400
    style: str = "normal"
    package: str = ""

    @property
    def name(self) -> str:
        """The name in results."""
        words = [
            self.family,
            *(["bold"] if self.weight >= 600 else []),
            *(["italic"] if self.style != "normal" else []),
        ]
        return " ".join(words)

    def layout(self) -> dict[str, Any]:
        """As the layout of a page has it."""
        return {"font": self.family, "weight": self.weight, "style": self.style}


#: The twelve faces of the track `plain`.
FACES = (
    Face(family="Libertinus Serif", x_height=0.43),
    Face(family="New Computer Modern", x_height=0.43, wide=1.1),
    Face(family="DejaVu Sans", x_height=0.55, wide=1.26, package=_DEJAVU),
    Face(family="Libertinus Serif", x_height=0.43, style="italic"),
    Face(family="DejaVu Sans Mono", x_height=0.55, wide=1.42),
    Face(family="Nimbus Sans", x_height=0.52, wide=1.12, package=_URW),
    Face(family="New Computer Modern", x_height=0.43, wide=1.1, style="italic"),
    Face(family="DejaVu Serif", x_height=0.52, wide=1.28, package=_DEJAVU),
    Face(family="Libertinus Serif", x_height=0.44, weight=700, wide=1.06),
    Face(family="C059", x_height=0.47, wide=1.16, package=_URW),
    Face(family="New Computer Modern", x_height=0.44, weight=700, wide=1.22),
    Face(family="URW Gothic", x_height=0.55, wide=1.18, package=_URW),
)
BOOK = FACES[0]


def face_of(code: str) -> Face:
    """The face of a language. Raises UsageError for an unknown one."""
    one = language(code)
    return BOOK if one.font == BOOK.family else Face(family=one.font, x_height=0.54, package=one.package)


@functools.cache
def _files() -> dict[str, tuple[str | None, ...]]:
    import typst

    found: dict[str, set[str | None]] = {}
    for font in typst.Fonts(font_paths=font_folders()).fonts():
        found.setdefault(font.family, set()).add(font.path and str(font.path))
    return {family: tuple(sorted(paths, key=str)) for family, paths in found.items()}


def font_folders() -> list[str]:
    """Further folders of fonts, as the typesetter's own command names them: TYPST_FONT_PATHS."""
    return [folder for folder in os.environ.get("TYPST_FONT_PATHS", "").split(os.pathsep) if folder]


def is_there(family: str) -> bool:
    """True if the typesetter finds a font."""
    return family in _files()


def missing(faces: Iterable[Face]) -> dict[str, list[str]]:
    """The faces that are not there, by the package that brings them."""
    found: dict[str, list[str]] = {}
    for face in faces:
        if not is_there(face.family) and face.family not in found.setdefault(face.package, []):
            found[face.package].append(face.family)
    return {package: families for package, families in found.items() if families}


@functools.cache
def font_digest(family: str) -> str:
    """Identifies the files of a font; those of the typesetter are known by its release."""
    from importlib.metadata import version

    digest = hashlib.sha256()
    for path in _files().get(family, ()):
        digest.update(f"typst {version('typst')}".encode() if path is None else file_digest(Path(path)).encode())
    return digest.hexdigest()[:16]


@functools.cache
def made_with(families: tuple[str, ...], generator: str) -> str:
    """Identifies everything but seed and page that decides about pixels: generator, typesetter and fonts."""
    from importlib.metadata import version

    parts = [generator, f"typst {version('typst')}", *(f"{family}={font_digest(family)}" for family in families)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


#: No date is part of a page.
_NO_TIME = 0
_HELP = "docs/synth.md#templates"


class TypesetError(UsageError):
    """A page could not be typeset."""


def need_typesetter() -> None:
    """Raise MissingToolError unless the extra is installed."""
    need("typst", extra="synth", purpose="synth")


def typeset(layout: dict[str, Any]) -> bytes:
    """The PDF of a page. Raises TypesetError for a layout that fits on no single page or lacks letters."""
    inputs = {"layout": json.dumps(layout, ensure_ascii=False, sort_keys=True)}
    return compiled(_compiler(), inputs, "the layout of a page")


def compiled(compiler: Any, inputs: dict[str, str], name: str) -> bytes:
    """The output of a compiler for these inputs. Raises TypesetError, with its first line, if it makes nothing."""
    import typst

    try:
        pdf, warnings = compiler.compile_with_warnings(format="pdf", sys_inputs=inputs, timestamp=_NO_TIME)
    except typst.TypstError as error:
        raise TypesetError(f"{name}{_line_of(error.diagnostic)}: {first_line(str(error))}", hint=_HELP) from None
    if warnings:
        raise TypesetError(f"{name}: {first_line(str(warnings[0]))}", hint=_HELP)
    return bytes(pdf)


def first_line(message: str) -> str:
    """The first line of what the typesetter has to say, without the folder that it searched."""
    if "failed to download package" in message:
        return "packages are not loaded: copy what it needs into the folder"
    line = next((line.strip() for line in message.splitlines() if line.strip()), "cannot be typeset")
    return re.sub(r" \(searched at [^)]*\)", "", line)[:300]


def _line_of(diagnostic: str) -> str:
    """The line of a template that an error is in, as `:3`; "" if it is not told."""
    found = re.search(r"┌─ [^\n]*?:(\d+):\d+\s*$", diagnostic, re.MULTILINE)
    return f":{found[1]}" if found else ""


@functools.cache
def _compiler() -> Any:
    import typst

    need_typesetter()
    page = _page()
    return typst.Compiler(str(page), root=str(page.parent), font_paths=font_folders(), package_path=no_packages())


def no_packages() -> str:
    """A folder in which no package can be, as it would lie below a file."""
    return str(_page() / "packages")


def _page() -> Path:
    return Path(str(files("loupe.features.synth.typeset").joinpath("page.typ")))
