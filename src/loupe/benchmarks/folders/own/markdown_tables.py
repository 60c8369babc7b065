"""One spelling for the tables of a Markdown text: pipes for plain ones, and HTML where cells are merged.

Definition: docs/scoring-rules.md. A table whose cells hold what pipes cannot (lists, images, links, formulas in MathML,
another table) stays as it is written.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from loupe.benchmarks.folders.own.html_tables import Cell, as_parsed, read_one, table_places
from loupe.benchmarks.folders.own.tables import MAX_CELLS, MAX_COLUMNS, MAX_ROWS, escape_text, within_limits
from loupe.benchmarks.shared.table_answers.gfm_tables import pipe_tables_in, rows_of_table, width_of_table

#: What no cell between pipes can hold.
_RICH = re.compile(r"<(?:a|img|math|svg|ul|ol|dl|li|pre|blockquote|h[1-6]|input|object|video|audio)\b", re.IGNORECASE)
_SPELLED = {"b": "**", "strong": "**", "i": "*", "em": "*", "code": "`"}
_EMPHASIS = re.compile(rf"</?({'|'.join(_SPELLED)})>")
_BREAK = re.compile(r"\s*+(?:</?(?:br|p|div|center|section|address|hr)>\s*+)+")


def unify_tables(text: str) -> str:
    """The text with every table in one spelling, on lines of its own."""
    parts = []
    end = 0
    for start, stop in table_places(text) if "<table" in text.casefold() else ():
        parts += [_unify_pipes(text[end:start]), _unified(text[start:stop])]
        end = stop
    return "".join([*parts, _unify_pipes(text[end:])])


def _unified(source: str) -> str:
    """A table in HTML in the spelling that its cells allow."""
    nested = "<table" in source[1:].casefold()
    table = None if nested or _RICH.search(source) else read_one(source)
    if table is None or not within_limits(table.rows):
        return _unify_pipes(source)  # "<table>" in prose, say
    outside = f"{table.outside}\n" if table.outside else ""
    merged = any(cell.rowspan > 1 or cell.colspan > 1 for row in table.rows for cell in row)
    return f"\n{outside}{(_written if merged else _piped)(table.rows)}\n"


def _unify_pipes(text: str) -> str:
    if "|" not in text:
        return text
    lines = text.split("\n")
    return "\n".join(_lines_unified(lines))


def _lines_unified(lines: Sequence[str]) -> Iterator[str]:
    end = 0
    for table in pipe_tables_in(lines):
        yield from lines[end : table.start]
        end = table.stop
        written = lines[table.start : end]
        # Short rows are filled up, so that a few characters could ask for any number of cells.
        width = width_of_table(written)
        if width > MAX_COLUMNS or len(written) > MAX_ROWS or width * len(written) > MAX_CELLS:
            yield from written
        else:
            yield _piped([[_cell_of_pipes(cell) for cell in row] for row in rows_of_table(written)])
    yield from lines[end:]


def _cell_of_pipes(cell: str) -> Cell:
    if "<" not in cell and "&" not in cell:
        return Cell(1, 1, html.escape(cell, quote=False))
    return Cell(1, 1, html.escape(cell, quote=False) if _RICH.search(cell) else as_parsed(escape_text(cell)))


def _piped(rows: Sequence[Sequence[Cell]]) -> str:
    """Rows between pipes, all as long as the longest, with a rule below the first."""
    width = max(map(len, rows))
    lines = [[_spelled(cell).replace("|", "\\|") for cell in row] + [""] * (width - len(row)) for row in rows]
    return "\n".join(f"|{'|'.join(line)}|" for line in (lines[0], ["---"] * width, *lines[1:]))


def _written(rows: Sequence[Sequence[Cell]]) -> str:
    """Rows in HTML on one line: no sections, no header cells, no attributes but spans."""
    lines = []
    for row in rows:
        lines.append("<tr>")
        for cell in row:
            spans = f' rowspan="{cell.rowspan}"' if cell.rowspan > 1 else ""
            spans += f' colspan="{cell.colspan}"' if cell.colspan > 1 else ""
            lines.append(f"<td{spans}>{_spelled(cell)}</td>")
        lines.append("</tr>")
    return f"<table>{''.join(lines)}</table>"


def _spelled(cell: Cell) -> str:
    """The contents of a cell as Markdown on one line; sup, sub and the like have no other spelling than HTML."""
    inner = _EMPHASIS.sub(lambda tag: _SPELLED[tag[1]], cell.inner)
    inner = _BREAK.sub("<br>", inner).removeprefix("<br>").removesuffix("<br>")
    return " ".join(html.unescape(inner).split())
