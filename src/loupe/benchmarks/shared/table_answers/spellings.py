"""Find the tables of an answer in every spelling that models use: HTML, LaTeX tabulars, Markdown pipes.

Pipe tables are read as GitHub reads them, and by the rules of opendataloader-bench. Spans say where HTML tables, tags,
LaTeX environments and links are.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

_HEADER_CELL = re.compile(r"(</?)th\b", re.IGNORECASE)
_SECTION = re.compile(r"</?(?:thead|tbody)\b[^<>]*>", re.IGNORECASE)
_SPACE_IN_CELL = re.compile(r"(?<=>)\s+|\s+(?=<)")
_RULES = re.compile(r"\\(?:hline|toprule|midrule|bottomrule)\b|\\cline\{[^{}]*\}")
_ROW_END = re.compile(r"\\\\(?:\[[^\[\]]*\])?")
_CELL_END = re.compile(r"(?<!\\)&")
_BOLD = re.compile(r"\\textbf\{([^{}]*)\}|\*\*([^*]*)\*\*")
_ESCAPED = re.compile(r"\\([%&$#_])")


def tables_of_answer(answer: str) -> list[str]:
    """All tables of a page in order, as `<table>` of `tr` and `td`, without sections or space around cell texts."""
    for found in (_html_tables, _latex_tables, _pipe_tables):
        tables = [_uniform(table) for table in found(answer)]
        if tables:
            return tables
    return []


def _html_tables(text: str) -> Iterator[str]:
    return (text[span.start : span.end] for span in html_tables(text))


def _latex_tables(text: str) -> Iterator[str]:
    return (table_of_tabular(text[span.start : span.end]) for span in environments(text, "tabular"))


def _pipe_tables(text: str) -> Iterator[str]:
    return (table.html for table in pipe_tables(text))


def _uniform(table: str) -> str:
    return _SPACE_IN_CELL.sub("", _SECTION.sub("", _HEADER_CELL.sub(r"\1td", table)))


def table_of_tabular(source: str) -> str:
    r"""A `\begin{tabular}..\end{tabular}` as HTML, spans of `\multicolumn` and `\multirow` included."""
    inside = source.removeprefix("\\begin{tabular}").removesuffix("\\end{tabular}").lstrip()
    if inside.startswith("["):
        inside = inside.partition("]")[2].lstrip()
    _, inside = _arguments(inside, 1)
    rows = (_RULES.sub("", row) for row in _ROW_END.split(inside))
    cells = ("".join(map(_cell, _CELL_END.split(row))) for row in rows if row.strip())
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _cell(text: str) -> str:
    spans = ""
    text = text.strip()
    for command, attribute in (("\\multicolumn", "colspan"), ("\\multirow", "rowspan")):
        if text.startswith(command):
            given, rest = _arguments(text[len(command) :], 3)
            if len(given) == 3 and given[0].strip().isdecimal():
                spans += f' {attribute}="{int(given[0][:6])}"'
                text = (given[2] + rest).strip()
    return f"<td{spans}>{html.escape(_plain(text), quote=False)}</td>"


def _plain(text: str) -> str:
    return _ESCAPED.sub(r"\1", _BOLD.sub(lambda bold: bold[1] or bold[2] or "", text)).strip()


def _arguments(text: str, count: int) -> tuple[list[str], str]:
    """Up to `count` brace groups at the start of a text, and what follows them; a group may hold groups."""
    found: list[str] = []
    position = 0
    while len(found) < count and text[position : position + 1] == "{":
        depth = 0
        for brace in re.finditer(r"\\.|[{}]", text[position:], re.DOTALL):
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            if depth == 0:
                break
        else:
            break
        end = position + brace.end()
        found.append(text[position + 1 : end - 1])
        position = end
    return found, text[position:]


_DASHES = re.compile(r"[-:]+")
_MAX_CELLS = 200_000


class PipeTable(NamedTuple):
    """A table's place in the text, its HTML, and the line end after its header."""

    span: Span
    html: str
    line_end: str


