"""Read the tables of an answer, from HTML or Markdown, as cells at grid places, and write them in one spelling.

HTML is read as a browser reads it; in Markdown, plain tables have pipes, and those with merged cells are HTML.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

import nh3

from loupe.benchmarks.shared.table_answers.spellings import pipe_tables_in, rows_of_table, width_of_table

#: Text by (row, column) of a cell's upper left corner.
Grid: TypeAlias = dict[tuple[int, int], str]

MAX_CELLS = 20_000
MAX_COLUMNS = 1_000
MAX_ROWS = 5_000

#: What CommonMark takes for markup in a line of text; a "<" elsewhere is a character. A comment without an end is none,
#: and then ends the search.
_INLINE_MARKUP = re.compile(
    r"""<!--(?:.*?-->|.*)|</[A-Za-z][A-Za-z0-9-]*+\s*+>"""
    r"""|<[A-Za-z][A-Za-z0-9-]*+(?>(?:\s++[A-Za-z_:][\w.:-]*+(?>(?:\s*+=\s*+(?>"[^"]{0,2000}+"|'[^']{0,2000}+'|[^\s"'=<>`]++))?))*)"""
    r"""\s*+/?+>""",
    re.DOTALL,
)


def read_table(answer: str) -> Grid:
    """The first table of an answer (HTML before Markdown); no table: an empty grid."""
    return place(_rows(answer))


def read_rows(answer: str) -> list[list[Cell]]:
    """The rows of the first table of an answer, with the same limits; no table: no rows."""
    kept: list[list[Cell]] = []
    left = MAX_CELLS
    for row in _rows(answer)[:MAX_ROWS]:
        kept.append(row[: min(left, MAX_COLUMNS)])
        left -= len(kept[-1])
    return kept


def within_limits(rows: Sequence[Sequence[Cell]]) -> bool:
    """True if rows are read whole."""
    return len(rows) <= MAX_ROWS and max(map(len, rows)) <= MAX_COLUMNS and sum(map(len, rows)) <= MAX_CELLS


def _rows(answer: str) -> list[list[Cell]]:
    return first_table(answer) or _pipe_rows(answer)


def place(rows: Iterable[list[Cell]]) -> Grid:
    """Put cells on the grid as HTML does: each takes the first free place of its row, spans reserve theirs."""
    grid: Grid = {}
    #: How many further rows each column is taken for.
    taken: dict[int, int] = {}
    for row, cells in enumerate(islice(rows, MAX_ROWS)):
        column = 0
        reserved: dict[int, int] = {}
        for cell in cells:
            while taken.get(column, 0) > 0:
                column += 1
            if len(grid) >= MAX_CELLS:
                return grid
            if column >= MAX_COLUMNS:
                break
            grid[row, column] = cell.text
            if cell.rowspan > 1:
                reserved |= dict.fromkeys(range(column, column + cell.colspan), cell.rowspan)
            column += cell.colspan
        taken = {column: left - 1 for column, left in taken.items() if left > 1}
        taken |= {column: left - 1 for column, left in reserved.items()}
    return grid


def _pipe_rows(answer: str) -> list[list[Cell]]:
    lines = answer.splitlines()
    table = next(pipe_tables_in(lines), range(0))
    if not table:
        return []
    written = lines[table.start : min(table.stop, table.start + MAX_ROWS + 1)]
    rows = islice(rows_of_table(written), MAX_CELLS // min(width_of_table(written), MAX_COLUMNS) + 1)
    return [[Cell(1, 1, escape_text(cell)) for cell in row[: MAX_COLUMNS + 1]] for row in rows]


def escape_text(cell: str) -> str:
    """A cell of Markdown as HTML: what is no markup in a line of Markdown is none in HTML either; comments go.

    >>> escape_text("p<0.05 <b>x</b><!-- image -->")
    'p&lt;0.05 <b>x</b>'
    """
    if "<" not in cell:
        return cell
    parts, end = [], 0
    for found in _INLINE_MARKUP.finditer(cell):
        if found[0].startswith("<!") and not found[0].endswith("-->"):
            break
        parts += [cell[end : found.start()].replace("<", "&lt;"), "" if found[0].startswith("<!") else found[0]]
        end = found.end()
    return "".join([*parts, cell[end:].replace("<", "&lt;")])


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


_GROUPS = ("thead", "tbody", "tfoot")
_PARTS = frozenset(("table", "caption", *_GROUPS, "tr", "td", "th"))
#: Elements that begin a new line in a cell: their words are never joined with those beside them.
_LINES = frozenset(
    (
        *("br", "p", "div", "li", "ul", "ol", "dl", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "pre"),
        *("blockquote", "center", "section", "article", "figure", "figcaption", "address"),
    )
)
#: What marks words without parting them.
_INLINE = frozenset(("b", "strong", "i", "em", "code", "sup", "sub", "u", "s", "del", "ins", "mark", "small"))
#: Formulas and drawings whose texts are seen; the parser leaves out what it is not told of in them.
_FOREIGN = frozenset(
    (
        *("math", "mi", "mn", "mo", "ms", "mtext", "mspace", "mrow", "mfrac", "msqrt", "mroot", "mstyle", "mpadded"),
        *("mfenced", "menclose", "msub", "msup", "msubsup", "munder", "mover", "munderover", "mmultiscripts"),
        *("mtable", "mtr", "mtd", "semantics", "svg", "g", "text", "tspan"),
    )
)
#: Elements whose contents a browser never shows.
_UNSEEN = frozenset(("script", "style", "template", "iframe", "noembed", "noframes", "title", "noscript"))
_SPANS = {"td": {"rowspan", "colspan"}, "th": {"rowspan", "colspan"}}

#: Where tables begin and end; comments and scripts are passed over.
_MARK = re.compile(
    r"<!--(?:.*?-->|.*)|<(script|style|textarea|title|xmp|iframe)\b(?:.*?</\1\b|.*)|<(/?)table(?=[\s/>])[^>]*>?",
    re.IGNORECASE | re.DOTALL,
)
_TAG = re.compile(r'<(/?)([a-z0-9]+)((?: [a-z-]+="[^"]*")*)>')
_ATTRIBUTE = re.compile(r' (row|col)span="[ \t\n\f\r]*\+?([0-9]+)')
_LINE_TAG = re.compile(rf"</?(?:{'|'.join(sorted(_LINES | _PARTS))})(?: [^<>]*)?>")
_ANY_TAG = re.compile(r"</?[a-z][^<>]*>")

#: What no honest table reaches, and no parser of HTML reads in time linear in it: a longer source, more tags that
#: are no parts of tables, attributes without end, kinds of emphasis that are never closed.
_LONGEST, _MOST_ELEMENTS, _MOST_EMPHASIS, _MOST_BRACKETS = 2_000_000, 20_000, 100, 20
_ELEMENT = re.compile(r"</?(?!(?:table|tr|td|th|tbody|thead|tfoot|br)\b)[A-Za-z]", re.IGNORECASE)
_LONG_TAG = re.compile(r"<[A-Za-z][^>]{2000}")
_QUOTED_BRACKET = re.compile(r"""=\s*+(?:"[^">]*+>|'[^'>]*+>)""")
_BROKEN_EMPHASIS = re.compile(r"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)\s[^>]*+>?", re.IGNORECASE)
_SOURCE_TAG = re.compile(r"<!--(?:.*?-->|.*)|</?([A-Za-z][A-Za-z0-9]*+)([^>]*+)>?", re.DOTALL)
_SOURCE_SPAN = re.compile(r"""\b(?:row|col)span\s*+=\s*+["']?+[0-9]{1,6}""", re.IGNORECASE)

#: Columns that a cell spans at most, by the standard.
_MOST_SPANNED = 1_000


@dataclass(slots=True)
class Cell:
    """A cell with the rows and columns that it covers. `inner` is its markup as the parser has it."""

    rowspan: int
    colspan: int
    inner: str = ""

    @property
    def text(self) -> str:
        """The words of the cell without markup, in one line."""
        return " ".join(html.unescape(_ANY_TAG.sub("", _LINE_TAG.sub(" ", self.inner))).split())


@dataclass(slots=True)
class HtmlTable:
    """The rows of a table from top to bottom, and the words that stand in it outside its cells."""

    rows: list[list[Cell]]
    outside: str = ""


@dataclass(slots=True)
class _Group:
    kind: str
    rows: list[list[Cell]] = field(default_factory=list)


def first_table(source: str) -> list[list[Cell]]:
    """The rows of the first table with a cell; none: no rows."""
    begins = next((mark for mark in _MARK.finditer(source) if mark[2] == ""), None)
    tables = _tables(as_parsed(source[begins.start() :])) if begins else iter(())
    return next((table.rows for table in tables if any(table.rows)), [])


def table_places(source: str) -> Iterator[tuple[int, int]]:
    """Yield the beginning and the end of each table that lies in no other; one never closed ends with the source."""
    depth = start = 0
    for mark in _MARK.finditer(source):
        if mark[2] is None:
            continue
        if mark[2] and depth == 1:
            yield start, mark.end()
        elif not mark[2] and depth == 0:
            start = mark.start()
        depth = max(0, depth - 1) if mark[2] else depth + 1
    if depth:
        yield start, len(source)


def read_one(source: str) -> HtmlTable | None:
    """The table of a source that is nothing but a table; None if it has no cell or is more than one table."""
    parsed = as_parsed(source)
    tables = list(_tables(parsed))
    if len(tables) != 1 or not any(tables[0].rows):
        return None
    before, _, _ = parsed.partition("<table")
    _, _, after = parsed.rpartition("</table>")
    outside = " ".join((before, tables[0].outside, after))
    return HtmlTable(tables[0].rows, Cell(1, 1, outside).text)


def as_parsed(source: str) -> str:
    """The markup as a browser has it: closed, nested as it must be, without comments, scripts and other elements."""
    if not _is_honest(source):
        source = _SOURCE_TAG.sub(_part_of_table, source[:_LONGEST])
    return nh3.clean(
        source, tags=_PARTS | _LINES | _INLINE | _FOREIGN, clean_content_tags=_UNSEEN, attributes=_SPANS, link_rel=None
    )


def _is_honest(source: str) -> bool:
    return (
        len(source) <= _LONGEST
        and not _LONG_TAG.search(source)
        and sum(1 for _ in _ELEMENT.finditer(source)) <= _MOST_ELEMENTS
        and sum(1 for _ in _QUOTED_BRACKET.finditer(source)) <= _MOST_BRACKETS
        and len({found[0] for found in _BROKEN_EMPHASIS.finditer(source)}) <= _MOST_EMPHASIS
    )


def _part_of_table(tag: re.Match[str]) -> str:
    """A tag of a table with its spans alone; nothing, or a space, for all other markup."""
    name = (tag[1] or "").lower()
    if name not in _PARTS:
        return " " if name in _LINES else ""
    slash = "/" if tag[0].startswith("</") else ""
    return f"<{slash}{name} {' '.join(_SOURCE_SPAN.findall(tag[2][:2000]))}>"


def _tables(parsed: str) -> Iterator[HtmlTable]:
    """The tables of parsed markup that lie in no other."""
    depth, begins, outside = 0, 0, 0
    groups: list[_Group] = []
    words: list[str] = []
    for tag in _TAG.finditer(parsed):
        closing, name, attributes = bool(tag[1]), tag[2], tag[3]
        if name == "table":
            depth += -1 if closing else 1
            if depth == 0:
                yield HtmlTable(_in_order(groups), " ".join(words))
            elif depth == 1 and not closing:
                groups, words = [], []
        elif depth != 1:
            continue
        elif name in _GROUPS and not closing:
            groups.append(_Group(name))
        elif name == "tr" and not closing:
            groups[-1].rows.append([])
        elif name in ("td", "th"):
            if closing:
                groups[-1].rows[-1][-1].inner = parsed[begins : tag.start()]
            else:
                begins = tag.end()
                spans = {kind: int(digits.lstrip("0")[:6] or 0) for kind, digits in _ATTRIBUTE.findall(attributes)}
                colspan = min(max(spans.get("col", 1), 1), _MOST_SPANNED)
                groups[-1].rows[-1].append(Cell(spans.get("row", 1), colspan))
        elif name == "caption":
            if closing:
                words.append(parsed[outside : tag.start()])
            outside = tag.end()


def _in_order(groups: list[_Group]) -> list[list[Cell]]:
    """All rows from top to bottom. Spans end with their group; a span of 0 rows is all that are left of it."""
    for group in groups:
        for place, row in enumerate(group.rows):
            left = len(group.rows) - place
            for cell in row:
                cell.rowspan = min(cell.rowspan or left, left)
    head = next((group for group in groups if group.kind == "thead"), None)
    foot = next((group for group in groups if group.kind == "tfoot"), None)
    body = (group for group in groups if group is not head and group is not foot)
    return [row for group in (head, *body, foot) if group for row in group.rows]
