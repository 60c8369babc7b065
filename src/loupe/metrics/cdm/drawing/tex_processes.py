r"""Run TeX once on hostile input: in an empty folder, without shell, with limits, with nothing of the user's.

The `\special`s of an .xdv file, by which XeTeX asks things of the printer driver, are read before the driver runs.
The driver, xdvipdfmx, can embed any file that the user may read, and TeX knows many ways to spell `\special`. So no
name is trusted: whatever TeX was made to do, only the size of the page and colours go on to the driver.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from loupe.metrics.cdm.drawing.limited_processes import (
    DRIVER,
    TEX,
    Answers,
    Ending,
    private_folder,
    read_bounded,
    run_limited,
)
from loupe.metrics.cdm.drawing.pdf_pages import page_count
from loupe.metrics.cdm.drawing.tex_setup import Template

Failure = Ending | Literal["refused", "too large", "no page", "several pages"]


@dataclass(frozen=True, slots=True)
class TexRun:
    """The output of a run, and how the program was ended if not by itself."""

    pdf: bytes
    pages: int
    log: str
    failure: Failure


def run_tex(template: Template, document: str, *, seconds: int, answers: Answers | None = None) -> TexRun:
    """Set a document, within so many seconds of CPU time. Raises OSError where TeX cannot be started.

    `answers`: what to say where a document that turns to `\\errorstopmode` asks.
    """
    with private_folder(TEX) as folder:
        (folder / "formulas.tex").write_text(document, encoding="utf-8")
        surroundings = environment(folder, template.program)
        driven = template.program == "xelatex"
        words = [template.program, "-no-shell-escape", "-interaction=batchmode", *["-no-pdf"] * driven, "formulas.tex"]
        failure: Failure = run_limited(words, folder, seconds=seconds, environment=surroundings, answers=answers)
        pdf = b"" if driven else read_bounded(folder / "formulas.pdf")
        if driven and not failure and (xdv := read_bounded(folder / "formulas.xdv")):
            pdf, failure = _driven(xdv, seconds=seconds) if is_harmless_xdv(xdv) else (b"", "refused")
        log = read_bounded(folder / "formulas.log").decode(errors="replace")
        return TexRun(pdf, page_count(pdf), log, failure)


def _driven(xdv: bytes, *, seconds: int) -> tuple[bytes, Failure]:
    """XeTeX's output as PDF; in a folder of its own, where the formula cannot have left settings or fonts."""
    with private_folder(DRIVER) as folder:
        (folder / "formulas.xdv").write_bytes(xdv)
        words = ["xdvipdfmx", "-q", "-E", "-o", "formulas.pdf", "formulas.xdv"]
        failure = run_limited(words, folder, seconds=seconds, environment=environment(folder, "xelatex"))
        return read_bounded(folder / "formulas.pdf"), failure


def environment(folder: Path, program: str) -> dict[str, str]:
    """Nothing of the user's own: no TeX tree, no settings, no keys. Fonts are never made, files stay in the folder."""
    found = shutil.which(program)
    programs = [str(Path(found).absolute().parent)] if found else []
    return {
        "PATH": os.pathsep.join([*programs, "/usr/bin", "/bin"]),
        "HOME": str(folder),
        "LC_ALL": "C.UTF-8",
        "SOURCE_DATE_EPOCH": "0",
        "openin_any": "p",
        "openout_any": "p",
        "shell_escape": "f",
        "max_print_line": "10000",
        **dict.fromkeys(("MKTEXPK", "MKTEXTFM", "MKTEXMF", "MKTEXTEX", "MKTEXFMT"), "0"),
    }


_NUMBER: Final = rb"-?(?:\d{1,9}(?:\.\d{0,9})?|\.\d{1,9})"
_HARMLESS: Final = re.compile(
    rb"pdf:pagesize width %(n)spt height %(n)spt|color pop|color gray 0"
    rb"|(?:color push|background) (?:gray|rgb|hsb|cmyk)(?: %(n)s){1,4} *" % {b"n": _NUMBER}
)
#: How many bytes follow an operation, where that is fixed; see "The DVI format" in dvitype and XeTeX's xdv.
_LENGTHS: Final = {
    **dict.fromkeys(range(128), 0),  # a character
    **{base + size: size for base in (127, 132, 142, 147, 152, 156, 161, 166, 234) for size in (1, 2, 3, 4)},
    **dict.fromkeys((132, 137), 8),  # rules
    **dict.fromkeys((138, 140, 141, 142, 147, 152, 161, 166, 250, 251), 0),
    139: 44,  # a page begins
    **dict.fromkeys(range(171, 235), 0),  # a font
}
_POST: Final = 248


class UnreadableXdvError(Exception):
    """This is no .xdv file, or one that ends early."""


def is_harmless_xdv(xdv: bytes) -> bool:
    """True if the driver is asked for nothing but pages and colours."""
    try:
        return all(_HARMLESS.fullmatch(special) for special in specials(xdv))
    except (UnreadableXdvError, IndexError):
        return False


def specials(xdv: bytes) -> Iterator[bytes]:
    """All `\\special`s, in order. Raises UnreadableXdvError (or IndexError) where the file is not to be understood."""
    at = 0
    while xdv[at] != _POST:
        operation = xdv[at]
        at += 1
        if operation in _LENGTHS:
            at += _LENGTHS[operation]
        elif 239 <= operation <= 242:
            size = operation - 238
            end = at + size + _number(xdv, at, size)
            if end > len(xdv):
                raise UnreadableXdvError
            yield xdv[at + size : end]
            at = end
        else:
            at = _after(xdv, at, operation)


def _after(xdv: bytes, at: int, operation: int) -> int:
    """Return the end of an operation of variable length."""
    if 243 <= operation <= 246:  # a font of TeX's own is defined
        at += operation - 242 + 12
        return at + 2 + xdv[at] + xdv[at + 1]
    if operation == 247:  # preamble
        return at + 14 + xdv[at + 13]
    if operation == 252:  # a font of the system is defined
        flags = _number(xdv, at + 8, 2)
        return at + 11 + xdv[at + 10] + 4 + 4 * sum(bool(flags & bit) for bit in (0x200, 0x1000, 0x2000, 0x4000))
    if operation == 254:  # the text of the glyphs that follow
        at += 2 + 2 * _number(xdv, at, 2)
    elif operation != 253:
        raise UnreadableXdvError
    return at + 6 + 10 * _number(xdv, at + 4, 2)  # glyphs


def _number(xdv: bytes, at: int, size: int) -> int:
    return int.from_bytes(xdv[at : at + size], "big")