class _Line(NamedTuple):
    start: int
    end: int
    text: str
    line_end: str


def convert_pipe_tables(text: str) -> str:
    """The text with every pipe table written as HTML on one line."""
    parts = []
    position = 0
    for table in pipe_tables(text):
        parts += [text[position : table.span.start], table.html, table.line_end]
        position = table.span.end
    return "".join([*parts, text[position:]])


def pipe_tables(text: str) -> Iterator[PipeTable]:
    """Every pipe table: a row, a separator row, and all rows that follow directly."""
    lines = list(_lines(text)) if "|" in text else []
    place = 0
    while place + 1 < len(lines):
        header, separator = _cells(lines[place].text), _cells(lines[place + 1].text)
        if not header or not separator or not all(_DASHES.fullmatch(cell.replace(" ", "")) for cell in separator):
            place += 1
            continue
        first = place
        place += 2
        body = []
        while place < len(lines) and (row := _cells(lines[place].text)) is not None:
            body.append(row)
            place += 1
        span = Span(lines[first].start, lines[place - 1].end)
        yield PipeTable(span, _html(header, body, width=max(len(header), len(separator))), lines[first].line_end)


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.splitlines(keepends=True):
        body = line.rstrip("\r\n")
        yield _Line(start, start + len(line), body, line[len(body) :])
        start += len(line)


def _cells(line: str) -> list[str] | None:
    """The cells of a row, stripped; None for a line that is no row."""
    if "|" not in line:
        return None
    bare = line.strip()
    cells = bare.split("|")
    if bare.startswith("|"):
        del cells[0]
    if bare.endswith("|"):
        del cells[-1:]
    return [cell.strip() for cell in cells]


