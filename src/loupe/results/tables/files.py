"""Tables as texts for papers, pages and programs: LaTeX with booktabs, Markdown, CSV.

Whatever is foreign (names of engines, measures and benchmarks) stands in Markdown in code spans, where nothing of it
becomes markup or a mention of a person (CommonMark 0.31), and in LaTeX as characters that no command begins with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from unicodedata import normalize

from loupe.results.control_characters import on_one_line, printable
from loupe.results.tables.record import Cell, Column, Table, one_line
from loupe.results.tables.spreadsheet_cells import csv_lines

_LATEX = {
    **{char: f"\\{char}" for char in "{}$&#%_"},
    **{"\\": r"\textbackslash{}", "^": r"\^{}", "~": r"\textasciitilde{}", "|": r"\textbar{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", '"': r"\char34{}", "`": r"\textasciigrave{}"},
    **{"[": "{[}", "*": "{*}"},  # at the begin of a row they would belong to the line break above
    **{"–": r"\textendash{}", "…": r"\ldots{}", "±": r"$\pm$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "−": "$-$"},
    "\N{REPLACEMENT CHARACTER}": "?",  # LuaTeX takes it for a broken file
}
_ACCENTS = frozenset("\u0300\u0301\u0302\u0303\u0308\u030a\u030c\u0327")
#: Characters that pdfTeX has no glyph for: Unicode engines set them, it sets their numbers.
_GLYPH = r"\providecommand{\loupeglyph}[2]{\ifdefined\XeTeXversion#1\else\ifdefined\directlua#1\else\texttt{#2}\fi\fi}"
_CSV = ("column", "unit", "value", "low", "high", "n", "best", "significant")


def latex(table: Table) -> str:
    """A float for a paper that loads booktabs: best values bold, clear differences with a star, notes below."""
    columns = [_named(_column(head)) for head in table.header]
    kinds = "l" * table.keys + "r" * (len(columns) - table.keys)
    lines = [
        "% \\usepackage{booktabs} in the preamble",
        *([_GLYPH] if any(_latex(text) != _latex(text, glyph="") for text in _texts(table)) else []),
        r"\begin{table}",
        r"\centering",
        *([f"\\caption{{{_latex(table.title)}}}"] if table.title else []),
        f"\\begin{{tabular}}{{{kinds}}}",
        r"\toprule",
    ]
    lines += [f"{' & '.join(_latex(str(column)) for column in columns)} \\\\", r"\midrule"]
    lines += [f"{' & '.join(map(_latex_cell, row))} \\\\" for row in table.rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [f"\\par\\smallskip{{\\footnotesize {' '.join(map(_latex, table.notes))}\\par}}"] if table.notes else []
    return "\n".join([*lines, r"\end{table}", ""])


def _texts(table: Table) -> Iterator[str]:
    yield table.title
    yield from table.notes
    for column in map(_column, table.header):
        yield f"{column.group} {column}"
    for row in table.rows:
        yield from map(str, row)


def _column(head: Column | str) -> Column:
    return head if isinstance(head, Column) else Column(name=head)


def _named(column: Column) -> Column:
    """A column that says its group itself."""
    name = " ".join(filter(None, [column.group, column.name]))
    return Column(name=name, unit=column.unit, better=column.better)


def _latex_cell(cell: Cell | str) -> str:
    if isinstance(cell, str):
        return _latex(cell)
    text = f"\\textbf{{{_latex(cell.text)}}}" if "best" in cell.marks else _latex(cell.text)
    text += "$^{*}$" if "significant" in cell.marks else ""
    margin = f" [{cell.margin}]" if "…" in cell.margin else f" {cell.margin}" if cell.margin else ""
    note = f" ({cell.note})" if cell.note else ""
    return text + (f" {{\\footnotesize {_latex((margin + note).strip())}}}" if margin or note else "")


def _latex(text: str, glyph: str = r"\loupeglyph{{{0}}}{{U+{1:04X}}}") -> str:
    """A text without any command of its own.

    >>> _latex("a_b & 50 %")
    'a\\\\_b \\\\& 50 \\\\%'
    """
    shown = []
    for char in normalize("NFC", on_one_line(text)):
        parts = normalize("NFD", char)
        if char in _LATEX:
            shown.append(_LATEX[char])
        elif (
            char.isascii()
            or char in "ßæÆøØœŒ"
            or (len(parts) > 1 and parts[0].isascii() and _ACCENTS.issuperset(parts[1:]))
        ):
            shown.append(char)
        else:
            shown.append(glyph.format(char, ord(char)))
    return "".join(shown).replace("--", "-{}-").replace("--", "-{}-")


def markdown(table: Table) -> str:
    """A pipe table: best values bold, clear differences with a star, notes below."""
    header = [code(str(_named(_column(head)))) for head in table.header]
    parts = [f"**{code(table.title)}**"] if table.title else []
    parts.append(pipe_table(header, [list(map(_markdown_cell, row)) for row in table.rows], keys=table.keys))
    parts += [code(note, longest=1000) for note in table.notes]
    return "\n\n".join(parts) + "\n"


def _markdown_cell(cell: Cell | str) -> str:
    if isinstance(cell, str):
        return code(cell)
    text = f"**{cell.text}**" if "best" in cell.marks else cell.text
    text += r"\*" if "significant" in cell.marks else ""
    margin = f"[{cell.margin}]" if "…" in cell.margin else cell.margin
    return " ".join(filter(None, [text, margin, code(cell.note) if cell.note else ""]))


def code(text: str, *, longest: int = 160) -> str:
    """A text as a code span on one line, which also stands in a table: there is no bar in it, nor an end of its own.

    >>> code("a`b|c")
    '``a`b¦c``'
    """
    flat = one_line(printable(text), longest).replace("|", "¦") or "–"
    ticks = "`" * (max(map(len, re.findall("`+", flat)), default=0) + 1)
    space = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{ticks}{space}{flat}{space}{ticks}"


def pipe_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, keys: int | None = None) -> str:
    """A table of cells that are Markdown already; columns behind the first `keys` stand on the right."""
    rule = ["---" if keys is None or place < keys else "--:" for place in range(len(header))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in [header, rule, *rows])


def csv(table: Table) -> str:
    """A line for each value with its interval, fractions from 0 to 1; what names a row stands in each of its lines."""
    columns = list(map(_column, table.header))
    rows: list[list[str | float | int | None]] = [[*(one.name for one in columns[: table.keys]), "group", *_CSV]]
    for row in table.rows:
        for column, cell in zip(columns[table.keys :], row[table.keys :], strict=True):
            if isinstance(cell, Cell) and cell.estimate is not None:
                one = cell.estimate
                marks = [int(mark in cell.marks) for mark in ("best", "significant")]
                names = [*map(str, row[: table.keys]), column.group, column.name, column.unit]
                rows.append([*names, one.value, one.low, one.high, one.n, *marks])
    return csv_lines(rows).decode()


#: The layouts by the words of `--to`.
WRITERS: Mapping[str, Callable[[Table], str]] = {"latex": latex, "markdown": markdown, "csv": csv}
