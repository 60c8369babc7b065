"""HTML tables as a browser reads them: rows of cells, from any markup.

Source: HTML standard, 13.2 (html5ever, which nh3 brings, builds the tree); CSS 2.2, 17.2: the first header group is on
top and the first footer group at the bottom; row spans end with their group.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import nh3

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
_EMPHASIS = re.compile(r"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)\s[^>]*+>?", re.IGNORECASE)
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
        and len({found[0] for found in _EMPHASIS.finditer(source)}) <= _MOST_EMPHASIS
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
