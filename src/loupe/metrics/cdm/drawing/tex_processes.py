"""One run of TeX on hostile input: in an empty folder, without shell, with limits, and with nothing of the user's."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

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
from loupe.metrics.cdm.drawing.tex_documents import Template
from loupe.metrics.cdm.drawing.xdv_specials import is_harmless_xdv

Failure = Ending | Literal["refused", "too large", "no page", "several pages"]


@dataclass(frozen=True, slots=True)
class TexRun:
    """What a run has left, and how the program was ended if not by itself."""

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
