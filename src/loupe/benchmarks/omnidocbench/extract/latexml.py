r"""LaTeX tables as HTML by LaTeXML (`latexmlc`), which OmniDocBench 1.6 uses if it is installed.

Protocol: docs/protocols/omnidocbench_v16.md#latex-tables. A table is text that a model wrote, and LaTeXML reads files:
only tables whose commands are all known as harmless are converted.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
from typing import Final

from loupe.benchmarks.omnidocbench.text.guarded_latex import MAX_LENGTH
from loupe.benchmarks.omnidocbench.text.table_normalization import normalize_table_1_6
from loupe.data.user_folders import cache_folder
from loupe.errors import MissingToolError
from loupe.files.scratch import scratch_folder
from loupe.helpers import said_by
from loupe.metrics.blob_cache import BlobCache
from loupe.metrics.cdm.drawing.harmless_formulas import unheard_names
from loupe.metrics.cdm.drawing.limited_processes import run_limited
from loupe.metrics.latex_nodes import is_damaged

_PROGRAM: Final = "latexmlc"
#: What tables are written with beside mathematics; none of it reads, defines or runs anything.
_OF_TABLES: Final = """
    table endtable table* endtable* tabular* endtabular* tabularx endtabularx caption centering label small
    footnotesize tiny scriptsize normalsize large cellcolor rowcolor columncolor color makecell thead
    addlinespace textwidth linewidth columnwidth arraybackslash raggedright newline tabularnewline specialrule
    aboverulesep belowrulesep tabcolsep footnotemark textcircled checkmark
"""
_PACKAGES: Final = (
    "subcaption,url,graphicx,caption,multirow,booktabs,color,colortbl,xcolor,soul,framed,fontspec,amsmath,amssymb,"
    "mathtools,bm,mathrsfs,textcomp"
)
_SECONDS: Final = 60
_LONGEST_PAGE: Final = 4 << 20
_INSIDE: Final = re.compile(r"<table[^>]*>(.*)</table>", re.DOTALL)


@functools.lru_cache(maxsize=1)
def latexml_version() -> str:
    """Return what LaTeXML says of itself; "" if it is not installed."""
    if shutil.which(_PROGRAM) is None:
        return ""
    done = said_by([_PROGRAM, "--VERSION"], seconds=_SECONDS)
    return " ".join((done.stdout or done.stderr).split())[:100]


def need_latexml() -> None:
    """Raise MissingToolError if LaTeXML is not installed."""
    if not latexml_version():
        raise MissingToolError("latexmlc is not installed: latex_tables=latexml needs it", hint="apt install latexml")


def html_of_latex_table(latex: str) -> str:
    """Return the tables that LaTeXML makes of this, normalised; "" if it makes none or may not read this."""
    unheard = unheard_names(latex)
    if unheard is None or not unheard.issubset(_OF_TABLES.split()):
        return ""
    if is_damaged(latex, longest=MAX_LENGTH, delimiters=False):
        return ""
    key = hashlib.sha256(f"{latexml_version()}\0{latex}".encode("utf-8", "surrogatepass")).digest()
    page = _cache().find([key]).get(key)
    if page is None:
        page = _convert(latex)
        if page is None:
            return ""
        _cache().keep({key: page})
    tables = _INSIDE.findall(page.decode("utf-8", "replace"))
    return normalize_table_1_6("\n".join(f"<table>{table}</table>" for table in tables)) if tables else ""


@functools.lru_cache(maxsize=1)
def _cache() -> BlobCache:
    return BlobCache(cache_folder() / "latexml.sqlite")


def _convert(latex: str) -> bytes | None:
    """Return the page that LaTeXML writes, b"" if it writes none; None if somebody ended it."""
    document = f"\\documentclass{{article}}\\usepackage{{{_PACKAGES}}}\\begin{{document}}\n{latex}\n\\end{{document}}\n"
    with scratch_folder("loupe-latexml-") as folder:
        (folder / "table.tex").write_text(document, "utf-8", "replace")
        words = [_PROGRAM, "--quiet", "--format=html5", "--nocomments", "--nodefaultresources"]
        words += [f"--timeout={_SECONDS}", "--destination=table.html", "table.tex"]
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder), "LC_ALL": "C.UTF-8"}
        ending = run_limited(words, folder, seconds=_SECONDS, environment=environment)
        written = folder / "table.html"
        if ending == "killed":
            return None
        return written.read_bytes()[:_LONGEST_PAGE] if written.is_file() else b""
