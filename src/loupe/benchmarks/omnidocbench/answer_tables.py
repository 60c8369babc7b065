"""Find HTML, LaTeX and Markdown tables in an answer, and convert them to HTML."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from loupe.benchmarks.omnidocbench.delimiters import (
    Delimiters,
    Piece,
    blank,
    outermost,
    pieces,
    replaced,
    with_replacements,
)
from loupe.benchmarks.omnidocbench.formula_normalization import MAX_LENGTH
from loupe.benchmarks.omnidocbench.records import Item
from loupe.benchmarks.omnidocbench.text_normalization import normalize_table_1_6
from loupe.benchmarks.shared.table_answers.spellings import (
    cells_of_row,
    environments,
    is_delimiter_row,
    table_of_tabular,
)
from loupe.data.user_folders import cache_folder
from loupe.errors import MissingToolError
from loupe.files.scratch import scratch_folder
from loupe.helpers import said_by
from loupe.metrics.blob_cache import BlobCache
from loupe.metrics.cdm.drawing.harmless_formulas import unheard_names
from loupe.metrics.cdm.drawing.limited_processes import run_limited
from loupe.metrics.latex_nodes import is_damaged

_BEGIN = re.compile("<table")
_END = re.compile("</table>")


def take_html_tables(text: str) -> tuple[list[Item], str]:
    """The outermost HTML tables, and the text with blanks in their places."""
    last_bracket = text.rfind(">")
    begins = [match.start() for match in _BEGIN.finditer(text) if match.end() <= last_bracket]
    ends = [match.start() for match in _END.finditer(text)]
    spans = outermost(begins, ends, step=len("</table>"))
    items = [Item(category="html_table", content=text[start:end], start=start, end=end) for start, end in spans]
    return items, blank(text, spans)


_LATEX_TABLE = Delimiters(r"\begin{table}", r"\end{table}")
_TABULAR = re.compile(re.escape(r"\begin{tabular}"))
_TABULAR_END = re.compile(re.escape(r"\end{tabular}"))
#: `\end{tabular}` has 13 characters; the official search takes the length of its regex, which has 14.
_TABULAR_STEP = 14


def take_latex_tables(text: str) -> tuple[list[Item], str]:
    """The LaTeX tables in the order of their starts, and the text with blanks in their places."""
    tables = [(piece.start, piece.end) for piece in pieces(text, [_LATEX_TABLE])]
    rest = blank(text, tables)
    found = [(start, end, text) for start, end in tables]
    found += [(start, end, rest) for start, end in tabulars_with_the_character_behind(rest)]
    found.sort(key=lambda each: each[0])
    items = [
        Item(category="latex_table", content=source[start:end], start=start, end=end) for start, end, source in found
    ]
    return items, blank(rest, [(item.start, item.end) for item in items])


def tabulars_with_the_character_behind(text: str) -> list[tuple[int, int]]:
    r"""Outermost `tabular` environments, each with the one character that follows it (#latex-tables).

    A paragraph break behind a table thereby becomes a single newline, which separates nothing.
    """
    begins = [match.start() for match in _TABULAR.finditer(text)]
    ends = [match.start() for match in _TABULAR_END.finditer(text)]
    return [(start, min(end, len(text))) for start, end in outermost(begins, ends, step=_TABULAR_STEP)]


_BARS = Delimiters("|", "|\n")
_HTML_TABLE = Delimiters("<table", "</table>")
_BARE_TABLE = Delimiters("<table>", "</table>")
_COMMENT = Delimiters("<!--", "-->")
_SECTION_TAG = re.compile("</?t(able|head|body)>")


def take_bar_tables(text: str) -> tuple[list[Item], str]:
    """The tables made of lines with bars, and the rest of the *converted* text: offsets are its own (#markdown-tables).

    Fewer than two stretches from a bar to a bar that ends a line are no table, and leave the text as it is.
    """
    if text.count("|") < 2 or len(stretches_of_bars(text + "\n")) < 2:
        return [], text
    text = bar_tables_to_html(text)
    tables = list(pieces(text, [_HTML_TABLE]))
    items = [
        Item(
            category="html_table",
            content=text[table.start : table.end],
            start=table.start,
            end=table.end,
            fine_category="md2html_table",
        )
        for table in tables
    ]
    return items, blank(text, [(table.start, table.end) for table in tables])


def stretches_of_bars(text: str) -> list[Piece]:
    """From a bar to the next bar that ends a line: mostly a row, but also prose behind a stray bar (#bar-tables)."""
    return list(pieces(text, [_BARS]))


def bar_tables_to_html(text: str) -> str:
    """The text with its Markdown tables as HTML, and the damage that the official conversion does (#bar-tables)."""
    text = text.replace("\r", "") + "\n"
    rows = stretches_of_bars(text)
    text = with_replacements(text, rows, [_render(text[row.start : row.end]) for row in rows])
    text = "\n".join(merge_neighbours(text.split("\n")))
    return text.replace("<table>", '<table border="1" >').replace("<td>", '<td colspan="1" rowspan="1">')


def _render(stretch: str) -> str:
    """One stretch as a table of its own: its first line is the header, its second is dropped (#bar-tables)."""
    rows = [line.strip() for line in stretch.strip().split("\n")]
    lines = ["<table>", "  <thead>", "    <tr>"]
    lines += [f"      <th>{cell}</th>" for cell in _cells(rows[0])]
    lines += ["    </tr>", "  </thead>", "  <tbody>"]
    for row in rows[2:]:
        lines += ["    <tr>", *(f"      <td>{cell}</td>" for cell in _cells(row)), "    </tr>"]
    return "\n".join([*lines, "  </tbody>", "</table>", ""])


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")[1:-1]]


def merge_neighbours(lines: Sequence[str]) -> list[str]:
    """Make one table of those that follow one another (#bar-tables).

    The line directly above a table vanishes in it, as does any of its lines with a colon or three hyphens.
    """
    output, table, in_table, last = [], [], False, ""
    for line in lines:
        if "<table>" in line:
            in_table = True
            table.append(last)
        elif in_table:
            table += () if _is_lost(last) else ("\n", last)
            if "</table>" in last:
                in_table = False
                output.append(_merged("".join(table)))
                table = []
        else:
            output.append(last)
        last = line
    if last and (in_table or "</table>" in last):
        output.append(_merged("".join([*table, "\n", last])))
    elif last:
        output.append(last)
    return output


def _is_lost(line: str) -> bool:
    """True if the official conversion takes a line for the rule under a header, or drops it with one (#bar-tables)."""
    return ":" in line or "---" in line or "</thead>" in line


def _merged(block: str) -> str:
    """The lines of all tables of a block in one table; tables of at most two lines are left out."""
    block = replaced(block, _COMMENT, "")
    kept: list[str] = []
    for table in pieces(block, [_BARE_TABLE]):
        lines = [_as_cells(line) for line in block[table.start : table.end].split("\n")]
        rows = [line for line in lines if not _SECTION_TAG.search(line)]
        kept += rows if len(rows) > 2 else []
    return "\n\n<table>\n" + "\n".join(kept) + "\n</table>\n\n"


def _as_cells(line: str) -> str:
    return line.replace("<th>", "<td>").replace("</th>", "</td>") if "<th>" in line else line


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


def latex_table_to_html(latex: str) -> str:
    r"""Every `tabular` of a predicted LaTeX table as a `<table>`; "" where there is none.

    >>> latex_table_to_html("\\begin{tabular}{ll} a & b \\\\ \\end{tabular}")
    '<table><tr><td>a</td><td>b</td></tr></table>'
    """
    return "".join(table_of_tabular(latex[span.start : span.end]) for span in environments(latex, "tabular"))


def tables_in(lines: Sequence[str]) -> Iterator[range]:
    """The lines of each table: below a header with its rule all with a bar, or two lines and more between bars."""
    line = 0
    while line + 1 < len(lines):
        end = line
        if _is_header(lines[line], lines[line + 1]):
            end = line + 2
            while end < len(lines) and "|" in lines[end]:
                end += 1
        else:
            while end < len(lines) and _is_boxed(lines[end]):
                end += 1
        if end - line >= 2:
            yield range(line, end)
        line = max(end, line + 1)


def _is_header(line: str, below: str) -> bool:
    if "|" not in line or not is_delimiter_row(below) or is_delimiter_row(line):
        return False
    return len(cells_of_row(line)) == len(cells_of_row(below))


def _is_boxed(line: str) -> bool:
    line = line.strip()
    return len(line) > 1 and line.startswith("|") and line.endswith("|")


_CELL, _CELL_END = '<td colspan="1" rowspan="1">', "</td>"


class BarLosses(NamedTuple):
    """Cells that came out of no table, lines swallowed above one, and stretches of prose that became rows."""

    cells: int = 0
    lines_above: int = 0
    stray: int = 0


def bar_losses(text: str, converted: Iterable[Item]) -> BarLosses:
    """`converted` are the tables that `take_bar_tables` took from `text`."""
    stretches = stretches_of_bars(text + "\n")
    if len(stretches) < 2:
        return BarLosses()
    lines = text.split("\n")
    tables = list(tables_in(lines))
    in_table = {line for table in tables for line in table}
    rows = [lines[line] for line in sorted(in_table) if not is_delimiter_row(lines[line])]
    before = Counter(cell for row in rows for cell in cells_of_row(row) if cell)
    after = Counter(cell for item in converted for cell in _cells_of(item))
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    above = stray = 0
    behind = 0  # the line behind the stretch before
    for stretch in stretches:
        first, last = (bisect_right(starts, offset) - 1 for offset in (stretch.start, stretch.end - 1))
        prose = {line for line in range(max(behind, first - 1), last + 1) if line not in in_table}
        above += first - 1 in prose and bool(lines[first - 1].strip())
        above += first in prose and bool(text[starts[first] : stretch.start].strip())
        stray += any(lines[line].strip() for line in prose if line >= first)
        behind = last + 1
    return BarLosses(cells=(before - after).total(), lines_above=above, stray=stray)


def _cells_of(table: Item) -> Iterable[str]:
    for line in table.content.split("\n"):
        cell = line.strip()
        if cell.startswith(_CELL) and cell.endswith(_CELL_END):
            yield cell.removeprefix(_CELL).removesuffix(_CELL_END)
