"""Turn HTML that models write into Markdown: headings, paragraphs, lists; tables and code stay as they are.

Chandra answers with one `<div>` for each block of the page; here blocks become a page that `html_text` reads.
Source: `parse_html` and `Markdownify` of datalab-to/chandra @ 3958707, chandra/output.py; docs/adapters.md. Not taken
from there: bold and italics as Markdown, escaped signs, names of image files.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator

_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
#: Tags that begin or end a block, and tags that only say how text looks or where it stands.
_BLOCKS = frozenset(
    {*_HEADINGS, *("p", "ul", "ol", "div", "section", "article", "header", "footer", "main", "html", "body")}
)
_INLINE = frozenset({"b", "strong", "i", "em", "u", "span"})
#: A fence line, a tag that means something here, or a character that is written by its name.
_TABLE_END = re.compile("</table", re.IGNORECASE)
_MARK = re.compile(
    rf"^ {{0,3}}```.*$|</?({'|'.join(sorted({*_BLOCKS, *_INLINE, 'li', 'br', 'table'}))})\b[^<>]*>"
    r"|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z]\w{1,30});",
    re.MULTILINE | re.IGNORECASE,
)


def html_text(text: str) -> str:
    """The page as Markdown where it has a heading or paragraph in HTML; any other answer as it is.

    >>> html_text("<h2>Tides</h2><p>High &amp; low,<br>twice a day</p>")
    '## Tides\\n\\nHigh & low,\\ntwice a day'
    """
    page = _Page()
    end = 0
    for mark in _marks(text):
        page.add_text(text[end : mark.start()])
        page.add_mark(mark[0], (mark[1] or "").lower())
        end = mark.end()
    page.add_text(text[end:])
    return "".join(page.parts).strip("\n") if page.is_html else text


def _marks(text: str) -> Iterator[re.Match[str]]:
    """Those outside of tables and fenced code. A table that never ends is none."""
    last_end = max((end.start() for end in _TABLE_END.finditer(text)), default=-1)
    tables, fenced = 0, False
    for mark in _MARK.finditer(text):
        if mark[0].lstrip(" ").startswith("```"):
            fenced = fenced if tables else not fenced
        elif fenced:
            continue
        elif (mark[1] or "").lower() == "table":
            closes = mark[0].startswith("</")
            tables = max(0, tables - 1) if closes else tables + (mark.start() < last_end)
        elif not tables:
            yield mark


class _Page:
    """The Markdown so far. `is_html`: a heading or paragraph came to its end."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.is_html = False
        self._after_break = True

    def add_text(self, text: str) -> None:
        text = text.lstrip() if self._after_break else text
        if text:
            self.parts.append(text)
            self._after_break = False

    def add_mark(self, mark: str, name: str) -> None:
        closes = mark.startswith("</")
        self.is_html |= closes and (name in _HEADINGS or name == "p")
        if not name:
            self.add_text(html.unescape(mark))
        elif name == "br":
            self._break("\n")
        elif name == "li":
            self._break("\n", "" if closes else "- ")
        elif name in _BLOCKS:
            self._break("\n\n", "" if closes else _HEADINGS.get(name, ""))

    def _break(self, lines: str, marker: str = "") -> None:
        """End the line or block, once; a paragraph right behind the marker of its list item begins none."""
        if self.parts and self.parts[-1] == "- " and not marker:
            return
        if not self._after_break:
            self.parts[-1] = self.parts[-1].rstrip()
            self.parts.append(lines)
        elif self.parts and self.parts[-1] == "\n" and lines == "\n\n":
            self.parts[-1] = lines
        self.parts += [marker] if marker else []
        self._after_break = True


_DIV = re.compile(r"<(/?)div\b([^<>]*)>", re.IGNORECASE)
_LABEL = re.compile(r"""data-label\s*=\s*["']([\w-]{1,40})["']""", re.IGNORECASE)
_MARGINS = frozenset({"page-header", "page-footer"})
_TABLE = re.compile(r"<(/?)table\b[^<>]*>", re.IGNORECASE)
_MATH = re.compile(r"<(/?)math\b([^<>]*)>", re.IGNORECASE)
_IMAGE = re.compile(r"""<img\b(?:[^<>"']|"[^"<>]*"|'[^'<>]*')*>""", re.IGNORECASE)
_ALT = re.compile(r"""\balt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)


def chandra_layout(text: str) -> str:
    """The blocks of an answer with an empty line between them, without page headers and footers; any other as it is.

    >>> chandra_layout('<div data-label="Text">Tides</div><div data-label="Page-Footer">3</div>')
    '<p>Tides</p>'
    """
    blocks = list(_blocks(text))
    if not any(label for label, _ in blocks):
        return text
    return "\n\n".join(_block(label, inside) for label, inside in blocks if label not in _MARGINS)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Label and content of each outermost `<div>`; one that never ends goes to the end of the answer."""
    depth, start, label = 0, 0, ""
    for mark in _DIV.finditer(text):
        if not mark[1]:
            if depth == 0:
                found = _LABEL.search(mark[2])
                start, label = mark.end(), found[1].lower() if found else ""
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield label, text[start : mark.start()]
    if depth:
        yield label, text[start:]


def _block(label: str, inside: str) -> str:
    inside = inside.strip()
    if label == "text" and not ("<" in inside and ">" in inside):
        return f"<p>{inside}</p>"
    return _outside_tables(inside, lambda part: _IMAGE.sub(_picture, _with_dollars(part)))


def _outside_tables(text: str, change: Callable[[str], str]) -> str:
    """The text with all changed that stands in no table; a table that never ends is none."""
    kept, end, depth, start = [], 0, 0, 0
    for mark in _TABLE.finditer(text):
        if not mark[1]:
            start = start if depth else mark.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                kept += [change(text[end:start]), text[start : mark.end()]]
                end = mark.end()
    return "".join([*kept, change(text[end:])])


def _with_dollars(text: str) -> str:
    """`<math>` as `$…$` or, if it is displayed, as `$$…$$` on lines of its own; one that never ends stays."""
    kept, end, opened = [], 0, None
    for mark in _MATH.finditer(text):
        if not mark[1]:
            opened = opened or mark
        elif opened:
            formula = text[opened.end() : mark.start()].strip()
            shown = f"\n$${formula}$$\n" if "block" in opened[2].lower() else f" ${formula}$ "
            kept += [text[end : opened.start()], shown]
            end, opened = mark.end(), None
    return "".join([*kept, text[end:]])


def _picture(tag: re.Match[str]) -> str:
    """A picture by its description; the file itself is no part of an answer."""
    alt = _ALT.search(tag[0])
    return f"![{html.unescape(alt[1] or alt[2] or '') if alt else ''}]()"
