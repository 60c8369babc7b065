"""Text in HTML as Markdown: headings, paragraphs, lists and line breaks; tables and code stay as they are."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

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