def _html(header: list[str], body: list[list[str]], *, width: int) -> str:
    if width * (len(body) + 1) > _MAX_CELLS:
        body = body[: _MAX_CELLS // width]
    rows = [fit_row(row, width) for row in body]
    head = fit_row(header, width)
    if not any(head) and rows:
        head = rows.pop(0)
    return f"<table>{_row(head, 'th')}{''.join(_row(row, 'td') for row in rows)}</table>"


def fit_row(cells: list[str], width: int) -> list[str]:
    """A row as wide as the table: filled with empty cells, or cut.

    Kept for parity: of exactly three cells the middle one is repeated.
    """
    if len(cells) == 3 < width:
        return [cells[0], *[cells[1]] * (width - 2), cells[2]]
    return [*cells, *[""] * (width - len(cells))][:width]


def _row(cells: list[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


_BAR = re.compile(r"\\.|(\|)", re.DOTALL)
_DELIMITER = re.compile(r":?-++:?")


def cells_of_row(line: str) -> list[str]:
    r"""The texts between the pipes of a line. A pipe with a backslash before it is a character, in code as elsewhere.

    >>> cells_of_row(r"| a \| b | `c \| d` |"), cells_of_row("a | b")
    (['a | b', '`c | d`'], ['a', 'b'])
    """
    row = line.strip().removeprefix("|")
    bars = [bar.start() for bar in _BAR.finditer(row) if bar[1]]
    cells = [row[start + 1 : end].strip() for start, end in zip([-1, *bars], [*bars, len(row)], strict=True)]
    if bars and not cells[-1]:
        del cells[-1]
    return [cell.replace(r"\|", "|") for cell in cells]


def is_delimiter_row(line: str) -> bool:
    """Return whether a line is the row of hyphens below a header, with colons or without."""
    return "-" in line and all(map(_DELIMITER.fullmatch, cells_of_row(line)))


def pipe_tables_in(lines: Sequence[str]) -> Iterator[range]:
    """The lines of each table: a header, its delimiter row, and all lines with a pipe that follow."""
    place = 0
    while place + 1 < len(lines):
        # The cheap questions come first: most lines are no part of a table.
        if "|" not in lines[place] or not is_delimiter_row(lines[place + 1]) or is_delimiter_row(lines[place]):
            place += 1
            continue
        end = place + 2
        while end < len(lines) and "|" in lines[end]:
            end += 1
        yield range(place, end)
        place = end


def width_of_table(lines: Sequence[str]) -> int:
    """Return the number of columns: the cells of the header or of the row of hyphens, whichever has more."""
    return max(len(cells_of_row(line)) for line in lines[:2])


def rows_of_table(lines: Sequence[str]) -> Iterator[list[str]]:
    """Yield the header and the rows below it. Short rows get empty cells, long ones are cut to the table's width.

    A few characters may thereby ask for many cells: take no more rows than are wanted.
    """
    width = width_of_table(lines)
    for row in map(cells_of_row, (lines[0], *lines[2:])):
        yield [*row, *[""] * (width - len(row))][:width]


_TABLE_START = re.compile("<table", re.IGNORECASE)
_TABLE_END = re.compile("</table>", re.IGNORECASE)


class Span(NamedTuple):
    """A part of a text, from `start` up to `end`."""

    start: int
    end: int


class Link(NamedTuple):
    """A Markdown link or image, from `start` up to `end`, and the text in its brackets."""

    start: int
    end: int
    label: str


def html_tables(text: str) -> Iterator[Span]:
    """Every `<table[^>]*>.*?</table>`: the shortest, in any case, across lines."""
    position = 0
    while start := _TABLE_START.search(text, position):
        inside = text.find(">", start.end())
        end = _TABLE_END.search(text, inside + 1) if inside >= 0 else None
        if end is None:
            return
        yield Span(start.start(), end.end())
        position = end.end()


def tags(text: str) -> Iterator[Span]:
    """Every `<[^>]+>`."""
    position = 0
    while (start := text.find("<", position)) >= 0:
        if text[start + 1 : start + 2] == ">":
            position = start + 2
            continue
        end = text.find(">", start + 1)
        if end < 0:
            return
        yield Span(start, end + 1)
        position = end + 1


def between(text: str, opening: str, closing: str) -> Iterator[Span]:
    """Every part from a literal up to the next closing literal, both included."""
    position = 0
    while (start := text.find(opening, position)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            return
        position = end + len(closing)
        yield Span(start, position)


def environments(text: str, name: str) -> Iterator[Span]:
    r"""Every `\begin{name}..\end{name}`; the first end closes."""
    return between(text, f"\\begin{{{name}}}", f"\\end{{{name}}}")


def links(text: str, mark: str) -> Iterator[Link]:
    r"""Every `mark` + `[^\]]*` + `](` + `[^)]*` + `)`: links for the mark `[`, images for `![`."""
    position, bracket, end = 0, -1, -1
    while (start := text.find(mark, position)) >= 0:
        inside = start + len(mark)
        # A bracket found before stays the next one, so that a megabyte of `[` is read once.
        bracket = bracket if bracket >= inside else text.find("]", inside)
        if bracket < 0:
            return
        if text[bracket + 1 : bracket + 2] != "(":
            position = start + 1
            continue
        end = end if end >= bracket + 2 else text.find(")", bracket + 2)
        if end < 0:
            return
        yield Link(start, end + 1, text[inside:bracket])
        position = end + 1


def replace(text: str, spans: Iterable[Span | Link], by: str = "") -> str:
    """The text with something else in place of the given parts, which are in order and do not overlap."""
    parts = []
    position = 0
    for span in spans:
        parts += [text[position : span.start], by]
        position = span.end
    return "".join([*parts, text[position:]])


def unlink(text: str) -> str:
    """The text with its Markdown links replaced by what stands in their brackets."""
    parts = []
    position = 0
    for link in links(text, "["):
        parts += [text[position : link.start], link.label]
        position = link.end
    return "".join([*parts, text[position:]])
